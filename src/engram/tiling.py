r"""Overlapping windows that cover an area, and how what they say is blended.

Along one side windows of ``size`` cells begin every ``stride`` cells; the last ends where the side
ends. Window i counts at the place x with the weight

.. math::  w_i(x) = \frac{r_i(x)}{\sum_j r_j(x)} , \qquad
           r_i(x) = \sin^2 \frac\pi2 \min\Bigl(1, \frac{d_i(x) + 1/2}{size - stride}\Bigr)

with :math:`d_i(x)` the cells between x and the nearer end of the window that is not an end of the
side. Weights sum to 1 at every place and fade out to the ends of a window, so that nothing of it is
seen there; in two dimensions they are products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """What one window adds to a stretch of a side: its number, where the stretch begins in it, and
    its weight (length of the stretch,) there."""

    window: int
    offset: int
    weight: Array


@dataclass(frozen=True)
class Axis:
    """Windows along a side of ``side`` cells."""

    side: int
    size: int
    stride: int

    @classmethod
    def of(cls, side: int, size: int, stride: int) -> Axis:
        """One window where the side is no longer than that."""
        return cls(side, min(size, side), min(stride, size))

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """(n,) where the windows begin."""
        regular = np.arange(0, self.side - self.size, self.stride)
        return np.append(regular, self.side - self.size).astype(np.intp)

    @cached_property
    def weights(self) -> Array:
        """(n, size) of every window."""
        inside, last = np.arange(self.size), len(self.starts) - 1
        ramp = max(1, self.size - self.stride)
        total, raw = np.zeros(self.side), np.empty((last + 1, self.size))
        for i, start in enumerate(self.starts):
            before = np.inf if i == 0 else inside + 0.5
            after = np.inf if i == last else self.size - inside - 0.5
            away = np.minimum(1.0, np.minimum(before, after) / ramp) * np.ones(self.size)
            raw[i] = np.sin(np.pi / 2 * away) ** 2
            total[start : start + self.size] += raw[i]
        return np.stack([raw[i] / total[s : s + self.size] for i, s in enumerate(self.starts)])

    def near(self, place: int, margin: int = 0) -> range:
        """Numbers of the windows within ``margin`` cells of a place."""
        first = int(np.searchsorted(self.starts, place - margin - self.size, side="right"))
        return range(first, int(np.searchsorted(self.starts, place + margin, side="right")))

    def parts(self, begin: int, end: int) -> list[Part]:
        """The windows of a stretch, each with its weight; those that add nothing are left out."""
        found = []
        for i in range(self.near(begin).start, self.near(end - 1).stop):
            start = int(self.starts[i])
            weight = np.zeros(end - begin)
            low, high = max(begin, start), min(end, start + self.size)
            weight[low - begin : high - begin] = self.weights[i, low - start : high - start]
            if weight.any():
                found.append(Part(i, begin - start, weight))
        return found

    @cached_property
    def homes(self) -> NDArray[np.intp]:
        """(side,) the window that counts most at every place."""
        best, home = np.zeros(self.side), np.zeros(self.side, np.intp)
        for i, start in enumerate(self.starts):
            part = slice(start, start + self.size)
            more = self.weights[i] > best[part]
            home[part][more], best[part][more] = i, self.weights[i][more]
        return home


@dataclass(frozen=True)
class Tiling:
    """Windows over an area; window (i, j) has the number i * columns of windows + j."""

    rows: Axis
    cols: Axis

    @classmethod
    def of(cls, rows: int, cols: int, size: int, stride: int) -> Tiling:
        return cls(Axis.of(rows, size, stride), Axis.of(cols, size, stride))

    @property
    def count(self) -> int:
        return len(self.rows.starts) * len(self.cols.starts)

    def number(self, row: int, col: int) -> int:
        return row * len(self.cols.starts) + col

    def box(self, number: int) -> tuple[slice, slice]:
        """Rows and columns of a window."""
        i, j = divmod(number, len(self.cols.starts))
        top, left = int(self.rows.starts[i]), int(self.cols.starts[j])
        return slice(top, top + self.rows.size), slice(left, left + self.cols.size)

    def near(self, cell: tuple[int, int], margin: int = 0) -> Iterator[int]:
        """Numbers of the windows within ``margin`` cells of a cell."""
        for i in self.rows.near(cell[0], margin):
            for j in self.cols.near(cell[1], margin):
                yield self.number(i, j)

    def home(self, cell: tuple[int, int]) -> int:
        """The window that counts most at a cell."""
        return self.number(int(self.rows.homes[cell[0]]), int(self.cols.homes[cell[1]]))

    def number_at(self, box: tuple[slice, slice]) -> NDArray[np.intp]:
        """(rows, cols) the window that counts most at every cell of a box."""
        rows, cols = self.rows.homes[box[0]], self.cols.homes[box[1]]
        return np.asarray(rows[:, None] * len(self.cols.starts) + cols)
