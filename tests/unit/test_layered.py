"""The process over place and layers: its posterior, what it expects, what it learns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import InputError
from engram.grid import Grid
from engram.layered import DISTRUST, EXPECTED_SLOPE, LayeredModel
from engram.layers import Layers, normal_scores
from engram.policies import make_policy
from engram.simulation import simulate
from engram.spatial import MEAN, MEAN_SD
from engram.tasks.base import Task

SIDE = 10
GRID = Grid(SIDE, SIDE)
RNG = np.random.RandomState(3)
VALUES = RNG.randint(0, 30, SIDE * SIDE).astype(float)
NOISE = RNG.randn(SIDE * SIDE)
TARGET = VALUES >= 24
TASK = Task(
    "ramp", GRID, TARGET.reshape(1, SIDE, SIDE).astype(np.float32), TARGET.reshape(SIDE, SIDE)
)


def fitted(layers: Layers, count: int = 4) -> LayeredModel:
    cells = np.array([(i % SIDE, 3 * i % SIDE) for i in range(count)])
    return LayeredModel(GRID, layers).fit(cells, [1.0, 0.0, 0.0, 1.0][:count])


def test_the_posterior_is_the_closed_form() -> None:
    missing = np.where(np.arange(100) % 7 == 0, np.nan, VALUES)
    kinds = np.array(["a", "b", "", "c"] * 25)
    belief = np.linspace(0, 0.6, 100)
    layers = Layers.of(GRID, {"v": missing, "k": kinds}, belief=belief, expected={"v": "more"})
    model = fitted(layers)
    places = GRID.geometry.places(np.arange(100))
    z = np.sqrt(3) * np.hypot(*(places[:, None] - places).T) / model.hyperparameters.length
    full = model.hyperparameters.variance * (1 + z) * np.exp(-z) + MEAN_SD**2
    for size, terms in zip(model.sizes, model.terms, strict=True):
        full += size * terms.columns @ terms.columns.T
    trust = DISTRUST * (belief - MEAN)
    full += np.outer(trust, trust)
    u, sign = normal_scores(missing, GRID.open_cells)
    mean = belief + sign * EXPECTED_SLOPE * u
    at = [GRID.index((i, 3 * i)) for i in range(4)]
    own = full[np.ix_(at, at)] + model.hyperparameters.noise * np.eye(4)
    gain = np.linalg.solve(own, full[at]).T
    expected = mean + gain @ (np.array([1.0, 0, 0, 1]) - mean[at])
    spread = np.diag(full) - np.einsum("ij,ij->i", gain, full[at].T)
    found, sd = model.predict()
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(sd, np.sqrt(spread), atol=1e-7)


def test_before_any_measurement_the_ends_of_a_layer_are_the_doubtful_cells() -> None:
    _, sd = LayeredModel(GRID, Layers.of(GRID, {"v": NOISE})).predict()
    middle = np.argsort(np.abs(np.argsort(np.argsort(NOISE)) - 49.5))[:10]
    ends = [int(np.argmax(NOISE)), int(np.argmin(NOISE))]
    assert sd[ends].min() > sd[middle].max()


def test_what_is_expected_comes_first_and_what_is_found_corrects_it() -> None:
    task = Task("low", GRID, 1 - TASK.content, ~TASK.target)
    for expected, best in (("more", 1), ("less", 0)):
        layers = Layers.of(GRID, {"v": VALUES}, expected={"v": expected})
        first = make_policy("gp", GRID, 40, layers=layers, acquisition="probability")
        index = GRID.index(first.suggest()[0].cell)
        assert VALUES[index] == (VALUES.max() if best else VALUES.min())
        trace = simulate(make_policy("gp", GRID, 40, layers=layers), task)
        assert np.mean(np.array(trace.outcomes[20:]) > 0) > 0.9


def test_a_layer_that_predicts_is_used_and_others_fade() -> None:
    layers = Layers.of(GRID, {"v": VALUES, "noise": NOISE})
    policy = make_policy("gp", GRID, 40, layers=layers, acquisition="foraging")
    trace = simulate(policy, TASK)
    blind = simulate(make_policy("gp", GRID, 40, acquisition="foraging"), TASK)
    assert trace.success_rate() > 0.9 > blind.success_rate()
    sizes = dict(zip(layers.names, policy.process.model.sizes, strict=True))  # type: ignore[attr-defined]
    assert sizes["v"] > 20 * sizes["noise"]


def test_two_layers_that_matter_are_both_found_among_others() -> None:
    rng = np.random.RandomState(0)
    names = ("a", "b", "c", "d")
    values = {name: rng.randn(GRID.n_cells) for name in names}
    target = (values["a"] - values["b"] > 1).reshape(SIDE, SIDE)
    task = Task("two", GRID, target[None].astype(np.float32), target)
    layers = Layers.of(GRID, values)
    policy = make_policy("gp", GRID, 50, layers=layers, acquisition="foraging")
    simulate(policy, task)
    model = policy.layered()
    assert model is not None
    effects = {effect.name: effect for effect in model.effects()}
    assert effects["a"].low > 0 > effects["b"].high
    assert not effects["c"].matters
    assert not effects["d"].matters


@pytest.mark.parametrize("acquisition", ["lookahead", "foraging"])
def test_order_unit_and_sign_of_layers_change_no_suggestion(acquisition: str) -> None:
    def cells(values: dict[str, np.ndarray]) -> list[tuple[int, int]]:
        layers = Layers.of(GRID, values)
        policy = make_policy("gp", GRID, 25, layers=layers, acquisition=acquisition)
        return simulate(policy, TASK).cells

    plain = cells({"a": VALUES, "b": NOISE})
    assert cells({"b": NOISE, "a": VALUES}) == plain
    assert cells({"a": 5 - 0.5 * VALUES, "b": 100 * NOISE}) == plain


LISTED = {"a": VALUES, "b": np.round(8 * NOISE), "c": np.arange(SIDE * SIDE) % 7 * 1.0}


def suggested(values: dict[str, np.ndarray]) -> list[tuple[int, int]]:
    return simulate(make_policy("gp", GRID, 12, layers=Layers.of(GRID, values)), TASK).cells


@settings(max_examples=8, deadline=None)
@given(
    st.permutations(list(LISTED)),
    st.lists(st.sampled_from([-40.0, -1.0, 0.125, 3.0]), min_size=3, max_size=3),
    st.lists(st.integers(-500, 500), min_size=3, max_size=3),
)
def test_no_affine_change_or_order_of_layers_changes_a_suggestion(
    order: list[str], factors: list[float], shifts: list[int]
) -> None:
    changed = {
        name: a * LISTED[name] + b for name, a, b in zip(order, factors, shifts, strict=True)
    }
    assert suggested(changed) == suggested(LISTED)


def test_a_belief_is_the_start_and_evidence_moves_it() -> None:
    right = np.where(TARGET, 0.7, 0.05)
    model = LayeredModel(GRID, Layers(GRID, belief=right))
    np.testing.assert_allclose(model.probability(), right)
    wrong = Layers(GRID, belief=1 - right)
    policy = make_policy("gp", GRID, 45, layers=wrong)
    trace = simulate(policy, TASK)
    assert trace.success_rate() > 0.8


def test_policies_without_a_use_for_layers_refuse_them() -> None:
    with pytest.raises(InputError, match=r"'random' has no use for layers; .* gp"):
        make_policy("random", GRID, 5, layers=Layers.of(GRID, {"v": VALUES}))
    make_policy("random", GRID, 5, layers=Layers(GRID))
