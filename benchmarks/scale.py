"""What an answer costs as areas grow: seconds of one core and peak memory, 32 to 1,024 a side.

    python benchmarks/scale.py [--sizes 32,64,...] [--taken 200,2000] [--policies em-ptdm,gp]
                               [--answers 40] [--out benchmarks/results/scale]

Every case is a process of its own: a ball task of that size, the first answer of the empty area,
then ``taken`` measurements told at once, the answer after them, and ``answers`` rounds of suggest,
measure, observe. Four in five measurements are cells of balls and next to them, ball after ball as
a search finds them; one in five are spread over the area. Seconds are those of the processor, one
thread, so that other work on the machine does not count. 32 x 32 cells cannot take 2,000
measurements: their case has 901. Rows that are in the results already are kept, those of the same
case replaced: a table can be made in several runs, and each row says at which commit it was made.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation

from engram import load_memory, make_policy
from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.policies.base import Policy
from engram.policies.spread import spread_order
from engram.tasks.balls import ball_task
from engram.tasks.base import Task

SIZES = (32, 64, 128, 256, 512, 1024)
TAKEN = (200, 2000)
MOST_OF = 0.88
"""Share of an area that may be taken."""
SPREAD = 5
"""One in so many measurements is spread over the area."""


def earlier(task: Task, count: int) -> list[tuple[int, int]]:
    """Cells as a search takes them: balls with their edges, one after the other, and a design."""
    grid, objects = task.grid, task.facts["objects"]
    wide = [int(i) for i in spread_order(grid, 1)[: count // SPREAD]]
    near: list[int] = []
    for k in range(1, objects.max() + 1):
        if len(near) >= count:
            break
        rows, cols = np.nonzero(objects == k) if objects.size < 20_000 else _found(objects, k)
        near += sorted(_edged(rows, cols, grid.rows, grid.cols))
    rest = [int(i) for i in spread_order(grid, 2)]
    cells = list(dict.fromkeys([*wide, *near[: count - len(wide)], *rest]))[:count]
    return [grid.at(i) for i in cells]


def _found(objects: Any, k: int) -> tuple[Any, Any]:
    """Cells of one object of a large area."""
    first = int(np.argmax(objects == k))
    row, col = divmod(first, objects.shape[1])
    rows, cols = slice(row, row + 9), slice(max(col - 9, 0), col + 10)
    down, right = np.nonzero(objects[rows, cols] == k)
    return down + row, right + cols.start


def _edged(rows: Any, cols: Any, height: int, width: int) -> list[int]:
    """Flat indices of some cells and of those next to them."""
    top, left = int(rows.min()) - 1, int(cols.min()) - 1
    box = np.zeros((int(np.ptp(rows)) + 3, int(np.ptp(cols)) + 3), bool)
    box[rows - top, cols - left] = True
    down, right = np.nonzero(binary_dilation(box))
    kept = (down + top >= 0) & (down + top < height) & (right + left >= 0) & (right + left < width)
    return ((down + top) * width + right + left)[kept].tolist()


def seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


def one_round(policy: Policy, task: Task) -> None:
    policy.observe(task.measure(policy.suggest()[0].cell))


def case(name: str, size: int, taken: int, answers: int) -> dict[str, Any]:
    """One row."""
    set_threads(1)
    task = ball_task(0, size=size)
    count = min(taken, int(MOST_OF * task.grid.n_cells))
    budget = min(2 * count, task.grid.n_cells)
    given = {} if name == "gp" else {"memory": load_memory("universal")}
    make_policy("gp", ball_task(0).grid, 5).suggest()  # libraries are loaded
    made: list[Policy] = []
    build = seconds(lambda: made.append(make_policy(name, task.grid, budget, **given)))
    policy = made[0]
    first = seconds(policy.suggest)
    policy.observe([task.measure(cell) for cell in earlier(task, count)])
    after = seconds(policy.suggest)
    each = [seconds(lambda: one_round(policy, task)) for _ in range(answers)]
    return {
        "policy": name,
        "size": size,
        "taken": count,
        "make": build,
        "first": first,
        "after": after,
        "median": float(np.median(each)),
        "mean": float(np.mean(each)),
        "worst": max(each),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "each": each,
        "answers": answers,
        "commit": commit(),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, each answer beside that of the smallest area."""
    lines = [
        "| policy | cells a side | measured | first answer, empty (s) | answer: median (ms) "
        "| mean | worst | median, times the smallest | mean, times the smallest | peak MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    smallest: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        few = 0 if row["taken"] <= TAKEN[0] else 1
        base = smallest.setdefault((row["policy"], few), row)
        first = row["make"] + row["first"]
        times = [f"{row[name] / base[name]:.2f}" for name in ("median", "mean")]
        milli = [f"{1000 * row[name]:.1f}" for name in ("median", "mean", "worst")]
        cells = [row["policy"], row["size"], row["taken"], f"{first:.2f}", *milli, *times]
        lines.append("| " + " | ".join(map(str, [*cells, f"{row['peak_mb']:.0f}"])) + " |")
    return "\n".join(lines)


def case_of(row: dict[str, Any]) -> tuple[str, bool, int]:
    """Policy, whether many were taken, size: the order of the table."""
    return row["policy"], row["taken"] > TAKEN[0], row["size"]


def added(rows: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with a new one, in the place of an older one of its case."""
    return sorted([*(r for r in rows if case_of(r) != case_of(new)), new], key=case_of)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Figures and table."""
    made = ", ".join(sorted({row["commit"] for row in rows}))
    answers = " or ".join(sorted({str(row["answers"]) for row in rows}))
    text = (
        f"{table(rows)}\n\nSeconds of one core, one thread, {answers} answers each; cases that are "
        f"not in the table were not run (`benchmarks/scale.py` at {made}).\n"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    facts = {"machine": machine(), "rows": rows}
    files = {out.with_suffix(".json"): json.dumps(facts, indent=1) + "\n"}
    write_files({**files, out.with_suffix(".md"): text})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--taken", default=",".join(map(str, TAKEN)))
    parser.add_argument("--policies", default="em-ptdm,gp")
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scale"))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sizes, counts = ([int(v) for v in given.split(",")] for given in (args.sizes, args.taken))
    if args.one:
        print(json.dumps(case(args.policies, sizes[0], counts[0], args.answers)))
        return
    path = args.out.with_suffix(".json")
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in rows if "make" in row]  # those of another format are made again
    for name in args.policies.split(","):
        for count in counts:
            for size in sizes:
                command = [sys.executable, __file__, "--one", "--policies", name]
                command += ["--sizes", str(size), "--taken", str(count)]
                command += ["--answers", str(args.answers)]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                rows = added(rows, json.loads(found.stdout.splitlines()[-1]))
                write(args.out, rows)
    print(table(rows))


if __name__ == "__main__":
    main()
