"""Measured targets and blanks in rings around every cell of a large area.

What ``outcome_h`` makes by a convolution of the whole area is kept here: each measurement adds its
share to the cells around it, in the order of first visits, so that it does not matter whether
measurements came one by one or all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engram.blocks import Array
from engram.layout import Blocks


class Rings:
    """kernels : (rows, cols) each, the rings' shares, odd on both sides and symmetric."""

    def __init__(self, layout: Blocks, kernels: Sequence[Array]) -> None:
        self.layout = layout
        shape = kernels[0].shape
        self.reach = (shape[0] // 2, shape[1] // 2)
        self._width = layout.cols + 2 * self.reach[1]
        rows, cols = np.nonzero(np.sum(kernels, axis=0))
        self._away = rows * self._width + cols
        self._shares = [kernel[rows, cols] for kernel in kernels]
        self._known: dict[int, float] = {}
        self._values = np.zeros((0, 0))
        self._clear()

    def _clear(self) -> None:
        cells = (self.layout.rows + 2 * self.reach[0]) * self._width
        self._values = np.zeros((2 * len(self._shares), cells))

    def forget(self) -> None:
        self._known = {}
        self._clear()

    def tell(self, weights: Mapping[int, float]) -> set[int]:
        """Cells with what their reports are worth, above 0 for finds; the blocks that changed."""
        changed = [cell for cell, w in weights.items() if self._known.get(cell) != w]
        again = [cell for cell in changed if cell in self._known]
        self._known |= {cell: weights[cell] for cell in changed}
        if again:
            self._clear()
        self._add(list(self._known) if again else changed)
        down, right = self.reach
        found: set[int] = set()
        for row, col in (divmod(cell, self.layout.cols) for cell in changed):
            rows, cols = (row - down, row + down + 1), (col - right, col + right + 1)
            found.update(self.layout.between(rows, cols))
        return found

    def _add(self, cells: list[int]) -> None:
        worth = np.array([self._known[cell] for cell in cells])
        rows, cols = np.divmod(np.array(cells, np.intp), self.layout.cols)
        for kind, chosen in enumerate((worth > 0, worth < 0)):
            corner = rows[chosen] * self._width + cols[chosen]
            at = (corner[:, None] + self._away).ravel()
            for ring, share in enumerate(self._shares):
                added = np.abs(worth[chosen])[:, None] * share
                np.add.at(self._values[2 * ring + kind], at, added.ravel())

    def of(self, block: int) -> Array:
        """(2 rings, cells) finds and blanks of every ring, ring by ring, of a block's cells."""
        rows, cols = self.layout.box(block)
        down, right = self.reach
        inside = (
            slice(None),
            slice(rows.start + down, rows.stop + down),
            slice(cols.start + right, cols.stop + right),
        )
        count = len(self._values)
        return self._values.reshape(count, -1, self._width)[inside].reshape(count, -1)
