"""The default engine, stage by stage, against exact values (``engine.Reference``)."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from engine import CELLS, PROCESS, SIDE, Array, Cell, Reference, field_task, lopsided

from engram import make_policy
from engram.pacing import UpdateSchedule
from engram.policies.emptdm import EmPtdm
from engram.policies.forecast import Belief
from engram.policies.gp import GaussianProcess
from engram.policies.imagination import DrawPlan
from engram.policies.ranking import Foraging, Progress
from engram.spatial import SpatialModel
from engram.testing import exact_memory

DUE = (4, 8)
BUDGET = 30
PLAN = DrawPlan(particles=6, steps=5, trajectory="fresh")
WALK: list[Cell] = [(0, 0), (2, 3), (5, 5), (2, 4), (3, 3), (0, 5), (4, 1), (3, 4), (1, 1), (5, 2)]


def engine(budget: int = BUDGET, seed: int = 0, **options: object) -> EmPtdm:
    """The default preset with the exact memory and a process of fixed hyperparameters."""
    chosen: dict[str, object] = {
        "draws": PLAN,
        "every": 1,
        "schedule": UpdateSchedule("uniform", every=4),
        **options,
    }
    memory = exact_memory(lopsided(), SIDE, SIDE)
    policy = make_policy("em-ptdm", field_task(0).grid, budget, seed=seed, memory=memory, **chosen)
    assert isinstance(policy, EmPtdm)
    policy.process.model = SpatialModel(policy.grid, hyperparameters=PROCESS)
    return policy


@cache
def replayed(task_seed: int) -> tuple[list[EmPtdm], Reference]:
    """Engines that have measured 0, 1, 2 ... cells of the walk, and what they have to believe."""
    task, policy = field_task(task_seed), engine()
    policies = [deepcopy(policy)]
    for cell in WALK:
        policy.observe(task.measure(cell))
        policies.append(deepcopy(policy))
    return policies, Reference(task, WALK, due=DUE)


SEEDS = (1, 2, 5)
tasks = pytest.mark.parametrize("seed", SEEDS)


@tasks
def test_the_mean_is_the_closed_form_averaged_over_turned_views(seed: int) -> None:
    policies, reference = replayed(seed)
    for policy, stage in zip(policies, reference.stages, strict=True):
        shown = policy.view().mean
        assert shown is not None
        np.testing.assert_allclose(2 * shown.ravel() - 1, stage.mean, atol=2e-5)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_one_view_is_the_posterior_of_the_field_itself(noise: float) -> None:
    task = field_task(1, noise=noise)
    policy = engine(views=1)
    policy.observe([task.measure(cell) for cell in WALK])
    reference = Reference(task, WALK, views=False)
    shown = policy.view().mean
    assert shown is not None
    np.testing.assert_allclose(2 * shown.ravel() - 1, reference.posterior_mean(), atol=2e-5)


@tasks
def test_the_reward_is_least_squares(seed: int) -> None:
    policies, reference = replayed(seed)
    for policy, stage in zip(policies, reference.stages, strict=True):
        assert [*policy.memory.reward.weights, policy.memory.reward.bias] == pytest.approx(
            stage.affine, abs=1e-6
        )


@tasks
def test_the_spatial_model_is_the_closed_form(seed: int) -> None:
    policies, reference = replayed(seed)
    for policy, stage in zip(policies, reference.stages, strict=True):
        belief = policy.process.belief(policy.observations)
        np.testing.assert_allclose(belief.probability, stage.process, atol=1e-8)
        np.testing.assert_allclose(belief.doubt, stage.doubt, atol=1e-6)


@tasks
def test_h_and_the_mixture_give_the_exact_probability(seed: int) -> None:
    policies, reference = replayed(seed)
    for policy, stage in zip(policies, reference.stages, strict=True):
        np.testing.assert_allclose(
            policy.current_scores().probability, stage.probability, atol=2e-4
        )
        assert policy.mixture.weights()[0] == pytest.approx(stage.mixture, abs=2e-4)


@tasks
def test_without_guard_or_h_the_probability_is_that_of_one_part(seed: int) -> None:
    _, reference = replayed(seed)
    task = field_task(seed)
    alone, tilted = engine(guard=False, h=False), engine(guard=False)
    for cell in WALK[:3]:  # before the first update
        for policy in (alone, tilted):
            policy.observe(task.measure(cell))
    stage = reference.stages[3]
    np.testing.assert_allclose(alone.current_scores().probability, stage.own, atol=2e-5)
    np.testing.assert_allclose(tilted.current_scores().probability, stage.tilted, atol=1e-4)
    assert alone.suggest()[0].tilt is None
    assert alone.suggest()[0].weights == {"memory": 1.0}


@tasks
def test_h_learns_the_weights_of_the_highest_evidence(seed: int) -> None:
    policies, reference = replayed(seed)
    policy = policies[-1]
    assert [update["t"] for update in policy.log.updates] == list(DUE)
    for found, exact in zip(policy.log.updates, reference.updates, strict=True):
        assert found["accepted"] == exact["accepted"]
        for name in ("before", "after", "gain"):
            assert found[name] == pytest.approx(exact[name], abs=1e-3)
    np.testing.assert_allclose(policy.memory.transient.weights, reference.h, atol=5e-3)
    assert not np.allclose(reference.learnt, reference.birth, atol=0.02)


@tasks
def test_forecasts_and_evidence_are_made_before_the_outcome(seed: int) -> None:
    policies, reference = replayed(seed)
    policy = policies[-1]
    index = [policy.grid.index(cell) for cell in WALK]
    exact = [s.probability[q] for s, q in zip(reference.stages[:-1], index, strict=True)]
    assert policy.log.forecast == pytest.approx(exact, abs=2e-4)
    hits = np.array(reference.hits)
    logs = np.log(np.where(hits > 0, exact, 1 - np.array(exact)).clip(0.01, 0.99))
    assert policy.log.evidence == pytest.approx(logs, abs=2e-3)


# -- ranking: which cell, and by which rule ----------------------------------------------------

RULES = [
    pytest.param("likely", 1, WALK[:6], BUDGET, id="likely"),
    pytest.param("frontier", 3, [(0, 0), (0, 1), (1, 0), (2, 0)], BUDGET, id="frontier"),
    pytest.param("last", 3, [(0, 0), (0, 1), (1, 0), (2, 0)], 11, id="last"),
    pytest.param("frontier", 3, [(0, 0), (0, 1), (1, 0), (2, 0)], 12, id="one-before-last"),
]


@pytest.mark.parametrize(("rule", "seed", "cells", "budget"), RULES)
def test_cells_are_ranked_by_the_rule_that_applies(
    rule: str, seed: int, cells: list[Cell], budget: int
) -> None:
    task, policy = field_task(seed), engine(budget)
    for cell in cells:
        policy.observe(task.measure(cell))
    reference = Reference(task, cells, due=DUE)
    applies, worth = reference.ranking(budget)
    assert applies == rule
    total = policy.current_scores().total
    stage, finds = reference.stages[-1], int(sum(reference.hits))
    ranking = Foraging().order(
        Belief(probability=stage.probability, doubt=stage.doubt),
        policy.observations.available,
        Progress(finds, len(cells), budget),
    )
    assert ranking.why == policy.current().rule == rule
    np.testing.assert_allclose(total, worth, atol=2e-4)
    free = np.setdiff1d(np.arange(CELLS), reference.index)
    best = free[np.argmax(worth[free])]
    second = np.sort(worth[free])[-2]
    assert worth[best] - second > 5e-4  # no draw
    pick = policy.suggest()[0]
    assert pick.cell == policy.grid.at(int(best))
    assert pick.rule == rule
    assert pick.weights == pytest.approx(
        {"memory": stage.mixture, "process": 1 - stage.mixture}, abs=2e-4
    )
    assert pick.tilt == pytest.approx(stage.tilted[best] - stage.own[best], abs=2e-4)


def test_a_memory_that_misled_leaves_the_ranking_to_the_look_ahead() -> None:
    task, policy = field_task(1), engine()
    for cell in WALK[:5]:
        policy.observe(task.measure(cell))
    policy.mixture.restore(np.array([[-2.0, -0.2]] * 5))
    process = GaussianProcess(policy.grid, BUDGET, 0)
    process.process.model = SpatialModel(policy.grid, hyperparameters=PROCESS)
    process.observe([task.measure(cell) for cell in WALK[:5]])
    assert policy.mixture.weights()[0] < 0.5
    assert policy.current().rule == "look-ahead"
    np.testing.assert_allclose(
        policy.current_scores().total, process.current_scores().total, atol=1e-9
    )
    assert policy.suggest()[0].cell == process.suggest()[0].cell


# -- particles and what they explain -----------------------------------------------------------


def bridge(reference: Reference, shift: Array, steps: int) -> Array:
    """How far a tilt moves every particle: the reverse process of a Gaussian is linear.

    The noise is the same with and without the tilt, so it drops out of the difference d:
    x0 moves by G d + s shift, and d goes on by the bridge of the forward process.
    """
    measured = np.zeros(CELLS, bool)
    measured[reference.index] = True
    values = np.zeros(CELLS)
    values[reference.index] = reference.content
    cov = reference.prior.given(values, np.full(CELLS, 1e-4), measured).cov
    times = np.linspace(1, 0, steps + 1)
    moved = np.zeros(CELLS)
    for now, then in pairwise(times):
        a, s = max(np.cos(now * np.pi / 2), 0.0), np.sin(now * np.pi / 2)
        gain = a * cov @ np.linalg.inv(a**2 * cov + s**2 * np.eye(CELLS))
        x0 = np.where(measured, 0.0, gain @ moved + s * shift)
        after, less = np.cos(then * np.pi / 2), np.sin(then * np.pi / 2)
        kept = (a / after) ** 2
        moved = (after * (1 - kept) * x0 + np.sqrt(kept) * less**2 * moved) / s**2
    return x0


@tasks
def test_the_tilt_moves_every_particle_by_the_exact_amount(seed: int) -> None:
    task = field_task(seed)
    tilted, plain = engine(seed=3), engine(seed=3, h=False)
    for policy in (tilted, plain):
        policy.observe([task.measure(cell) for cell in WALK[:3]])
        policy.current_scores()
    reference = Reference(task, WALK[:3])
    stage = reference.stages[-1]
    slope = stage.affine[0]
    shift = np.clip((stage.tilted - stage.own) * slope / max(slope**2, 0.05), -2, 2)
    one, other = (policy.believed().beliefs.imagined.particles for policy in (tilted, plain))
    found = (one.images - other.images).flatten(1).numpy()
    exact = bridge(reference, shift, PLAN.steps)
    assert np.abs(exact).max() > 0.05
    np.testing.assert_allclose(found, np.tile(exact, (PLAN.particles, 1)), atol=2e-4)


@tasks
def test_the_explanation_is_the_scores_of_the_particles(seed: int) -> None:
    policies, reference = replayed(seed)
    for t in (0, 3, 9):
        policy, stage = policies[t], reference.stages[t]
        scores = policy.current_scores()
        x = policy.believed().beliefs.imagined.particles.images.flatten(1).double().numpy()
        squared = (x[:, None] - x[None]) ** 2 / 2
        reward = np.clip(stage.affine[0] * x + stage.affine[1], 0, 1).sum(axis=0)
        likelihood = np.exp(-squared).sum(axis=(0, 1))
        exact = {
            "exploration": squared.sum(axis=(0, 1)),
            "likelihood": likelihood,
            "reward": reward,
            "exploitation": likelihood * reward,
        }
        for name, value in exact.items():
            np.testing.assert_allclose(getattr(scores, name), value, rtol=1e-4, atol=1e-5)
        assert scores.alpha == pytest.approx((BUDGET - t) / (BUDGET + t))
        pick = policy.suggest()[0]
        q = policy.grid.index(pick.cell)
        assert set(pick.terms) == {*exact, "total", "probability", "doubt", "alpha"}
        np.testing.assert_allclose(scores.doubt, stage.doubt, atol=1e-6)
        for name in (*exact, "total", "probability", "doubt"):
            assert pick.terms[name] == getattr(scores, name)[q]
