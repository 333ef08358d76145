"""Eqs. 9 to 12 against sums written out pair by pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.scores import (
    Scores,
    Terms,
    best_cells,
    entropy_bound,
    exploration,
    likelihood,
    normalised,
    paper_scores,
)

SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 5), st.integers(1, 4))


def drawn(shape: tuple[int, int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def pairwise(cells: np.ndarray, sigma: float) -> np.ndarray:
    """d_ij^2 / 2 sigma^2 for every pair and cell, one number at a time: (P, P, n)."""
    particles, n, _ = cells.shape
    out = np.zeros((particles, particles, n))
    for i in range(particles):
        for j in range(particles):
            for q in range(n):
                difference = cells[i, q].astype(float) - cells[j, q].astype(float)
                out[i, j, q] = (difference**2).sum() / (2 * sigma**2)
    return out


@given(SHAPES, st.integers(0, 1000), st.sampled_from([0.1, 0.5, 1.0]))
def test_terms_equal_their_sums(shape: tuple[int, int, int], seed: int, sigma: float) -> None:
    cells = drawn(shape, seed)
    pairs = pairwise(cells, sigma)
    np.testing.assert_allclose(exploration(cells, sigma), pairs.sum((0, 1)), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(likelihood(cells, sigma), np.exp(-pairs).sum((0, 1)), rtol=1e-6)
    bound = -np.log(np.exp(-pairs).mean(axis=1)).sum(axis=0)
    np.testing.assert_allclose(entropy_bound(cells, sigma), bound, rtol=1e-6, atol=1e-9)


@given(SHAPES, st.integers(0, 1000), st.sampled_from([0.1, 0.5, 1.0]))
def test_the_entropy_bound_is_bounded(shape: tuple[int, int, int], seed: int, sigma: float) -> None:
    cells, particles = drawn(shape, seed), shape[0]
    bound = entropy_bound(cells, sigma)
    assert (bound >= -1e-9).all()
    assert (bound <= particles * np.log(particles) + 1e-9).all()
    assert (bound <= exploration(cells, sigma) / particles + 1e-6).all()


def test_equal_particles_offer_nothing_to_explore() -> None:
    cells = np.repeat(drawn((1, 6, 3), 0), 5, axis=0)
    np.testing.assert_allclose(exploration(cells, 0.5), 0, atol=1e-12)
    np.testing.assert_allclose(entropy_bound(cells, 0.5), 0, atol=1e-9)
    np.testing.assert_allclose(likelihood(cells, 0.5), 25)


@given(st.floats(0, 1), st.integers(0, 1000))
def test_total_mixes_by_alpha(alpha: float, seed: int) -> None:
    cells = drawn((6, 9, 2), seed)
    rewards = np.random.default_rng(seed).random((6, 9))
    scores = paper_scores(cells, rewards, alpha, 0.5)
    np.testing.assert_allclose(scores.reward, rewards.sum(0))
    np.testing.assert_allclose(scores.probability, rewards.mean(0))
    np.testing.assert_allclose(scores.exploitation, scores.likelihood * scores.reward)
    np.testing.assert_allclose(
        scores.total, alpha * scores.exploration + (1 - alpha) * scores.exploitation
    )
    terms = scores.of(4)
    assert terms["alpha"] == alpha
    assert terms["total"] == pytest.approx(scores.total[4])
    assert set(terms) == {
        "alpha", "exploration", "likelihood", "reward", "exploitation", "total", "probability",
        "doubt",
    }  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from([np.nan, -np.inf, np.inf, -5.0, -1.0, 0.0, 2.0]), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 15),
)
def test_best_cells_are_available_different_and_ranked(
    table: list[tuple[float, bool]], n: int
) -> None:
    total = np.array([value for value, _ in table])
    available = np.array([free for _, free in table])
    picks = best_cells(total, available, n)
    assert len(picks) == len(set(picks)) == min(n, int(available.sum()))
    assert available[picks].all()
    chosen = np.where(np.isnan(total[picks]), -np.inf, total[picks])
    assert (chosen[:-1] >= chosen[1:]).all()
    left = np.setdiff1d(np.flatnonzero(available), picks)
    if len(picks) and len(left):
        rest = np.where(np.isnan(total[left]), -np.inf, total[left])
        assert chosen[-1] >= rest.max()


def test_a_measured_cell_never_wins_by_being_zero() -> None:
    total = np.array([0.0, -3.0, -2.0, 0.0])
    assert best_cells(total, np.array([False, True, True, False])) == [2]
    assert best_cells(np.full(4, np.nan), np.array([False, False, True, False])) == [2]


def test_normalised_terms_have_one_scale_over_the_cells_that_can_be_measured() -> None:
    """Exploration (0, 2, 8) and exploitation (4, 1, 100); the last cell is not available."""
    zero = np.zeros(3)
    terms = Terms(np.array([0.0, 2.0, 8.0]), zero, zero, np.array([4.0, 1.0, 100.0]))
    scores = Scores(total=zero, probability=zero, doubt=zero, alpha=0.25, terms=terms)
    total = normalised(scores, np.array([True, True, False]))
    assert total.tolist() == pytest.approx(
        [0.75 * 1.0, 0.25 * 1.0 + 0.75 * 0.25, 0.25 * 4 + 75 / 4]
    )
    agreed = normalised(replace(scores, terms=replace(terms, exploration=zero)), np.ones(3, bool))
    assert agreed.tolist() == pytest.approx([0.03, 0.0075, 0.75])
