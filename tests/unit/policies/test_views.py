"""Means over symmetries: all of them now and then, the quarter turns in between."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from engram import Grid, Observation, make_policy
from engram.detection import Detection
from engram.memory.denoiser import CountedDenoiser, Estimate, Known, NetworkDenoiser
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.imagination import mean_of, measurements_of
from engram.policies.views import SymmetricMean, expected_image
from engram.testing import tiny_memory

GRID = Grid(8, 8)
MEMORY = tiny_memory(1, conditioned=True)
NOBODY = np.zeros(GRID.n_cells, bool)


ITEMS = [Observation.checked(GRID, GRID.at(11 * i % 64), i % 3 / 2, i % 3 / 2) for i in range(20)]


def measured(count: int, grid: Grid = GRID, detection: float = 1.0) -> Observations:
    """The first measurements of a walk; always the same objects."""
    return Observations(grid, ITEMS[:count], Detection(detection))


def averaged(count: int, views: int) -> torch.Tensor:
    """The mean over the first symmetries, computed for this number of measurements."""
    return expected_image(MEMORY, measurements_of(measured(count)), NOBODY, GRID, views)


@pytest.mark.parametrize("count", [0, 4, 8])
def test_all_views_are_computed_at_multiples_of_the_period(count: int) -> None:
    mean = SymmetricMean(GRID, 8, 4)(MEMORY, measured(count))
    torch.testing.assert_close(mean, averaged(count, 8))


@pytest.mark.parametrize("count", [5, 7, 10])
def test_in_between_the_quarter_turns_and_what_all_said_beyond_them(count: int) -> None:
    mean = SymmetricMean(GRID, 8, 4)(MEMORY, measured(count))
    then = count - count % 4
    beyond = averaged(then, 8) - averaged(then, 4)
    mask = measurements_of(measured(count)).mask
    assert beyond.abs().max() > 1e-4
    torch.testing.assert_close(mean, averaged(count, 4) + beyond * (1 - mask))


def test_a_mean_does_not_depend_on_what_was_asked_before() -> None:
    one_by_one = SymmetricMean(GRID, 8, 4)
    for count in (3, 9, 4, 13, 6, 14):  # also fewer again: a correction took some back
        at_once = SymmetricMean(GRID, 8, 4)(MEMORY, measured(count))
        assert torch.equal(one_by_one(MEMORY, measured(count)), at_once)


class Halved(CountedDenoiser):
    """A memory that expects half of what the other does."""

    def estimate(self, x_t: torch.Tensor, t: torch.Tensor, known: Known | None = None) -> Estimate:
        found = super().estimate(x_t, t, known)
        return Estimate(found.x0 / 2, found.eps)


def test_another_memory_and_other_measurements_are_not_taken_for_those_of_before() -> None:
    mean, other = SymmetricMean(GRID, 8, 4), Halved(MEMORY)
    mean(MEMORY, measured(5))
    fresh = SymmetricMean(GRID, 8, 4)(other, measured(5))
    assert torch.equal(mean(other, measured(5)), fresh)
    changed = [Observation.checked(GRID, item.cell, 0.9, 1.0) for item in ITEMS[:5]]
    fresh = SymmetricMean(GRID, 8, 4)(MEMORY, Observations(GRID, changed))
    assert torch.equal(mean(MEMORY, Observations(GRID, changed)), fresh)


def test_evaluations_are_half_but_for_one_in_a_period() -> None:
    counted, mean = CountedDenoiser(MEMORY), SymmetricMean(GRID, 8, 4)
    for count in range(9):
        mean(counted, measured(count))
    assert counted.evaluations * 16 == 3 * 8 + 6 * 4


def test_where_reports_left_doubt_all_views_are_computed_every_time() -> None:
    counted = CountedDenoiser(MEMORY)
    SymmetricMean(GRID, 8, 4)(counted, measured(5, detection=0.7))
    assert counted.evaluations * 16 == 8


@pytest.mark.parametrize(("views", "period", "computed"), [(8, 1, 8), (4, 8, 4), (1, 8, 1)])
def test_other_numbers_of_views_are_computed_every_time(
    views: int, period: int, computed: int
) -> None:
    counted = CountedDenoiser(MEMORY)
    mean = SymmetricMean(GRID, views, period)(counted, measured(5))
    assert counted.evaluations * 16 == computed
    torch.testing.assert_close(mean, averaged(5, views))


AVERAGE = Halved(MEMORY)


@pytest.mark.parametrize("count", [3, 8, 13])
def test_what_was_learnt_and_what_all_views_said_beyond_it_at_every_eighth(count: int) -> None:
    mean = SymmetricMean(GRID, 0, learnt=AVERAGE)(MEMORY, measured(count))
    told, then = (measurements_of(measured(n)) for n in (count, count - count % 8))
    beyond = averaged(count - count % 8, 8) - mean_of(AVERAGE, then)
    wanted = mean_of(AVERAGE, told) + beyond * (1 - told.mask)
    assert beyond.abs().max() > 1e-2
    torch.testing.assert_close(mean, wanted)
    if count == 8:
        torch.testing.assert_close(mean, averaged(8, 8))


@pytest.mark.parametrize(
    ("views", "period", "learnt", "all_of_them"),
    [(0, 0, 11, 16), (0, 1, 0, 80), (8, 0, 0, 80), (1, 0, 0, 10)],
)
def test_evaluations_where_the_average_is_learnt(
    views: int, period: int, learnt: int, all_of_them: int
) -> None:
    memory, average = CountedDenoiser(MEMORY), CountedDenoiser(MEMORY)
    mean = SymmetricMean(GRID, views, period, average)
    for count in range(4, 14):
        mean(memory, measured(count))
    assert (average.evaluations * 16, memory.evaluations * 16) == (learnt, all_of_them)


def test_an_area_that_is_not_square_is_seen_by_what_has_learnt_the_average() -> None:
    grid = Grid(8, 12)
    seen = Observations(grid, [Observation.checked(grid, (1, 2), 0.5, 0.5)])
    memory, average = CountedDenoiser(MEMORY), CountedDenoiser(MEMORY)
    mean = SymmetricMean(grid, 0, learnt=average)(memory, seen)
    torch.testing.assert_close(mean, mean_of(MEMORY, measurements_of(seen)))
    assert (average.evaluations * 16, memory.evaluations) == (1, 0)


def test_what_has_learnt_the_average_is_not_asked_where_reports_left_doubt() -> None:
    memory, average = CountedDenoiser(MEMORY), CountedDenoiser(MEMORY)
    mean = SymmetricMean(GRID, 0, learnt=average)(memory, measured(5, detection=0.7))
    assert (average.evaluations, memory.evaluations * 16) == (0, 8)
    torch.testing.assert_close(mean, SymmetricMean(GRID, 8, 1)(MEMORY, measured(5, detection=0.7)))


def test_without_it_all_views_are_computed() -> None:
    torch.testing.assert_close(SymmetricMean(GRID, 0)(MEMORY, measured(5)), averaged(5, 8))


def with_average() -> PermanentMemory:
    """A memory that has a network for the average: another one, to tell them apart."""
    network = deepcopy(MEMORY.network)
    with torch.no_grad():
        network.tail.head.bias += 0.7
    return MEMORY.with_symmetric(NetworkDenoiser(network), {})


@pytest.mark.parametrize(
    ("options", "asked"), [({}, True), ({"views": 8}, False), ({"dreams": 2}, False)]
)
def test_the_engine_asks_what_has_learnt_the_average(options: dict[str, int], asked: bool) -> None:
    memory = with_average()
    policy = make_policy("em-ptdm", GRID, 20, memory=memory, h=False, guard=False, **options)
    policy.observe(ITEMS[:5])
    belief = policy.believed().beliefs.memory  # type: ignore[attr-defined]
    learnt = memory.symmetric if asked else None
    wanted = SymmetricMean(GRID, 0, learnt=learnt)(memory, measured(5))
    low, high = GRID.range
    expected = np.clip(GRID.from_model(wanted[0].numpy()), low, high)
    np.testing.assert_allclose(belief.content, expected, atol=1e-6)
    first, now = (9, 1) if asked else (8, 8)
    assert policy.log.evaluations * 16 == first + now
