r"""Discs that targets may lie in: what visits leave of them, and sets that cover all finds.

A target lies within a disc: of the m cells whose centres are at most r from its own it covers each
with probability :math:`1 - \varepsilon`, being no disc, and at least one. What blanks leave of a
disc at the place g is

.. math::  b_g = \prod_i \bigl(\varepsilon + (1 - \varepsilon) e^{\ell_i}\bigr)

over the blanks i in it, with what their visits add to the log-odds of target,
:math:`\ell_i = -\infty` where a visit sees everything. A target there has not been touched with
the chance

.. math::  w_g = \frac{b_g - \varepsilon^m}{1 - \varepsilon^m}

where nothing was found in the disc, and none is untouched where something was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid
from engram.observation import Observations
from engram.seeding import numpy_generator

Array = NDArray[np.float64]
Cells = NDArray[np.intp]

HOLES = 0.5
"""epsilon: chance that a target does not cover a cell of its disc."""

DRAWS, EAGER = 32, 2.0
"""Sets of discs drawn for each radius, and how much likelier a disc is drawn for each further find
that it covers, as a logarithm. What is drawn is weighted: this decides nothing but the noise."""


class Discs:
    """The cells within a radius of each cell, as places in an area with a margin.

    offsets : (m,) from the middle of a disc to its cells
    cells   : (n_cells,) place of each cell
    size    : places in all
    """

    def __init__(self, grid: Grid, radius: float) -> None:
        inside = grid.geometry.neighbourhood(radius) <= radius
        down, right = (side // 2 for side in inside.shape)
        width = grid.cols + 4 * right  # discs of all cells of a disc lie within the margin
        rows, cols = np.nonzero(inside)
        self.offsets = (rows - down) * width + cols - right
        y, x = np.divmod(np.arange(grid.n_cells), grid.cols)
        self.cells = (y + 2 * down) * width + x + 2 * right
        self.size = (grid.rows + 4 * down) * width

    def placed(self, values: Array) -> Array:
        """(size,) values of the cells (n_cells,) at their places, 0 in the margin."""
        out = np.zeros(self.size)
        out[self.cells] = values
        return out

    def sums(self, values: Array) -> Array:
        """(n_cells,) sum of values (n_cells,) over the disc of each cell."""
        around = self.cells[:, None] + self.offsets
        return np.asarray(self.placed(values)[around].sum(axis=1))


@dataclass(frozen=True, eq=False)
class Reports:
    """What visits said of the cells of an area.

    area  : (n_cells,) cells that were measured or still can be
    finds : (k,) flat indices of the cells in which target was reported
    blank : (n_cells,) logarithm of the factor of b_g; 0 where nothing was measured, and at finds
    """

    grid: Grid
    area: NDArray[np.bool_]
    finds: Cells
    blank: Array

    @classmethod
    def of(cls, seen: Observations, searchable: NDArray[np.bool_]) -> Reports:
        """Of visits, and the cells (n_cells,) that can still be measured."""
        finds = np.unique(seen.indices[seen.outcomes > 0])
        blank = np.log(HOLES + (1 - HOLES) * np.exp(np.minimum(seen.log_odds, 0.0)))
        blank[finds] = 0.0
        return cls(seen.grid, searchable | seen.measured, finds, blank)


@dataclass(frozen=True, eq=False)
class Covers:
    """Discs of one radius: places that visits left, and sets of discs that cover all finds.

    missed     : W, the sum of w: places at which a target would not have been touched
    touched    : (k,) T, discs in a set
    log_weight : (k,) logarithm of the sum, over all sets of T discs, of the product of b over the
        discs, as far as sets were drawn
    """

    missed: float
    touched: Array
    log_weight: Array


def covers(reports: Reports, radius: float, number: int) -> Covers:
    """Sets of discs of a radius; ``number`` is that of the radius, for the random numbers."""
    grid, discs = reports.grid, Discs(reports.grid, radius)
    found = np.zeros(grid.n_cells)
    found[reports.finds] = 1.0
    left = np.exp(discs.sums(reports.blank)) * reports.area
    none = HOLES ** np.maximum(discs.sums(reports.area.astype(float)), 1.0)
    near = discs.sums(found)
    free = reports.area & (near == 0)
    missed = float((np.maximum(left - none, 0.0) / (1 - none))[free].sum())
    if not len(reports.finds):
        return Covers(missed, np.zeros(1), np.zeros(1))
    luck = numpy_generator(0, "covers", number).random((DRAWS, len(reports.finds)))
    at_places = discs.placed(left), discs.placed(near), discs.cells[reports.finds]
    drawn, weights = _drawn(discs, *at_places, luck)
    touched, which = np.unique(drawn, return_inverse=True)
    summed = np.full(len(touched), -np.inf)
    np.logaddexp.at(summed, which, weights)
    return Covers(missed, touched, summed)


def _drawn(
    discs: Discs, left: Array, near: Array, finds: Cells, luck: Array
) -> tuple[Array, Array]:
    """(draws,) number of discs, and log-weight, of sets drawn disc by disc.

    The first find that is not covered is covered by a disc drawn from all that hold it, with a
    chance in proportion to b times e^EAGER for each further find that it covers. So every set that
    covers the finds, and has no disc too many, can be drawn in one way.

    left : (size,) b at every place;  near : (size,) finds in the disc of every place
    finds : (k,) places;  luck : (draws, k) numbers in [0, 1)
    """
    draws = len(luck)
    bare = np.zeros((draws, discs.size), bool)  # finds that are not covered
    bare[:, finds] = True
    count = np.tile(near, (draws, 1))  # such finds in the disc of every place
    touched, log_weight = np.zeros(draws), np.full(draws, -np.log(draws))
    for step in range(len(finds)):
        live = np.flatnonzero(bare[:, finds].any(axis=1))
        if not len(live):
            break
        first = finds[bare[np.ix_(live, finds)].argmax(axis=1)]
        holding = first[:, None] + discs.offsets  # (live, m) discs that hold it
        more = EAGER * (count[live[:, None], holding] - 1.0)
        reached = np.cumsum(left[holding] * np.exp(more), axis=1)
        total, rows = reached[:, -1], np.arange(len(live))
        pick = (reached < (luck[live, step] * total)[:, None]).sum(axis=1)
        log_weight[live] += np.log(total) - more[rows, pick]
        touched[live] += 1
        inside = holding[rows, pick][:, None] + discs.offsets
        row, col = np.nonzero(bare[live[:, None], inside])
        covered = inside[row, col]
        bare[live[row], covered] = False
        np.subtract.at(count, (live[row][:, None], covered[:, None] + discs.offsets), 1.0)
    return touched, log_weight
