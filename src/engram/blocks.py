r"""Numbers of every cell of a large area, kept by blocks: what changed is replaced, nothing else
is looked at.

An area is cut into square blocks (``layout``). A :class:`Stored` keeps one array per block; blocks
of which nothing is known share the same one. A :class:`Field` is a function of several of these,
cell by cell, that does not fall in any of them,

.. math::  v(q) = g\bigl(a_1(q), \dots, a_k(q)\bigr) , \qquad
           \max_{q \in b} v(q) \le g\bigl(\max_b a_1, \dots, \max_b a_k\bigr) ,

so the best cells are found by looking into blocks in the order of that bound, until no bound is
above what was found. To everybody else a field is an array (n_cells,), made when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from engram.layout import TIE, Blocks

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

REACH = 18
"""Cells beyond which a cell that is taken damps nothing: exp(-REACH^2 / 8) is no number's digit."""
LOWEST = -1e300
"""The bound of a block without cells that can be visited."""
AT_ONCE = 4
"""Blocks that a search for the best cells looks into first; twice as many each time after."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Arrays (cells of the block, ...) by block, never written to.

    label : (count,) blocks of one label, from 0 on, hold the same array; -1 where one has its own
    high, low : (count,) largest value of cells that can still be visited, smallest of all
    """

    values: Sequence[Array]
    label: NDArray[np.intp]
    high: Array
    low: Array

    @classmethod
    def shared(cls, label: NDArray[np.intp], kinds: Sequence[Array]) -> Stored:
        """Of blocks of which nothing is known: kind ``label`` (count,) of each."""
        bounds = np.array([(kind.max(), kind.min()) for kind in kinds])
        values = [kinds[k] for k in label]
        return cls(values, label.copy(), bounds[label, 0], bounds[label, 1])

    def replaced(self, new: Mapping[int, Array], open_to: Mapping[int, Mask]) -> Stored:
        """The same with some blocks anew; ``open_to`` says which cells of these can be visited."""
        values, label = list(self.values), self.label.copy()
        high, low = self.high.copy(), self.low.copy()
        for block, array in new.items():
            values[block], label[block] = array, -1
            high[block] = array.max(where=open_to[block], initial=LOWEST)
            low[block] = array.min()
        return Stored(values, label, high, low)

    def changed(self, other: Stored | None) -> list[int]:
        """Blocks that another one holds differently."""
        if other is None:
            return np.flatnonzero(self.label < 0).tolist()
        pairs = zip(self.values, other.values, strict=True)
        return [i for i, (a, b) in enumerate(pairs) if a is not b]


@dataclass(frozen=True, eq=False)
class Field(NDArrayOperatorsMixin):
    """A number of every cell, (n_cells,) to whoever looks at it as an array.

    combine : values of the parts -> value, falling in none of them
    tied    : whether equal cells are told apart by their place in the order of ties
    moved   : single cells that have a value of their own instead
    """

    layout: Blocks
    parts: tuple[Stored, ...]
    combine: Callable[..., Array] = field(default=lambda a: a)
    tied: bool = False
    moved: Mapping[int, float] = field(default_factory=dict)

    # -- as an array ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.layout.n_cells,)

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return self.layout.n_cells

    @cached_property
    def dense(self) -> Array:
        """(n_cells,)."""
        out = np.empty((self.layout.rows, self.layout.cols))
        for block in range(self.layout.count):
            box = self.layout.box(block)
            out[box] = self.block(block).reshape(out[box].shape)
        out.setflags(write=False)
        return out.ravel()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.dense, dtype) if copy else np.asarray(self.dense, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        shown = (one.dense if isinstance(one, Field) else one for one in inputs)
        return getattr(ufunc, method)(*shown, **more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dense":
            raise AttributeError(name)
        return getattr(self.dense, name)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return self.at(int(key))
        return self.dense[key]

    def at(self, index: int) -> np.float64:
        """Of one cell."""
        if not -self.layout.n_cells <= index < self.layout.n_cells:
            raise IndexError(f"cell {index} of {self.layout.n_cells}")
        index %= self.layout.n_cells
        block, position = self.layout.find(index)
        return cast(np.float64, self.block(block)[position])

    def region(self, rows: slice, cols: slice) -> Array:
        """(rows, cols) of a part of the area."""
        out = np.empty((rows.stop - rows.start, cols.stop - cols.start))
        for block in self.layout.between((rows.start, rows.stop), (cols.start, cols.stop)):
            down, across = self.layout.box(block)
            own = self.block(block).reshape(down.stop - down.start, -1)
            there, held = zip(
                *(_common(a, b) for a, b in ((rows, down), (cols, across))), strict=True
            )
            out[there] = own[held]
        return out

    # -- functions of fields ----------------------------------------------------------------

    def mapped(self, function: Callable[[Array], Array]) -> Field:
        """A function that does not fall, of every value."""
        assert not self.tied
        assert not self.moved
        inner = self.combine
        return replace(self, combine=lambda *a: function(inner(*a)))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float | int | np.floating) and other >= 0:
            by = float(other)
            return self.mapped(lambda a: np.asarray(by * a))
        return super().__mul__(other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return total_of([self, other]) if isinstance(other, Field) else super().__add__(other)

    def with_ties(self, moved: Mapping[int, float] | None = None) -> Field:
        """Equal cells told apart; ``moved`` are values of single cells, before that."""
        layout, out = self.layout, {}
        for index, value in (moved or {}).items():
            block, position = layout.find(index)
            out[index] = float(value - layout.ties(block)[position])
        return replace(self, tied=True, moved=out)

    # -- the best cells ---------------------------------------------------------------------

    def block(self, block: int) -> Array:
        """The values of a block."""
        return self._evaluated([block])

    def _evaluated(self, blocks: Sequence[int]) -> Array:
        """Values of some blocks, one after the other."""
        several = len(blocks) > 1
        arrays = (
            np.concatenate([part.values[b] for b in blocks]) if several else part.values[blocks[0]]
            for part in self.parts
        )
        out = self.combine(*arrays)
        if self.tied:
            out = out - np.concatenate([self.layout.ties(b) for b in blocks])
        if self.moved:
            out = self._with_moved(out.copy(), blocks)
        return np.asarray(out)

    def _with_moved(self, out: Array, blocks: Sequence[int]) -> Array:
        begin = 0
        for block in blocks:
            for index, value in self._moved_in.get(block, ()):
                out[begin + self.layout.find(index)[1]] = value
            begin += len(self.parts[0].values[block])
        return out

    @cached_property
    def _moved_in(self) -> dict[int, list[tuple[int, float]]]:
        found: dict[int, list[tuple[int, float]]] = {}
        for index, value in self.moved.items():
            found.setdefault(self.layout.find(index)[0], []).append((index, value))
        return found

    @cached_property
    def bound(self) -> Array:
        """(count,) no cell of a block that can be visited has more; exact where blocks share."""
        out = np.array(self.combine(*(part.high for part in self.parts)), np.float64)
        if self.tied:
            out -= self.layout.least_ties
        label = np.zeros(self.layout.count, np.intp)
        own = np.zeros(self.layout.count, bool)
        for part in self.parts:
            own |= part.label < 0
            label = label * (int(part.label.max(initial=0)) + 2) + part.label + 1
        shared = np.flatnonzero(~own)
        _, first, which = np.unique(label[shared], return_index=True, return_inverse=True)
        for k, block in enumerate(shared[first]):
            values = self._plain(int(block))
            alike = shared[which == k]
            less = (
                self.layout.ties(int(block)) - self.layout.least_ties[block] if self.tied else 0.0
            )
            more = self.layout.least_ties[alike] if self.tied else 0.0
            out[alike] = (values - less).max() - more
        for block, inside in self._moved_in.items():
            out[block] = max(out[block], *(value for _, value in inside))
        return out

    def _plain(self, block: int) -> Array:
        """Without ties and single cells."""
        return self.combine(*(part.values[block] for part in self.parts))

    @cached_property
    def least(self) -> float:
        """No cell has less."""
        low = float(np.min(self.combine(*(part.low for part in self.parts))))
        ties = TIE * self.layout.count * (self.layout.side**2 + 1) if self.tied else 0.0
        return min([low - ties, *self.moved.values()])

    def best(
        self, available: Mask, n: int = 1, taken: Sequence[int] = ()
    ) -> list[tuple[int, float]]:
        """The n best available cells (flat index) with their values, the best first.

        Around cells that are ``taken`` values are pulled towards the least, as
        ``policies.base.best_apart`` does; ties are in the order of the cells.
        """
        bound = self.bound
        order = np.argsort(-bound, kind="stable")
        index, value = np.zeros(0, np.intp), np.zeros(0)
        at, step = 0, AT_ONCE
        while at < len(order):
            enough = value[n - 1] if len(value) >= n else -np.inf
            blocks = order[at : at + step]
            blocks = blocks[bound[blocks] >= enough]
            if not len(blocks):
                break
            chosen = [int(b) for b in blocks]
            cells = np.concatenate([self.layout.cells(b) for b in chosen])
            values = np.nan_to_num(self._evaluated(chosen), nan=-np.inf)
            free = available[cells]
            cells, values = cells[free], values[free]
            if len(taken):
                values = self._damped(cells, values, taken)
            if len(values) > n:
                good = values >= np.partition(values, -n)[-n]
                cells, values = cells[good], values[good]
            index, value = np.concatenate([index, cells]), np.concatenate([value, values])
            first = np.lexsort((index, -value))[:n]
            index, value = index[first], value[first]
            at, step = at + step, 2 * step
        return [(int(i), float(v)) for i, v in zip(index, value, strict=True)]

    def _damped(self, cells: NDArray[np.intp], values: Array, taken: Sequence[int]) -> Array:
        least, most = self.least, float(self.bound.max())
        low = least - (1e-6 * (most - least) or 1.0)
        rows, cols = np.divmod(cells, self.layout.cols)
        height, width = self.layout.sides
        out = values - low
        for row, col in (divmod(int(index), self.layout.cols) for index in taken):
            down, right = np.abs(rows - row) * height, np.abs(cols - col) * width
            near = np.flatnonzero((down <= REACH) & (right <= REACH))
            square = down[near] ** 2 + right[near] ** 2
            out[near] *= 1 - np.exp(-square / 8.0)
        return np.asarray(out + low)


def _common(part: slice, block: slice) -> tuple[slice, slice]:
    """What a part and a block have in common, counted from where each begins."""
    low, high = max(part.start, block.start), min(part.stop, block.stop)
    return slice(low - part.start, high - part.start), slice(low - block.start, high - block.start)


def total_of(fields: Sequence[Field], weights: Sequence[float] | None = None) -> Field:
    """The sum of fields, each with a weight of 0 or more."""
    counts = [len(one.parts) for one in fields]
    ends = np.cumsum([0, *counts])
    by = [1.0] * len(fields) if weights is None else [float(w) for w in weights]
    inner = [one.combine for one in fields]

    def combine(*a: Array) -> Array:
        terms = (
            w * g(*a[ends[i] : ends[i + 1]]) for i, (w, g) in enumerate(zip(by, inner, strict=True))
        )
        return cast(Array, sum(terms))

    return Field(fields[0].layout, tuple(p for one in fields for p in one.parts), combine)


def as_array(values: Field) -> Array:
    """A field where an array (n_cells,) is meant."""
    return cast(Array, values)


def as_field(values: object) -> Field | None:
    """The field that stands where an array is meant, None for an array itself."""
    return values if isinstance(values, Field) else None


def field_of(values: object) -> Field:
    """The same where there is nothing else."""
    assert isinstance(values, Field)
    return values


def largest(values: Array, available: Mask) -> float:
    """The largest value of the available cells."""
    own = as_field(values)
    if own is not None:
        found = own.best(available)
        return found[0][1] if found else -np.inf
    return float(values[available].max())
