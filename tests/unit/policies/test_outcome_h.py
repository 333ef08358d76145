"""The evidence-trained transient memory and the mixture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import convolve

from engram import Grid, Observation, Observations
from engram.memory.layers import MAP, PHOTO, PRESENCE
from engram.policies.forecast import Belief
from engram.policies.hyperprior import KINDS, Hyperprior, file_of, hyperprior_for, made_by, usual
from engram.policies.mixing import EvidenceMixture
from engram.policies.outcome_h import OutcomeTransform, most_likely


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


def test_born_with_its_habits() -> None:
    """h adds its weighted features to the memory's logit, with the usual weights at first."""
    grid = Grid(8, 8)
    transform = OutcomeTransform(grid)
    own = np.linspace(0.05, 0.95, 64)
    features = transform.features(own, (own, own), _seen(grid, {(1, 1): 1.0, (5, 5): 0.0}))
    assert np.allclose(features[:, 0], np.log(own / (1 - own)))
    assert np.array_equal(transform.weights, usual().mean)
    odds = features[:, 0] + features @ usual().mean
    assert np.allclose(transform.apply(features), 1 / (1 + np.exp(-odds)))


@pytest.mark.parametrize("grid", [Grid(9, 7), Grid(24, 48, cell=(2, 8))])
def test_rings_are_convolutions_of_the_area(grid: Grid) -> None:
    """Finds and blanks by turns, ring by ring, to the last bit where reports are certain."""
    transform, rng, shape = OutcomeTransform(grid), np.random.default_rng(3), grid.content_shape
    some = rng.choice(grid.n_cells, 40, replace=False)
    found = np.zeros((2, grid.rows, grid.cols))
    for cell in some:
        found[int(rng.integers(2))][grid.at(int(cell))] = 1.0
    hits = {cell: float(found[0][cell]) for cell in map(grid.at, some.tolist())}
    half = np.full(grid.n_cells, 0.5)
    items = [Observation.checked(grid, cell, np.zeros(shape), y) for cell, y in hits.items()]
    features = transform.features(half, (half, half), Observations(grid, items))
    rings = [4 * convolve(one, k, mode="constant") for k in transform.kernels for one in found]
    assert np.array_equal(features[:, 4:].T, [ring.ravel() for ring in rings])


@pytest.mark.parametrize("kind", KINDS)
def test_habits_are_a_distribution_of_the_features(kind: str, tmp_path: Path) -> None:
    mean, covariance = usual(kind).mean, usual(kind).covariance
    grid = Grid(8, 8)
    nothing = np.full(64, 0.5)
    features = OutcomeTransform(grid).features(nothing, (nothing, nothing), Observations(grid))
    assert covariance.shape == (features.shape[1],) * 2
    assert np.allclose(covariance, covariance.T, atol=1e-3)
    assert np.linalg.eigvalsh(covariance).min() > 0
    file = tmp_path / "hyperprior.json"
    Hyperprior(mean, covariance).write(file, made_by(kind))
    assert file.read_text() == file_of(kind).read_text()


def test_a_memory_of_maps_has_habits_of_maps() -> None:
    assert hyperprior_for(MAP) is usual("map")
    for layers in ((), PHOTO, PRESENCE):
        assert hyperprior_for(layers) is usual("any")
    transform = OutcomeTransform(Grid(8, 8), hyperprior=hyperprior_for(MAP))
    assert np.array_equal(transform.weights, usual("map").mean)


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
    zeta = most_likely(rows, hits, transform.initial, transform.precision)
    p = 1 / (1 + np.exp(-(rows[:, 0] + rows @ zeta)))
    pull = transform.precision @ (zeta - transform.initial)
    assert np.abs(rows.T @ (hits - p) - pull).max() < 1e-4


def test_without_measurements_the_habits_are_the_optimum() -> None:
    transform = OutcomeTransform(Grid(8, 8))
    rows, hits = np.zeros((1, len(transform.weights))), np.array([1.0])
    zeta = most_likely(rows, hits, transform.initial, transform.precision, transform.initial + 1)
    assert np.allclose(zeta, transform.initial, atol=1e-6)


def test_the_evidence_never_falls() -> None:
    """Theorem 1: each M-step makes the measurements so far more likely, or keeps h."""
    grid = Grid(16, 16)
    transform = OutcomeTransform(grid)
    for count in (10, 20, 30, 40):
        _biased_rows(transform, grid, count, 0.8)
        judged = transform.update(count)
        assert judged is not None
        assert judged.after >= judged.before
    again = transform.update(100)
    assert again is not None
    assert again.after == pytest.approx(again.before, abs=1e-9)


def test_updates_that_misled_are_rolled_back() -> None:
    """After fifty finds where the memory says one half, nothing but blanks."""
    grid = Grid(16, 16)
    transform = OutcomeTransform(grid)
    own = np.full(grid.n_cells, 0.5)
    features = transform.features(own, (own, np.zeros_like(own)), Observations(grid))
    for i in range(50):
        transform.note(features, [Observation.checked(grid, grid.at(i), 1.0, 1.0)])
    first = transform.update(50)
    assert first is not None
    assert first.accepted
    for i in range(50, 60):
        transform.note(features, [Observation.checked(grid, grid.at(i), 0.0, 0.0)])
    judged = transform.update(60)
    assert judged is not None
    assert not judged.accepted
    assert judged.gain < 0
    assert np.array_equal(transform.weights, transform.initial)


def test_without_measurements_nothing_is_updated() -> None:
    transform = OutcomeTransform(Grid(8, 8))
    assert transform.update(0) is None
    assert np.array_equal(transform.weights, transform.initial)


def test_state_round_trip() -> None:
    grid = Grid(16, 16)
    transform, other = OutcomeTransform(grid), OutcomeTransform(grid)
    _biased_rows(transform, grid, 60, 0.8)
    transform.update(60)
    other.restore(transform.state())
    assert np.array_equal(transform.weights, other.weights)
    assert other.update(61) == transform.update(61)


def test_a_rolled_back_state_is_a_round_trip() -> None:
    grid = Grid(16, 16)
    transform, other = OutcomeTransform(grid), OutcomeTransform(grid)
    _biased_rows(transform, grid, 50, 0.95)
    transform.update(50)
    _biased_rows(transform, grid, 12, 0.0)
    judged = transform.update(62)
    assert judged is not None
    assert not judged.accepted
    other.restore(transform.state())
    for name in ("weights", "learnt"):
        assert np.array_equal(getattr(transform, name), getattr(other, name))
    assert not np.array_equal(other.weights, other.learnt)
    for one in (transform, other):
        _biased_rows(one, grid, 30, 0.95)
    assert other.update(92) == transform.update(92)


def test_a_useless_memory_loses_its_weight() -> None:
    grid = Grid(8, 8)
    mixture = EvidenceMixture(grid)
    wrong, right = (Belief(probability=np.full(64, p), doubt=np.zeros(64)) for p in (0.95, 0.1))
    assert mixture.weights()[0] > 0.8
    for i in range(12):
        mixed = mixture.mixed(wrong, right)
        assert ((mixed.probability >= 0) & (mixed.probability <= 1)).all()
        mixture.learn(mixed, [Observation.checked(grid, grid.at(i), 0.0, 0.0)])
    assert mixture.weights()[0] < 0.01
    again = EvidenceMixture(grid)
    again.restore(mixture.history())
    assert np.array_equal(again.weights(), mixture.weights())
