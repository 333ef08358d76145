"""The unit of work of a benchmark: one policy, one task, one seed -> one row."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.bench.known import Known
from engram.bench.pool import Report
from engram.bench.suites import get_suite
from engram.metrics import expected_random_rate
from engram.policies.spec import PolicyChoice, Value

if TYPE_CHECKING:
    from engram.simulation import Trace

Row = dict[str, Any]

BINS = 10
"""Bins of the calibration counts kept in every row."""
TRACK = 10
"""Measurements between two comparisons of beliefs with the truth, unless told otherwise."""

NOTES = {
    "sr": "queried cells that contain target, over min(budget, targets)",
    "mass": "sum of outcomes over the largest sum that many cells could give",
    "recall": "queried cells that contain target, over all cells that do",
    "random": "expected sr of random search, exact",
    "hits": "numbers of the measurements, from 1, that found target",
    "objects": "separate targets touched",
    "evidence_mean": "mean log-likelihood of each outcome before it was seen",
    "evidence_of": "the same by part of the engine: the memory alone, after h, the process, copies",
    "updates": "every update of the transient memory and the evidence before and after it",
    "calibration": "per tenth of forecast probability: count, sum of forecasts, visited cells that "
    "hold target",
    "revisits": "visits of cells that were visited before, where a visit may miss a target",
    "false_alarms": "visits that reported a target that is not there",
    "l2": "every 10 measurements (t), root mean squared distance of beliefs to the truth: of the "
    "forecast over cells and over target cells, of the imagined content over pixels and over "
    "target pixels",
    "about": "what the task is, as its maker says",
    "seconds_per_observation": "wall time of suggest and observe on one thread, all included",
    "network_evaluations_per_observation": "evaluations of the memory's network, in passes of 16 "
    "images; a pass back to the input counts as one more",
    "peak_rss_mb": "largest resident memory of the worker process while it ran this unit, "
    "with the interpreter and all libraries that this or earlier units loaded (Linux; elsewhere "
    "the largest since the worker started)",
}


@dataclass(frozen=True)
class Unit:
    """One search; everything a worker needs to know, by value."""

    suite: str
    choice: PolicyChoice
    task: int
    seed: int
    budget: int
    at: tuple[int, ...]
    settings: tuple[tuple[str, Value], ...] = ()
    data: tuple[str, ...] = ()
    known: Known = field(default_factory=Known, kw_only=True)
    track: int = field(default=TRACK, kw_only=True)

    @property
    def label(self) -> str:
        """What its row calls the policy."""
        return self.choice.label

    @property
    def key(self) -> str:
        """Names the unit within one benchmark."""
        return f"{self.label} task {self.task} seed {self.seed}"

    def __str__(self) -> str:
        return f"{self.suite}: {self.key}"

    def run(self, report: Report) -> Row:
        """Search one task with one policy."""
        from engram.simulation import simulate

        tasks = get_suite(self.suite).tasks(self.data, dict(self.settings))
        task = self.known.told(tasks.task(self.task), self.task)
        reset_peak()
        policy = self.choice.build(task, self.budget, self.seed)
        trace = simulate(policy, task, track=self.track, progress=report)
        labels = row_labels(self.choice, self.task, self.seed)
        return {**labels, **row_of(trace, self.at), "peak_rss_mb": peak_mb()}


def run_unit(unit: Unit, report: Report) -> Row:
    """What a worker does with a unit."""
    return unit.run(report)


def row_labels(choice: PolicyChoice, task: int, seed: int) -> Row:
    """What a row is about."""
    return {
        "policy": choice.label,
        "preset": choice.preset,
        "prior": choice.prior if choice.needs_memory else None,
        "task": task,
        "seed": seed,
    }


def row_of(trace: Trace, at: Iterable[int]) -> Row:
    """Figures of one search; those that depend on the budget are keyed by it, as text."""
    at, task = tuple(at), trace.task
    accepted = sum(bool(update.get("accepted")) for update in trace.updates)
    row: Row = {
        "sr": {str(b): trace.success_rate(b) for b in at},
        "mass": {str(b): trace.mass(b) for b in at},
        "recall": {str(b): trace.recall(b) for b in at},
        "objects": {str(b): trace.objects(b) for b in at},
        "random": {str(b): expected_random_rate(task, b) for b in at},
        "targets": task.targets,
        "cells": len(task.grid.open_cells),
        "objects_in_task": len(np.unique(task.objects[task.objects > 0])),
        "hits": [i + 1 for i, outcome in enumerate(trace.finds) if outcome > 0],
        "evidence_mean": float(np.mean(trace.evidence)) if trace.evidence else None,
        "evidence_of": {name: float(np.mean(v)) for name, v in trace.stages.items() if v},
        "updates_accepted": accepted,
        "updates_rolled_back": len(trace.updates) - accepted,
        "updates": [
            {key: np.asarray(value).item() for key, value in update.items()}
            for update in trace.updates
        ],
        "calibration": calibration_bins(trace.forecast, trace.held),
        **visits_of(trace),
        "l2": tracked_curves(trace.tracked),
        "about": {k: v for k, v in task.facts.items() if isinstance(v, str | int)},
        "seconds_per_observation": trace.seconds / trace.budget,
        "network_evaluations_per_observation": trace.evaluations / trace.budget,
    }
    return row


def visits_of(trace: Trace) -> Row:
    """How often cells were visited, where a visit may miss a target."""
    if trace.task.detection.perfect:
        return {}
    again = len(trace.cells) - len(set(trace.cells))
    false = sum(y > 0 and truth == 0 for y, truth in zip(trace.outcomes, trace.held, strict=True))
    return {"revisits": again, "false_alarms": false}


def tracked_curves(tracked: Sequence[dict[str, float]]) -> dict[str, list[float]] | None:
    """Distances to the truth, name -> one number per comparison."""
    if not tracked:
        return None
    return {name: [round(point[name], 4) for point in tracked] for name in tracked[0]}


def calibration_bins(
    forecasts: Sequence[float], outcomes: Sequence[float]
) -> dict[str, list[float]] | None:
    """Counts, sums of forecasts and hits (y > 0) per bin: they add up over searches."""
    if not forecasts:
        return None
    p = np.asarray(forecasts, float)
    hit = np.asarray(outcomes, float) > 0
    which = np.clip((p * BINS).astype(int), 0, BINS - 1)
    return {
        "count": np.bincount(which, minlength=BINS).tolist(),
        "forecast": np.bincount(which, p, BINS).tolist(),
        "hits": np.bincount(which[hit], minlength=BINS).tolist(),
    }


def reset_peak() -> None:
    """Start a new high-water mark of resident memory, where the system can."""
    if sys.platform == "linux":
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return


def peak_mb() -> float:
    """High-water mark of resident memory, in MB of 2^20 bytes."""
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / 2**20 if sys.platform == "darwin" else peak / 1024, 1)
