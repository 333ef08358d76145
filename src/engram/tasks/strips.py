"""A picture is calculated with a strip at a time: only what is stored of it is held as a whole.

A plane is one channel as a function of rows: ``plane(slice(0, 100))`` are its first hundred rows in
single precision. Whatever is made of a picture, its cells or a smaller picture, is made strip by
strip, so that memory follows what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.tasks.cutting import Cut, Image, Mask, Size

Plane = Callable[[slice], Image]

AT_ONCE = 4_000_000
"""Pixels of a strip, about."""


def strips(size: Size, step: int = 1) -> Iterator[slice]:
    """Rows of a picture in strips of whole multiples of ``step``; a remainder joins the last."""
    height, width = size
    rows = max(1, AT_ONCE // (width * step)) * step
    starts = list(range(0, height, rows))
    if len(starts) > 1 and height - starts[-1] < step:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], height], strict=True):
        yield slice(start, end)


def plane_of(stored: NDArray[Any]) -> Plane:
    """One channel as it is stored, (H, W)."""
    return lambda rows: np.asarray(stored[rows], np.float32)


def weighed(planes: Sequence[Plane], weights: Sequence[np.float32]) -> Plane:
    """The sum of planes, each times its weight."""

    def mixed(rows: slice) -> Image:
        out: Image = weights[0] * planes[0](rows)
        for weight, plane in zip(weights[1:], planes[1:], strict=True):
            out += weight * plane(rows)
        return out

    return mixed


def mapped(plane: Plane, function: Callable[[Image], Image]) -> Plane:
    """A function of every value."""
    return lambda rows: function(plane(rows))


def limits(plane: Plane, size: Size) -> tuple[float, float]:
    """The smallest and the largest value."""
    ends = [(part.min(), part.max()) for part in map(plane, strips(size))]
    return float(min(low for low, _ in ends)), float(max(high for _, high in ends))


def where(plane: Plane, size: Size, true: Callable[[Image], Mask]) -> Mask:
    """(H, W) where a condition holds."""
    out = np.empty(size, bool)
    for rows in strips(size):
        out[rows] = true(plane(rows))
    return out


def cells_of(plane: Plane, cut: Cut) -> Image:
    """What a search keeps of every cell, ``cut.content`` strip by strip."""
    parts = []
    for rows in strips(cut.size, cut.cell[0]):
        part = replace(cut, size=(rows.stop - rows.start, cut.size[1]))
        parts.append(part.content(plane(rows)))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def resized(plane: Plane, before: Size, after: Size, how: Any) -> Image:
    """A plane brought to another size: rows strip by strip, then columns, as Pillow does."""
    from PIL.Image import fromarray

    narrow = [
        np.asarray(fromarray(part).resize((after[1], len(part)), how), np.float32)
        for part in map(plane, strips(before))
    ]
    return np.asarray(fromarray(np.concatenate(narrow)).resize(after[::-1], how), np.float32)
