"""What is left to win by knowing the shape: searches that are told it, beside those that learn it.

    python benchmarks/known_shape.py [--tasks 0:24] [--prior universal] [--out FILE]

em-ptdm searches areas with copies of one shape (suite ``shapes``) three times: without copies, as
it is (templates are what the search has outlined, ``engram.policies.templates``), and with the true
shape as its one template from the first measurement on, which no search can have. The last minus
the second is what better outlines, or a network that copies, could add at the most by knowing
shape; where it arises is told by the misses between one budget and the next. Every search that ends
is a row of the results; a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from engram import load_memory, make_policy
from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.suites import get_suite
from engram.bench.tables import interval, markdown, paired, plus_minus
from engram.bench.units import row_of
from engram.policies import copies
from engram.policies.templates import CLEAR, Template
from engram.simulation import simulate
from engram.tasks.base import Task

BUDGET, AT = 250, (50, 100, 150, 200, 250)
WAYS = ("without copies", "as it is", "told the shape")
FAR = -100
"""Row and column of a template that lies in no part of the area."""


def true_template(task: Task) -> Template:
    """The first object of the area, and the cells around it."""
    rows, cols = np.nonzero(task.facts["objects"] == 1)
    body = np.zeros((int(np.ptp(rows)) + 3, int(np.ptp(cols)) + 3), bool)
    body[rows - rows.min() + 1, cols - cols.min() + 1] = True
    near = np.zeros_like(body)
    for down, right in product((-1, 0, 1), repeat=2):
        near |= np.roll(body, (down, right), (0, 1))
    target = np.clip(body.astype(np.float64), CLEAR, 1 - CLEAR)
    return Template(target, near, (FAR, FAR), 0.0)


def search(task: Task, way: str, prior: str) -> dict[str, Any]:
    """Success rates of one search."""
    options = {"copies": False} if way == WAYS[0] else {}
    policy = make_policy("em-ptdm", task.grid, BUDGET, memory=load_memory(prior), **options)
    if way != WAYS[2]:
        return row_of(simulate(policy, task), AT)
    told = [true_template(task)]
    with patch.object(copies, "templates", lambda *_: told):
        return row_of(simulate(policy, task), AT)


def table(rows: list[dict[str, Any]], prior: str) -> str:
    """Success rates, the difference, and misses from one budget to the next."""
    lines, count = [], len({row["task"] for row in rows})
    for way in WAYS:
        own = [row["sr"] for row in rows if row["policy"] == way]
        rates = [plus_minus(interval([sr[str(b)] for sr in own])) for b in AT]
        lines.append([f"SR {way}", *rates])
    for one, other in pairwise(reversed(WAYS)):
        pairs = [paired(rows, one, other, b) for b in AT]
        lines.append([f"{one} - {other}", *(plus_minus(pair, "+") for pair in pairs)])
    for way in WAYS[1:]:
        own = [row for row in rows if row["policy"] == way]
        found = [np.mean([r["sr"][str(b)] * min(b, r["targets"]) for r in own]) for b in AT]
        missed = np.diff(np.array(AT) - np.array(found), prepend=0.0)
        lines.append([f"misses since the last budget, {way}", *(f"{m:.1f}" for m in missed)])
    made = ", ".join(sorted({row["commit"] for row in rows}))
    note = (
        f"Suite `shapes`, {count} tasks, memory `{prior}`; ± is half of the 95 % interval, of "
        f"pairs for differences (`benchmarks/known_shape.py` at {made})."
    )
    return markdown((["", *(f"at {b}" for b in AT)], lines)) + f"\n{note}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:24", help="A:B, B not included")
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/known-shape"))
    args = parser.parse_args()
    set_threads(1)
    path, (begin, end) = args.out.with_suffix(".json"), map(int, args.tasks.split(":"))
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    tasks = get_suite("shapes").tasks([], {})
    for number, way in product(range(begin, end), WAYS):
        if (number, way) in {(row["task"], row["policy"]) for row in rows}:
            continue
        row = search(tasks.task(number), way, args.prior)
        kept = {name: row[name] for name in ("sr", "targets", "random")}
        rows.append({"policy": way, "task": number, "seed": 0, "commit": commit(), **kept})
        text = json.dumps({"machine": machine(), "prior": args.prior, "rows": rows}, indent=1)
        write_files({path: text + "\n"})
        print(number, way, rows[-1]["sr"], flush=True)
    write_files({args.out.with_suffix(".md"): table(rows, args.prior)})
    print(table(rows, args.prior))


if __name__ == "__main__":
    main()
