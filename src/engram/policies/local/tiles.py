"""An area cut into tiles that do not overlap, and what lies around each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Cell = tuple[int, int]
Box = tuple[slice, slice]
"""Rows and columns."""


def within(inner: Box, outer: Box) -> Box:
    """Rows and columns of a box in another that holds it."""
    down, across = (
        slice(a.start - b.start, a.stop - b.start) for a, b in zip(inner, outer, strict=True)
    )
    return down, across


@dataclass(frozen=True)
class Tiles:
    """An area of rows x cols cells cut into tiles of ``side`` x ``side``, less at the far ends."""

    rows: int
    cols: int
    side: int

    @cached_property
    def across(self) -> int:
        return -(-self.cols // self.side)

    def near(self, cell: Cell, before: int, behind: int | None = None) -> Iterator[int]:
        """Numbers of the tiles whose box (``box``) holds a cell."""
        ranges = []
        for at, size in zip(cell, (self.rows, self.cols), strict=True):
            first = max(at - (before if behind is None else behind), 0)
            last = min(at + before, size - 1)
            ranges.append(range(first // self.side, last // self.side + 1))
        for i in ranges[0]:
            for j in ranges[1]:
                yield i * self.across + j

    def box(self, number: int, before: int = 0, behind: int | None = None) -> Box:
        """Rows and columns of a tile, and so many cells before it and behind it, by default as
        many."""
        i, j = divmod(number, self.across)
        more = self.side + (before if behind is None else behind)
        sides = ((i * self.side, self.rows), (j * self.side, self.cols))
        down, across = (slice(max(at - before, 0), min(at + more, size)) for at, size in sides)
        return down, across
