"""The evidence-trained transient memory and the mixture."""

from __future__ import annotations

import numpy as np

from engram import Grid, Observation, Observations
from engram.policies.mixing import EvidenceMixture
from engram.policies.outcome_h import OutcomeTransform


def _seen(grid: Grid, hits: dict[tuple[int, int], float]) -> Observations:
    return Observations(grid, [Observation.checked(grid, cell, y, y) for cell, y in hits.items()])


def _biased_rows(transform: OutcomeTransform, grid: Grid, count: int, rate: float) -> None:
    """Measurements of which ``rate`` are hits although the memory says one half."""
    rng = np.random.default_rng(0)
    own = np.full(grid.n_cells, 0.5)
    features = transform.features(own, (own, np.zeros_like(own)), Observations(grid))
    for i in range(count):
        hit = float(rng.random() < rate)
        transform.note(features, [Observation.checked(grid, grid.at(i), hit, hit)])


def test_zero_at_birth() -> None:
    grid = Grid(8, 8)
    transform = OutcomeTransform(grid)
    own = np.linspace(0.05, 0.95, 64)
    features = transform.features(own, (own, own), _seen(grid, {(1, 1): 1.0, (5, 5): 0.0}))
    assert transform.blank
    assert np.allclose(transform.apply(features), own)


def test_learns_the_rate_the_memory_gets_wrong() -> None:
    grid = Grid(16, 16)
    transform = OutcomeTransform(grid)
    _biased_rows(transform, grid, 120, 0.9)
    judged = transform.update(120)
    assert judged is not None
    assert judged.accepted
    assert judged.after > judged.before
    own = np.full(grid.n_cells, 0.5)
    features = transform.features(own, (own, np.zeros_like(own)), Observations(grid))
    assert transform.apply(features).mean() > 0.7


def test_the_solution_is_the_optimum_of_the_penalised_evidence() -> None:
    """At the optimum the gradient of the penalised log-evidence vanishes."""
    rng = np.random.default_rng(1)
    transform = OutcomeTransform(Grid(8, 8))
    rows = rng.normal(size=(80, len(transform.weights)))
    hits = (rng.random(80) < 0.4).astype(float)
    zeta = transform._solve(rows, hits)
    p = 1 / (1 + np.exp(-(rows[:, 0] + rows @ zeta)))
    assert np.abs(rows.T @ (hits - p) - transform.strength * zeta).max() < 1e-5


def test_an_update_that_hurts_is_rolled_back() -> None:
    """The latest block says the opposite of everything before it."""
    grid = Grid(16, 16)
    transform = OutcomeTransform(grid, block=30)
    own = np.full(grid.n_cells, 0.5)
    features = transform.features(own, (own, np.zeros_like(own)), Observations(grid))
    for i in range(100):
        hit = float(i < 70)
        transform.note(features, [Observation.checked(grid, grid.at(i), hit, hit)])
    judged = transform.update(100)
    assert judged is not None
    assert not judged.accepted
    assert transform.blank


def test_too_few_measurements_change_nothing() -> None:
    transform = OutcomeTransform(Grid(8, 8))
    assert transform.update(3) is None
    assert transform.blank


def test_state_round_trip() -> None:
    grid = Grid(16, 16)
    transform, other = OutcomeTransform(grid), OutcomeTransform(grid)
    _biased_rows(transform, grid, 60, 0.8)
    transform.update(60)
    other.restore(transform.state())
    assert np.array_equal(transform.weights, other.weights)
    assert other.update(61) == transform.update(61)


def test_a_useless_memory_loses_its_weight() -> None:
    grid = Grid(8, 8)
    mixture = EvidenceMixture(grid)
    wrong, right = np.full(64, 0.95), np.full(64, 0.1)
    assert mixture.weights()[0] > 0.8
    for i in range(12):
        mixed = mixture.mixed(wrong, right)
        assert ((mixed >= 0) & (mixed <= 1)).all()
        mixture.learn([Observation.checked(grid, grid.at(i), 0.0, 0.0)])
    assert mixture.weights()[0] < 0.01
    again = EvidenceMixture(grid)
    again.restore(mixture.history())
    assert np.array_equal(again.weights(), mixture.weights())
