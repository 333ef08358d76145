"""An area cut into square blocks: which cells are in which, and who comes first among equals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TIE = 1e-15
"""What each place in the order of equal cells takes from a total."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """rows x cols cells in blocks of ``side`` x ``side`` (less at the far ends), row by row.

    order  : (count,) place of every block in the order in which equal blocks are visited
    within : (side * side,) the same of the cells of a block
    sides  : height and width of a cell (``geometry``)
    """

    rows: int
    cols: int
    side: int
    order: NDArray[np.intp]
    within: NDArray[np.intp]
    sides: tuple[float, float] = (1.0, 1.0)

    @staticmethod
    def shape_of(rows: int, cols: int, side: int) -> tuple[int, int]:
        """Blocks down and across."""
        return -(-rows // side), -(-cols // side)

    @cached_property
    def shape(self) -> tuple[int, int]:
        return self.shape_of(self.rows, self.cols, self.side)

    @property
    def count(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def n_cells(self) -> int:
        return self.rows * self.cols

    def box(self, block: int) -> tuple[slice, slice]:
        """Rows and columns of a block."""
        i, j = divmod(block, self.shape[1])
        top, left = i * self.side, j * self.side
        return (
            slice(top, min(top + self.side, self.rows)),
            slice(left, min(left + self.side, self.cols)),
        )

    def cells(self, block: int) -> NDArray[np.intp]:
        """Flat indices of the cells of a block, in the order in which its arrays hold them."""
        rows, cols = self.box(block)
        down = np.arange(rows.start, rows.stop) * self.cols
        return np.asarray((down[:, None] + np.arange(cols.start, cols.stop)).ravel())

    def find(self, index: int) -> tuple[int, int]:
        """Block of a cell, and its position there."""
        row, col = divmod(int(index), self.cols)
        i, j = row // self.side, col // self.side
        width = min(self.side, self.cols - j * self.side)
        return i * self.shape[1] + j, (row - i * self.side) * width + col - j * self.side

    def taken(self, block: int, table: NDArray[Any]) -> NDArray[Any]:
        """The block's part of a table (rows * cols,), flat."""
        rows, cols = self.box(block)
        return table.reshape(self.rows, self.cols)[rows, cols].ravel()

    def between(self, rows: tuple[int, int], cols: tuple[int, int]) -> Iterable[int]:
        """Blocks with cells of these rows and columns (first, last + 1), which may lie outside."""
        side, (down, across) = self.side, self.shape
        for i in range(max(0, rows[0] // side), min(down, -(-rows[1] // side))):
            for j in range(max(0, cols[0] // side), min(across, -(-cols[1] // side))):
                yield i * across + j

    def ties(self, block: int) -> Array:
        """What ties take from the totals of a block."""
        i, j = divmod(block, self.shape[1])
        height, width = (
            min(self.side, n - at * self.side) for n, at in ((self.rows, i), (self.cols, j))
        )
        key = (height, width)
        if key not in self._ties:
            places = self.within.reshape(self.side, self.side)[:height, :width].ravel()
            self._ties[key] = np.asarray(TIE * self.count * places, np.float64)
        return np.asarray(self._ties[key] + TIE * self.order[block])

    @cached_property
    def _ties(self) -> dict[tuple[int, int], Array]:
        """Those of the cells of a block, by its shape."""
        return {}

    @cached_property
    def least_ties(self) -> Array:
        """(count,) what ties take at least."""
        return np.asarray(TIE * self.order)
