"""Sequences of tasks under one permanent memory that may learn from each finished task.

After a task, samples of the posterior given all its measurements, together with those of the
tasks before it, become lessons of a new memory (``memory.consolidation``), which searches the
next task. The unit of work is a whole sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.bench.pool import Report
from engram.bench.runner import Plan
from engram.bench.suites import get_suite
from engram.bench.units import TRACK, Row, Unit, peak_mb, reset_peak, row_labels, row_of
from engram.reproduction.published import UPDATED

if TYPE_CHECKING:
    from torch import Tensor

RATES = ("sr", "mass", "recall", "objects", "random")
COSTS = (
    "updates_accepted",
    "updates_rolled_back",
    "seconds_per_observation",
    "network_evaluations_per_observation",
)


@dataclass(frozen=True)
class SequenceUnit(Unit):
    """Sequence number ``task``: tasks task x length, ..., one after the other.

    lessons : training steps after each task; 0 = the memory stays as it is
    """

    length: int = 2
    lessons: int = 0

    @property
    def label(self) -> str:
        return self.choice.label + (UPDATED if self.lessons else "")

    @property
    def key(self) -> str:
        return f"{self.label} sequence {self.task} seed {self.seed}"

    def run(self, report: Report) -> Row:
        from engram.experience import posterior_samples
        from engram.memory.consolidation import ConsolidationPlan, consolidate
        from engram.memory.library import load_memory
        from engram.policies import make_policy
        from engram.simulation import simulate

        tasks = get_suite(self.suite).tasks(self.data, dict(self.settings))
        memory = load_memory(self.choice.prior)
        options: dict[str, Any] = dict(self.choice.options)
        reset_peak()
        steps: list[Row] = []
        lessons: list[Tensor] = []
        for position in range(self.length):
            task = tasks.task(self.task * self.length + position)
            policy = make_policy(
                self.choice.name,
                task.grid,
                self.budget,
                seed=self.seed,
                memory=memory,
                preset=self.choice.preset,
                **options,
            )
            trace = simulate(policy, task, track=TRACK, progress=report)
            steps.append({"task": self.task, "position": position, "policy": self.label})
            steps[-1] |= row_of(trace, self.at)
            if self.lessons and position + 1 < self.length:
                lessons.append(posterior_samples(policy))
                plan = ConsolidationPlan(steps=self.lessons, seed=self.seed)
                memory = consolidate(memory, lessons, plan)
        labels = row_labels(self.choice, self.task, self.seed) | {"policy": self.label}
        return {**labels, **sequence_row(steps), "peak_rss_mb": peak_mb()}


def sequence_row(steps: list[Row]) -> Row:
    """Figures of a sequence: means over its tasks from the second on; the tasks in ``steps``."""
    later = steps[1:]
    row: Row = {
        name: {b: float(np.mean([s[name][b] for s in later])) for b in later[0][name]}
        for name in RATES
    }
    row |= {name: float(np.mean([s[name] for s in later])) for name in COSTS}
    row["calibration"] = {
        name: np.sum([s["calibration"][name] for s in later], axis=0).tolist()
        for name in later[0]["calibration"]
    }
    row["hits"] = later[-1]["hits"]
    row["steps"] = steps
    return row


@dataclass(frozen=True)
class SequencePlan(Plan):
    """A plan whose ``tasks`` count sequences; each policy runs without and with lessons."""

    length: int = 2
    lessons: int = 1

    def units(self) -> list[Unit]:
        data = tuple(str(path.resolve()) for path in self.data)
        return [
            SequenceUnit(
                self.suite,
                choice,
                number,
                seed,
                self.budget,
                self.at,
                self.settings,
                data,
                self.length,
                lessons,
            )
            for number in range(*self.tasks)
            for seed in range(self.seeds)
            for choice in self.policies
            for lessons in (0, self.lessons)
        ]

    def options(self) -> dict[str, Any]:
        return {**super().options(), "length": self.length, "lessons": self.lessons}
