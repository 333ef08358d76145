"""How much better is the second copy predicted than the first?

    python benchmarks/second_copy.py [--tasks 2000:2012] [--prior universal] [--out FILE.md]
                                     [--picture FILE.png] [--pictured 2000,2001,2002]
                                     [--beside MEMORY] [--against FILE.json]

em-ptdm searches areas with copies of one shape (suite ``shapes``), and as a control areas whose
objects are all of different kinds (``kind=mixed``), where the first tells nothing of the next. Each
measurement in or next to an object after the first find in it is predicted with copies and
without, in the same search, from the measurements before it. A row is the mean log-likelihood, in
nats, over such measurements of an area by how many objects were touched before: the first, the
second, and so on. The gain is that with copies minus that without. How much better the second and
later ones are predicted than the first of the same area is said below the table, without copies
too: what memory and h learn of a shape while they search. ``--against`` is the result file of
another memory, whose gains are subtracted.

``--picture`` draws what is believed once the third object was hit for the first and for the third
time, with copies and without; with ``--beside`` also what another memory believes that is told the
same measurements and chooses none. ``--tasks 0:0`` draws alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter

from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.suites import get_suite
from engram.bench.tables import interval, plus_minus
from engram.grid import Cell
from engram.memory.library import load_memory
from engram.policies import make_policy
from engram.policies.base import log_likelihood
from engram.policies.emptdm import EmPtdm
from engram.reproduction.verdicts import verdict
from engram.tasks.base import Task

KINDS = {"copies of one shape": {}, "all objects different": {"kind": "mixed"}}
BUDGET = 250
PLACES = ("first", "second", "third", "fourth and later")
LEAST = 3
"""Measurements of a place in an area without which it is no row."""
SHOWN = (1, 3)
"""After how many finds in the third object it is drawn."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Step:
    """A measurement, and what was believed before it, (n_cells,), with copies and without.

    beside : the same by a memory that was told the same and chose nothing, without and with
    """

    index: int
    hit: bool
    ours: Array
    plain: Array
    beside: tuple[Array, ...] = ()


def _searching(task: Task, prior: str) -> EmPtdm:
    policy = make_policy("em-ptdm", task.grid, BUDGET, memory=load_memory(prior), seed=0)
    assert isinstance(policy, EmPtdm)
    return policy


def _asked(policy: EmPtdm) -> tuple[Cell, Array, Array]:
    """The cell it would measure, and what it believes without copies and with them."""
    cell, copied = policy.suggest()[0].cell, policy.believed().beliefs.copied
    assert copied is not None
    return cell, copied.others, copied.probability


def steps(task: Task, prior: str, beside: str = "") -> Iterator[Step]:
    """A search."""
    searching = [_searching(task, name) for name in (prior, beside) if name]
    for _ in range(BUDGET):
        (cell, plain, ours), *others = (_asked(policy) for policy in searching)
        seen = task.measure(cell)
        theirs = tuple(belief for _, *pair in others for belief in pair)
        yield Step(task.grid.index(cell), seen.outcome > 0, ours, plain, theirs)
        for policy in searching:
            policy.observe(seen)


def near(task: Task) -> NDArray[np.int32]:
    """(n_cells,) the object that a cell is part of or next to, by a side or a corner; 0 = none."""
    labels = np.asarray(task.facts["objects"])
    around = maximum_filter(labels, size=3)
    return np.where(labels > 0, labels, around).ravel()


def searched(task: Task, prior: str) -> dict[str, dict[str, float]]:
    """Mean log-likelihood with copies and without by place, and how many measurements it is of."""
    objects, order = near(task), dict[int, int]()
    said: dict[str, list[tuple[float, float]]] = {place: [] for place in PLACES}
    for step in steps(task, prior):
        number = int(objects[step.index])
        if number in order:
            place = PLACES[min(order[number], len(PLACES) - 1)]
            both = (float(p[step.index]) for p in (step.ours, step.plain))
            ours, plain = (log_likelihood(float(step.hit), p) for p in both)
            said[place].append((ours, plain))
        elif number and step.hit:
            order[number] = len(order)
    return {
        place: {
            "with": float(np.mean([ours for ours, _ in pairs])),
            "without": float(np.mean([plain for _, plain in pairs])),
            "count": len(pairs),
        }
        for place, pairs in said.items()
        if len(pairs) >= LEAST
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Places of both kinds of areas, as Markdown."""
    head = ("objects", "place", "areas", "without copies", "with copies", "gain")
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for kind in KINDS:
        for place in PLACES:
            found = [r["places"][place] for r in rows if r["kind"] == kind and place in r["places"]]
            without, ours = ([one[name] for one in found] for name in ("without", "with"))
            gains = [a - b for a, b in zip(ours, without, strict=True)]
            signs = ((without, ""), (ours, ""), (gains, "+"))
            cells = (plus_minus(interval(values), sign) for values, sign in signs)
            lines.append(" | ".join((kind, place, str(len(found)), *cells)))
    return "\n".join(f"| {line} |" for line in lines)


def _gains(rows: Sequence[dict[str, Any]], kind: str, name: str, place: str) -> dict[int, float]:
    """By task, how much better a place is predicted than the first of the same area."""
    areas = [(r["task"], r["places"]) for r in rows if r["kind"] == kind]
    return {
        task: places[place][name] - places[PLACES[0]][name]
        for task, places in areas
        if place in places and PLACES[0] in places
    }


def _said(values: Sequence[float]) -> str:
    pair = interval(values)
    return f"{verdict(pair).removesuffix(' from')} ({plus_minus(pair, '+')})"


def learnt(rows: Sequence[dict[str, Any]], other: dict[str, Any] | None) -> str:
    """How much better later objects are predicted than the first of the same area, in words, and
    how much more so than in the rows of another memory."""
    lines = []
    for kind in KINDS:
        for name in ("without", "with"):
            own = {place: _gains(rows, kind, name, place) for place in PLACES[1:]}
            said = [f"{place} {_said([*gains.values()])}" for place, gains in own.items()]
            lines.append(f"* {kind}, {name} copies, minus the first: {'; '.join(said)}.")
            if other:
                theirs = {place: _gains(other["rows"], kind, name, place) for place in own}
                more = [
                    f"{place} {_said([own[place][t] - theirs[place][t] for t in own[place]])}"
                    for place in own
                    if own[place].keys() == theirs[place].keys()
                ]
                lines.append(f"* the same minus that with `{other['prior']}`: {'; '.join(more)}.")
    return "\n".join(lines)


def pictured(task: Task, prior: str, beside: str) -> list[tuple[str, list[Array]]]:
    """Title, and what was measured and is believed without and with copies, each (rows, cols);
    by the memory beside it too, if there is one."""
    objects, order, finds = near(task), dict[int, int](), 0
    out: list[tuple[str, list[Array]]] = []
    known, due = np.full(task.grid.n_cells, 0.5), ""
    for step in steps(task, prior, beside):
        if due:
            beliefs = (known, step.plain, step.ours, *step.beside)
            out.append((due, [b.reshape(task.grid.rows, -1).copy() for b in beliefs]))
            due = ""
            if len(out) == len(SHOWN):
                break
        known[step.index] = float(step.hit)
        number = int(objects[step.index])
        if step.hit and number:
            order.setdefault(number, len(order))
            if order[number] == 2:
                finds += 1
                due = f"{finds} in the third" if finds in SHOWN else ""
    return out


def draw(tasks: Sequence[tuple[int, Task]], prior: str, beside: str, path: Path) -> None:
    """One row a moment: truth, measured, without copies, with them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [(n, task, *one) for n, task in tasks for one in pictured(task, prior, beside)]
    memories = [f"{name}, " if beside else "" for name in (prior, beside) if name]
    heads = [f"{name}{how} copies" for name in memories for how in ("without", "with")]
    size = (2.25 * (2 + len(heads)), 2.4 * len(shown))
    figure, axes = pyplot.subplots(len(shown), 2 + len(heads), figsize=size, squeeze=False)
    for row, (number, task, title, pictures) in zip(axes, shown, strict=True):
        truth = np.asarray(task.facts["objects"]) > 0
        titles = (f"task {number}: truth", f"measured, {title}", *heads)
        for axis, picture, words in zip(row, (truth, *pictures), titles, strict=True):
            axis.imshow(picture, vmin=0, vmax=1, cmap="viridis")
            axis.set_title(words, fontsize=9)
            axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="2000:2012")
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--pictured", default="2000,2001,2002")
    parser.add_argument("--beside", default="")
    parser.add_argument("--against", type=Path)
    args = parser.parse_args()
    set_threads(1)
    first, last = map(int, args.tasks.split(":"))
    rows = []
    for kind, settings in KINDS.items():
        tasks = get_suite("shapes").tasks([], settings)
        for number in range(first, last):
            places = searched(tasks.task(number), args.prior)
            rows.append({"kind": kind, "task": number, "places": places})
            print(kind, number, {k: round(v["with"] - v["without"], 3) for k, v in places.items()})
    if rows:
        other = json.loads(args.against.read_text()) if args.against else None
        made = (
            f"Nats a measurement in or next to an object, after the first find in it; ± is half of "
            f"the 95 % interval over areas. Memory `{args.prior}`, tasks {args.tasks} of suite "
            f"shapes, {BUDGET} measurements each (`benchmarks/second_copy.py` at {commit()})."
        )
        text = f"{table(rows)}\n\n{learnt(rows, other)}\n\n{made}\n"
        print(text)
        if args.out:
            kept = {"commit": commit(), "machine": machine(), "prior": args.prior, "rows": rows}
            whole = json.dumps(kept, indent=1) + "\n"
            write_files({args.out: text, args.out.with_suffix(".json"): whole})
    if args.picture:
        tasks = get_suite("shapes").tasks([], {})
        numbers = [int(n) for n in args.pictured.split(",")]
        draw([(n, tasks.task(n)) for n in numbers], args.prior, args.beside, args.picture)


if __name__ == "__main__":
    main()
