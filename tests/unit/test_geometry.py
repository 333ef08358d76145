"""One definition of distance, for cells of any shape, and every module that uses it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram import Grid, InputError
from engram.campaign.decide import trip_cost
from engram.campaign.events import Create, Event
from engram.campaign.kriging import moments
from engram.campaign.model import Spec, canonical
from engram.campaign.state import State
from engram.geometry import Geometry
from engram.memory.layers import PRESENCE
from engram.policies import make_policy
from engram.policies.lens import Lens
from engram.policies.outcome_h import RINGS, OutcomeTransform

SLIM = Grid(24, 48, cell=(2, 8))
"""12x6 cells, four times as wide as high: half a cell high and two cells wide."""


def by_hand(grid: Grid, one: tuple[int, int], other: tuple[int, int]) -> float:
    """Distance in pixels over the side of a square of a cell's area."""
    (h, w), (dr, dc) = grid.cell, np.subtract(one, other)
    return float(np.sqrt((dr * h) ** 2 + (dc * w) ** 2) / np.sqrt(h * w))


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_every_table_is_the_same_distance(size: tuple[int, int], cell: tuple[int, int]) -> None:
    grid = Grid(size[0] * cell[0], size[1] * cell[1], cell=cell)
    geometry, cells = grid.geometry, np.arange(grid.n_cells)
    expected = np.array([[by_hand(grid, grid.at(i), grid.at(j)) for j in cells] for i in cells])
    rows = np.array([geometry.distances(grid.at(int(i))) for i in cells])
    some = np.array([geometry.distances(grid.at(int(i)), cells[::2]) for i in cells])
    squares = np.array([geometry.squares(grid.at(int(i))) for i in cells])
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    np.testing.assert_allclose(some, expected[:, ::2], atol=1e-12)
    np.testing.assert_allclose(squares, expected**2, atol=1e-10)
    np.testing.assert_allclose(geometry.between(cells), expected, atol=1e-12)
    offsets = geometry.offsets()
    middle = np.array([grid.rows - 1, grid.cols - 1])
    for i in cells:
        for j in cells:
            there = middle + np.subtract(grid.at(int(j)), grid.at(int(i)))
            assert offsets[tuple(there)] == pytest.approx(expected[i, j], abs=1e-12)


def test_square_cells_are_one_apart_to_the_last_bit() -> None:
    for side in (1, 2, 3, 5, 7, 40):
        geometry = Grid(side * 3, side * 3, cell=(side, side)).geometry
        assert geometry == Geometry(3, 3, 1.0, 1.0)
        np.testing.assert_array_equal(geometry.distances((0, 0))[:3], [0, 1, 2])


@pytest.mark.parametrize("grid", [Grid(9, 7), SLIM])
@pytest.mark.parametrize("count", [0, 3, 30])
def test_pairs_look_up_the_distances_between_cells(grid: Grid, count: int) -> None:
    """Few cells far apart are taken as they are; of many, each offset is computed once."""
    cells = np.random.default_rng(count).choice(grid.n_cells, count, replace=False)
    distances, pairs = grid.geometry.pairs(cells)
    assert len(distances) <= max(count**2, 1)
    np.testing.assert_allclose(distances[pairs], grid.geometry.between(cells), atol=1e-12)
    if grid.cell == (1, 1):
        np.testing.assert_array_equal(distances[pairs], grid.geometry.between(cells))


def test_a_neighbourhood_holds_all_cells_within_its_radius() -> None:
    table = SLIM.geometry.neighbourhood(3.0)
    assert table.shape == (13, 5)
    assert table[6, 2] == 0
    assert table[0, 2] == 3
    assert table[6, 0] == 4
    assert min(table[0].min(), table[:, 0].min()) >= 3  # nothing beyond the edge is nearer


def test_a_window_is_as_wide_as_high_on_the_ground_and_ends_at_the_edge() -> None:
    geometry = Grid(2 * 40, 8 * 40, cell=(2, 8)).geometry
    assert geometry.window((20, 20), 4) == (slice(12, 29), slice(18, 23))
    assert geometry.window((0, 39), 4) == (slice(0, 9), slice(37, 40))


def test_sides_say_more_than_pixels() -> None:
    grid = replace(Grid(4, 4), sides=(1, 4))
    assert grid.geometry == Geometry(4, 4, 0.5, 2.0)
    assert grid.geometry.extent == 8
    assert grid.geometry.diagonal == pytest.approx(np.hypot(2, 8))


def test_a_lens_keeps_the_shape_of_the_cells() -> None:
    seen = Lens(SLIM, PRESENCE).grid
    assert seen.cell == (1, 1)
    assert seen.geometry == SLIM.geometry
    again = Lens(replace(SLIM, sides=(3, 1)), PRESENCE).grid
    assert again.geometry.height == pytest.approx(np.sqrt(3))


def test_rings_around_a_cell_are_round_on_the_ground() -> None:
    inner = OutcomeTransform(SLIM).kernels[0]
    rows, cols = (size // 2 for size in inner.shape)
    near = {(r - rows, c - cols) for r, c in np.argwhere(inner > 0)}
    assert near == {(dr, 0) for dr in (-2, -1, 1, 2)}  # 0.5 and 1 away; the next column is 2 away
    for kernel, (low, high) in zip(OutcomeTransform(SLIM).kernels, RINGS, strict=True):
        apart = SLIM.geometry.neighbourhood(RINGS[-1][1])[kernel > 0]
        assert low < apart.min()
        assert apart.max() <= high


def test_crews_are_kept_apart_by_the_distance_on_the_ground() -> None:
    policy = make_policy("spread", SLIM, 10)
    flat = np.ones(SLIM.n_cells)
    picks = policy.suggest(1, [(6, 0)], worth=flat)
    assert picks[0].cell == (0, 5)
    beside, below = SLIM.index((6, 1)), SLIM.index((9, 0))  # 2 and 1.5 away
    only = np.isin(np.arange(SLIM.n_cells), (beside, below))
    assert policy.suggest(1, [(6, 0)], available=only, worth=flat)[0].cell == (6, 1)


def test_a_way_costs_its_length_on_the_ground() -> None:
    spec = Spec(SLIM, 5, "random", travel=2.0)
    state = State(Event.saying(1, 0.0, "", "k", Create(spec)))
    cost = trip_cost(state, (0, 0))
    assert cost[SLIM.index((3, 0))] == pytest.approx(1 + 2 * 1.5)
    assert cost[SLIM.index((0, 3))] == pytest.approx(1 + 2 * 6.0)


def test_finds_say_more_of_what_is_near_on_the_ground() -> None:
    """One measured cell without target: what is left depends on the shape of the cells."""
    searchable = np.zeros(72, bool)
    searchable[[SLIM.index((0, 1)), SLIM.index((0, 2))]] = True  # 2 and 4 away, or 1 and 2
    cells, hits = np.array([0], np.intp), np.array([1.0])
    far, _ = moments(SLIM, searchable, cells, hits)
    near, _ = moments(Grid(12, 6), searchable, cells, hits)
    assert far < near


def test_a_place_is_kept_compared_and_absent_from_logs_without_one() -> None:
    plain = Grid(8, 8, cell=(2, 2))
    placed = replace(plain, sides=(30, 20), transform=(30, 0, 5, 0, -30, 9), crs="EPSG:32633")
    assert plain == Grid(8, 8, cell=(2, 2))
    assert hash(plain) == hash(Grid(8, 8, cell=(2, 2)))
    assert plain != placed
    assert plain != plain.with_closed([(0, 0)])
    for name in ("sides", "transform", "crs"):
        assert replace(placed, **{name: None}) != placed
        assert name not in Spec(plain, 3, "random").to_dict()["grid"]
    written = canonical(Spec(placed, 3, "random").to_dict())
    assert Spec.read(json.loads(written))[0].grid == placed
    assert placed.transform == (30.0, 0.0, 5.0, 0.0, -30.0, 9.0)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("sides", (0, 1), "both above 0"),
        ("sides", (1, 5000), "at most 1000 times"),
        ("sides", (1,), "give 2 finite numbers"),
        ("transform", (1, 2, 3), "give 6 finite numbers"),
        ("transform", (1, 2, 0, 2, 4, 0), "onto a line"),
        ("transform", "abcdef", "give 6 finite numbers"),
        ("crs", " ", "give a name"),
        ("crs", 4326, "give a name"),
    ],
)
def test_a_place_that_is_none_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=f"{field}=.*{words}"):
        Grid(4, 4, **{field: value})
