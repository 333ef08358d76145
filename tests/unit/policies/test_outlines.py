"""Objects that a search has outlined."""

from __future__ import annotations

import numpy as np
import pytest

from engram import Grid, Observation, Observations
from engram.policies.outlines import LEAST_FINDS, Mask, Outline, outlines, overlap, turning, views

L = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], bool)
GRID = Grid(12, 12)


def area(*corners: tuple[int, int], shape: Mask = L) -> Mask:
    out = np.zeros((12, 12), bool)
    for row, col in corners:
        out[row : row + shape.shape[0], col : col + shape.shape[1]] |= shape
    return out


def measured(truth: Mask, cells: Mask) -> Observations:
    """What a search knows that has measured these cells."""
    observations = Observations(GRID)
    for row, col in np.argwhere(cells):
        y = float(truth[row, col])
        content = np.full((1, 1, 1), y, np.float32)
        observations.add(Observation((int(row), int(col)), content, y))
    return observations


def outline(shape: Mask, unsure: float = 0.0, *, cut: bool = False) -> Outline:
    return Outline(shape, int(shape.sum()), unsure, cut)


def test_an_object_measured_all_around_is_sure() -> None:
    truth = area((3, 4))
    seen = area((2, 3), shape=np.ones((6, 4), bool))
    (found,) = outlines(np.stack([truth]), measured(truth, seen))
    assert np.array_equal(found.shape, L)
    assert (found.found, found.unsure, found.cut) == (5, 0.0, False)


def test_samples_that_disagree_make_it_unsure_by_the_cells_they_disagree_in() -> None:
    truth = area((3, 4))
    other = truth.copy()
    other[7, 4] = True
    both = outlines(np.stack([truth, other, truth, truth]), measured(truth, truth))
    assert [o.size for o in both] == [5, 6, 5, 5]
    assert [o.unsure for o in both] == [0.25] * 4
    assert both[0].weight == pytest.approx(5 * np.exp(-0.25 / 4))


def test_an_object_at_the_border_may_go_on_beyond_it() -> None:
    truth = area((8, 0))
    (found,) = outlines(np.stack([truth]), measured(truth, truth))
    assert found.cut


def test_what_holds_too_few_finds_or_is_mostly_guessed_is_not_outlined() -> None:
    truth = area((3, 4))
    few = np.argwhere(truth)[: LEAST_FINDS - 1]
    seen = np.zeros_like(truth)
    seen[tuple(few.T)] = True
    assert not outlines(np.stack([truth]), measured(truth, seen))
    wide = area((3, 4), shape=np.ones((6, 6), bool))
    guesses = np.stack([truth, wide])
    sizes = [o.size for o in outlines(guesses, measured(truth, truth))]
    assert sizes == []  # 31 cells that half of the samples have


@pytest.mark.parametrize(("rows", "cols"), [(0, 0), (1, 0), (2, 2)])
def test_shapes_are_compared_in_the_place_that_fits_best(rows: int, cols: int) -> None:
    moved = np.zeros((4 + rows, 2 + cols), bool)
    moved[rows:, cols:] = L
    assert overlap(L, moved) == 1.0
    assert overlap(moved, L) == 1.0
    assert overlap(L, np.rot90(L)) < 0.6


def test_finds_tell_whether_things_are_turned_here() -> None:
    assert turning([outline(L)]) == 0.5  # one tells nothing
    assert turning([outline(L), outline(L)]) == 0.1
    assert turning([outline(L), outline(np.rot90(L))]) == 0.95
    assert turning([outline(L), outline(np.rot90(L), 9.0)]) == 0.5  # nor does a guess
    assert turning([outline(L), outline(np.rot90(L), cut=True)]) == 0.5
    square = np.ones((3, 3), bool)
    assert turning([outline(square), outline(square)]) == 0.1


def test_there_are_eight_views() -> None:
    assert len({(v.shape, v.tobytes()) for v in views(L)}) == 8
    assert np.array_equal(views(L)[0], L)
