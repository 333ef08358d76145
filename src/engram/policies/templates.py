"""Templates: what a search has outlined, in the ways in which it may lie elsewhere.

Connected cells that were found or are likelier target than not, with a few finds among them, are a
template: the probability :math:`T(i)` of target of its cells and of those around it, 0 or 1 where
they were measured. The fewer of them are known, the less it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from scipy.fft import next_fast_len
from scipy.ndimage import find_objects, label
from torch import Tensor
from torch.fft import irfft2, rfft2

from engram.policies.forecast import Array
from engram.policies.outlines import EIGHT, Mask, views

Table = TypeVar("Table", Array, Mask)

LEAST_FINDS = 4
"""Finds that a template must hold."""
MOST = 3
"""Templates that are used: those that are known best."""
LARGEST = 14
"""Cells a side of the largest template."""
CLEAR = 0.02
"""How sure a template is of a cell at the most: 1 - CLEAR target or blank."""
UNSURE = 4.0
"""Wrong cells to be expected at which a template counts e times less."""
CUT = 3.0
"""Wrong cells that count for a template at the border of the area, part of which may lie beyond."""
SAME = 0.05
"""Difference of two templates in any cell below which they look the same."""


@dataclass(frozen=True, eq=False)
class Template:
    """What copies are taken to look like.

    target : (h, w) probability of target;  counts : (h, w) cells it speaks of, its own and those
        around them
    corner : row and column of the area at which these tables begin, -1 beside its border
    weight : logarithm of how much it counts; once chosen, beside the best
    """

    target: Array
    counts: Mask
    corner: tuple[int, int]
    weight: float

    def place(self, part: Part) -> Mask:
        """(rows, cols) its cells in a part of the area."""
        out: Mask = np.zeros(part.shape, bool)
        cells = np.argwhere(self.counts) + np.subtract(self.corner, part.corner)
        inside = ((cells >= 0) & (cells < part.shape)).all(axis=1)
        out[tuple(cells[inside].T)] = True
        return out


@dataclass(frozen=True)
class Part:
    """A part of an area: row and column where it begins, its shape, and that of the area."""

    corner: tuple[int, int]
    shape: tuple[int, int]
    area: tuple[int, int]

    @classmethod
    def whole(cls, table: Array | Mask) -> Part:
        """All of the area of a table (rows, cols)."""
        shape = (table.shape[0], table.shape[1])
        return cls((0, 0), shape, shape)

    def at_border(self, window: tuple[slice, ...]) -> bool:
        """Whether a window of the part touches the border of the area."""
        sides = zip(window, self.corner, self.area, strict=True)
        return any(side.start + at == 0 or side.stop + at == size for side, at, size in sides)


def templates(p: Array, found: Mask, blank: Mask) -> list[Template]:
    """The best known objects of an area (rows, cols), best first."""
    return best(outlined(p, found, blank, Part.whole(p)))


def best(made: Iterable[Template]) -> list[Template]:
    """Those that are known best, best first."""
    chosen = sorted(made, key=lambda one: -one.weight)[:MOST]
    return [replace(one, weight=one.weight - chosen[0].weight) for one in chosen]


def folded(chosen: Sequence[Template]) -> list[Template]:
    """Templates that look the same as one: copies of any of them are copies of it, and weigh what
    they weigh together."""
    kept: list[Template] = []
    for one in chosen:
        at = next((i for i, other in enumerate(kept) if _same(one, other)), None)
        if at is None:
            kept.append(one)
        else:
            both = float(np.logaddexp(kept[at].weight, one.weight))
            kept[at] = replace(kept[at], weight=both)
    return kept


def _same(one: Template, other: Template) -> bool:
    """Whether two templates say the same of the same cells."""
    alike = np.array_equal(one.counts, other.counts)
    return alike and float(np.abs(one.target - other.target).max()) < SAME


def outlined(p: Array, found: Mask, blank: Mask, part: Part) -> list[Template]:
    """The objects of a part (rows, cols) of an area of which enough is known."""
    wrong = _framed(np.where(found | blank, 0.0, np.minimum(p, 1 - p)), 1)
    parts, _ = label(((p > 0.5) | found) & ~blank, EIGHT)
    inside: Mask = _framed(np.ones_like(found), 1)
    padded, made = _framed(p, 1), []
    for number, window in enumerate(find_objects(parts), start=1):
        body = parts[window] == number
        finds = int((found[window] & body).sum())
        if finds < LEAST_FINDS or max(body.shape) > LARGEST:
            continue
        around = tuple(slice(side.start, side.stop + 2) for side in window)
        counts = _with_neighbours(body) & inside[around]
        unsure = float(wrong[around][counts].sum()) + part.at_border(window) * CUT
        target = np.clip(padded[around], CLEAR, 1 - CLEAR)
        corner = (
            window[0].start + part.corner[0] - 1,
            window[1].start + part.corner[1] - 1,
        )
        made.append(Template(target, counts, corner, float(np.log(finds)) - unsure / UNSURE))
    return made


def _framed(table: Table, width: int) -> Table:
    """A table with ``width`` cells of zeros around it (``np.pad`` takes longer than all else)."""
    framed = np.zeros([size + 2 * width for size in table.shape], table.dtype)
    framed[width:-width, width:-width] = table
    return framed


def _with_neighbours(body: Mask) -> Mask:
    """(h + 2, w + 2) cells of a body (h, w) and all that touch them, by a side or a corner."""
    wide = _framed(body, 2)
    rows = wide[:-2] | wide[1:-1] | wide[2:]
    return rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]


def ways(straight: float) -> Array:
    """(8, 1, 1) chance of each turn of a copy, that of being the same way round being
    ``straight``."""
    chance = np.full((8, 1, 1), (1 - straight) / 8)
    chance[0] += straight
    return chance


def turned(tables: Array) -> Array:
    """(n, E, K, K) tables of templates -> (n, E, 8, K, K) the same in each of eight turns."""
    turns = views(np.moveaxis(tables, (0, 1), (2, 3)))
    return np.ascontiguousarray(np.stack(turns).transpose(3, 4, 0, 1, 2))


@dataclass(frozen=True)
class Places:
    """Where copies of templates may lie in an area: S x S places, by the corners of their windows
    of K x K cells, where S = (rows or cols) + K - 1; sums over cells and places are convolutions.

    area : (rows, cols);  side : K
    """

    area: tuple[int, int]
    side: int

    @classmethod
    def of(cls, known: Sequence[Template], area: tuple[int, int]) -> Places:
        return cls(area, max(max(one.target.shape) for one in known))

    @property
    def shape(self) -> tuple[int, int]:
        """(S, S)."""
        return self.area[0] + self.side - 1, self.area[1] + self.side - 1

    @property
    def _sizes(self) -> list[int]:
        return [next_fast_len(size, real=True) for size in self.shape]

    def tables(self, known: Sequence[Template]) -> Array:
        """(2, E, K, K) chance of target, and whether a template speaks of a cell."""
        out = np.zeros((2, len(known), self.side, self.side))
        for e, one in enumerate(known):
            rows, cols = one.target.shape
            out[:, e, :rows, :cols] = one.counts * np.stack([one.target, one.counts])
        return out

    def transform(self, tables: Array | Mask) -> Tensor:
        """Fourier transform of tables of cells or places (..., rows, cols)."""
        spectrum: Tensor = rfft2(torch.from_numpy(tables).float(), s=self._sizes)
        return spectrum

    def mirrored(self, tables: Array) -> Tensor:
        """Fourier transform of tables (..., K, K) of which those at every place are looked for:
        times that of what is there it is how they agree."""
        return self.transform(tables[..., ::-1, ::-1].copy())

    def at_places(self, spectrum: Tensor) -> Array:
        """(..., S, S) of every place."""
        table: Array = irfft2(spectrum, s=self._sizes).double().numpy()
        return table[..., : self.shape[0], : self.shape[1]]

    def on_cells(self, spectrum: Tensor) -> Array:
        """(..., rows, cols) of every cell: what tables of cells, laid at places, add up to."""
        return self.at_places(spectrum)[..., self.side - 1 :, self.side - 1 :]


def packed(name: str, numbered: Sequence[tuple[int, Template]]) -> dict[str, Tensor]:
    """Templates, each with a number, as tensors: (n, 5) number, corner and shape; (n,) weights; all
    cells of their tables one after the other."""
    rows = [[number, *one.corner, *one.counts.shape] for number, one in numbered]
    target = np.concatenate([np.zeros(0), *(one.target.ravel() for _, one in numbered)])
    counts = np.concatenate([np.zeros(0), *(one.counts.ravel() for _, one in numbered)])
    return {
        f"{name}/places": torch.tensor(rows, dtype=torch.int64).reshape(-1, 5),
        f"{name}/weights": torch.tensor([one.weight for _, one in numbered], dtype=torch.float64),
        f"{name}/target": torch.from_numpy(target),
        f"{name}/counts": torch.from_numpy(counts.astype(np.uint8)),
    }


def unpacked(name: str, state: dict[str, Tensor]) -> Iterator[tuple[int, Template]]:
    """The templates again."""
    target, counts = (state[f"{name}/{part}"].numpy() for part in ("target", "counts"))
    weights, begin = state[f"{name}/weights"].tolist(), 0
    for (number, row, col, h, w), weight in zip(
        state[f"{name}/places"].tolist(), weights, strict=True
    ):
        cells = slice(begin, begin + h * w)
        begin = cells.stop
        tables = (target[cells].reshape(h, w).copy(), counts[cells].reshape(h, w) > 0)
        yield number, Template(*tables, (row, col), weight)
