"""Copies of what was outlined (``policies.copies``) in a large area.

What copies say of a cell follows from the templates and from what was measured around it, so it is
kept by tiles: each is computed from the measurements in it and around it, ``BESIDE`` cells farther
than any copy that touches it reaches, and again when one of these is made. What concerns all
tiles at once, the three best templates and how far copies are turned, changes at few moments:
after each measurement at first, later a fortieth of their number apart.

Objects that are outlined are looked for where something was measured, in what was believed before
that with copies, so that partial outlines complete each other as in a small area.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from engram.blocks import Field, Stored, as_array, field_of
from engram.grid import Grid
from engram.layout import Blocks
from engram.observation import Observations
from engram.policies.copies import Copied, CopyForecaster, Stamps, spoken, turn_odds
from engram.policies.forecast import Array
from engram.policies.local.room import LocalRoom
from engram.policies.local.told import NOTHING, Told
from engram.policies.templates import CLEAR, LARGEST, LEAST_FINDS, Part, Template, best, outlined

Cell = tuple[int, int]

CORE = 32
"""Cells a side of a tile, at least."""
BESIDE = 2
"""Cells around the copies that touch a tile that are looked at as well."""
MARGIN = LARGEST + 2 + BESIDE
"""Cells around a tile that are looked at, at the most; an object that begins in it ends there."""
SLOWLY = 40
"""Templates are chosen anew when the measurements have grown by one in so many."""
SAME = 0.02
"""Change of the chance that copies are not turned below which nothing is computed anew."""


def renewed_at(count: int) -> int:
    """The last number of measurements, of so many, at which templates are chosen."""
    at = 0
    while at + max(1, at // SLOWLY) <= count:
        at += max(1, at // SLOWLY)
    return at


@dataclass(frozen=True)
class Tiles:
    """An area of rows x cols cells cut into tiles of ``side`` x ``side``, less at the far ends."""

    rows: int
    cols: int
    side: int

    @cached_property
    def across(self) -> int:
        return -(-self.cols // self.side)

    def near(self, cell: tuple[int, int], margin: int) -> Iterator[int]:
        """Numbers of the tiles with cells no more than ``margin`` rows and columns away."""
        ranges = []
        for at, size in zip(cell, (self.rows, self.cols), strict=True):
            first, last = max(at - margin, 0), min(at + margin, size - 1)
            ranges.append(range(first // self.side, last // self.side + 1))
        for i in ranges[0]:
            for j in ranges[1]:
                yield i * self.across + j

    def box(self, number: int, margin: int = 0) -> tuple[slice, slice]:
        """Rows and columns of a tile and so many cells around it."""
        i, j = divmod(number, self.across)
        sides = ((i * self.side, self.rows), (j * self.side, self.cols))
        down, across = (
            slice(max(at - margin, 0), min(at + self.side + margin, size)) for at, size in sides
        )
        return down, across


class LocalCopies(CopyForecaster):
    """Copies beside whatever else is believed of a large area, as fields.

    known    : the templates;  straight : chance that copies are the same way round
    objects  : what is outlined, by the tile in which it begins
    """

    def __init__(self, grid: Grid, layout: Blocks) -> None:
        super().__init__(grid)
        self.layout = layout
        side = layout.side * max(1, CORE // layout.side)
        self.tiles = Tiles(grid.rows, grid.cols, side)
        self.known: list[Template] = []
        self.straight = 0.5
        self.objects: dict[int, list[Template]] = {}
        self._anchor = 0
        self._forget()

    def _forget(self) -> None:
        """What was measured, and what copies say of it."""
        shape = (self.grid.rows, self.grid.cols)
        self.found, self.blank = np.zeros(shape, bool), np.zeros(shape, bool)
        self._told = NOTHING
        self._near: set[int] = set()
        self._new: list[Cell] = []
        self.near_blocks = np.zeros(self.layout.count, bool)
        self._said: dict[int, NDArray[np.float32]] = {}
        self._odds: dict[int, float] = {}
        self._stamps: dict[tuple[int, int], Stamps] = {}
        sizes = np.array([len(self.layout.cells(b)) for b in range(self.layout.count)])
        kinds, label = np.unique(sizes, return_inverse=True)
        self._target, self._free = (
            Stored.shared(label, [np.full(n, value) for n in kinds]) for value in (0.0, 1.0)
        )
        self._room: LocalRoom | None = None

    # -- belief ----------------------------------------------------------------------------

    def belief(self, others: Array, observations: Observations) -> Copied:
        self._tell(observations)
        plain, free = field_of(others), observations.available
        if self._new:
            self._renew(plain, free)
        w = self.weight
        if not self._said:
            return Copied(others, others, others, False, w, self.room(), self.proven)
        both, copies = (as_array(self._heard(plain, weight)) for weight in (w, 1.0))
        return Copied(both, copies, others, True, w, self.room(), self.proven)

    def _renew(self, others: Field, free: NDArray[np.bool_]) -> None:
        """What copies say where something was measured; templates, where these are due, and then
        what they say of all that was measured."""
        cells, self._new = self._new, []
        dirty, around = self._around(cells, self.margin), self._around(cells, MARGIN)
        if self._room is not None:
            self._room.forget(dirty)
        self._compute(dirty, free)
        believed = self._heard(others, 1.0)
        for number in around:
            self._look(number, believed)
        anchor = renewed_at(len(self._told))
        if anchor != self._anchor:
            self._anchor = anchor
            if self._choose():
                self._stamps.clear()
                self._room = None
                self._compute(sorted(self._near), free)

    def room(self) -> LocalRoom | None:
        """Where further ones may lie, as of what was told last."""
        if not self.known:
            return None
        if self._room is None:
            self._room = LocalRoom(self, self.known, self.straight)
        return self._room

    def _heard(self, others: Field, w: float) -> Field:
        r"""Of every cell :math:`p + w (\min(1, t + (1 - c) p) - p)`: p by others, t and c by copies
        (``copies.spoken``)."""
        count, inner = len(others.parts), others.combine

        def combine(*values: Array) -> Array:
            p, (target, free) = inner(*values[:count]), values[count:]
            return np.asarray(p + w * (np.clip(target + free * p, 0.0, 1.0) - p))

        return Field(self.layout, (*others.parts, self._target, self._free), combine)

    def _tell(self, observations: Observations) -> None:
        """Note new measurements, and which tiles they concern."""
        told = Told.of(observations)
        if not told.continues(self._told):
            self._forget()
        for i in range(len(self._told), len(told)):
            cell = self.grid.at(int(told.index[i]))
            self.found[cell] = told.values[i] > 0
            self.blank[cell] = not self.found[cell]
            self._new.append(cell)
        self._told = told
        for number in set(self._around(self._new, MARGIN)) - self._near:
            self._near.add(number)
            self.near_blocks[[block for block, _ in self.blocks(number)]] = True

    def _around(self, cells: Iterable[Cell], margin: int) -> list[int]:
        """Tiles with any of these cells no more than so many rows and columns away."""
        return sorted({number for cell in cells for number in self.tiles.near(cell, margin)})

    @property
    def margin(self) -> int:
        """Cells around a tile that are looked at to say what copies say of it."""
        return max((max(one.target.shape) for one in self.known), default=0) + BESIDE

    def part(self, number: int, margin: int) -> tuple[tuple[slice, slice], Part]:
        """A tile and what is around it: its rows and columns, and that as a part of the area."""
        box = self.tiles.box(number, margin)
        shape = (box[0].stop - box[0].start, box[1].stop - box[1].start)
        corner = (box[0].start, box[1].start)
        return box, Part(corner, shape, (self.grid.rows, self.grid.cols))

    def inside(self, number: int) -> tuple[slice, slice]:
        """Rows and columns of a tile in its part."""
        core, around = self.tiles.box(number), self.tiles.box(number, self.margin)
        down, across = (
            slice(a.start - b.start, a.stop - b.start) for a, b in zip(core, around, strict=True)
        )
        return down, across

    @torch.inference_mode()
    def _compute(self, numbers: Sequence[int], free: NDArray[np.bool_]) -> None:
        """What copies say of these tiles."""
        if not self.known and not self._said:
            return
        changed = set()
        for number in numbers:
            before = self._said.pop(number, None)
            self._odds.pop(number, None)
            said = self._computed(number)
            if said is not None:
                self._said[number] = said
            if said is not None or before is not None:
                changed.add(number)
        self._store(changed, free)

    def _computed(self, number: int) -> NDArray[np.float32] | None:
        """(2, rows, cols) t and 1 - c of a tile; None where copies say nothing."""
        box, part = self.part(number, self.margin)
        found, blank = self.found[box], self.blank[box]
        if not self.known or not found.any():
            return None
        if part.shape not in self._stamps:
            self._stamps[part.shape] = Stamps(self.known, part.shape)
        fit = self._stamps[part.shape].fit(found, blank, part)
        down, across = self.inside(number)

        def begins_here(row: int, col: int) -> bool:
            return bool(down.start <= row < down.stop and across.start <= col < across.stop)

        own = self.known[0].place(part)
        self._odds[number] = turn_odds(fit, own, found, begins_here)
        target, counts = (table[down, across] for table in spoken(fit, self.straight))
        speak = (counts > CLEAR) & ~(found | blank)[down, across]
        if not speak.any():
            return None
        said = np.stack([np.where(speak, target, 0.0), np.where(speak, 1 - counts, 1.0)])
        return said.astype(np.float32)

    def blocks(self, number: int) -> Iterator[tuple[int, tuple[slice, slice]]]:
        """Blocks of a tile, and their rows and columns in it."""
        tile = self.tiles.box(number)
        for block in self.layout.between(*((side.start, side.stop) for side in tile)):
            down, across = (
                slice(own.start - side.start, own.stop - side.start)
                for own, side in zip(self.layout.box(block), tile, strict=True)
            )
            yield block, (down, across)

    def _store(self, numbers: set[int], free: NDArray[np.bool_]) -> None:
        """Put what copies say of tiles into the fields."""
        target: dict[int, Array] = {}
        others: dict[int, Array] = {}
        open_to: dict[int, NDArray[np.bool_]] = {}
        for number in sorted(numbers):
            said = self._said.get(number)
            for block, inside in self.blocks(number):
                open_to[block] = self.layout.taken(block, free)
                if said is None:
                    nothing = np.zeros(len(open_to[block]))
                    target[block], others[block] = nothing, nothing + 1
                else:
                    target[block], others[block] = said[:, *inside].reshape(2, -1).astype(float)
        self._target = self._target.replaced(target, open_to)
        self._free = self._free.replaced(others, open_to)

    # -- templates -------------------------------------------------------------------------

    def _look(self, number: int, believed: Field) -> None:
        """What is outlined and begins in a tile."""
        self.objects.pop(number, None)
        box, part = self.part(number, MARGIN)
        found, blank = self.found[box], self.blank[box]
        if found.sum() < LEAST_FINDS:
            return
        p = np.where(found, 1.0, np.where(blank, 0.0, believed.region(*box)))
        core = self.tiles.box(number)
        here = [
            one
            for one in outlined(p, found, blank, part)
            if all(s.start <= at + 1 < s.stop for at, s in zip(one.corner, core, strict=True))
        ]
        if here:
            self.objects[number] = here

    def _choose(self) -> bool:
        """The best templates, and how far copies are turned; whether they are others now."""
        known = best(one for number in sorted(self.objects) for one in self.objects[number])
        straight = float(expit(sum(self._odds[number] for number in sorted(self._odds))))
        same = len(known) == len(self.known) and all(map(_alike, known, self.known))
        if same and abs(straight - self.straight) < SAME:
            return False
        self.known, self.straight = known, straight
        return True

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Templates, objects, and what copies say of tiles, so that it is not computed again."""
        tiles = sorted(self._said)
        said = np.zeros((len(tiles), 2, self.tiles.side, self.tiles.side), np.float32)
        for i, number in enumerate(tiles):
            own = self._said[number]
            said[i, :, : own.shape[1], : own.shape[2]] = own
        numbered = [
            (number, one) for number in sorted(self.objects) for one in self.objects[number]
        ]
        odds = sorted(self._odds.items())
        return {
            **super().state(),
            "copies/at": torch.tensor([len(self._told), self._anchor]),
            "copies/straight": torch.tensor([self.straight], dtype=torch.float64),
            "copies/tiles": torch.tensor(tiles, dtype=torch.int64),
            "copies/said": torch.from_numpy(said),
            "copies/judged": torch.tensor([number for number, _ in odds], dtype=torch.int64),
            "copies/odds": torch.tensor([value for _, value in odds], dtype=torch.float64),
            **_packed("copies/known", [(0, one) for one in self.known]),
            **_packed("copies/objects", numbered),
        }

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self._forget()
        told, self._anchor = state["copies/at"].tolist()
        self.straight = float(state["copies/straight"][0])
        self.known = [one for _, one in _unpacked("copies/known", state)]
        self.objects = {}
        for number, one in _unpacked("copies/objects", state):
            self.objects.setdefault(number, []).append(one)
        self._tell(observations)
        self._new = self._new[told:]
        judged = state["copies/judged"].tolist()
        self._odds = dict(zip(judged, state["copies/odds"].tolist(), strict=True))
        tiles = state["copies/tiles"].tolist()
        for number, own in zip(tiles, state["copies/said"].numpy(), strict=True):
            down, across = self.tiles.box(number)
            rows, cols = down.stop - down.start, across.stop - across.start
            self._said[number] = np.array(own[:, :rows, :cols])
        self._store(set(self._said), observations.available)


def _alike(one: Template, other: Template) -> bool:
    """Whether two templates are the same."""
    tables = ((one.target, other.target), (one.counts, other.counts))
    same = all(np.array_equal(a, b) for a, b in tables)
    return same and (one.corner, one.weight) == (other.corner, other.weight)


def _packed(name: str, numbered: Sequence[tuple[int, Template]]) -> dict[str, Tensor]:
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


def _unpacked(name: str, state: dict[str, Tensor]) -> Iterator[tuple[int, Template]]:
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
