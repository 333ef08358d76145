"""A picture cut into cells of its own pixels, of any size: what a search keeps of each cell.

What a search costs should follow its cells, not the pixels of a picture. A cell keeps at most
``DETAIL`` x ``DETAIL`` averages of its content, fewer where there are very many cells, and the
exact share of its pixels that are target. Cells that stick out over the edge are filled up with the
edge; their shares count the picture's own pixels alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError

Image = NDArray[np.float32]
Mask = NDArray[np.bool_]
Size = tuple[int, int]

DETAIL = 8
"""Averages per side that are kept of a cell's content, at the most."""
VALUES = 4_000_000
"""Averages that are kept of all cells together, unless that is less than one each."""


@dataclass(frozen=True)
class Cut:
    """A picture of ``size`` pixels in cells of ``cell`` pixels, both (height, width).

    detail : averages per side that are kept of a cell; by default fewer, the more cells there are
    """

    size: Size
    cell: Size
    detail: int | None = None

    def __post_init__(self) -> None:
        (height, width), (h, w) = self.size, self.cell
        if h > height or w > width:
            raise InputError(f"cell={h},{w} is larger than the image of {height}x{width}")
        if self.detail is None:
            each = math.isqrt(VALUES // (self.rows * self.cols))
            object.__setattr__(self, "detail", min(max(each, 1), DETAIL))

    @property
    def rows(self) -> int:
        return -(-self.size[0] // self.cell[0])

    @property
    def cols(self) -> int:
        return -(-self.size[1] // self.cell[1])

    @property
    def over(self) -> Size:
        """Rows and columns by which the last cells stick out."""
        return (
            self.rows * self.cell[0] - self.size[0],
            self.cols * self.cell[1] - self.size[1],
        )

    @property
    def kept(self) -> Size:
        """Height and width of what is kept of a cell."""
        assert self.detail is not None
        return min(self.cell[0], self.detail), min(self.cell[1], self.detail)

    def content(self, plane: Image) -> Image:
        """(H, W) -> (rows * kept, cols * kept): averages, the edge filled up."""
        if any(self.over):
            plane = np.pad(plane, [(0, n) for n in self.over], mode="edge")
        if self.kept == self.cell:
            return plane
        from PIL.Image import Resampling, fromarray

        size = (self.cols * self.kept[1], self.rows * self.kept[0])
        return np.asarray(fromarray(plane).resize(size, Resampling.BOX), np.float32)

    def target(self, mask: Mask) -> Mask:
        """(H, W) -> (rows * kept, cols * kept): True where any part is target."""
        for axis in (0, 1):
            mask = np.logical_or.reduceat(mask, self._starts(axis), axis=axis)
        beyond = [
            self.rows * self.kept[0] - mask.shape[0],
            self.cols * self.kept[1] - mask.shape[1],
        ]
        return np.pad(mask, [(0, n) for n in beyond])

    def _starts(self, axis: int) -> NDArray[np.intp]:
        """First row (or column) of everything that is kept and lies within the picture."""
        count = (self.rows, self.cols)[axis]
        cell, kept = self.cell[axis], self.kept[axis]
        inside = np.arange(kept) * cell // kept
        starts = (np.arange(count)[:, None] * cell + inside).ravel()
        return starts[starts < self.size[axis]]

    def shares(self, mask: Mask) -> NDArray[np.float64]:
        """(rows * cols,) share of target among the picture's pixels of every cell."""
        h, w = self.cell
        across = np.arange(0, self.size[1], w)
        rows = (  # a row of cells at a time: what is added up is eight times as wide as a mask
            np.add.reduceat(np.count_nonzero(mask[top : top + h], axis=0), across)
            for top in range(0, self.size[0], h)
        )
        counts = np.stack(list(rows))
        heights, widths = np.full(self.rows, self.cell[0]), np.full(self.cols, self.cell[1])
        heights[-1] -= self.over[0]
        widths[-1] -= self.over[1]
        return np.asarray(counts / np.outer(heights, widths), np.float64).ravel()

    @property
    def notes(self) -> list[str]:
        """What was done, in words; nothing for cells that are kept as they are."""
        (h, w), (down, right) = self.cell, self.over
        said = []
        if (h, w) != (1, 1):
            said.append(f"Cells of {h}x{w} pixels of the image: {self.rows}x{self.cols} cells.")
        if self.kept != self.cell:
            said.append(f"Of each cell {self.kept[0]}x{self.kept[1]} averages are kept.")
        if down or right:
            said.append(
                f"The last cells reach {down} rows and {right} columns beyond the image; they are "
                "filled up with its edge, which counts as no target."
            )
        return said
