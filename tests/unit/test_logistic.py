"""The logistic process over place and layers: its mode, its evidence, what it learns."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import check_grad, minimize
from scipy.special import expit, logit
from scipy.stats import norm

from engram.grid import Grid
from engram.layers import Layers
from engram.logistic import (
    FIELD,
    LEVEL,
    LEVEL_SD,
    RELEVANT,
    SIZE,
    SLOPE,
    WORTH,
    LogisticModel,
    _matern,
    averaged,
    mode_of,
    slopes_of,
)

SIDE = 10
GRID = Grid(SIDE, SIDE)
RNG = np.random.RandomState(3)
VALUES = RNG.randint(0, 30, SIDE * SIDE).astype(float)
NOISE = RNG.randn(SIDE * SIDE)
TARGET = VALUES >= 22
SURE = np.inf


def told(layers: Layers, cells: np.ndarray, odds: float = SURE) -> LogisticModel:
    """A model that was told visits of these cells, finds certain and blanks worth ``odds``."""
    found = TARGET[cells].astype(float)
    return LogisticModel(GRID, layers).fit(cells, found, np.where(found > 0, SURE, -odds))


def test_the_mode_is_where_the_posterior_is_highest_and_counts_what_reports_are_worth() -> None:
    rng = np.random.RandomState(0)
    root = rng.randn(6, 6)
    covariance, mean = root @ root.T + np.eye(6), rng.randn(6)
    labels, counts = np.array([1.0, 0, 0, 1, 0, 1]), np.array([1.0, 1, 0.7, 1, 0.2, 1])

    def negative(f: np.ndarray) -> float:
        away = f - mean
        told = counts * np.logaddexp(0, -(2 * labels - 1) * f)
        return float(0.5 * away @ np.linalg.solve(covariance, away) + told.sum())

    best = minimize(negative, mean, tol=1e-10)
    mode = mode_of(covariance, mean, labels, counts)
    np.testing.assert_allclose(mode.p, expit(best.x), atol=1e-4)
    weight = np.diag(counts * mode.p * (1 - mode.p))
    volume = np.linalg.slogdet(np.eye(6) + covariance @ weight)[1]
    assert mode.evidence == pytest.approx(-best.fun - volume / 2, abs=1e-5)


def test_the_evidence_of_one_visit_is_the_integral() -> None:
    mode = mode_of(np.array([[0.5]]), np.array([-1.0]), np.array([1.0]), np.ones(1))
    exact = quad(lambda f: expit(f) * norm.pdf(f, -1, np.sqrt(0.5)), -10, 10)[0]
    assert np.exp(mode.evidence) == pytest.approx(exact, rel=0.01)


def test_slopes_of_the_evidence_are_its_differences() -> None:
    places = np.arange(12.0)
    apart = np.abs(places[:, None] - places)
    part = np.outer(np.sin(places), np.sin(places))
    labels, counts = (places % 3 == 0).astype(float), np.where(places > 8, 0.6, 1.0)
    mean = np.full(12, -0.5)

    def parts(theta: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        own, *changes = _matern(apart, *np.exp(theta[:2]))
        changes.append(np.exp(theta[2]) * part)
        return own + changes[2] + 0.1, changes

    def value(theta: np.ndarray) -> float:
        return mode_of(parts(theta)[0], mean, labels, counts).evidence

    def slope(theta: np.ndarray) -> np.ndarray:
        total, changes = parts(theta)
        return slopes_of(mode_of(total, mean, labels, counts), total, changes, counts)

    assert check_grad(value, slope, np.array([0.5, 0.8, 0.2]), epsilon=1e-4) < 1e-3


def test_before_any_visit_the_level_and_the_belief_are_what_is_believed() -> None:
    model = LogisticModel(GRID, Layers.of(GRID, {"v": NOISE}))
    np.testing.assert_allclose(model.mean, LEVEL)
    ends, middle = np.argsort(np.abs(NOISE))[-10:], np.argsort(np.abs(NOISE))[:10]
    assert model.doubt()[ends].min() > model.doubt()[middle].max()
    belief = np.where(TARGET, 0.7, 0.05)
    model = LogisticModel(GRID, Layers(GRID, belief=belief))
    np.testing.assert_allclose(model.mean, logit(belief))
    assert model.effects()[0].name == "belief"
    first = int(np.argmax(belief))
    assert model.contributions(first)["belief"] > 0


def test_what_is_expected_is_a_slope() -> None:
    for way, sign in (("more", 1), ("less", -1)):
        model = LogisticModel(GRID, Layers.of(GRID, {"v": VALUES}, expected={"v": way}))
        high, low = int(np.argmax(VALUES)), int(np.argmin(VALUES))
        assert sign * (model.mean[high] - model.mean[low]) > 2 * SLOPE


def test_a_layer_multiplies_odds_where_neighbours_found_much() -> None:
    """Targets lie where the layer is high in the upper half alone, never where it is zero."""
    rng = np.random.RandomState(1)
    rows, zero = np.arange(400) // 20, rng.uniform(size=400) < 0.5
    values = np.where(zero, 0.0, rng.uniform(1, 2, 400))
    target = ~zero & (rows < 10)
    grid = Grid(20, 20)
    cells = rng.choice(400, 150, replace=False)
    found = target[cells].astype(float)
    model = LogisticModel(grid, Layers.of(grid, {"v": values}))
    model.fit(cells, found, np.where(found > 0, SURE, -SURE))
    p, left = model.probability(), np.setdiff1d(np.arange(400), cells)
    inside = left[target[left] & (rows[left] < 8)]  # the border is a matter of doubt
    assert p[inside].min() > 0.5 > 0.2 > p[left[zero[left]]].max()


def test_useless_layers_fade_beside_one_that_predicts() -> None:
    names = {f"n{i}": np.random.RandomState(i).randn(SIDE * SIDE) for i in range(3)}
    layers = Layers.of(GRID, {**names, "v": VALUES})
    model = told(layers, np.random.RandomState(5).permutation(100)[:60])
    sizes = dict(zip(layers.names, model.sizes, strict=True))
    assert all(sizes["v"] > 20 * sizes[name] for name in names)
    effects = {effect.name: effect for effect in model.effects()}
    assert effects["v"].matters
    assert effects["v"].low > 0
    assert not any(effects[name].matters for name in names)
    few = told(Layers.of(GRID, names), np.random.RandomState(5).permutation(100)[:15])
    assert max(few.sizes) < SIZE / 2  # of three that say nothing, none is trusted by chance


def test_it_is_a_function_of_the_visits_alone() -> None:
    layers, cells = Layers.of(GRID, {"v": VALUES, "b": NOISE}), np.arange(0, 99, 3)
    found = TARGET[cells].astype(float)
    factors = np.where(found > 0, SURE, np.log(0.3))
    at_once = LogisticModel(GRID, layers).fit(cells, found, factors)
    step_by_step = LogisticModel(GRID, layers)
    for n in range(len(cells) + 1):
        step_by_step.fit(cells[:n], found[:n], factors[:n])
    np.testing.assert_array_equal(at_once.mean, step_by_step.mean)
    np.testing.assert_array_equal(at_once.var, step_by_step.var)


def test_a_cell_without_its_own_visits_is_as_if_they_were_never_made() -> None:
    layers, cells = Layers.of(GRID, {"v": VALUES}), np.array([11, 12, 13, 45])
    found, factors = np.zeros(4), np.full(4, np.log(0.6))
    model = LogisticModel(GRID, layers).fit(cells, found, factors)
    without = LogisticModel(GRID, layers).fit(cells[1:], found[1:], factors[1:])
    assert model.others()[11] == pytest.approx(without.probability()[11], abs=0.01)
    assert model.probability()[11] < model.others()[11]
    far = int(np.setdiff1d(np.arange(100), cells)[0])
    assert model.others()[far] == model.probability()[far]


def test_a_doubtful_blank_says_less_than_a_certain_one() -> None:
    layers, cells = Layers.of(GRID, {"v": NOISE}), np.flatnonzero(~TARGET)[:4]
    doubtful, certain = (told(layers, cells, odds) for odds in (0.5, SURE))
    near = cells[0] + 1
    before = averaged(np.array([LEVEL]), np.array([LEVEL_SD**2 + 1]))[0]
    assert certain.probability()[near] < doubtful.probability()[near]
    assert certain.probability()[near] < before


def test_what_was_told_matters_by_bayes_rule_of_its_evidence() -> None:
    """Each layer, and what is expected alone, against a field at the usual level."""
    cells = RNG.choice(SIDE * SIDE, 20, replace=False)
    labels, counts = TARGET[cells].astype(float), np.ones(20)
    field = _matern(GRID.geometry.between(cells), *FIELD)[0] + LEVEL_SD**2
    for expected in (None, "less"):
        signs = None if expected is None else {"v": expected}
        model = told(Layers.of(GRID, {"v": VALUES, "w": NOISE}, expected=signs), cells)
        kernels = [field + WORTH * t.columns[cells] @ t.columns[cells].T for t in model.terms]
        kernels = kernels if expected is None else [field, *kernels]
        mean, level = model.expected[cells], np.full(20, LEVEL)
        ours = np.mean([np.exp(mode_of(k, mean, labels, counts).evidence) for k in kernels])
        alone = np.exp(mode_of(field, level, labels, counts).evidence)
        chance = RELEVANT * ours / (RELEVANT * ours + (1 - RELEVANT) * alone)
        assert model.relevance == pytest.approx(chance)


def test_relevance_follows_what_layers_predict() -> None:
    cells = np.random.RandomState(8).permutation(SIDE * SIDE)[:60]
    layers = {
        "predicts": Layers.of(GRID, {"v": VALUES}),
        "noise": Layers.of(GRID, {f"n{i}": n for i, n in enumerate(_noise(5))}),
        "both": Layers.of(GRID, {"v": VALUES} | {f"n{i}": n for i, n in enumerate(_noise(5))}),
        "useless belief": Layers(GRID, belief=np.where(_noise(1)[0] > 0, 0.95, 0.05)),
    }
    found = {name: told(one, cells).relevance for name, one in layers.items()}
    assert LogisticModel(GRID, layers["noise"]).relevance == RELEVANT
    assert min(found["predicts"], found["both"]) > 0.99
    assert found["noise"] < RELEVANT
    assert found["useless belief"] < RELEVANT / 2


def _noise(count: int) -> list[np.ndarray]:
    return [np.random.RandomState(i).randn(SIDE * SIDE) for i in range(count)]
