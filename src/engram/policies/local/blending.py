"""From windows to blocks: which windows say something of a block, and how much it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from engram.layout import Blocks
from engram.tiling import Array, Part, Tiling

Held = tuple[int, tuple[slice, slice], Array]
"""A window, the rows and columns of a block in it, and its weight (rows, cols) there."""


class Blending:
    """The windows of a tiling, blended on the blocks of an area."""

    def __init__(self, layout: Blocks, tiling: Tiling) -> None:
        self.layout, self.tiling = layout, tiling
        self._weights: dict[bytes, Array] = {}
        self._products: dict[tuple[int, int], Array] = {}
        self._windows: dict[int, list[Held]] = {}
        down, across = layout.shape
        self._down = [self._parts(0, i) for i in range(down)]
        self._across = [self._parts(1, j) for j in range(across)]

    def _parts(self, side: int, i: int) -> list[Part]:
        axis = (self.tiling.rows, self.tiling.cols)[side]
        begin = i * self.layout.side
        parts = axis.parts(begin, min(begin + self.layout.side, axis.side))
        same = self._weights.setdefault  # stretches that lie alike hold one array
        return [replace(p, weight=same(p.weight.tobytes(), p.weight)) for p in parts]

    def _product(self, down: Array, across: Array) -> Array:
        """(rows, cols) weight of a window by its weights along both sides, made once."""
        key = (id(down), id(across))
        if key not in self._products:
            self._products[key] = down[:, None] * across
        return self._products[key]

    def windows(self, block: int) -> list[Held]:
        """Windows of a block, listed once: number, the block's rows and columns in it, weight
        (rows, cols).

        Where a window does not hold all of the block, rows and columns are those that it holds and
        the weight is that of these.
        """
        if block not in self._windows:
            i, j = divmod(block, self.layout.shape[1])
            self._windows[block] = [
                (
                    self.tiling.number(a.window, b.window),
                    (_inside(a, self.tiling.rows.size), _inside(b, self.tiling.cols.size)),
                    self._product(a.weight, b.weight),
                )
                for a, b in product(self._down[i], self._across[j])
            ]
        return self._windows[block]

    def blended(
        self,
        block: int,
        said: Mapping[int, Array],
        shape: tuple[int, int],
        blank: Array | None = None,
    ) -> Array:
        """(..., rows, cols) sum of what windows (..., rows, cols of a window) say of a block, each
        with its weight; windows that said nothing say ``blank``, or add nothing."""
        out: Array | None = None
        for number, (rows, cols), weight in self.windows(block):
            own = said.get(number, blank)
            if own is None:
                continue
            held = own[..., max(rows.start, 0) : rows.stop, max(cols.start, 0) : cols.stop]
            if out is None:
                out = np.zeros((*held.shape[:-2], *shape))
            top, left = max(-rows.start, 0), max(-cols.start, 0)
            inside = (slice(top, top + held.shape[-2]), slice(left, left + held.shape[-1]))
            out[(..., *inside)] += weight[inside] * held
        return np.zeros(shape) if out is None else out

    def blocks(self, windows: Iterable[int]) -> set[int]:
        """Blocks that any of these windows says something of."""
        found: set[int] = set()
        for number in windows:
            rows, cols = self.tiling.box(number)
            found.update(self.layout.between((rows.start, rows.stop), (cols.start, cols.stop)))
        return found

    def kinds(self) -> tuple[NDArray[np.intp], list[int]]:
        """(count,) label of blocks that lie alike in their windows, and a block of each label."""
        known: dict[tuple[object, ...], int] = {}
        examples: list[int] = []
        sides = [[self._lies(p) for p in parts] for parts in (self._down, self._across)]
        label = np.empty(self.layout.count, np.intp)
        for block in range(self.layout.count):
            i, j = divmod(block, self.layout.shape[1])
            key = (sides[0][i], sides[1][j])
            if key not in known:
                known[key] = len(examples)
                examples.append(block)
            label[block] = known[key]
        return label, examples

    @staticmethod
    def _lies(parts: list[Part]) -> tuple[object, ...]:
        return tuple((part.offset, part.weight.tobytes()) for part in parts)


def _inside(part: Part, size: int) -> slice:
    return slice(part.offset, min(part.offset + len(part.weight), size))
