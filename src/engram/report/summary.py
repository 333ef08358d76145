"""The figures of a search in numbers and in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from engram.errors import InputError
from engram.metrics import expected_random_rate, gap_closed
from engram.simulation import Snapshot, Trace
from engram.tasks.base import Task

COLOURS = ("#3b82c4", "#e08a00", "#9b6bd3", "#1f9e9e", "#d6568f", "#a47b45")
"""One per policy; all readable on white and on black, none of them the green and red of finds."""
GREY = "#8b9096"


@dataclass(frozen=True, eq=False)
class Entry:
    """A trace with the name and colour it has in every figure."""

    label: str
    colour: str
    trace: Trace


@dataclass(frozen=True)
class Result:
    """One row of the table; None where a figure does not apply."""

    label: str
    budget: int
    found: float
    success_rate: float
    mass: float
    recall: float
    gap: float
    objects: float
    seconds: float | None = None
    evaluations: float | None = None


def entries_of(traces: Sequence[Trace]) -> list[Entry]:
    """Traces with distinct labels and colours; they must all be searches of one task."""
    if not traces:
        raise InputError("traces is empty: a report needs at least one search")
    task = traces[0].task
    for trace in traces:
        if not trace.cells:
            raise InputError(f"trace of {trace.policy!r} has no measurements: run the search first")
        if not _same_area(task, trace.task):
            raise InputError(
                f"traces of two tasks ({task.name!r} and {trace.task.name!r}) in one report; "
                "write one report per task"
            )
    palette = iter(COLOURS * (1 + len(traces) // len(COLOURS)))
    return [
        Entry(label, GREY if trace.policy == "random" else next(palette), trace)
        for label, trace in zip(_labels(traces), traces, strict=True)
    ]


def _same_area(one: Task, other: Task) -> bool:
    return one is other or (
        one.grid.cell == other.grid.cell
        and np.array_equal(one.content, other.content)
        and np.array_equal(one.target, other.target)
        and np.array_equal(one.grid.closed, other.grid.closed)
    )


def _labels(traces: Sequence[Trace]) -> list[str]:
    """Policy names; runs of the same policy are told apart by seed, then by number."""
    labels = [trace.policy for trace in traces]
    again = Counter(labels)
    labels = [
        f"{name} (seed {trace.seed})" if again[name] > 1 else name
        for name, trace in zip(labels, traces, strict=True)
    ]
    again = Counter(labels)
    return [f"{name} #{i + 1}" if again[name] > 1 else name for i, name in enumerate(labels)]


def stages(trace: Trace, most: int) -> list[Snapshot]:
    """At most ``most`` snapshots, evenly over those kept, the last one always among them."""
    kept = sorted(trace.snapshots, key=lambda s: s.t)
    if len(kept) <= most:
        return kept
    picks = np.unique(np.linspace(0, len(kept) - 1, most).round().astype(int))
    return [kept[i] for i in picks]


def result_of(entry: Entry) -> Result:
    """The figures of one search."""
    trace = entry.trace
    rate = trace.success_rate()
    return Result(
        label=entry.label,
        budget=trace.budget,
        found=trace.found,
        success_rate=rate,
        mass=trace.mass(),
        recall=trace.recall(),
        gap=gap_closed(rate, expected_random_rate(trace.task, trace.budget)),
        objects=trace.objects(),
        seconds=trace.seconds / len(trace.cells),
        evaluations=trace.evaluations / len(trace.cells),
    )


def random_result(task: Task, budget: int) -> Result:
    """What random search finds on average, exactly."""
    outcomes = task.outcomes[task.grid.open_cells]
    best = np.sort(outcomes)[::-1][:budget].sum()
    found = task.targets * budget / len(outcomes)
    return Result(
        label="random search, expected",
        budget=budget,
        found=found,
        success_rate=expected_random_rate(task, budget),
        mass=float(budget * outcomes.mean() / best),
        recall=found / task.targets,
        gap=0.0,
        objects=_expected_objects(task, budget),
    )


def object_sizes(task: Task) -> list[int]:
    """Of every separate target that can be reached: how many open cells hold some of it."""
    grid = task.grid
    labels = task.objects.reshape(grid.rows, grid.cell[0], grid.cols, grid.cell[1])
    labels = labels.transpose(0, 2, 1, 3).reshape(grid.n_cells, -1)[grid.open_cells]
    cells, places = np.nonzero(labels)
    count = int(labels.max(initial=0)) + 1
    inside = np.unique(cells * count + labels[cells, places]) % count  # once in each cell
    counts = np.bincount(inside)
    return sorted(counts[counts > 0].tolist())


def _expected_objects(task: Task, budget: int) -> float:
    r""":math:`\sum_k 1 - \binom{N - n_k}{B} / \binom{N}{B}` for targets of n_k among N cells."""
    cells = len(task.grid.open_cells)
    ways = comb(cells, budget)
    return sum(1 - comb(cells - size, budget) / ways for size in object_sizes(task))


def headline(entries: Sequence[Entry]) -> tuple[str, list[str]]:
    """The best search in one sentence, and one sentence for each of the others."""
    task = entries[0].trace.task
    ranked = sorted(entries, key=lambda e: e.trace.success_rate(), reverse=True)
    first = ranked[0]
    cells = len(task.grid.open_cells)
    lead = (
        f"{first.label} found {first.trace.found:,} of the {task.targets:,} target cells with "
        f"{_times(first.trace.budget)}, {first.trace.budget / cells:.0%} of the {cells:,} cells "
        f"of the area: {_against_random(first.trace)}"
    )
    others = [
        f"{entry.label} found {entry.trace.found:,} with {_times(entry.trace.budget)}: "
        f"{_against_random(entry.trace)}"
        for entry in ranked[1:]
    ]
    return lead, others


def _times(budget: int) -> str:
    return "1 measurement" if budget == 1 else f"{budget:,} measurements"


def _against_random(trace: Trace) -> str:
    expected = random_result(trace.task, trace.budget).found
    about = f"{expected:,.0f}" if expected >= 10 else f"{expected:.1f}"
    ratio = trace.found / expected
    if ratio >= 1.05:
        verdict = f"{ratio:.1f} times as many as"
    elif ratio > 0.95:
        verdict = "about as many as"
    else:
        verdict = "fewer than"
    return f"{verdict} the {about} that random search finds on average."
