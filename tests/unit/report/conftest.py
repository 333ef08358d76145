"""Traces with hand-made beliefs: random search dressed up as a policy that imagines and adapts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engram.grid import Grid
from engram.policies.base import View
from engram.policies.random import RandomSearch
from engram.report import write_report
from engram.scores import Scores, Terms
from engram.simulation import Snapshot, Trace, simulate
from engram.tasks.balls import ball_task
from engram.tasks.base import Task


def _beliefs(trace: Trace, t: int, rng: np.random.Generator) -> View:
    """Particles that approach the truth as t grows, and scores of every term."""
    task, doubt = trace.task, 1 - t / trace.budget
    low, high = task.grid.range
    noise = rng.uniform(low, high, (3, *task.content.shape))
    particles = ((1 - doubt) * task.content + doubt * noise).astype(np.float32)
    total, probability, spread, *terms = (rng.random(task.grid.n_cells) for _ in range(7))
    scores = Scores(total, probability, spread, doubt, Terms(*terms))
    return View(scores, mean=particles.mean(axis=0), particles=particles)


@pytest.fixture(scope="session")
def plain() -> Callable[..., Trace]:
    """A random search: no particles, no updates."""

    def make(task: Task | None = None, budget: int = 40, seed: int = 0) -> Trace:
        task = task or ball_task(3)
        return simulate(RandomSearch(task.grid, budget, seed), task, snapshots=[0, budget])

    return make


@pytest.fixture(scope="session")
def bare(plain: Callable[..., Trace]) -> Callable[..., Trace]:
    """Cells and outcomes, and nothing else."""

    def make(task: Task | None = None, budget: int = 40, seed: int = 0) -> Trace:
        trace = plain(task, budget, seed)
        trace.evidence, trace.forecast, trace.snapshots = [], [], []
        return trace

    return make


@pytest.fixture(scope="session")
def dressed(plain: Callable[..., Trace]) -> Callable[..., Trace]:
    """A search with particles, means, scores, alpha and updates, under the name em-ptdm."""

    def make(task: Task | None = None, budget: int = 40, seed: int = 0) -> Trace:
        trace, rng = plain(task, budget, seed), np.random.default_rng(seed)
        trace.policy = "em-ptdm"
        trace.snapshots = [Snapshot(t, _beliefs(trace, t, rng)) for t in (0, budget // 2, budget)]
        trace.terms = [{"alpha": 1 - i / budget} for i in range(budget)]
        trace.rules = ["eq12"] * budget
        trace.evaluations = 120.0
        trace.updates = [
            {"t": t, "accepted": up, "before": -0.5, "after": after, "steps": 60}
            for t, up, after in ((budget // 4, True, -0.4), (budget // 2, False, -0.6))
        ]
        return trace

    return make


@pytest.fixture(scope="session")
def village() -> Task:
    """Three channels, cells of 4 x 2 pixels, a closed corner, content from 0 to 255."""
    rng = np.random.default_rng(1)
    content = rng.uniform(0, 255, (3, 24, 32)).astype(np.float32)
    target = np.zeros((24, 32), bool)
    target[5:10, 4:9] = target[15:19, 20:27] = True
    closed = np.zeros((6, 16), bool)
    closed[0, :3] = True
    return Task("village", Grid(24, 32, 3, (4, 2), (0, 255), closed), content, target)


@pytest.fixture(scope="session")
def searches(dressed: Callable[..., Trace], plain: Callable[..., Trace]) -> list[Trace]:
    return [dressed(), plain()]


@pytest.fixture(scope="session")
def report(searches: list[Trace], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two searches, in a folder of its own below one that did not exist."""
    out = tmp_path_factory.mktemp("report") / "deep" / "out"
    return write_report(searches, out, title="Ball task 3")
