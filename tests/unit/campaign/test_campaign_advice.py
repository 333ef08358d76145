"""What the measurements left can find, and the advice that rests on it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, hypergeom

from engram.campaign.advice import FAIR, NEAR, advise, looked_at
from engram.campaign.coefficients import EVENNESS, PACE
from engram.campaign.prospect import (
    Prospect,
    finds,
    found_of,
    hand,
    likeliest,
    prospect,
    share_of,
)
from engram.campaign.remaining import SearchSoFar, distribution, quantiles, summary
from engram.grid import Grid

GRID = Grid(12, 12)


def _search(hits, seed=0, chances=None):
    rng = np.random.default_rng(seed)
    cells = rng.permutation(GRID.n_cells)[: len(hits)]
    searchable = np.ones(GRID.n_cells, bool)
    searchable[cells] = False
    p = rng.random(GRID.n_cells) if chances is None else chances
    forecast = np.full(len(hits), 0.2)
    return SearchSoFar(GRID, searchable, cells, np.array(hits, float), forecast, p)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 99), st.booleans())
def test_figures_agree_with_each_other(hits, seed, even):
    """Few measurements find no more than many, and many no more than there is."""
    seen = _search(hits, seed, np.full(GRID.n_cells, 0.2) if even else None)
    left = distribution(seen)
    chain = [prospect(seen, left, n) for n in (0, 1, 10, 50, GRID.n_cells)]
    assert (chain[0].expected, *chain[0].interval) == (0, 0, 0)
    for few, many in pairwise(chain):
        assert few.expected <= many.expected + 1e-6
        assert few.interval[1] <= many.interval[1]
    whole = summary(left, 0.8)
    assert chain[-1].measurements == GRID.n_cells - len(hits)
    assert chain[-1].interval[1] <= whole.high
    assert chain[-1].expected <= whole.expected + 0.01
    for item in chain:
        low, high = item.interval
        assert 0 <= low <= high <= item.measurements
        assert item.chance(0) == pytest.approx(1)
        assert item.chance(high + 1) <= 0.1 + 1e-9


def test_probabilities_of_finds_sum_to_one():
    for chances in (None, np.full(GRID.n_cells, 0.3)):
        seen = _search([1, 0, 0, 1], chances=chances)
        for count in (0, 1, 7, 140, 500):
            masses = finds(seen, distribution(seen), count)
            assert len(masses) == min(count, 140) + 1
            assert masses.sum() == pytest.approx(1)


def test_blind_measurements_are_drawn_without_replacement():
    seen = _search([0] * 44, chances=np.full(GRID.n_cells, 0.1))
    left = np.zeros(101)
    left[[5, 30]] = 0.25, 0.75
    known = sum(w * hypergeom(100, n, 20).pmf(np.arange(21)) for n, w in ((5, 0.25), (30, 0.75)))
    assert finds(seen, left, 20) == pytest.approx(known)


def test_a_led_search_takes_the_likeliest_cells_first():
    chances = np.full(GRID.n_cells, 0.01)
    chances[100:104] = 0.9
    seen = _search([], chances=chances)
    ordered = likeliest(seen)
    share = share_of(ordered, 4)
    assert share == pytest.approx(3.6 / (3.6 + 1.4))
    expected = min(10 * (1 - (1 - share) ** PACE), 9.8)
    assert hand(ordered) == pytest.approx(np.log(0.366 + 0.003))
    masses, none = found_of(np.array([10.0, 0.0]), 50, share, hand(ordered))
    assert (masses.sum(), none[0]) == pytest.approx((1, 1))
    masses = masses[:11]
    assert masses @ np.arange(11) == pytest.approx(expected)
    kappa = np.exp(EVENNESS[0] + EVENNESS[1] * np.log(10) + EVENNESS[2] * hand(ordered))
    known = betabinom(10, expected / 10 * kappa, (1 - expected / 10) * kappa)
    assert masses == pytest.approx(known.pmf(np.arange(11)))
    assert found_of(np.array([10.0]), 4, share, 0.0).sum() == pytest.approx(1)


def test_large_areas_are_put_together_without_losing_the_mean():
    seen = _search([], chances=np.full(GRID.n_cells, 0.1))
    left = np.zeros(5001)
    left[[0, 3, 1234, 4000]] = 0.1, 0.2, 0.3, 0.4
    mean = left @ np.arange(5001)
    assert prospect(seen, left, 500).expected == pytest.approx(mean / 10, rel=2e-3)


def test_quantiles_leave_out_what_they_may():
    masses = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    assert quantiles(masses, 0.79) == (1, 3)
    assert quantiles(masses, 0.81) == (0, 4)
    assert quantiles(np.ones(1), 0.8) == (0, 0)


def test_area_looked_at():
    searchable = np.ones(GRID.n_cells, bool)
    middle = np.array([GRID.index((6, 6))])
    assert looked_at(GRID, middle, searchable) == (2 * NEAR + 1) ** 2 / 144
    corner = np.array([0])
    assert looked_at(GRID, corner, searchable) == (NEAR + 1) ** 2 / 144
    searchable[: 6 * 12] = False
    assert looked_at(GRID, middle, searchable) == pytest.approx(15 / 72)
    assert looked_at(GRID, np.array([], np.intp), searchable) == 0


def _finds(count, **chances):
    """``count`` measurements with chances of so many finds (``_3=0.1``), otherwise none."""
    masses = np.zeros(count + 1)
    for name, chance in chances.items():
        masses[int(name[1:])] = chance
    masses[0] = 1 - masses.sum()
    return Prospect(masses, 0.8)


POOR, RICH = _finds(10, _1=0.05), _finds(10, _1=0.3)


@pytest.mark.parametrize(
    ("rest", "soon", "seen", "stop", "words"),
    [
        (_finds(100, _1=0.3), POOR, FAIR, True, "left bring 2 finds (a yield of 0.02) is below 1%"),
        (_finds(100, _2=0.049), POOR, 0.9, True, "Stop: the chance that the 100 measurement"),
        (_finds(100, _1=0.3), _finds(0), 0.9, True, "Stop: the chance"),
        (_finds(100, _2=0.05), POOR, 0.9, False, "is 5%; Stop is advised below 5%"),
        (_finds(100, _1=0.5, _3=0.2), POOR, 0.9, False, "about 1.1 (0 to 3 at 80%)"),
        (_finds(100, _99=0.04), POOR, 0.9, False, "about 4.0 (0 to 0 at 80%)"),
        (_finds(100, _1=0.4), POOR, 0.49, False, "but only 49% of the area lies within 2"),
        (_finds(100, _1=0.4), RICH, 0.9, False, "Go on for now: the next 10 should find about 0.3"),
    ],
)
def test_stop_is_advised_only_when_the_yield_is_out_of_reach(rest, soon, seen, stop, words):
    found = advise(rest, soon, 0.02, seen)
    assert found.stop is stop
    assert found.worthwhile == 2.0
    assert found.chance == pytest.approx(rest.masses[2:].sum())
    assert words in found.words
    assert found.words.startswith("Stop:") is stop
    assert not stop or rest.interval[1] < found.worthwhile


def test_a_wider_interval_asks_for_more_certainty():
    masses = _finds(100, _2=0.03).masses
    assert advise(Prospect(masses, 0.8), POOR, 0.02, 1.0).stop
    assert not advise(Prospect(masses, 0.95), POOR, 0.02, 1.0).stop


def test_a_last_measurement_worth_its_price_is_made():
    """A chance of one in forty is no reason to stop where it is more than the yield."""
    one, poor = _finds(1, _1=0.025), _finds(1, _1=0.01)
    assert not advise(one, one, 0.02, 1.0).stop
    assert advise(poor, poor, 0.02, 1.0).stop
