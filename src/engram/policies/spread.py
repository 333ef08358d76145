r"""A space-filling design: what a survey planner lays out before anybody has measured.

Cells repel each other like equal charges inside a uniform background of the opposite sign.
With :math:`k(x, z) = 1 / (\|x - z\| + \tfrac12)` (distances in cells) and the open cells
:math:`A`, the next cell after :math:`x_1 \dots x_t` is

.. math::  x_{t+1} = \arg\max_x \; \frac{t + 1}{|A|} \sum_{z \in A} k(x, z)
           - \sum_{i \le t} k(x, x_i) ,

so that every prefix of the design is spread over the whole open area, and closed cells
draw nothing. The seed chooses the first cell.

Larger areas than ``LARGEST`` cells a side are ordered in two steps, since all pairs of their cells
are too many: blocks of cells by the design of blocks, the cells of each by that of one block. The
first cell of every block comes first, then the second of every block, and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.detection import PERFECT, Detection
from engram.geometry import CellPairs
from engram.grid import Grid
from engram.layout import Blocks
from engram.policies.base import Policy, equal_chances, flat_scores
from engram.scores import Scores
from engram.seeding import numpy_generator

SOFTENING = 0.5
LARGEST = 64
"""Cells a side up to which all pairs of cells are looked at."""
BLOCK = 16
"""Cells a side of the blocks of larger areas."""


class SpreadDesign(Policy):
    """Every open cell has a fixed place in the design; the first that is left comes next."""

    name = "spread"

    def __init__(
        self, grid: Grid, budget: int, seed: int = 0, *, detection: Detection = PERFECT
    ) -> None:
        super().__init__(grid, budget, seed, detection)
        order = spread_order(grid, self.seed)
        self._priority = np.zeros(grid.n_cells)
        self._priority[order] = 1 - np.arange(len(order)) / len(order)

    def scores(self) -> Scores:
        return flat_scores(self.grid, *equal_chances(self.observations, self._priority))


def spread_order(grid: Grid, seed: int) -> NDArray[np.intp]:
    """All open cells (flat indices) in an order of which every prefix is well spread."""
    if max(grid.rows, grid.cols) > LARGEST:
        return _nested_order(grid, seed)
    pairs = CellPairs(grid.geometry)
    pairs.use(1 / (pairs.distances + SOFTENING))
    cells = grid.open_cells
    pull = np.zeros(len(cells))
    for z in cells:
        pull += pairs.row(int(z))[cells]
    pull /= len(cells)
    gain = np.zeros(len(cells))  # (t + 1) pull - push
    order = np.empty(len(cells), np.intp)
    pick = int(numpy_generator(seed, "policy").integers(len(cells)))
    for t in range(len(cells)):
        order[t] = cells[pick]
        gain += pull - pairs.row(int(cells[pick]))[cells]
        gain[pick] = -np.inf
        pick = int(np.argmax(gain))
    return order


def spread_blocks(grid: Grid, side: int, seed: int) -> Blocks:
    """Blocks of ``side`` x ``side`` cells; equal ones, and their equal cells, in a spread order."""
    down, across = Blocks.shape_of(grid.rows, grid.cols, side)
    padded = np.ones((down * side, across * side), bool)
    padded[: grid.rows, : grid.cols] = grid.closed
    shut = np.asarray(padded.reshape(down, side, across, side).all(axis=(1, 3)))
    geometry = grid.geometry
    sides = (geometry.height, geometry.width)
    order = np.full(down * across, down * across)
    if not shut.all():
        first = spread_order(Grid(down, across, closed=shut, sides=sides), seed)
        order[first] = np.arange(len(first))
    within = np.empty(side * side, np.intp)
    within[spread_order(Grid(side, side, sides=sides), seed)] = np.arange(side * side)
    return Blocks(grid.rows, grid.cols, side, order, within, sides)


def _nested_order(grid: Grid, seed: int) -> NDArray[np.intp]:
    blocks, cells = spread_blocks(grid, BLOCK, seed), grid.open_cells
    rows, cols = np.divmod(cells, grid.cols)
    inside = blocks.within[rows % BLOCK * BLOCK + cols % BLOCK]
    block = blocks.order[rows // BLOCK * blocks.shape[1] + cols // BLOCK]
    return np.asarray(cells[np.lexsort((block, inside))])
