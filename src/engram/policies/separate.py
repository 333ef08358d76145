r"""The goal ``objects``: touch as many separate targets as possible, each once.

A cell is worth the probability that it holds a target nobody has touched, and what a look at it
tells,

.. math::  v(x) = u(x) \bigl(d\, p(x) + c\, \rho\, \sigma(x)\bigr) , \qquad
    u = \frac{a^k}{1 + a^k} , \quad a(x) = \frac{\ell(x)}{s\, L} ,

with the probability of target p, the chance of detection d, the doubt :math:`\sigma` about the
outcome, the rate of finds so far :math:`\rho`, and the way :math:`\ell(x)` to the nearest find: of
all paths from cell to cell the shortest, where a step off a cell of probability p counts
:math:`2 - p` times its length, so that blanks in between separate. u is the chance that a target
in x is another than those found. L is the extent of a target: the side of a square of its area, in
cells. A square that lies and is turned at random touches :math:`L^2 + 8 L / \pi + 1` cells on
average, so that the shares of target in the finds tell L,

.. math::  \bar y = \frac{L^2}{L^2 + 8 L / \pi + 1} .

Where cells are found to be target wholly, targets are large, and so they are held to be where all
that is reported is yes or no: every find then stands for all that is connected with it.

No target that is large beside the gaps between n measurements of A cells,
:math:`L \ge 2 \sqrt{A / n}`, is missed by the space-filling design (``spread``), given all that was
measured. Its next cell, the largest gap, is visited there, and until something was found.
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

REACH = 1.3
"""s: the way, in extents, at which a target is as likely another as one of those found."""
POWER = 1.85
"""k: how sharply that turns."""
LOOKING = 0.5
"""c: how much doubt counts beside the chance of a target, in rates of finds."""
LARGE = 2.0
"""Distances between measurements, on average, from which on an extent is large."""
USUAL = (0.75, 1.0)
"""Mean share of a find before any is known, and how many finds that counts for."""


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
    odds = (way / (REACH * extent)) ** POWER
    return np.asarray(1 - 1 / (1 + odds))


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

    @property
    def large(self) -> bool:
        """Whether a target is large beside the gaps between all that was measured."""
        apart = math.sqrt(len(self.room.grid.open_cells) / max(len(self.measured), 1))
        return self.extent >= LARGE * apart

    @property
    def measured(self) -> NDArray[np.intp]:
        """Every cell that was measured, once, in the order of the visits."""
        return np.array([*dict.fromkeys(self.observations.indices.tolist())], np.intp)

    def order(self, belief: Belief, available: NDArray[np.bool_], progress: Progress) -> Ranking:
        if not len(self.finds) or self.large:
            return Ranking(self.room.gaps(self.measured), "gap")
        promise = progress.detection.chance * belief.probability
        promise = promise + LOOKING * progress.rate * belief.doubt
        return Ranking(promise * self.untouched(belief.probability), "new-target")

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
