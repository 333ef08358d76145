"""Forecasters: a belief is a function of the measurements, and stays what it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engram import Grid, Observation
from engram.observation import Observations
from engram.policies.forecast import Belief, Forecaster
from engram.policies.process import LookAhead, ProcessForecaster, SpreadTies
from engram.policies.ranking import Progress

GRID = Grid(8, 8)

MAKERS: dict[str, Callable[[], Forecaster[Belief]]] = {"process": lambda: ProcessForecaster(GRID)}
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
