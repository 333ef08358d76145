"""Windows over an area: every place is covered, weights sum to one, ends are not seen."""

from __future__ import annotations

import numpy as np
import pytest

from engram.tiling import Axis, Tiling

SIDES = [(1024, 32, 16), (100, 32, 16), (33, 32, 16), (20, 32, 16), (96, 56, 32), (70, 64, 32)]


@pytest.mark.parametrize(("side", "size", "stride"), SIDES)
def test_weights_sum_to_one_everywhere(side: int, size: int, stride: int) -> None:
    axis = Axis.of(side, size, stride)
    total = np.zeros(side)
    for i, start in enumerate(axis.starts):
        total[start : start + axis.size] += axis.weights[i]
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
    assert axis.starts[0] == 0
    assert axis.starts[-1] + axis.size == side


def test_windows_fade_out_at_their_own_ends_and_not_at_those_of_the_area() -> None:
    axis = Axis.of(128, 32, 16)
    assert axis.weights[3, 0] < 0.01
    assert axis.weights[3, -1] < 0.01
    assert np.abs(np.diff(axis.weights[3])).max() < 0.1
    assert axis.weights[0, 0] == 1
    assert axis.weights[-1, -1] == 1


@pytest.mark.parametrize(("side", "size", "stride"), SIDES)
def test_parts_of_a_stretch_are_those_of_the_whole_side(side: int, size: int, stride: int) -> None:
    axis = Axis.of(side, size, stride)
    rng = np.random.default_rng(0)
    said = rng.random((len(axis.starts), axis.size))
    whole = np.zeros(side)
    for i, start in enumerate(axis.starts):
        whole[start : start + axis.size] += axis.weights[i] * said[i]
    for begin in range(0, side, 16):
        end = min(begin + 16, side)
        got = np.zeros(end - begin)
        for part in axis.parts(begin, end):
            for k in range(end - begin):
                if part.weight[k]:
                    got[k] += part.weight[k] * said[part.window, part.offset + k]
        np.testing.assert_allclose(got, whole[begin:end])


def test_windows_near_a_cell_are_those_that_hold_it_or_its_margin() -> None:
    tiling = Tiling.of(100, 70, 32, 16)
    for cell in ((0, 0), (15, 16), (16, 31), (50, 40), (99, 69)):
        for margin in (0, 5):
            held = set()
            for number in range(tiling.count):
                rows, cols = tiling.box(number)
                inside = rows.start - margin <= cell[0] < rows.stop + margin
                if inside and cols.start - margin <= cell[1] < cols.stop + margin:
                    held.add(number)
            assert set(tiling.near(cell, margin)) == held


def test_the_home_of_a_cell_is_the_window_that_counts_most() -> None:
    tiling = Tiling.of(100, 70, 32, 16)
    for row, col in ((0, 0), (40, 33), (99, 5)):
        home = tiling.home((row, col))
        weight = {}
        for number in tiling.near((row, col)):
            i, j = divmod(number, len(tiling.cols.starts))
            down = tiling.rows.weights[i, row - tiling.rows.starts[i]]
            weight[number] = down * tiling.cols.weights[j, col - tiling.cols.starts[j]]
        assert weight[home] == max(weight.values())
        assert tiling.number_at((slice(row, row + 1), slice(col, col + 1)))[0, 0] == home
