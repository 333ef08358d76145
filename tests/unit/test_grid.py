from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram import Grid, InputError


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    rows, cols, h, w = (draw(st.integers(1, 6)) for _ in range(4))
    closed = draw(st.lists(st.booleans(), min_size=rows * cols, max_size=rows * cols))
    return Grid(
        rows * h, cols * w, draw(st.integers(1, 3)), (h, w), closed=np.reshape(closed, (rows, cols))
    )


@given(grids())
def test_indices_and_cells_are_a_round_trip(grid: Grid) -> None:
    assert grid.n_cells == grid.rows * grid.cols
    for index in range(grid.n_cells):
        cell = grid.at(index)
        assert grid.index(cell) == index
        rows, cols = grid.block(cell)
        assert (rows.stop - rows.start, cols.stop - cols.start) == grid.cell


@given(grids(), st.integers(0, 99))
def test_cells_of_an_image_are_its_blocks(grid: Grid, seed: int) -> None:
    shape = (grid.channels, grid.height, grid.width)
    image = np.random.default_rng(seed).random(shape).astype(np.float32)
    cells = grid.cells_of(image)
    assert cells.shape == (grid.channels, grid.n_cells, *grid.cell)
    for index in range(grid.n_cells):
        content = grid.content_of(image, grid.at(index))
        assert content.shape == grid.content_shape
        np.testing.assert_array_equal(cells[:, index], content)


@given(grids())
def test_pixels_repeat_each_cells_value(grid: Grid) -> None:
    values = np.arange(grid.n_cells, dtype=np.float32)
    image = grid.pixels(values)
    assert image.shape == (grid.height, grid.width)
    np.testing.assert_array_equal(grid.cells_of(image).mean(axis=(1, 2)), values)
    np.testing.assert_array_equal(grid.pixels(values.reshape(grid.rows, grid.cols)), image)


@given(grids())
def test_open_cells_are_those_not_closed(grid: Grid) -> None:
    assert len(grid.open_cells) == grid.n_cells - grid.closed.sum()
    assert not grid.closed.ravel()[grid.open_cells].any()


@given(st.floats(-100, 100), st.floats(0.01, 100), st.lists(st.floats(0, 1), min_size=1))
def test_model_range_is_a_round_trip(low: float, width: float, shares: list[float]) -> None:
    grid = Grid(4, 4, range=(low, low + width))
    values = np.array([low + width * s for s in shares], np.float32)
    model = grid.to_model(values)
    assert model.dtype == np.float32
    assert np.abs(model).max() <= 1 + 1e-2
    np.testing.assert_allclose(grid.from_model(model), values, atol=1e-4 * (abs(low) + width))


def test_ends_of_the_range_are_plus_and_minus_one() -> None:
    grid = Grid(2, 2, range=(10, 30))
    assert grid.to_model(np.array([10, 20, 30], np.float32)).tolist() == [-1, 0, 1]
    assert grid.range == (10.0, 30.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"height": 0}, "height=0"),
        ({"height": 2.5}, "height=2.5"),
        ({"height": np.nan}, "height=nan"),
        ({"width": -3}, "width=-3"),
        ({"width": "wide"}, "width='wide'"),
        ({"channels": 0}, "channels=0"),
        ({"cell": (3, 2)}, "2 rows and 0 columns would be left over"),
        ({"cell": (2, 5)}, "0 rows and 3 columns would be left over"),
        ({"cell": (0, 1)}, "two whole numbers"),
        ({"cell": (1.5, 1)}, "two whole numbers"),
        ({"cell": 4}, "two whole numbers"),
        ({"cell": (1, 1, 1)}, "two whole numbers"),
        ({"range": (1.0, 1.0)}, "low < high"),
        ({"range": (0.0, np.inf)}, "low < high"),
        ({"range": ("a", "b")}, "low < high"),
        ({"closed": np.zeros((3, 3), bool)}, "closed has shape"),
        ({"cost": np.ones(64)}, "cost has shape"),
        ({"cost": np.zeros((8, 8))}, "above 0"),
        ({"cost": np.full((8, 8), np.nan)}, "above 0"),
    ],
)
def test_wrong_grids_are_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Grid(**{"height": 8, "width": 8, **wrong})


@pytest.mark.parametrize("cell", [(8, 0), (0, 4), (-1, 0), (0, -1)])
def test_cells_outside_are_refused(cell: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="outside the grid of 8 rows and 4 columns"):
        Grid(8, 8, cell=(1, 2)).index(cell)


@pytest.mark.parametrize("cell", [(0.5, 1), ("a", 1), (1,), (1, 2, 3), 7, None, (np.nan, 0)])
def test_things_that_are_no_cells_are_refused(cell: Any) -> None:
    with pytest.raises(InputError, match="pair of whole numbers"):
        Grid(8, 8).index(cell)


def test_whole_numbers_of_other_types_are_fine() -> None:
    grid = Grid(8.0, np.int64(8), cell=(np.int32(2), 4.0))  # type: ignore[arg-type]
    assert (grid.height, grid.width, grid.cell) == (8, 8, (2, 4))
    assert grid.index((np.int64(3), 1.0)) == 7  # type: ignore[arg-type]
    assert isinstance(grid.rows, int)


@pytest.mark.parametrize("budget", [0, -1, 1.5, np.nan, "ten", None])
def test_budgets_that_are_no_count_are_refused(budget: Any) -> None:
    with pytest.raises(InputError, match="whole number of at least 1"):
        Grid(4, 4).check_budget(budget)


def test_a_budget_is_at_most_the_open_cells() -> None:
    grid = Grid(4, 4).with_closed([(0, 0), (3, 3)])
    assert grid.check_budget(14) == 14
    with pytest.raises(InputError, match="budget=15 is larger than the 14 open cells"):
        grid.check_budget(15)


def test_closing_cells_keeps_everything_else() -> None:
    cost = np.arange(1, 9, dtype=float).reshape(2, 4)
    grid = Grid(4, 8, 3, (2, 2), (-5, 5), cost=cost).with_closed([(1, 2)])
    again = grid.with_closed([(0, 0)])
    assert np.flatnonzero(again.closed).tolist() == [0, 6]
    assert np.flatnonzero(grid.closed).tolist() == [6]
    np.testing.assert_array_equal(again.cost, cost)
    assert (again.channels, again.range) == (3, (-5.0, 5.0))
    with pytest.raises(InputError):
        grid.with_closed([(2, 0)])


def test_a_grid_cannot_be_changed_from_outside() -> None:
    closed = np.zeros((4, 4), bool)
    grid = Grid(4, 4, closed=closed)
    closed[0, 0] = True
    assert not grid.closed.any()
    with pytest.raises(ValueError, match="read-only"):
        grid.closed[0, 0] = True
