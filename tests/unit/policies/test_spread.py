"""The space-filling design: a fixed order of which every prefix is spread out."""

from __future__ import annotations

import numpy as np
import pytest

from engram import Grid, simulate
from engram.policies.spread import SpreadDesign, spread_order
from engram.tasks.balls import ball_task


def largest_gap(grid: Grid, cells: np.ndarray) -> float:
    """Largest distance of an open cell to the nearest cell of the design, in pixels."""
    h, w = grid.cell
    places = np.stack(np.divmod(np.arange(grid.n_cells), grid.cols), axis=1) * [h, w]
    apart = np.linalg.norm(places[:, None] - places[cells][None], axis=2)
    return float(apart.min(axis=1)[grid.open_cells].max())


@pytest.mark.parametrize("n", [10, 25, 60, 120])
def test_every_prefix_leaves_smaller_gaps_than_random_cells(n: int) -> None:
    grid = Grid(24, 24)
    design = spread_order(grid, 3)
    gaps = [
        largest_gap(grid, np.random.default_rng(seed).permutation(grid.n_cells)[:n])
        for seed in range(5)
    ]
    assert largest_gap(grid, design[:n]) < 0.8 * np.mean(gaps)


def test_the_design_holds_every_open_cell_once_and_no_closed_one() -> None:
    closed = np.zeros((9, 7), bool)
    closed[2:5, 1:6] = True
    grid = Grid(9, 14, cell=(1, 2), closed=closed)
    assert sorted(spread_order(grid, 0).tolist()) == grid.open_cells.tolist()


def test_cells_that_are_not_square_are_spread_by_their_true_distances() -> None:
    grid = Grid(64, 16, cell=(4, 1))
    rows, cols = np.divmod(spread_order(grid, 1)[:12], grid.cols)
    assert np.ptp(rows * 4) > 2 * np.ptp(cols)
    first = np.stack([rows * 4, cols], axis=1)
    apart = np.linalg.norm(first[:, None] - first[None], axis=2)
    assert apart[~np.eye(12, dtype=bool)].min() >= 4


def test_the_design_does_not_depend_on_outcomes_but_on_the_seed() -> None:
    one = simulate(SpreadDesign(ball_task(0).grid, 40, 5), ball_task(0)).cells
    other_task = simulate(SpreadDesign(ball_task(1).grid, 40, 5), ball_task(1)).cells
    other_seed = simulate(SpreadDesign(ball_task(0).grid, 40, 6), ball_task(0)).cells
    assert one == other_task
    assert one != other_seed
    assert len(set(one)) == 40


def test_the_forecast_is_the_rate_so_far() -> None:
    trace = simulate(SpreadDesign(ball_task(0).grid, 30), ball_task(0))
    hits = np.cumsum([0, *trace.outcomes[:-1]])
    assert trace.forecast == pytest.approx((hits + 1) / (np.arange(30) + 2))
