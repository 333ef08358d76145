"""What lies in rings around every cell: each cell with something adds its part to those around it.

The same as a convolution of the whole area with every ring, at the cost of the cells that were
measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Around:
    """Sums over rings, for areas of rows x cols cells.

    kernels : (height, width) each, what a ring gives to every offset, 0 outside of it; odd on both
        sides and symmetric
    """

    def __init__(self, rows: int, cols: int, kernels: Sequence[Array]) -> None:
        self._cols = cols
        down, right = (side // 2 for side in kernels[0].shape)
        self._width = cols + 2 * right
        self._size = (rows + 2 * down) * self._width
        self._inside = (slice(down, down + rows), slice(right, right + cols))
        self._rings = [_offsets(kernel, self._width) for kernel in kernels]

    def sums(self, cells: NDArray[np.intp], worth: Array) -> list[Array]:
        """(n_cells,) of each ring, where cells (m,) hold ``worth`` (m,) and all others nothing."""
        corner = cells // self._cols * self._width + cells % self._cols
        found = []
        for away, share in self._rings:
            at, parts = corner[:, None] + away, worth[:, None] * share
            table = np.bincount(at.ravel(), parts.ravel(), self._size).reshape(-1, self._width)
            found.append(table[self._inside].astype(np.float64).ravel())
        return found


def _offsets(kernel: Array, width: int) -> tuple[NDArray[np.intp], Array]:
    """Where the cells of a ring lie, from the corner of the kernel on, and what each is given."""
    rows, cols = np.nonzero(kernel)
    return rows * width + cols, kernel[rows, cols]
