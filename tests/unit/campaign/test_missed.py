"""Targets that visits missed: what the finds say of their number."""

import numpy as np
import pytest

from engram.campaign.missed import Misses, poisson_binomial
from engram.detection import PRIOR, Detection, chance_posterior
from engram.grid import Grid
from engram.observation import Observation, Observations

GRID = Grid(12, 12)


def searched(rng: np.random.RandomState, share: float, d: float) -> tuple[Observations, int]:
    """Sixty cells visited up to twice, and how many targets in them were missed."""
    seen = Observations(GRID, detection=Detection(d))
    truth = rng.uniform(size=GRID.n_cells) < share
    for _ in range(2):
        for index in range(60):
            if not seen.settled[index]:
                hit = float(truth[index] and rng.uniform() < d)
                seen.add(Observation.checked(GRID, GRID.at(index), hit, hit))
    return seen, int((truth[:60] & ~seen.settled[:60]).sum())


def test_a_sum_of_cells() -> None:
    np.testing.assert_allclose(poisson_binomial(np.array([0.5, 0.5])), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(poisson_binomial(np.zeros(0)), [1.0])


def test_the_number_of_missing_visits_is_that_of_the_closed_form() -> None:
    seen = Observations(GRID, detection=Detection(0.5))
    for cell, hit in (((0, 0), 0), ((0, 0), 1), ((0, 1), 1), ((0, 2), 0), ((0, 2), 0)):
        seen.add(Observation.checked(GRID, cell, float(hit), float(hit)))
    misses = Misses.of(seen, np.full(5, 0.5), np.full(GRID.n_cells, 0.3))
    assert misses.cells.tolist() == [2]
    assert misses.visits.tolist() == [2]
    assert misses.count == pytest.approx(3 * 0.5 / 0.5 - 1)  # two finds, the next; one is known
    assert misses.variance == pytest.approx(3 * 0.5 / 0.25)


@pytest.mark.parametrize("believed", [0.1, 0.6])
def test_the_finds_correct_a_policy_that_expects_too_few_or_too_many(believed: float) -> None:
    rng, found, told, truths = np.random.RandomState(0), [], [], []
    inside = 0
    for _ in range(60):
        seen, truth = searched(rng, 0.5, 0.5)
        p = np.full(GRID.n_cells, believed)
        misses = Misses.of(seen, np.full(len(seen), 0.5), p)
        masses = misses.masses(np.ones(GRID.n_cells, bool))
        low, high = np.searchsorted(np.cumsum(masses), [0.1, 0.9])
        inside += low <= truth <= high
        found.append(masses @ np.arange(len(masses)))
        told.append(p[misses.cells].sum())
        truths.append(truth)
    assert abs(np.mean(found) - np.mean(truths)) < 0.6 * abs(np.mean(told) - np.mean(truths))
    assert inside > 40


def test_a_chance_that_is_learnt_makes_the_number_less_sure() -> None:
    seen, _ = searched(np.random.RandomState(1), 0.5, 0.5)
    learnt = Observations(GRID, seen.items, Detection(0.5, learnt=True))
    forecast, p = np.full(len(seen), 0.5), np.full(GRID.n_cells, 0.2)
    spreads = [
        np.sqrt(masses @ np.arange(len(masses)) ** 2 - (masses @ np.arange(len(masses))) ** 2)
        for masses in (
            Misses.of(one, forecast, p).masses(np.ones(GRID.n_cells, bool))
            for one in (seen, learnt)
        )
    ]
    assert spreads[1] > spreads[0]


def test_nothing_visited_leaves_the_prior_of_the_chance() -> None:
    none = np.zeros(0)
    mean, spread = chance_posterior(none.astype(np.intp), none.astype(bool), none, 0.0)
    a, b = PRIOR
    assert mean == pytest.approx(a / (a + b), abs=1e-3)
    assert spread == pytest.approx(np.sqrt(a * b / (a + b) ** 2 / (a + b + 1)), abs=1e-3)
