r"""The goal ``objects``: touch as many separate targets as possible, each once.

A cell is worth the probability that it holds a target nobody has touched,

.. math::  v(x) = d\; p(x)\; \bigl(1 - e^{-(\ell(x) / s)^{3/2}}\bigr) , \qquad s = 1.2\, L^{3/2} ,

with the probability of target p, the chance of detection d, and the way :math:`\ell(x)` to the
nearest find: of all paths from cell to cell the shortest, where a step off a cell of probability
p counts :math:`2 - p` times its length, so that blanks in between separate. L is the extent of a
target: the side of a square of its area, in cells. A square that lies and is turned at random
touches :math:`L^2 + 8 L / \pi + 1` cells on average, so that the shares of target in the finds tell
L,

.. math::  \bar y = \frac{L^2}{L^2 + 8 L / \pi + 1} .

Where cells are found to be target wholly, targets are large, and so they are held to be where all
that is reported is yes or no: every find then stands for all that is connected with it.

The largest gap g is the next cell of the space-filling design (``spread``), given all that was
measured. The best cell is visited instead of it where it promises clearly more,
:math:`v(x) \ge 1.5\, v(g) + 0.05`: a gap that is filled also tells where targets are. So a search
for targets that are large beside the gaps is the design itself, which touches them all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.geometry import CellPairs
from engram.grid import Grid
from engram.observation import Observations
from engram.policies.forecast import Array, Belief
from engram.policies.local import LARGEST, is_large
from engram.policies.ranking import Progress, Ranking
from engram.policies.spread import SOFTENING, spread_order

GOALS = ("cells", "objects")
"""What a search is after: cells with target, or separate targets."""

REACH = 1.2
"""s of a target with an extent of one cell."""
POWER = 1.5
"""Power of the extent in s, and of the way."""
USUAL = (0.75, 1.0)
"""Mean share of a find before any is known, and how many finds that counts for."""
CLEARLY = (1.5, 0.05)
"""The best cell has to promise so many times what a gap does, and so much more."""
LEAST = 0.02
"""No cell that was not measured is believed to be blank with more certainty."""


def checked_goal(goal: str) -> str:
    """The name of a goal, refused when there is none of that name."""
    if goal not in GOALS:
        raise InputError(f"goal={goal!r}: choose one of {', '.join(GOALS)}")
    return goal


def checked_extent(extent: float) -> float:
    """Cells across of a target; 0 where it is to be learnt."""
    if not 0 <= extent < math.inf:
        raise InputError(f"extent={extent}: give the cells across of a target, or 0 to learn it")
    return extent


def groups_of(grid: Grid, cells: NDArray[np.intp]) -> int:
    """How many groups some cells (flat indices) form: what touches, also by a corner, is one."""
    from scipy.ndimage import label

    there = np.zeros((grid.rows, grid.cols), bool)
    there.flat[cells] = True
    return int(label(there, np.ones((3, 3)))[1])


def extent_of(shares: Array) -> float:
    """L of targets of which the finds (n,) held these shares."""
    usual, weight = USUAL
    mean = min((float(shares.sum()) + usual * weight) / (len(shares) + weight), 0.999)
    # (1 - y) L^2 - y (8 L / pi + 1) = 0
    half = 4 * mean / math.pi
    return (half + math.sqrt(half**2 + mean * (1 - mean))) / (1 - mean)


def cells_touched(extent: float) -> float:
    """Cells that a square of this side touches on average, as it lies and is turned at random."""
    return extent**2 + 8 * extent / math.pi + 1


def unlike(way: Array, extent: float) -> Array:
    """Chance that two cells of target belong to different targets, by the way between them."""
    return np.asarray(-np.expm1(-((way / (REACH * extent**POWER)) ** POWER)))


class Separate:
    """The rule of the goal ``objects`` in one area.

    extent : of a target in cells, 0 = learnt from the finds
    """

    def __init__(self, grid: Grid, seed: int, extent: float = 0.0) -> None:
        if is_large(grid):
            raise InputError(
                f"goal='objects' in {grid.rows}x{grid.cols} cells: it looks at all cells at once, "
                f"up to {LARGEST} a side; choose larger cells, or goal=cells"
            )
        self.grid, self.extent = grid, checked_extent(extent)
        pairs = CellPairs(grid.geometry)
        pairs.use(1 / (pairs.distances + SOFTENING))
        self.pairs, cells = pairs, grid.open_cells
        self.pull = sum((pairs.row(int(z)) for z in cells), np.zeros(grid.n_cells)) / len(cells)
        order = spread_order(grid, seed)
        self.first = np.zeros(grid.n_cells)
        self.first[order] = 1 - np.arange(len(order)) / len(order)
        self.steps = _steps(grid)

    def rule(self, observations: Observations) -> NewTargets:
        """The rule for what was measured."""
        return NewTargets(self, observations)

    def gaps(self, measured: NDArray[np.intp]) -> Array:
        """(n_cells,) how far from everything measured a cell lies (``spread``); before that, the
        order of the design."""
        if not len(measured):
            return self.first
        gain = np.zeros(self.grid.n_cells)
        for cell in measured:  # one by one, as the design adds them up
            gain += self.pull - self.pairs.row(int(cell))
        return gain


def _steps(grid: Grid) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """All steps from cell to cell, by a side or a corner: from, to (flat indices), length."""
    cells = np.arange(grid.n_cells).reshape(grid.rows, grid.cols)
    ways, (h, w) = [], (grid.geometry.height, grid.geometry.width)
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        last, ahead = grid.rows - down, max(right, 0)
        one = cells[:last, max(-right, 0) : grid.cols - ahead].ravel()
        other = one + down * grid.cols + right
        length = np.full(len(one), math.hypot(down * h, right * w))
        ways += [(one, other, length), (other, one, length)]
    start, end, length = (np.concatenate(part) for part in zip(*ways, strict=True))
    return start, end, length


@dataclass(frozen=True)
class NewTargets:
    """The order of cells by the goal ``objects``, given what was measured."""

    room: Separate
    observations: Observations

    @property
    def finds(self) -> NDArray[np.intp]:
        """Cells in which target was reported."""
        seen = self.observations
        return np.unique(seen.indices[seen.outcomes > 0])

    @property
    def extent(self) -> float:
        """L, as it was given or as the finds say."""
        shares = self.observations.shares
        return self.room.extent or extent_of(shares[shares > 0])

    def order(self, belief: Belief, available: NDArray[np.bool_], progress: Progress) -> Ranking:
        seen = self.observations
        gaps = self.room.gaps(np.array([*dict.fromkeys(seen.indices.tolist())], np.intp))
        if not len(self.finds) or not available.any():
            return Ranking(gaps, "gap")
        p = np.maximum(belief.probability, LEAST)
        promise = progress.detection.chance * p * self.untouched(p)
        cells, (times, more) = np.flatnonzero(available), CLEARLY
        filled = float(promise[cells[gaps[cells].argmax()]])
        if promise[cells].max() >= times * filled + more:
            return Ranking(promise, "new-target")
        return Ranking(gaps, "gap")

    def untouched(self, probability: Array) -> Array:
        """(n_cells,) chance that a target in the cell has not been touched."""
        if not len(self.finds):
            return np.ones(len(probability))
        return unlike(self.ways(probability), self.extent)

    def ways(self, probability: Array) -> Array:
        """(n_cells,) the way of each cell to the nearest find."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        (start, end, length), n = self.room.steps, len(probability)
        p, finds = probability.copy(), self.finds
        p[self.observations.settled], p[finds] = 0.0, 1.0
        graph = csr_array((length * (2 - p[start]), (start, end)), shape=(n, n))
        return np.asarray(dijkstra(graph, indices=finds, min_only=True))
