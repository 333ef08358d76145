"""Is discovery lost on large areas? em-ptdm by windows, em-ptdm of the whole area, gp and others.

    python benchmarks/large_discovery.py --case balls-96 --tasks 0:4 --policies gp,em-ptdm
    python benchmarks/large_discovery.py --case balls-96 --tasks 0:2 --policies em-ptdm[windows=off]
    python benchmarks/large_discovery.py --case mosaics --tasks 0:4 --data tiles.npz
    python benchmarks/large_discovery.py --table

A case is a family of tasks with a budget. Every search that ends is a line of the journal
(``--journal``), so that a run goes on where it was stopped and cases may be added later; a search
that is in it is not run again. ``--table`` writes what the journal holds as a table: SR with 95 %
intervals over tasks, and differences of policies on the same tasks.

Balls of 96 x 96 and 128 x 128 cells have nine and sixteen times the cells of the paper's area;
its budgets in proportion would be 2,250 and 4,000 measurements. The budgets here are a part of
that, said in the table, because the whole area at once costs seconds an answer.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.suites import get_suite
from engram.bench.tables import interval, labels, paired, per_task
from engram.bench.units import peak_mb, reset_peak, row_labels, row_of
from engram.policies.spec import parse_policies
from engram.simulation import simulate

KEPT = ("sr", "mass", "recall", "random", "targets", "cells", "hits", "about")
"""What the journal holds of a search, beside its labels and its cost."""


@dataclass(frozen=True)
class Case:
    """A family of tasks: of which suite, with which settings, and the budgets that are reported."""

    suite: str
    settings: dict[str, Any]
    at: tuple[int, ...]
    words: str
    prior: str = "universal"
    data: tuple[str, ...] = field(default=())


CASES = {
    "balls-96": Case(
        "balls",
        {"size": 96},
        (250, 500, 1000),
        "balls of 96 x 96 cells (1,000 measurements are 44 % of the paper's in proportion)",
    ),
    "balls-128": Case(
        "balls",
        {"size": 128},
        (500, 1000, 1500),
        "balls of 128 x 128 cells (1,500 measurements are 38 % of the paper's in proportion)",
    ),
}


def search(case: Case, data: list[str], policy: str, number: int) -> dict[str, Any]:
    """One search, as a line of the journal."""
    choice = parse_policies(policy, preset="default", prior=case.prior)[0]
    task = get_suite(case.suite).tasks(data, case.settings).task(number)
    reset_peak()
    began = time.process_time()
    trace = simulate(choice.build(task, max(case.at), 0), task)
    spent = time.process_time() - began
    row = row_of(trace, case.at)
    return {
        **row_labels(choice, number, 0),
        **{name: row[name] for name in KEPT},
        "cpu_seconds_per_observation": spent / max(case.at),
        "peak_rss_mb": peak_mb(),
        "commit": commit(),
    }


def read(journal: Path) -> list[dict[str, Any]]:
    """The rows of a journal; a last line that was cut is left out."""
    rows = []
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def rates(rows: list[dict[str, Any]], at: tuple[int, ...]) -> list[str]:
    """SR by policy and budget, and what an answer cost."""
    lines = ["| policy | tasks | " + " | ".join(f"SR at {b:,}" for b in at)]
    lines[0] += " | CPU seconds an answer | peak MB |"
    lines.append("| --- | ---: |" + " ---: |" * (len(at) + 2))
    for name in labels(rows):
        own = [row for row in rows if row["policy"] == name]
        cells = [name, str(len(own))]
        for b in at:
            found = interval([*per_task(rows, name, lambda row, b=b: row["sr"][str(b)]).values()])
            cells.append(f"{found['mean']:.3f}{_half(found)}")
        costs = [row["cpu_seconds_per_observation"] for row in own]
        cells += [f"{sum(costs) / len(costs):.2f}", f"{max(r['peak_rss_mb'] for r in own):.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    chance = [interval([row["random"][str(b)] for row in rows])["mean"] for b in at]
    lines.append("| (chance) | | " + " | ".join(f"{v:.3f}" for v in chance) + " | | |")
    return lines


def _half(found: dict[str, Any]) -> str:
    return "" if found["ci95"] is None else f" ± {found['ci95'][1] - found['mean']:.3f}"


def differences(rows: list[dict[str, Any]], at: tuple[int, ...]) -> list[str]:
    """em-ptdm minus each other policy on the same tasks."""
    lines = ["| difference | tasks | " + " | ".join(f"at {b:,}" for b in at) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(at))
    for other in labels(rows):
        both = [paired(rows, "em-ptdm", other, b) for b in at]
        if other != "em-ptdm" and both[0]["n"]:
            cells = [f"{found['mean']:+.3f}{_half(found)}" for found in both]
            lines.append(f"| em-ptdm - {other} | {both[0]['n']} | " + " | ".join(cells) + " |")
    return lines


def table(rows: list[dict[str, Any]]) -> str:
    """Every case of a journal."""
    parts = []
    for name, case in CASES.items():
        own = [row for row in rows if row["case"] == name]
        if own:
            head = f"**{case.words[0].upper()}{case.words[1:]}**"
            parts += [head, "", *rates(own, case.at), "", *differences(own, case.at), ""]
    made = ", ".join(sorted({row["commit"] for row in rows}))
    parts.append(
        "± is half of the 95 % interval over tasks (Student's; of pairs for differences), seed 0, "
        f"one thread (`benchmarks/large_discovery.py` at {made})."
    )
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES))
    parser.add_argument("--tasks", default="0:4", help="A:B, B not included")
    parser.add_argument("--policies", default="gp,em-ptdm")
    parser.add_argument("--data", nargs="*", default=[])
    parser.add_argument("--journal", type=Path, default=Path("runs/large-discovery.jsonl"))
    parser.add_argument("--table", action="store_true", help="write the table of the journal")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/large-discovery"))
    args = parser.parse_args()
    set_threads(1)
    if args.case is not None:
        case = CASES[args.case]
        first, _, end = args.tasks.partition(":")
        choices = parse_policies(args.policies, preset="default", prior=case.prior)
        args.journal.parent.mkdir(parents=True, exist_ok=True)
        for number in range(int(first), int(end)):
            for choice in choices:
                key = (args.case, choice.label, number)
                done = {(r["case"], r["policy"], r["task"]) for r in read(args.journal)}
                if key in done:
                    continue
                row = {"case": args.case, **search(case, args.data, choice.label, number)}
                with args.journal.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(*key, row["sr"], f"{row['cpu_seconds_per_observation']:.3f}", flush=True)
    if args.table:
        rows = sorted(read(args.journal), key=lambda row: (row["case"], row["task"]))
        facts = {"machine": machine(), "rows": rows}
        files = {args.out.with_suffix(".json"): json.dumps(facts, indent=1) + "\n"}
        write_files({**files, args.out.with_suffix(".md"): table(rows)})
        print(table(rows))


if __name__ == "__main__":
    main()
