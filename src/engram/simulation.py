"""Backtests: run a policy on a task and keep everything the figures need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engram.errors import InputError
from engram.grid import Cell
from engram.metrics import (
    forecast_distance,
    l2_distance,
    mass_found,
    objects_touched,
    recall,
    success_rate,
)
from engram.policies.base import Policy, View
from engram.scores import at_hand
from engram.tasks.base import Task

Progress = Callable[[int, int], None]
"""Called with (measurements taken, targets found)."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Beliefs after t measurements."""

    t: int
    view: View


@dataclass(eq=False)
class Trace:
    """What a policy did on a task, step by step.

    outcomes[i] is what the i-th visit reported; what was found counts each target cell once, and no
    false alarm (``finds``).

    terms[i] are the score terms of the i-th cell when it was chosen, as far as they were known
    without drawing particles that decide nothing, and rules[i] the rule that chose it (empty where
    a policy does not say); evidence[i] is the
    predictive log-likelihood of its outcome; updates are the h-updates with the evidence
    before and after; snapshots hold beliefs at the requested times; ``tracked`` holds how far
    the beliefs were from the truth (:func:`distances_to_truth`) every few measurements;
    ``stages`` is the evidence of every outcome by part of the engine (``PolicyLog``).
    """

    policy: str
    task: Task
    budget: int
    seed: int
    cells: list[Cell] = field(default_factory=list)
    outcomes: list[float] = field(default_factory=list)
    terms: list[dict[str, float]] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    forecast: list[float] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    tracked: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    evaluations: float = 0.0
    stages: dict[str, list[float]] = field(default_factory=dict)

    def success_rate(self, budget: int | None = None) -> float:
        return success_rate(self.finds, budget or self.budget, self.task.targets)

    def recall(self, budget: int | None = None) -> float:
        return recall(self.finds, budget or self.budget, self.task.targets)

    def mass(self, budget: int | None = None) -> float:
        return mass_found(self.finds, budget or self.budget, self.task)

    def objects(self, budget: int | None = None) -> int:
        """Separate targets touched."""
        visits = zip(self.cells, self.finds, strict=True)
        if self.task.detection.perfect:
            return objects_touched(self.task, self.cells[: budget or self.budget])
        seen = [cell for cell, y in list(visits)[: budget or self.budget] if y > 0]
        return objects_touched(self.task, seen)

    @property
    def finds(self) -> list[float]:
        """The outcome of each visit that was the first to report a target that is there, else 0."""
        if self.task.detection.perfect:
            return self.outcomes
        known: set[Cell] = set()
        out = []
        for cell, reported in zip(self.cells, self.outcomes, strict=True):
            truth = float(self.task.outcomes[self.task.grid.index(cell)])
            new = reported > 0 and truth > 0 and cell not in known
            known |= {cell} if new else set()
            out.append(truth if new else 0.0)
        return out

    @property
    def held(self) -> list[float]:
        """What each visited cell holds, whatever the visit reported."""
        return [float(self.task.outcomes[self.task.grid.index(cell)]) for cell in self.cells]

    @property
    def found(self) -> int:
        return int((np.asarray(self.finds) > 0).sum())

    def distances(self, *, targets_only: bool = False) -> list[tuple[int, float]]:
        """(t, L2 distance of the posterior mean to the truth) at every snapshot that shows content,
        not where target may be."""
        return [
            (s.t, l2_distance(s.view.mean, self.task, targets_only=targets_only))
            for s in self.snapshots
            if s.view.mean is not None and s.view.shows == "content"
        ]


def simulate(
    policy: Policy,
    task: Task,
    *,
    snapshots: Iterable[int] = (),
    track: int = 0,
    progress: Progress | None = None,
) -> Trace:
    """Spend the policy's whole budget on the task.

    Beliefs are kept after as many measurements as ``snapshots`` names, and compared with the
    truth before every ``track``-th measurement (0 = never).
    """
    grid = policy.grid
    if policy.t:
        raise InputError(f"the policy has {policy.t} measurements already; give a fresh one")
    if (grid.rows, grid.cols, grid.content_shape) != (
        task.grid.rows,
        task.grid.cols,
        task.grid.content_shape,
    ):
        raise InputError(
            f"the policy searches {grid.rows}x{grid.cols} cells, task {task.name} has "
            f"{task.grid.rows}x{task.grid.cols}; build the policy with the task's grid"
        )
    trace = Trace(policy.name, task, policy.budget, policy.seed)
    wanted = set(snapshots)
    started = time.perf_counter()
    outside = 0.0  # time spent on snapshots is not the policy's
    for t in range(policy.budget):
        policy.current_scores()  # the policy's own time, also where they are looked at below
        if t in wanted:
            outside += _snapshot(trace, policy)
        if track and t % track == 0:
            outside += _track(trace, policy)
        pick = policy.suggest()[0]
        observation = task.measure(pick.cell, trace.cells.count(pick.cell))
        policy.observe(observation)
        trace.cells.append(pick.cell)
        trace.outcomes.append(observation.outcome)
        trace.terms.append(at_hand(pick.terms))
        trace.rules.append(pick.rule)
        if progress is not None:
            progress(t + 1, trace.found)
    if policy.budget in wanted:
        outside += _snapshot(trace, policy)
    trace.seconds = time.perf_counter() - started - outside
    trace.evidence, trace.forecast = list(policy.log.evidence), list(policy.log.forecast)
    trace.updates, trace.evaluations = list(policy.log.updates), policy.log.evaluations
    trace.stages = {name: list(values) for name, values in policy.log.stages.items()}
    return trace


def distances_to_truth(policy: Policy, task: Task) -> dict[str, float]:
    """How far a policy's beliefs are from the truth, as root mean squared distances.

    t                          : measurements taken
    forecast, forecast_targets : of the probability of target, over all open cells and over
                                 those that hold target; settled cells count as known
    image, image_targets       : of the mean posterior sample (of the posterior mean where a
                                 policy draws no samples), over all pixels and over target
                                 pixels; absent when the policy does not imagine the content
    """
    view, measured = policy.view(), policy.observations.settled
    found: dict[str, float] = {"t": policy.t}
    for name, targets_only in (("", False), ("_targets", True)):
        found[f"forecast{name}"] = forecast_distance(
            view.scores.probability, task, measured, targets_only=targets_only
        )
    image = view.mean if view.particles is None else view.particles.mean(axis=0)
    if image is not None and view.shows == "content" and image.shape == task.content.shape:
        found["image"] = l2_distance(image, task)
        found["image_targets"] = l2_distance(image, task, targets_only=True)
    return found


def _track(trace: Trace, policy: Policy) -> float:
    policy.current_scores()
    began = time.perf_counter()
    trace.tracked.append(distances_to_truth(policy, trace.task))
    return time.perf_counter() - began


def _snapshot(trace: Trace, policy: Policy) -> float:
    policy.current_scores()
    began = time.perf_counter()
    trace.snapshots.append(Snapshot(policy.t, policy.view()))
    return time.perf_counter() - began
