"""Engine and rivals with a memory of five possible areas: everything is a sum over them.

A bar, a square, a cross, an L and a dot stand at places of their own in 5 x 5 cells, and are not
equally likely. Bright is target, so an affine reward is exact from the start, and the chance of
target in a cell is the weight of the areas that agree with everything measured and have it there.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engram import Grid, Task, make_policy
from engram.memory.denoiser import Known
from engram.policies.base import Policy
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import DrawPlan
from engram.testing import Enumerated, ExactDenoiser, exact_memory

Array = NDArray[np.float64]
Cell = tuple[int, int]

PICTURES = (
    "##### ..... ..... ..... .....",
    "..... .##.. .##.. ..... .....",
    "..... ...#. ..### ...#. .....",
    "#.... #.... #.... ##... .....",
    "..... ..... ..... ..... ....#",
)
WEIGHTS = np.array([0.15, 0.2, 0.18, 0.22, 0.25])
AREAS = np.array([[c == "#" for c in picture.replace(" ", "")] for picture in PICTURES], float)
MEMORY = Enumerated(2 * AREAS - 1, WEIGHTS)
GRID = Grid(5, 5)


def task_of(area: int) -> Task:
    target = AREAS[area].reshape(5, 5) > 0
    return Task(f"area {area}", GRID, target[None].astype(np.float32), target)


def chances(seen: dict[int, float]) -> Array:
    """(25,) chance of target given cells that hold target (1) or not (0), counted by hand."""
    total, found = 0.0, np.zeros(25)
    for area, weight in zip(AREAS, WEIGHTS, strict=True):
        if all(area[q] == value for q, value in seen.items()):
            total += weight
            found += weight * area
    return found / total


def engine(budget: int = 12, **options: object) -> Policy:
    """The memory alone: no h, no guard, one view, always the most probable cell."""
    alone: dict[str, object] = {"h": False, "guard": False, "views": 1, "frontier": 0.0}
    memory = exact_memory(MEMORY, 5, 5)
    return make_policy("em-ptdm", GRID, budget, memory=memory, **{**alone, **options})


def test_the_denoiser_is_the_sum_over_areas_at_every_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 25))
    for t in (0.2, 0.5, 0.8):
        a, s = np.cos(t * np.pi / 2), np.sin(t * np.pi / 2)
        found = ExactDenoiser(MEMORY).estimate(
            torch.from_numpy(x).reshape(4, 1, 5, 5), torch.tensor(t, dtype=torch.float64)
        )
        for row, image in zip(x, found.x0.flatten(1).numpy(), strict=True):
            fits = WEIGHTS * np.exp(-((row - a * MEMORY.areas) ** 2).sum(axis=1) / (2 * s**2))
            assert image == pytest.approx(fits @ MEMORY.areas / fits.sum(), abs=1e-6)


def test_a_told_denoiser_knows_which_areas_are_left() -> None:
    """Each sample of a batch by its own measurements; noisy ones exclude nothing."""
    values, weight = torch.zeros(3, 1, 5, 5), torch.zeros(3, 1, 5, 5)
    values[0, 0, 2, 2], weight[0, 0, 2, 2] = 1.0, 1.0
    values[1, 0, 2, 2], weight[1, 0, 2, 2] = 1.0, 0.5  # noise of 0.25
    told = ExactDenoiser(MEMORY, conditioned=True)
    blank = torch.zeros(3, 1, 5, 5)
    found = told.estimate(blank, torch.ones(1), Known(values, weight)).x0.flatten(1).numpy()
    assert found[0] == pytest.approx(2 * chances({12: 1.0}) - 1, abs=1e-6)
    likely = WEIGHTS * np.exp(-((1 - MEMORY.areas[:, 12]) ** 2) / (2 * 0.25**2))
    assert found[1] == pytest.approx(likely @ MEMORY.areas / likely.sum(), abs=1e-6)
    assert found[2] == pytest.approx(MEMORY.mean, abs=1e-6)


@pytest.mark.parametrize("area", range(5))
def test_the_engine_follows_the_exact_chances_from_the_first_cell_to_the_last(area: int) -> None:
    task, policy = task_of(area), engine()
    seen: dict[int, float] = {}
    for _ in range(12):
        exact = chances(seen)
        scores = policy.current_scores()
        assert scores.probability == pytest.approx(exact, abs=1e-4)
        free = np.setdiff1d(np.arange(25), list(seen))
        pick = policy.suggest()[0]
        q = GRID.index(pick.cell)
        assert exact[q] == pytest.approx(exact[free].max(), abs=1e-4)
        policy.observe(task.measure(pick.cell))
        assert policy.log.forecast[-1] == pytest.approx(exact[q], abs=1e-4)
        seen[q] = AREAS[area, q]
    targets = int(AREAS[area].sum())
    hits = sum(seen.values())
    assert hits == targets  # five areas cannot hide for twelve measurements


def test_where_no_cell_is_likely_enough_doubt_counts() -> None:
    """The rate of finds decides, (finds + 5) / (measurements + 10): one half at first."""
    task, policy = task_of(1), engine(24, frontier=None)
    assert isinstance(policy, EmPtdm)
    seen: dict[int, float] = {}
    for cell, rate, likely in (
        ((2, 2), 5 / 10, False),
        ((1, 1), 6 / 11, False),
        (None, 7 / 12, True),
    ):
        free = np.setdiff1d(np.arange(25), list(seen))
        exact = chances(seen)
        assert (exact[free].max() >= rate) == likely
        bonus = 0.0 if likely else 2.5 * rate * policy.process.belief(policy.observations).doubt
        assert policy.current_scores().total == pytest.approx(exact + bonus, abs=1e-4)
        if cell is not None:
            policy.observe(task.measure(cell))
            seen[GRID.index(cell)] = 1.0


SAMPLED = DrawPlan(particles=800, steps=24, trajectory="fresh")


def particles_of(policy: Policy) -> Array:
    images = policy.view().particles
    assert images is not None
    return np.asarray(2 * images.reshape(len(images), -1) - 1, np.float64)


@pytest.mark.parametrize("name", ["diffatd", "em-ptdm"])
def test_particles_are_possible_areas_in_their_proportions(name: str) -> None:
    options = {"h": False, "guard": False, "every": 1} if name == "em-ptdm" else {}
    memory = exact_memory(MEMORY, 5, 5)
    policy = make_policy(name, GRID, 12, memory=memory, draws=SAMPLED, **options)
    policy.observe(task_of(1).measure((0, 1)))  # not the bar
    images = particles_of(policy)
    apart = ((images[:, None] - MEMORY.areas[None]) ** 2).sum(axis=2)
    assert apart.min(axis=1).max() < 1e-2  # every particle is one of them
    shares = np.bincount(apart.argmin(axis=1), minlength=5) / len(images)
    assert shares[0] == 0.0
    assert shares == pytest.approx(np.where(np.arange(5) == 0, 0, WEIGHTS) / 0.85, abs=0.05)


@pytest.mark.parametrize(("name", "alpha"), [("diffatd", 11 / 13), ("greedy", 0.0)])
def test_scores_of_the_rivals_are_those_of_the_shares(name: str, alpha: float) -> None:
    """n of P particles are bright in a cell: every term is a formula of n and P."""
    memory = exact_memory(MEMORY, 5, 5)
    policy = make_policy(name, GRID, 12, memory=memory, draws=SAMPLED)
    policy.observe(task_of(1).measure((0, 1)))
    count = SAMPLED.particles
    bright = (particles_of(policy) > 0).sum(axis=0)
    dark = count - bright
    scores = policy.current_scores()
    likelihood = count**2 - 2 * bright * dark * (1 - np.exp(-2.0))
    assert scores.exploration == pytest.approx(4.0 * bright * dark, rel=2e-2, abs=2)
    assert scores.likelihood == pytest.approx(likelihood, rel=2e-2)
    assert scores.reward == pytest.approx(bright, rel=2e-2, abs=1)
    assert scores.alpha == pytest.approx(alpha)
    assert policy.current().rule == ("eq12" if alpha else "eq11")
    eq12 = alpha * scores.exploration + (1 - alpha) * scores.exploitation
    assert scores.total == pytest.approx(eq12)
    worth = alpha * 4.0 * bright * dark + (1 - alpha) * likelihood * bright
    free = np.flatnonzero(policy.observations.available)
    picked = policy.grid.index(policy.suggest()[0].cell)
    assert worth[picked] > 0.97 * worth[free].max()
