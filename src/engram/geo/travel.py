r"""Minutes from place to place: straight, or over cells that take different times to cross.

Over cells the way goes from centre to centre of eight neighbours, and a step between cells of
:math:`m_i` and :math:`m_j` minutes takes :math:`\tfrac12 (m_i + m_j)` times 1 or
:math:`\sqrt 2`. Cells that are blocked (no-go zones, no number in the raster) are not entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.geo.place import Place
from engram.grid import Grid

COST_KINDS = ("minutes", "slope", "slope-percent")
"""What the numbers of a cost raster are: minutes to cross a cell, or how steep it is."""
WALKING = 6.0
"""Kilometres per hour of Tobler's hiking function at its best."""
MOST_CELLS = 400_000
"""Cells over which shortest ways are looked for."""

Array = NDArray[np.float64]


def minutes_per_cell(values: Array, kind: str, side: float, where: str) -> Array:
    r"""Minutes to cross cells of a side in metres.

    A slope :math:`s` (rise over run) is walked at :math:`6 e^{-3.5 |s|}` km/h: Tobler's hiking
    function without its preference for gentle descents, since a way is gone in both directions.
    """
    if kind == "minutes":
        if not (values > 0).all():
            raise InputError(
                f"cost {where}: {float(values.min()):g} minutes for a cell; give more than 0, and "
                "nodata where nobody can go"
            )
        return values
    rise = np.tan(np.radians(values)) if kind == "slope" else values / 100
    if (values < 0).any() or (kind == "slope" and (values >= 90).any()):
        raise InputError(
            f"cost {where}: slopes run from {float(values.min()):g} to {float(values.max()):g}; "
            "give degrees from 0 to below 90 (--cost-is slope) or percent (slope-percent)"
        )
    speed = np.maximum(WALKING * np.exp(-3.5 * np.abs(rise)), 0.05)
    return np.asarray(side / 1000 / speed * 60)


class Ways:
    """Ways on a grid, from place to place.

    minutes : (rows, cols) to cross each cell, or None where ways are straight at ``speed`` (m/s)
    blocked : (rows, cols) cells that are not entered

    Without a table of minutes a way is straight, and goes round blocked cells where it has to.
    """

    def __init__(
        self, place: Place, speed: float, minutes: Array | None, blocked: NDArray[np.bool_]
    ) -> None:
        self.place, self.speed, self.over = place, speed, minutes
        self.blocked = blocked
        shape = (place.grid.rows, place.grid.cols)
        flat = place.side / speed / 60
        self.minutes = np.full(shape, flat) if minutes is None else minutes

    @classmethod
    def of(cls, grid: Grid, facts: Mapping[str, Any], speed: float) -> Ways:
        """The ways of a campaign's area, as its log describes it."""
        blocked = np.zeros(grid.n_cells, bool)
        blocked[list(facts.get("blocked", ()))] = True
        minutes = grid.cost if facts.get("cost") else None
        return cls(Place(grid), speed, minutes, blocked.reshape(grid.rows, grid.cols))

    def seconds(self, spots: Array) -> Array:
        """(n, n) seconds between places (n, 2) on the grid's map; infinite where no way leads."""
        straight = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1)) / self.speed
        if self.over is None and not self.blocked.any():
            return np.asarray(straight)
        out = np.full(straight.shape, np.inf)
        cells = [self._cell(spot) for spot in spots]
        for i, spot in enumerate(spots):
            reach, _ = self._from(cells[i])
            for j in range(len(spots)):
                if self.over is None and self._clear(spot, spots[j]):
                    out[i, j] = straight[i, j]
                else:
                    out[i, j] = 60 * reach[cells[j]] + self._step(spot, cells[i])
                    out[i, j] += self._step(spots[j], cells[j])
        np.fill_diagonal(out, 0.0)
        return np.minimum(out, out.T)

    def line(self, start: Array, end: Array) -> list[tuple[float, float]]:
        """The way between two places, as corners on the grid's map."""
        ends = [(float(start[0]), float(start[1])), (float(end[0]), float(end[1]))]
        if self.over is None and self._clear(start, end):
            return ends
        begin, target = self._cell(start), self._cell(end)
        reach, before = self._from(begin)
        if not np.isfinite(reach[target]):
            return ends
        cells = [target]
        while cells[-1] != begin:
            cells.append(int(before[cells[-1]]))
        x, y = self.place.centres(cells[::-1])
        inner = [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        return [ends[0], *inner[1:-1], ends[1]] if len(inner) > 1 else ends

    def _cell(self, spot: Array) -> int:
        """Flat index of the cell a place is in, or of the nearest that can be entered."""
        near = self.place.nearest(float(spot[0]), float(spot[1]), ~self.blocked.ravel())
        if near is None:
            raise InputError("no cell can be entered: every one of them is blocked")
        return self.place.grid.index(near[0])

    def _step(self, spot: Array, cell: int) -> float:
        """Seconds from a place to the cell that stands for it, where it lies outside of it."""
        row, col = self.place.grid.at(cell)
        if self.place.cell_at(float(spot[0]), float(spot[1])) == (row, col):
            return 0.0
        x, y = self.place.centres([cell])
        return float(np.hypot(spot[0] - x[0], spot[1] - y[0])) / self.speed

    def _clear(self, start: Array, end: Array) -> bool:
        """True when a straight way enters no blocked cell."""
        if not self.blocked.any():
            return True
        count = int(np.hypot(*(end - start)) / self.place.side * 4) + 2
        points = start + np.linspace(0, 1, count)[:, None] * (end - start)
        row, col = self.place.rowcol(points[:, 0], points[:, 1])
        rows, cols = self.blocked.shape
        inside = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
        return not self.blocked[row[inside].astype(int), col[inside].astype(int)].any()

    def _from(self, cell: int) -> tuple[Array, NDArray[np.int32]]:
        """Minutes from a cell to every cell, and the cell before each on its way."""
        from scipy.sparse.csgraph import dijkstra

        reach, before = dijkstra(
            self._graph, directed=False, indices=cell, return_predecessors=True
        )
        return np.asarray(reach), np.asarray(before)

    @cached_property
    def _graph(self) -> Any:
        """Steps between neighbours, as a sparse (n_cells, n_cells) table of minutes."""
        from scipy.sparse import coo_array

        rows, cols = self.blocked.shape
        if self.blocked.size > MOST_CELLS:
            raise InputError(
                f"ways over {self.blocked.size:,} cells take too long (at most {MOST_CELLS:,}); "
                "make the campaign of larger cells, or without a cost raster"
            )
        index = np.arange(self.blocked.size).reshape(rows, cols)
        starts, ends, weights = [], [], []
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            here = (slice(0, rows - down), slice(max(0, -right), cols - max(0, right)))
            there = (slice(down, rows), slice(max(0, right), cols - max(0, -right)))
            free = ~(self.blocked[here] | self.blocked[there])
            if down and right:  # no squeezing between two blocked corners
                side = (slice(0, rows - 1), slice(max(0, right), cols - max(0, -right)))
                below = (slice(1, rows), slice(max(0, -right), cols - max(0, right)))
                free &= ~(self.blocked[side] & self.blocked[below])
            step = (self.minutes[here] + self.minutes[there]) / 2 * np.hypot(down, right)
            starts.append(index[here][free])
            ends.append(index[there][free])
            weights.append(step[free])
        pairs = (np.concatenate(starts), np.concatenate(ends))
        return coo_array((np.concatenate(weights), pairs), shape=(index.size, index.size)).tocsr()
