"""What is left, and whether a prior helps: the estimates on cases with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.campaign.correction import corrected
from engram.campaign.fitness import base_rate_evidence, prior_fitness
from engram.campaign.kriging import (
    COUNT,
    MU,
    NUGGETS,
    REACHES,
    SCALE,
    SPREAD,
    TRUST,
    moments,
)
from engram.campaign.remaining import SearchSoFar, distribution, log_beta_binomial, remaining
from engram.grid import Grid
from engram.observation import Observation
from engram.policies.base import log_likelihood

GRID = Grid(16, 16)
ALL = np.ones(GRID.n_cells, bool)


def _seen(cells, hits, probability=None, forecast=None):
    """A search whose policy knows the share of finds, unless its chances are given."""
    hits = np.array(hits, float)
    cells = np.array(cells, np.intp)
    before = (np.cumsum(hits) - hits + 1) / (np.arange(len(hits)) + 2)
    rate = np.full(GRID.n_cells, (hits.sum() + 1) / (len(hits) + 2))
    searchable = ALL.copy()
    searchable[cells] = False
    return SearchSoFar(
        GRID,
        searchable,
        cells,
        hits,
        before if forecast is None else np.array(forecast, float),
        rate if probability is None else probability,
    )


def _left(cells, hits, level=0.8):
    return remaining(_seen(cells, hits), level=level)


def test_random_measurements_give_the_share():
    rng = np.random.default_rng(0)
    truth = rng.random(GRID.n_cells) < 0.3
    cells = rng.permutation(GRID.n_cells)[:100]
    found = _left(cells, truth[cells], 0.95)
    assert found.low <= truth.sum() - truth[cells].sum() <= found.high
    assert found.expected == pytest.approx(0.3 * 156, rel=0.3)
    assert found.chance > 0.99


def test_finds_side_by_side_count_little():
    block = [r * 16 + c for r in range(5) for c in range(5)]
    scattered = [r * 16 + c for r in range(0, 15, 3) for c in range(0, 15, 3)]
    assert _left(block, [1] * 25).expected < _left(scattered, [1] * 25).expected
    width = [f.high - f.low for f in (_left(block, [1] * 25), _left(scattered, [1] * 25))]
    assert width[0] > width[1]


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 1000), st.booleans())
def test_invariants(hits, seed, uneven):
    cells = np.random.default_rng(seed).permutation(GRID.n_cells)[: len(hits)]
    chances = np.random.default_rng(seed + 1).random(GRID.n_cells) if uneven else None
    seen = _seen(cells, hits, chances)
    narrow, wide = remaining(seen), remaining(seen, level=0.95)
    assert 0 <= wide.low <= narrow.low <= narrow.high <= wide.high <= GRID.n_cells - len(hits)
    assert narrow.low <= narrow.expected <= narrow.high
    assert 0 <= narrow.chance <= 1
    assert remaining(seen) == narrow


def test_moments_are_those_of_the_gaussian_model():
    """The sums by convolution against the covariance matrix of all cells."""
    small = Grid(4, 5)
    cells, hits = np.array([3, 7, 12], np.intp), np.array([1.0, 0.0, 1.0])
    searchable = np.ones(20, bool)
    searchable[[3, 7, 12, 19]] = False
    rows, cols = np.divmod(np.arange(20), 5)
    apart = np.hypot(rows[:, None] - rows, cols[:, None] - cols)
    logs, means, variances = [], [], []
    for length in REACHES:
        for nugget in NUGGETS:
            c = np.exp(-apart / length) + SPREAD + nugget * np.eye(20)
            own, across = c[np.ix_(cells, cells)], c[np.ix_(searchable, cells)].sum(axis=0)
            inverse, y = np.linalg.inv(own), hits - MU
            scale = (y @ inverse @ y + COUNT * SCALE) / (3 + COUNT)
            logs.append(-0.5 * (3 + COUNT) * np.log(scale) - 0.5 * np.linalg.slogdet(own)[1])
            means.append(MU * 16 + across @ inverse @ y)
            total = c[np.ix_(searchable, searchable)].sum()
            variances.append(scale * (total - across @ inverse @ across))
    weights = np.exp(TRUST * (np.array(logs) - max(logs)))
    weights /= weights.sum()
    mean = weights @ means
    variance = weights @ (np.array(variances) + (np.array(means) - mean) ** 2)
    assert moments(small, searchable, cells, hits) == pytest.approx((mean, variance))


def test_masses_are_those_of_the_beta_binomial_distribution():
    from scipy.stats import betabinom

    share, kappa, m = 0.2, 3.5, 30
    known = betabinom(m, share * kappa, (1 - share) * kappa).logpmf(np.arange(m + 1))
    assert log_beta_binomial(
        np.arange(m + 1.0), m, share * kappa, (1 - share) * kappa
    ) == pytest.approx(known)


def test_kriging_alone_speaks_for_a_policy_that_was_not_led_by_finds():
    seen = _seen([3, 70, 140, 200], [1, 0, 0, 1])
    masses = distribution(seen)
    mean, variance = moments(GRID, seen.searchable, seen.cells, seen.hits)
    assert masses.sum() == pytest.approx(1)
    known = np.exp(-((np.arange(253) - mean) ** 2) / 2 / variance)
    assert masses == pytest.approx(known / known.sum())
    led = _seen([3, 70, 140, 200], [1, 0, 0, 1], np.linspace(0.1, 0.4, GRID.n_cells))
    assert distribution(led).sum() == pytest.approx(1)
    assert np.abs(distribution(led) - masses).max() > 1e-4


def test_nothing_left_to_search():
    found = remaining(_seen(np.arange(GRID.n_cells), np.zeros(GRID.n_cells)))
    assert (found.expected, found.low, found.high, found.chance) == (0.0, 0, 0, 0.0)


def test_nothing_measured_says_little():
    found = _left([], [], 0.95)
    assert found.low < 0.1 * GRID.n_cells
    assert found.high > 0.5 * GRID.n_cells


def test_a_policy_that_has_looked_everywhere_lowers_the_estimate():
    """The same finds: chances that are low all over say that the rest is empty."""
    block = [r * 16 + c for r in range(6) for c in range(6)]
    around = [r * 16 + c for r in range(0, 16, 2) for c in range(7, 16, 2)]
    cells, hits = block + around, [1] * len(block) + [0] * len(around)
    sure = [0.9] * len(block) + [0.1] * len(around)
    uneven = np.linspace(0.5, 1.5, GRID.n_cells)
    low, high = (remaining(_seen(cells, hits, p * uneven, sure)) for p in (0.01, 0.3))
    assert low.expected < 0.5 * high.expected
    assert low.high < high.high


def test_a_search_that_found_nothing():
    few, many = _left(range(0, 250, 25), [0] * 10), _left(range(0, 250, 2), [0] * 125)
    assert many.expected < few.expected
    assert many.chance < few.chance


@given(st.lists(st.booleans(), max_size=60), st.floats(0.01, 0.99))
def test_correction_moves_towards_what_happened(hits, forecast):
    found = np.array(hits, float)
    p = np.array([forecast])
    after = corrected(p, np.full(len(hits), forecast), found)[0]
    assert 0 < after < 1
    if len(hits) >= 20 and abs(found.mean() - forecast) > 0.2:
        assert (after > forecast) == (found.mean() > forecast)
    if not hits:
        assert after == pytest.approx(forecast)


def _verdict(mine, other):
    outcomes = [
        Observation((0, i), np.zeros((1, 1, 1), np.float32), float(i % 2)) for i in range(40)
    ]
    base = base_rate_evidence([[o] for o in outcomes])
    p = [mine if o.outcome else 1 - mine for o in outcomes]
    q = [other if o.outcome else 1 - other for o in outcomes]
    evidence = [log_likelihood(o.outcome, v) for o, v in zip(outcomes, p, strict=True)]
    spatial = [log_likelihood(o.outcome, v) for o, v in zip(outcomes, q, strict=True)]
    return prior_fitness("em-ptdm", evidence, spatial, base)


def test_the_base_rate_knows_nothing_of_what_is_told_together():
    outcomes = [
        Observation((0, i), np.zeros((1, 1, 1), np.float32), float(hit))
        for i, hit in enumerate([1, 0, 0, 1])
    ]
    alone = base_rate_evidence([[o] for o in outcomes])
    assert np.exp(alone) == pytest.approx([1 / 2, 1 / 3, 1 / 2, 2 / 5])
    together = base_rate_evidence([outcomes[:1], outcomes[1:]])
    assert np.exp(together) == pytest.approx([1 / 2, 1 / 3, 1 / 3, 2 / 3])


def test_what_was_told_together_at_the_beginning_is_no_evidence():
    ours, base = [-0.9] * 6 + [-0.1] * 8, [-0.2] * 6 + [-0.7] * 8
    assert prior_fitness("x", ours, None, base, 6).verdict == "good"
    assert prior_fitness("x", ours, None, base, 6).policy == pytest.approx(-0.1)
    few = prior_fitness("x", ours, ours, base, 12)
    assert few.verdict == "unknown"
    assert "2 of 5 measurements, 12 of them told together at the beginning" in few.words
    assert prior_fitness("x", ours, None, base, 14).policy is None


def test_fitness_in_words():
    good = _verdict(0.9, 0.6)
    assert good.verdict == "good"
    assert good.words.count("clearly better") == 2
    bad = _verdict(0.1, 0.7)
    assert bad.verdict == "bad"
    assert bad.words.count("clearly worse") == 2
    even = _verdict(0.5, 0.5)
    assert even.verdict == "even"
    assert even.policy == pytest.approx(np.log(0.5), abs=1e-3)
    assert prior_fitness("x", [], None, []).verdict == "unknown"
