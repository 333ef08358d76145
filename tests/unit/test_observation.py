from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engram import Grid, InputError, Observation, Observations

GRID = Grid(6, 8, 3, (2, 4), (0.0, 10.0))
CONTENT = np.arange(24, dtype=np.float32).reshape(3, 2, 4) / 4


def observed(cell: tuple[int, int], outcome: float = 0.5, noise: float = 0.0) -> Observation:
    return Observation.checked(GRID, cell, CONTENT, outcome, noise)


def test_content_may_come_with_channels_first_or_last() -> None:
    np.testing.assert_array_equal(observed((0, 0)).content, CONTENT)
    last = Observation.checked(GRID, (0, 0), CONTENT.transpose(1, 2, 0), 0.5)
    np.testing.assert_array_equal(last.content, CONTENT)


@pytest.mark.parametrize("content", [0.25, [0.25], [[0.25]], [[[0.25]]], np.float64(0.25)])
def test_a_single_pixel_may_be_a_number(content: Any) -> None:
    item = Observation.checked(Grid(4, 4), (1, 1), content, 1)
    assert item.content.tolist() == [[[0.25]]]
    assert item.outcome == 1.0


def test_a_single_pixel_of_several_channels_may_be_a_list() -> None:
    item = Observation.checked(Grid(4, 4, 3), (1, 1), [0.1, 0.2, 0.3], 0)
    assert item.content.shape == (3, 1, 1)


def test_a_grey_cell_may_be_a_table() -> None:
    item = Observation.checked(Grid(4, 4, 1, (2, 2)), (1, 1), [[0, 1], [1, 0]], 0)
    assert item.content.shape == (1, 2, 2)


def test_content_is_kept_apart_from_the_callers_array() -> None:
    mine = CONTENT.copy()
    item = Observation.checked(GRID, (0, 0), mine, 0.5)
    mine[:] = 0
    np.testing.assert_array_equal(item.content, CONTENT)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cell": (3, 0)}, "outside the grid"),
        ({"cell": (0, -1)}, "outside the grid"),
        ({"content": np.zeros((3, 4, 2))}, r"content has shape \(3, 4, 2\)"),
        ({"content": np.zeros((1, 2, 4))}, "content has shape"),
        ({"content": np.zeros(24)}, "content has shape"),
        ({"content": 1.0}, "content has shape"),
        ({"content": "bright"}, "give an array of real numbers"),
        ({"content": np.zeros((3, 2, 4)) + 1j}, "give an array of real numbers"),
        ({"outcome": np.complex128(1)}, "outcome="),
        ({"noise": 1e9}, "noise=1000000000.0 is not"),
        ({"content": None}, "content"),
        ({"content": [[1, 2], [3]]}, "not an array of numbers"),
        ({"content": np.full((3, 2, 4), np.nan)}, "NaN or infinite"),
        ({"content": np.full((3, 2, 4), np.inf)}, "NaN or infinite"),
        ({"content": np.full((3, 2, 4), 1e300)}, "NaN or infinite"),
        ({"content": np.full((3, 2, 4), 11.0)}, r"outside the grid's range \[0, 10\]"),
        ({"content": np.full((3, 2, 4), -0.1)}, "outside the grid's range"),
        ({"outcome": 1.01}, r"outcome=1.01 is not a number in \[0, 1\]"),
        ({"outcome": -0.01}, "outcome=-0.01"),
        ({"outcome": np.nan}, "outcome=nan"),
        ({"outcome": "yes"}, "outcome='yes'"),
        ({"outcome": None}, "outcome=None"),
        ({"noise": -1.0}, r"noise=-1.0 is not a number in \[0, 1e\+07\]"),
        ({"noise": np.inf}, "noise=inf"),
    ],
)
def test_wrong_measurements_are_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Observation.checked(
            **{"grid": GRID, "cell": (0, 0), "content": CONTENT, "outcome": 0.5, **wrong}
        )


def test_rounding_at_the_ends_of_the_range_is_forgiven() -> None:
    item = Observation.checked(GRID, (0, 0), CONTENT * 0 + np.float32(10.000001), 0.5)
    assert item.content.max() == 10.0


def test_observations_as_images() -> None:
    seen = Observations(GRID, [observed((1, 1), 0.25, noise=0.5), observed((0, 0), 1.0)])
    assert len(seen) == 2
    assert [o.cell for o in seen] == seen.cells == [(1, 1), (0, 0)]
    assert seen.mask.sum() == 16
    np.testing.assert_array_equal(seen.values[:, 2:4, 4:8], CONTENT)
    assert seen.values[:, seen.mask == 0].sum() == 0
    assert set(np.unique(seen.noise[2:4, 4:8])) == {0.5}
    assert seen.noise[:2].sum() == 0
    assert seen.outcomes.tolist() == [0.25, 1.0]
    assert seen.contents.shape == (2, 3, 2, 4)
    assert np.flatnonzero(seen.measured).tolist() == [0, 3]
    assert np.flatnonzero(seen.available).tolist() == [1, 2, 4, 5]


def test_no_observations_have_shapes_too() -> None:
    seen = Observations(GRID)
    assert seen.contents.shape == (0, 3, 2, 4)
    assert seen.outcomes.shape == (0,)
    assert seen.available.all()


def test_a_cell_is_measured_once() -> None:
    seen = Observations(GRID, [observed((1, 1))])
    with pytest.raises(InputError, match=r"cell \(1, 1\) was measured already"):
        seen.add(observed((1, 1)))
    assert len(seen) == 1


def test_closed_cells_cannot_be_measured() -> None:
    grid = GRID.with_closed([(2, 1)])
    seen = Observations(grid)
    assert not seen.available[grid.index((2, 1))]
    with pytest.raises(InputError, match=r"cell \(2, 1\) is closed"):
        seen.add(observed((2, 1)))


@pytest.mark.parametrize(
    "item",
    [
        Observation((0, 0), np.zeros((1, 1, 1), np.float32), 0.5),
        Observation((0, 0), np.full((3, 2, 4), np.nan, np.float32), 0.5),
        Observation((0, 0), CONTENT, 2.0),
        Observation((0, 0), CONTENT, 0.5, -1.0),
        Observation((9, 9), CONTENT, 0.5),
    ],
    ids=["shape", "nan", "outcome", "noise", "outside"],
)
def test_observations_built_by_hand_are_checked_before_anything_is_written(
    item: Observation,
) -> None:
    seen = Observations(GRID)
    with pytest.raises(InputError):
        seen.add(item)
    assert len(seen) == 0
    assert not seen.mask.any()
    assert not seen.measured.any()


def test_a_subset_forgets_the_others() -> None:
    seen = Observations(GRID, [observed((0, 0)), observed((0, 1)), observed((2, 1))])
    part = seen.subset([2, 0])
    assert part.cells == [(2, 1), (0, 0)]
    assert part.available[1]
    assert len(seen) == 3
