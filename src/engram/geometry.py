r"""Distances, neighbourhoods and windows of cells of any shape; ``Grid.geometry`` is its door.

The centre of the cell in row r and column c lies at :math:`(r\,h, c\,w)`, and the distance of two
cells is that of their centres,

.. math::  d = \sqrt{(\Delta r\, h)^2 + (\Delta c\, w)^2} , \qquad h\, w = 1 :

lengths are in cells, the side of a square of a cell's area being 1. Square cells are 1 apart, and
cells that are not square are no distortion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """rows x cols cells of height h and width w, in cells."""

    rows: int
    cols: int
    height: float = 1.0
    width: float = 1.0

    @classmethod
    def of(cls, rows: int, cols: int, sides: tuple[float, float]) -> Geometry:
        """The geometry of cells of these sides, in any unit."""
        side = float(np.sqrt(sides[0] * sides[1]))
        return cls(rows, cols, sides[0] / side, sides[1] / side)

    @property
    def extent(self) -> float:
        """The longer side of the area."""
        return max(self.rows * self.height, self.cols * self.width)

    @property
    def diagonal(self) -> float:
        """From corner to corner of the area."""
        return float(np.hypot(self.rows * self.height, self.cols * self.width))

    def places(self, cells: NDArray[np.intp]) -> Array:
        """(n, 2) where the centres of cells lie, given by flat index (n,)."""
        rows, cols = np.divmod(cells, self.cols)
        return np.stack([rows * self.height, cols * self.width], axis=1)

    def distances(self, cell: tuple[int, int], cells: NDArray[np.intp] | None = None) -> Array:
        """From one cell to every cell (n_cells,), or to some, given by flat index (n,)."""
        return np.asarray(np.hypot(*self._away(cell, cells)))

    def squares(self, cell: tuple[int, int]) -> Array:
        """(n_cells,) squared distance from one cell to every cell."""
        down, right = self._away(cell, None)
        return np.asarray(down**2 + right**2)

    def squares_in(self, window: tuple[slice, slice], cell: tuple[int, int]) -> Array:
        """Squared distance from one cell to the cells of a window (``window``), as a table."""
        down, right = (
            (np.arange(part.start, part.stop) - place) * side
            for part, place, side in zip(window, cell, (self.height, self.width), strict=True)
        )
        return np.asarray(down[:, None] ** 2 + right**2)

    def _away(self, cell: tuple[int, int], cells: NDArray[np.intp] | None) -> tuple[Array, Array]:
        chosen = np.arange(self.rows * self.cols) if cells is None else cells
        rows, cols = np.divmod(chosen, self.cols)
        return (rows - cell[0]) * self.height, (cols - cell[1]) * self.width

    def between(self, cells: NDArray[np.intp]) -> Array:
        """(n, n) of all pairs of some cells, given by flat index (n,)."""
        down, right = self.places(cells).T
        return np.asarray(np.hypot(down[:, None] - down, right[:, None] - right))

    def pairs(self, cells: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        """Distances (m,), and which of them lies between each pair (n, n) of some cells.

        Cells of a grid have few distances, so a function of them is computed for few numbers.
        """
        rows, cols = np.divmod(cells, self.cols)
        down, right = np.abs(rows[:, None] - rows), np.abs(cols[:, None] - cols)
        height, width = int(down.max(initial=0)) + 1, int(right.max(initial=0)) + 1
        if height * width > down.size:
            return self.between(cells).ravel(), np.arange(down.size).reshape(down.shape)
        table = self._offsets(height - 1, width - 1)[height - 1 :, width - 1 :]
        return table.ravel(), down * width + right

    def offsets(self, radius: float = np.inf) -> Array:
        """(2 rows - 1, 2 cols - 1) of every offset two cells can have; 0 in the middle.

        With a radius, those rows and columns are left out that lie farther away altogether.
        """
        down, right = self.rows - 1, self.cols - 1
        if np.isfinite(radius):
            near = self._reach(radius)
            down, right = min(down, near[0]), min(right, near[1])
        return self._offsets(down, right)

    def neighbourhood(self, radius: float) -> Array:
        """Distance of every offset of a table that holds all cells within a radius.

        The table has an odd number of rows and columns, with 0 in the middle; its corners may be
        farther away than the radius.
        """
        return self._offsets(*self._reach(radius))

    def window(self, cell: tuple[int, int], radius: float) -> tuple[slice, slice]:
        """Rows and columns around a cell, up to the radius and to the edge of the area."""
        down, right = self._reach(radius)
        (row, col), last = cell, (self.rows, self.cols)
        return (
            slice(max(0, row - down), min(last[0], row + down + 1)),
            slice(max(0, col - right), min(last[1], col + right + 1)),
        )

    def _reach(self, radius: float) -> tuple[int, int]:
        """Rows and columns that hold all cells within a radius."""
        return int(np.ceil(radius / self.height)), int(np.ceil(radius / self.width))

    def _offsets(self, down: int, right: int) -> Array:
        rows, cols = np.arange(-down, down + 1), np.arange(-right, right + 1)
        return np.asarray(np.hypot(rows[:, None] * self.height, cols[None, :] * self.width))


class CellPairs:
    """A function of the distance of two cells, for all pairs without a table of all pairs.

    distances : (2 rows - 1, 2 cols - 1) distance of every offset
    """

    def __init__(self, geometry: Geometry) -> None:
        self.rows, self.cols = geometry.rows, geometry.cols
        self.distances = geometry.offsets()
        self.values = self.distances

    def use(self, values: Array) -> None:
        """Values of the function at ``distances``."""
        self.values = values

    def corner(self, row: int, col: int) -> tuple[int, int]:
        """Where the values between a cell and the cell (0, 0) stand in ``values``."""
        return self.rows - 1 - row, self.cols - 1 - col

    def row(self, index: int) -> Array:
        """(n_cells,) the function between one cell and every cell."""
        r, c = self.corner(index // self.cols, index % self.cols)
        return np.asarray(self.values[r : r + self.rows, c : c + self.cols].ravel())

    def between(self, index: NDArray[np.intp]) -> Array:
        """(len(index), len(index)) the function between some cells."""
        rows, cols = np.divmod(index, self.cols)
        down, right = rows - rows[:, None], cols - cols[:, None]
        return np.asarray(self.values[down + self.rows - 1, right + self.cols - 1])

    def block(self, index: NDArray[np.intp]) -> Array:
        """(len(index), n_cells) the function between some cells and every cell."""
        if not len(index):
            return np.zeros((0, self.rows * self.cols))
        return np.stack([self.row(int(i)) for i in index])
