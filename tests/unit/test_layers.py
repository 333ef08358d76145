"""What is known of every cell beforehand: values, ranks, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from engram.errors import InputError
from engram.grid import Grid
from engram.layers import Layer, Layers, normal_scores

GRID = Grid(4, 5)
RAMP = np.arange(20.0)


def test_scores_are_centred_of_unit_variance_and_average_ties() -> None:
    u, sign = normal_scores(np.array([3.0, 1.0, 1.0, 9.0]), np.arange(4))
    assert sign == 1
    plain = norm.ppf([(3 - 0.5) / 4, (1.5 - 0.5) / 4, (1.5 - 0.5) / 4, (4 - 0.5) / 4])
    np.testing.assert_allclose(u, (plain - plain.mean()) / plain.std())
    assert normal_scores(np.array([1.0, 3.0, 9.0]), np.arange(3))[1] == -1


def test_scores_are_those_among_open_cells_and_missing_cells_lie_in_the_middle() -> None:
    values = np.array([0.0, 1.0, np.nan, 2.0, 50.0])
    u, _ = normal_scores(values, np.array([0, 1, 2, 3]))
    assert u[2] == 0
    assert u[4] == u[3]  # above all three: no farther than the highest of them
    np.testing.assert_allclose(np.mean(u[[0, 1, 3]] ** 2), 1)


@given(
    st.lists(st.integers(-50, 50), min_size=5, max_size=20),
    st.sampled_from([-3.0, -1.0, 0.25, 7.0]),
    st.integers(-9, 9),
)
@settings(max_examples=60, deadline=None)
def test_the_unit_and_sign_of_a_layer_change_no_bit(
    values: list[int], scale: float, shift: int
) -> None:
    array = np.array(values, float)
    if np.ptp(array) == 0:
        return
    among = np.arange(len(array))
    u, sign = normal_scores(array, among)
    v, other = normal_scores(scale * array + shift, among)
    assert np.array_equal(u, v)
    assert sign * other == np.sign(scale)


def test_texts_are_categories_and_nothing_is_missing_where_nothing_is_written() -> None:
    rock = np.array(["granite", "", "schist", None, "granite"] * 4, object)
    layer = Layers.of(GRID, {"rock": rock}).get("rock")
    assert layer.categories == ("granite", "schist")
    assert layer.missing.sum() == 8
    assert set(layer.values[~layer.missing]) == {0.0, 1.0}


def test_they_are_kept_by_name_and_survive_json_to_the_last_bit() -> None:
    values = RAMP / 3
    values[4] = np.nan
    layers = Layers.of(
        GRID,
        {"z": values, "a": ["x", "y"] * 10},
        belief=np.full(20, 0.1),
        expected={"z": "less"},
    )
    back = Layers.from_dict(layers.to_dict(), GRID)
    assert layers.names == back.names == ("a", "z")
    assert back.get("z").expected == "less"
    np.testing.assert_array_equal(back.get("z").values, values)
    assert back.sha256 == layers.sha256
    others = [
        Layers.of(GRID, {"z": values, "a": ["x", "y"] * 10}, belief=np.full(20, 0.1)),
        Layers.of(GRID, {"z": RAMP, "a": ["x", "y"] * 10}, belief=np.full(20, 0.1)),
        Layers.of(GRID, {"z": values, "a": ["x", "w"] * 10}, belief=np.full(20, 0.2)),
    ]
    assert len({layers.sha256, *(other.sha256 for other in others)}) == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(7.0), "'elevation' has 7 values; the area has 4x5 cells"),
        (np.full(20, 3.0), "'elevation' is 3 in every open cell"),
        (np.full(20, np.nan), "'elevation' is missing in every open cell"),
        (np.where(RAMP == 3, np.inf, RAMP), "'elevation' is infinite in 1 cell"),
        (np.array(["a"] * 20), "'elevation' is a in every open cell"),
        (np.array([1j] * 20), "'elevation' holds complex128"),
    ],
)
def test_a_layer_that_cannot_be_one_is_named(values: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        Layers.of(GRID, {"elevation": values})


def test_more_categories_than_cells_where_it_is_known() -> None:
    closed = np.ones((4, 5), bool)
    closed[0, :3] = False
    with pytest.raises(InputError, match="'soil' has 20 categories for 3 open cells"):
        Layers.of(Grid(4, 5, closed=closed), {"soil": [f"kind {i}" for i in range(20)]})


@pytest.mark.parametrize(
    ("belief", "words"),
    [
        (np.full(20, 1.5), "belief runs from 1.5 to 1.5; give probabilities"),
        (np.where(RAMP == 2, -0.1, 0.2), "belief runs from -0.1 to 0.2"),
        (np.where(RAMP == 2, np.nan, 0.2), "belief is missing in 1 open cell"),
        (np.full(6, 0.5), "belief has 6 values; the area has 4x5 cells"),
    ],
)
def test_a_belief_is_a_probability_of_every_open_cell(belief: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Layers(GRID, belief=belief)


def test_a_belief_may_miss_closed_cells() -> None:
    closed = RAMP.reshape(4, 5) == 2
    layers = Layers(Grid(4, 5, closed=closed), belief=np.where(RAMP == 2, np.nan, 0.2))
    assert layers.belief is not None
    assert np.isfinite(layers.belief).all()


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([Layer("a", RAMP), Layer("a", -RAMP)], "'a' is given twice"),
        ([Layer("belief", RAMP)], "'belief' is kept for the belief map"),
    ],
)
def test_names_are_given_once(layers: list[Layer], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Layers(GRID, layers)


@pytest.mark.parametrize("name", ["", " a", "a=b", "a:more", "x" * 61, "a\nb"])
def test_names_that_could_not_be_written(name: str) -> None:
    with pytest.raises(InputError, match="layer name"):
        Layer(name, RAMP)


def test_only_numbers_can_be_expected_to_be_high() -> None:
    with pytest.raises(InputError, match="'rock' has categories"):
        Layers.of(GRID, {"rock": ["a", "b"] * 10}, expected={"rock": "more"})
    with pytest.raises(InputError, match="expected 'most'"):
        Layers.of(GRID, {"z": RAMP}, expected={"z": "most"})
    with pytest.raises(InputError, match="expected names 'q'"):
        Layers.of(GRID, {"z": RAMP}, expected={"q": "more"})
