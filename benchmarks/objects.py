"""Separate targets touched: ``goal=objects`` beside the default goal and two designs that learn
nothing.

    python benchmarks/objects.py --overhead TILES.npz [--suites balls,shapes,overhead]
                                 [--tasks 0:12] [--overhead-tasks 0:12] [--policies ...]
                                 [--prior universal] [--rows FILE] [--only-kept]
                                 [--searched COMMIT] [--out FILE.md]

Every policy searches every task with the same budget; rows hold the separate targets touched
after 50, 100, 150 and 250 measurements, and the success rate. Rows that stand in ``--rows`` are not
run again; with ``--only-kept`` nothing is run, and a policy may have searched fewer tasks than
another. ``--out`` writes the tables as Markdown and the rows as JSON beside it. What the tables
say of a difference is computed from its interval, paired over tasks.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram._threads import set_threads
from engram.bench.provenance import commit
from engram.bench.suites import get_suite
from engram.bench.tables import interval, labels, paired_by, per_task, plus_minus
from engram.bench.units import Row, row_labels, row_of
from engram.policies.separate import groups_of
from engram.policies.spec import PolicyChoice, parse_policies
from engram.reproduction.verdicts import verdict
from engram.simulation import simulate
from engram.tasks.base import Task

AT = (50, 100, 150, 250)
POLICIES = "random,spread,gp,em-ptdm,gp[goal=objects],em-ptdm[goal=objects]"
KEPT = ("sr", "objects", "objects_in_task", "targets", "hits", "seconds_per_observation")
"""What is kept of a row."""


def searched(task: Task, number: int, choice: PolicyChoice) -> Row:
    """One search; the seed is the number of the task."""
    trace = simulate(choice.build(task, AT[-1], number), task)
    figures = row_of(trace, AT)
    hits = np.array(trace.outcomes) > 0
    finds = [np.array([task.grid.index(c) for c in trace.cells])[:b][hits[:b]] for b in AT]
    groups = {str(b): groups_of(task.grid, found) for b, found in zip(AT, finds, strict=True)}
    return {
        **row_labels(choice, number, number),
        **{name: figures[name] for name in KEPT},
        "groups": groups,
    }


def tasks_of(suite: str, numbers: range, overhead: Path | None) -> Iterator[tuple[int, Task]]:
    """Tasks of a suite by number."""
    if suite == "overhead" and overhead is None:
        raise SystemExit("give the tiles: --overhead TILES.npz, or leave the suite out")
    data = (str(overhead),) if suite == "overhead" else ()
    tasks = get_suite(suite).tasks(data, {})
    for number in numbers:
        yield number, tasks.task(number)


def objects_table(rows: Sequence[Row]) -> str:
    """Targets touched by each policy at each budget, with the interval over tasks."""
    there = {row["task"]: row["objects_in_task"] for row in rows}
    head = ["policy", "tasks", *(f"targets touched at {b}" for b in AT), "SR at 250"]
    lines = [head, ["---"] * len(head)]
    for name in labels(rows):
        touched = [per_task(rows, name, _touched(b)) for b in AT]
        cells = [plus_minus(interval([*found.values()])) for found in touched]
        rate = np.mean([*per_task(rows, name, lambda row: row["sr"][str(AT[-1])]).values()])
        lines.append([name, str(len(touched[0])), *cells, f"{rate:.3f}"])
    all_of_them = f"{np.mean([*there.values()]):.1f}"
    lines.append(["(there are)", str(len(there)), *[all_of_them] * len(AT), ""])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _touched(budget: int, share: bool = False) -> Callable[[Row], float]:
    """Targets touched, or their share of all there are."""
    return lambda row: row["objects"][str(budget)] / (row["objects_in_task"] if share else 1)


def differences(rows: Sequence[Row]) -> str:
    """Where a goal is above, below or not told apart from the others, by paired intervals."""
    names, lines = labels(rows), []
    for name in [one for one in names if "goal=objects" in one]:
        for rival in [one for one in ("random", "spread", name.partition("[")[0]) if one in names]:
            for share, what in ((False, "targets"), (True, "share of all targets")):
                pairs = [(b, paired_by(rows, name, rival, _touched(b, share))) for b in AT]
                said = ", ".join(
                    f"{plus_minus(pair, '+')} at {b} ({kind_of(pair)})" for b, pair in pairs
                )
                lines.append(f"* {name} - {rival}, {what} ({pairs[0][1]['n']} tasks): {said}")
    return "\n".join(lines)


def kind_of(pair: dict[str, Any]) -> str:
    """above, below, level (the same on every task), or not told apart."""
    if pair["wins"] == pair["losses"] == 0:
        return "level on every task"
    return verdict(pair).removesuffix(" from").removesuffix(" against")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", default="balls,shapes,overhead")
    parser.add_argument("--tasks", default="0:12")
    parser.add_argument("--overhead", type=Path, help="tiles of the suite overhead (.npz)")
    parser.add_argument("--overhead-tasks", help="numbers of tiles, as --tasks", default="0:12")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--rows", type=Path, help="rows of searches done, one JSON a line")
    parser.add_argument("--only-kept", action="store_true")
    parser.add_argument("--searched", help="commit of the searches kept", default="")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    choices = parse_policies(args.policies, preset="default", prior=args.prior)
    done: dict[tuple[str, str, int], Row] = {}
    if args.rows is not None and args.rows.exists():
        for line in args.rows.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            done[row["suite"], row["policy"], row["task"]] = row
    found: list[Row] = []
    for suite in args.suites.split(","):
        first, last = (
            int(v) for v in (args.overhead_tasks if suite == "overhead" else args.tasks).split(":")
        )
        for number, task in tasks_of(suite, range(first, last), args.overhead):
            for choice in choices:
                key = suite, choice.label, number
                if key not in done and args.only_kept:
                    continue
                if key not in done:
                    done[key] = {"suite": suite, **searched(task, number, choice)}
                    if args.rows is not None:
                        with args.rows.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(done[key]) + "\n")
                found.append(done[key])
    text = "\n\n".join(
        f"**{suite}**, tasks {args.overhead_tasks if suite == 'overhead' else args.tasks}\n\n"
        f"{objects_table(rows)}\n\n{differences(rows)}"
        for suite in args.suites.split(",")
        if (rows := [r for r in found if r["suite"] == suite])
    )
    facts = {
        "commit": commit(),
        "searched": args.searched or commit(),
        "suites": args.suites,
        "tasks": args.tasks,
        "overhead_tasks": args.overhead_tasks,
        "prior": args.prior,
        "budget": AT[-1],
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    print(text)
    if args.out:
        args.out.write_text(f"{text}\n\n<!-- {json.dumps(facts)} -->\n", encoding="utf-8")
        head = f'{{"format": "engram-objects-1", "facts": {json.dumps(facts)}, "rows": ['
        lines = ",\n".join(json.dumps(row) for row in found)
        args.out.with_suffix(".json").write_text(f"{head}\n{lines}\n]}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
