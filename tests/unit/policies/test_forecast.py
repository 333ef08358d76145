"""Forecasters: a belief is a function of the measurements, and stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engram import Grid, InputError, Observation, make_policy
from engram.observation import Observations
from engram.policies.base_rate import BaseRate
from engram.policies.forecast import Belief, Forecaster
from engram.policies.imagination import DrawPlan, Imagination
from engram.policies.mixing import EvidenceMixture
from engram.policies.process import LookAhead, ProcessForecaster, SpreadTies
from engram.policies.ranking import Progress
from engram.policies.remembering import MemoryForecaster, Remembering
from engram.testing import tiny_memory

GRID = Grid(8, 8)
MEMORY = tiny_memory(1, conditioned=True)


def memories(h: bool = True) -> MemoryForecaster:
    """Both memories, h learning after every fourth measurement."""
    imagination = Imagination(GRID, DrawPlan(particles=2, steps=1), 0, 40)
    plan = Remembering(h, 1.0, frozenset(range(4, 40, 4)), views=8, period=4)
    return MemoryForecaster(MEMORY, imagination, ProcessForecaster(GRID), plan)


MAKERS: dict[str, Callable[[], Forecaster[Any]]] = {
    "process": lambda: ProcessForecaster(GRID),
    "memory": memories,
    "base rate": lambda: BaseRate(GRID),
}
forecasters = pytest.mark.parametrize("name", list(MAKERS))


def measured(count: int) -> Observations:
    """The first cells of a walk in which every third is target."""
    cells = [GRID.at(7 * i % 64) for i in range(count)]
    items = [
        Observation.checked(GRID, c, y, y) for c, y in zip(cells, [1.0, 0, 0] * count, strict=False)
    ]
    return Observations(GRID, items)


def same(one: Belief, other: Belief) -> bool:
    return np.array_equal(one.probability, other.probability) and np.array_equal(
        one.doubt, other.doubt
    )


@forecasters
def test_a_belief_is_a_function_of_the_measurements(name: str) -> None:
    forecaster, fresh = MAKERS[name](), MAKERS[name]()
    before = forecaster.belief(measured(9))
    kept = [before.probability.copy(), before.doubt.copy()]
    later = forecaster.belief(measured(14))
    assert not same(before, later)
    assert np.array_equal(before.probability, kept[0])
    assert np.array_equal(before.doubt, kept[1])
    assert same(forecaster.belief(measured(14)), later)
    again = forecaster.belief(measured(9))  # fewer: a correction took some back
    assert np.allclose(again.probability, fresh.belief(measured(9)).probability)


@forecasters
def test_a_belief_is_of_every_cell_and_a_probability(name: str) -> None:
    for count in (0, 1, 30):
        belief = MAKERS[name]().belief(measured(count))
        assert belief.probability.shape == belief.doubt.shape == (64,)
        assert belief.probability.min() >= 0
        assert belief.probability.max() <= 1
        assert belief.doubt.min() >= 0


def test_the_look_ahead_ranks_a_belief_as_it_was_when_more_is_known() -> None:
    """The process goes on; the belief of before still answers what a measurement would tell."""
    process, ahead = ProcessForecaster(GRID), LookAhead(SpreadTies(GRID, 0))
    some = measured(6)
    before = process.belief(some)
    progress = Progress.of(some, 20)
    ranked = ahead.order(before, some.available, progress)
    process.belief(measured(9))  # the same hyperparameters, three cells more
    again = ahead.order(before, some.available, progress)
    assert ranked.why == "look-ahead"
    assert np.array_equal(ranked.total, again.total)


@forecasters
def test_what_was_learnt_is_kept_and_taken_up_again(name: str) -> None:
    forecaster, other = MAKERS[name](), MAKERS[name]()
    records = []
    for count in range(12):
        before, after = forecaster.belief(measured(count)), measured(count + 1)
        records.append(forecaster.learn(before, after.items[-1:], after))
    due = [3, 7, 11] if name == "memory" else []
    assert [i for i, record in enumerate(records) if record is not None] == due
    if due:
        assert not same(forecaster.belief(measured(12)), other.belief(measured(12)))
    other.restore(measured(12), forecaster.state())
    assert same(forecaster.belief(measured(12)), other.belief(measured(12)))


def test_h_is_told_what_was_believed_before_the_outcome() -> None:
    forecaster = memories()
    before, after = forecaster.belief(measured(5)), measured(7)
    forecaster.belief(after)  # somebody looks in between
    forecaster.learn(before, after.items[5:], after)
    rows = forecaster.state()["h/rows"].numpy()
    cells = [GRID.index(item.cell) for item in after.items[5:]]
    assert np.array_equal(rows, before.features[cells])


def test_the_tilt_is_what_h_adds() -> None:
    tilted, plain = memories().belief(measured(6)), memories(h=False).belief(measured(6))
    assert np.array_equal(tilted.own, plain.probability)
    assert np.array_equal(tilted.tilt, tilted.probability - plain.probability)
    assert tilted.tilt.any()
    assert not plain.tilt.any()


def test_any_number_of_predictors_is_mixed_by_evidence() -> None:
    """Weights are proportional to exp of the faded evidence; the first starts e^2 ahead."""
    chances = np.array([0.9, 0.5, 0.2])
    parts = [Belief(probability=np.full(64, p), doubt=np.full(64, p)) for p in chances]
    mixture = EvidenceMixture(GRID, count=3)
    hits = [item.outcome for item in measured(7)]
    for item in measured(7):
        mixture.learn(mixture.mixed(*parts), [item])
    logs = [np.log(chances if hit else 1 - chances) for hit in hits]
    total = sum(log * 0.98 ** (6 - i) for i, log in enumerate(logs)) + np.array([2.0, 0, 0])
    weights = np.exp(total) / np.exp(total).sum()
    mixed = mixture.mixed(*parts)
    assert mixed.weights == pytest.approx(weights)
    assert mixed.probability == pytest.approx(np.full(64, weights @ chances))
    assert np.array_equal(mixed.doubt, parts[0].doubt)
    again = EvidenceMixture(GRID, count=3)
    again.restore(mixture.history())
    assert np.array_equal(again.weights(), mixture.weights())


def test_a_leader_is_heard_as_far_as_it_is_relevant() -> None:
    mixture, third = EvidenceMixture(GRID, count=3, leader=1), EvidenceMixture(GRID, count=2)
    parts = [Belief(probability=np.full(64, p), doubt=np.zeros(64)) for p in (0.6, 0.5, 0.2)]
    for item in measured(7):
        mixture.learn(mixture.mixed(*parts), [item])
        third.learn(third.mixed(parts[0], parts[2]), [item])
    unheard = third.weights()
    assert mixture.weights(0.0) == pytest.approx([unheard[0], 0, unheard[1]])
    assert np.array_equal(mixture.mixed(*parts).weights, mixture.weights(1.0))
    evidence = mixture.weights(1.0) * np.exp([0.0, -2.0, 0.0])
    a, b = np.exp(2.0) / (2 + np.exp(2.0)), np.exp(2.0) / (1 + np.exp(2.0))
    start = 0.3 * np.array([(1 - a) / 2, a, (1 - a) / 2]) + 0.7 * np.array([b, 0, 1 - b])
    some = start * evidence / (start @ evidence)
    assert mixture.mixed(*parts, relevance=0.3).weights == pytest.approx(some)


def test_the_base_rate_is_the_posterior_of_the_share_of_finds() -> None:
    """Beta(1, 4), 4 finds in 10: Beta(5, 10) has mean 1/3 and variance (1/3)(2/3)/16."""
    belief = BaseRate(GRID).belief(measured(10))
    assert belief.probability == pytest.approx(np.full(64, 1 / 3))
    assert belief.doubt == pytest.approx(np.full(64, np.sqrt(2 / 9 / 16)))
    assert BaseRate(GRID).belief(measured(0)).probability[0] == pytest.approx(0.2)
    with pytest.raises(InputError, match="give two numbers above 0"):
        BaseRate(GRID, (0.0, 4.0))


def test_the_base_rate_is_one_more_part_of_the_mixture() -> None:
    usual, more = (
        make_policy("em-ptdm", GRID, 30, memory=MEMORY, base_rate=on) for on in (False, True)
    )
    for policy in (usual, more):
        policy.observe(measured(9).items)
    weights = more.suggest()[0].weights
    assert list(weights) == ["memory", "process", "base rate"]
    assert min(weights.values()) > 0
    assert sum(weights.values()) == pytest.approx(1)
    assert list(usual.suggest()[0].weights) == ["memory", "process"]
    beliefs = more.believed().beliefs  # type: ignore[attr-defined]
    mixed = sum(
        w * part.probability for w, part in zip(weights.values(), beliefs.mixed.parts, strict=True)
    )
    assert beliefs.mixed.probability == pytest.approx(mixed)
    again = make_policy("em-ptdm", GRID, 30, memory=MEMORY, base_rate=True)
    again.restore(measured(9), more.state())
    assert again.suggest() == more.suggest()
