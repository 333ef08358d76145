"""Is discovery lost on large areas? em-ptdm by windows, em-ptdm of the whole area, gp and others.

    python benchmarks/large_discovery.py --case balls-96 --tasks 0:4 --policies gp,em-ptdm
    python benchmarks/large_discovery.py --case balls-96 --tasks 0:2 --policies em-ptdm[windows=off]
    python benchmarks/large_discovery.py --case mosaics --tasks 0:4 --data tiles.npz
    python benchmarks/large_discovery.py --case species-melinus --tasks 0:1 --data records.csv.gz
    python benchmarks/large_discovery.py --add runs/more.json
    python benchmarks/large_discovery.py

A case is a family of tasks. Every search that ends is a row of the results (``--out``, .json). They
are the journal as well: a run goes on where it was stopped, cases, tasks and policies may be added
later, and a search that is in them is not run again; ``--add`` takes the rows of a run that was
written elsewhere (``--out``), as two at a time are. The table beside them (.md) has SR with 95 %
intervals over tasks, and differences of policies on the same tasks. A species map is one task, so
that all species maps are a table of their own, with one line a map.

Balls of 96 x 96 and 128 x 128 cells have nine and sixteen times the cells of the paper's area;
its 250 measurements in proportion are 2,250 and 4,000 (``--budget 2250``). The budgets of the cases
are a part of that, said in the table: an area of which less was measured is harder to search.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.suites import get_suite
from engram.bench.tables import interval, labels, paired, per_task
from engram.bench.units import peak_mb, reset_peak, row_labels, row_of
from engram.policies.spec import PolicyChoice, parse_policies
from engram.simulation import simulate

KEPT = ("sr", "mass", "recall", "random", "targets", "cells", "about")
"""What a row holds of a search, beside its labels and its cost."""

PARTS = (0.25, 0.5, 1.0)
"""Parts of the budget that are reported."""
FULL = (0.1, 0.2, 0.6, 0.8, 1.0)
"""The same of a budget in proportion to the cells: the paper's 150, 200, 250, and before."""

PAPER = 250 / 32**2
"""Measurements of the paper's largest budget for a cell of its ball tasks."""


SPECIES = (
    "Poecile atricapillus",
    "Cardinalis cardinalis",
    "Picoides pubescens",
    "Haemorhous mexicanus",
    "Cyanocitta cristata",
    "Sitta carolinensis",
    "Baeolophus bicolor",
    "Spinus pinus",
    "Strymon melinus",
)
"""Whose maps are searched."""


@dataclass(frozen=True)
class Case:
    """A family of tasks: of which suite, with which settings, and how many measurements.

    family : cases of one are tasks of one table;  words : what the table is of
    """

    suite: str
    settings: dict[str, Any]
    budget: int
    family: str
    words: str


CASES = {
    "balls-96": Case("balls", {"size": 96}, 1000, "balls-96", "balls of 96 x 96 cells"),
    "balls-128": Case("balls", {"size": 128}, 1500, "balls-128", "balls of 128 x 128 cells"),
    "mosaics": Case(
        "overhead", {"mosaic": 3}, 1000, "mosaics", "mosaics of 3 x 3 overhead tiles (96 x 96)"
    ),
    **{
        f"species-{name.split()[1]}": Case(
            "species",
            {"whole": 512, "species": name},
            1000,
            "species",
            "species in the whole of the paper's box, 313 x 512 cells, one map each",
        )
        for name in SPECIES
    },
}


def search(case: Case, data: list[str], choice: PolicyChoice, number: int) -> dict[str, Any]:
    """One search, as a row."""
    task = get_suite(case.suite).tasks(data, case.settings).task(number)
    reset_peak()
    began = time.process_time()
    trace = simulate(choice.build(task, case.budget, 0), task)
    spent = time.process_time() - began
    parts = FULL if case.budget >= PAPER * task.grid.n_cells else PARTS
    row = row_of(trace, [round(part * case.budget) for part in parts])
    return {
        "budget": case.budget,
        **row_labels(choice, number, 0),
        **{name: row[name] for name in KEPT},
        "cpu_seconds_per_observation": round(spent / case.budget, 4),
        "peak_rss_mb": peak_mb(),
        "commit": commit(),
    }


def read(out: Path) -> list[dict[str, Any]]:
    """The rows so far."""
    path = out.with_suffix(".json")
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Rows and table, at once."""
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    text = f'{{"machine": {json.dumps(machine())},\n "rows": [\n  {lines}\n ]\n}}\n'
    write_files({out.with_suffix(".json"): text, out.with_suffix(".md"): table(rows)})


def rates(rows: list[dict[str, Any]], at: list[int]) -> list[str]:
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


def differences(rows: list[dict[str, Any]], at: list[int]) -> list[str]:
    """em-ptdm minus each other policy on the same tasks."""
    lines = ["| difference | tasks | " + " | ".join(f"at {b:,}" for b in at) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(at))
    for other in labels(rows):
        both = [paired(rows, "em-ptdm", other, b) for b in at]
        if other != "em-ptdm" and both[0]["n"]:
            cells = [f"{found['mean']:+.3f}{_half(found)}" for found in both]
            lines.append(f"| em-ptdm - {other} | {both[0]['n']} | " + " | ".join(cells) + " |")
    return lines


def maps(rows: list[dict[str, Any]]) -> list[str]:
    """SR of every map after the last measurement, by policy, where each map is a case."""
    names, at = labels(rows), list(rows[0]["sr"])[-1]
    lines = [f"| SR at {int(at):,} | targets | " + " | ".join(names) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(names))
    for case in dict.fromkeys(row["case"] for row in rows):
        own = {row["policy"]: row for row in rows if row["case"] == case}
        cells = [f"{own[name]['sr'][at]:.3f}" if name in own else "" for name in names]
        targets = f"{next(iter(own.values()))['targets']:,}"
        species = CASES[case].settings["species"]
        lines.append(f"| *{species}* | {targets} | " + " | ".join(cells) + " |")
    return lines


def table(rows: list[dict[str, Any]]) -> str:
    """Every family with every budget that was run."""
    parts = []
    sorts = {(CASES[row["case"]].family, row["budget"]) for row in rows}
    for family, budget in sorted(sorts):
        own = [r for r in rows if (CASES[r["case"]].family, r["budget"]) == (family, budget)]
        several = len({row["case"] for row in own}) > 1
        each = [{**row, "task": (row["case"], row["task"])} for row in own]
        at = [int(b) for b in own[0]["sr"]]
        share = budget / (PAPER * own[0]["cells"])
        head = f"**{CASES[own[0]['case']].words}, {budget:,} measurements** ({share:.0%} of the "
        head += "paper's 250 for 32 x 32 cells, in proportion to the cells)"
        parts += [head, "", *rates(each, at), "", *differences(each, at), ""]
        parts += [*maps(own), ""] if several else []
    made = ", ".join(sorted({row["commit"] for row in rows}))
    parts.append(
        "± is half of the 95 % interval over tasks (Student's; of pairs for differences), seed 0, "
        f"one thread (`benchmarks/large_discovery.py` at {made})."
    )
    return "\n".join(parts) + "\n"


def key_of(row: dict[str, Any]) -> tuple[str, int, str, int]:
    """Which search a row is of."""
    return row["case"], row["budget"], row["policy"], row["task"]


def with_row(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with one more, in their order; one of the same search gives way."""
    kept = [other for other in rows if key_of(other) != key_of(row)]
    return sorted([*kept, row], key=lambda r: (r["case"], r["budget"], r["task"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES))
    parser.add_argument("--tasks", default="0:4", help="A:B, B not included")
    parser.add_argument("--policies", default="gp,em-ptdm")
    parser.add_argument("--budget", type=int, help="measurements (default: the case's)")
    parser.add_argument("--data", nargs="*", default=[])
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="results of other runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/large-discovery"))
    args = parser.parse_args()
    set_threads(1)
    for row in (row for path in args.add for row in read(path)):
        write(args.out, with_row(read(args.out), row))
    if args.case is not None:
        case = CASES[args.case]
        case = replace(case, budget=args.budget or case.budget)
        first, _, end = args.tasks.partition(":")
        choices = parse_policies(args.policies, preset="default", prior=args.prior)
        for number, choice in product(range(int(first), int(end)), choices):
            rows = read(args.out)
            key = (args.case, case.budget, choice.label, number)
            if key in map(key_of, rows):
                continue
            row = {"case": args.case, **search(case, args.data, choice, number)}
            write(args.out, with_row(rows, row))
            print(*key, row["sr"], row["cpu_seconds_per_observation"], flush=True)
    if rows := read(args.out):
        write(args.out, rows)
        print(table(rows))


if __name__ == "__main__":
    main()
