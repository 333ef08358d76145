"""Copies of what was outlined (``policies.copies``) in a large area.

What copies say of a cell follows from the templates and from what was measured around it, so it is
kept by tiles: each is computed from the measurements in it and around it, ``BESIDE`` cells farther
than any copy that touches it reaches. What concerns all tiles at once, the three best templates and
how far copies are turned, changes at few moments: where other templates are much better, and, by
less, when the measurements have grown by a tenth. All tiles are computed again where that is so;
otherwise a single measurement changes what copies say of the cells around it alone.

Objects that are outlined are looked for where something was measured, in what is believed with
copies, twice where much was measured at once, so that partial outlines complete each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from engram.blocks import Field, Stored, as_array, field_of
from engram.grid import Grid
from engram.layout import Blocks
from engram.observation import Observations
from engram.policies.copies import PASSES, Copied, CopyForecaster, Fit, Stamps, spoken, turn_odds
from engram.policies.forecast import Array
from engram.policies.local.room import LocalRoom
from engram.policies.local.tiles import Box, Cell, Tiles, within
from engram.policies.local.told import NOTHING, Told
from engram.policies.templates import (
    CLEAR,
    LARGEST,
    LEAST_FINDS,
    Part,
    Template,
    best,
    folded,
    outlined,
    packed,
    unpacked,
)

CORE = 32
"""Cells a side of a tile, at least."""
BESIDE = 2
"""Cells around the copies that touch a tile that are looked at as well."""
MARGIN = LARGEST + 2 + BESIDE
"""Cells around a tile that are looked at, at the most."""
OBJECTS = (2, LARGEST + 2)
"""Cells before and behind a tile that are looked at for objects that begin in it."""
NOTHING_SAID = np.array([0, 1], np.float32)[:, None, None]
"""t and 1 - c of cells that copies say nothing of."""
ANOTHER, MUCH = 0.15, 0.5
"""Change of what a template says of a cell, in parts of what the best says, from which on it is
another when templates are due to be chosen, and at any time."""
SLOWLY = 10
"""Templates are chosen anew when the measurements have grown by one in so many."""
TURNED = 0.02
"""Change of the chance that copies are not turned below which nothing is computed anew."""


def renewed_at(count: int) -> int:
    """The last number of measurements, of so many, at which templates are chosen."""
    at = 0
    while at + max(1, at // SLOWLY) <= count:
        at += max(1, at // SLOWLY)
    return at


class LocalCopies(CopyForecaster):
    """Copies beside whatever else is believed of a large area, as fields.

    known    : the templates, those that look the same as one;  straight : chance that copies are
        the same way round
    objects  : what is outlined, by the tile in which it begins
    near     : tiles with a measurement in or around them
    relative_room : room is a share of the largest there is (``local.room``)
    """

    def __init__(self, grid: Grid, layout: Blocks, *, relative_room: bool = True) -> None:
        super().__init__(grid)
        self.layout, self._relative_room = layout, relative_room
        side = layout.side * max(1, CORE // layout.side)
        self.tiles = Tiles(grid.rows, grid.cols, side)
        rows, cols = np.nonzero(~grid.closed)
        self._open = set(np.unique(rows // side * self.tiles.across + cols // side).tolist())
        self._chosen: list[Template] = []
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
        self.near: set[int] = set()
        self._new: list[Cell] = []
        self._stale: set[int] = set()
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
        dirty = self._around(cells, self.margin)
        self._stale.update(dirty)
        if self._room is not None:
            self._room.forget(dirty)
        anchor = renewed_at(len(self._told))
        due, self._anchor = anchor != self._anchor, anchor
        if due or len(cells) > 1:
            self._compute(self._stale, free)
        else:
            self._compute_around(cells[0], free)
        for _ in range(PASSES if len(cells) > 1 else 1):
            believed = self._heard(others, 1.0)
            for number in self._around(cells, *OBJECTS):
                self._look(number, believed)
            if not self._choose(ANOTHER if due else MUCH):
                break
            self._stamps.clear()
            self._room = None
            self._compute(self.near, free)

    def room(self) -> LocalRoom | None:
        """Where further ones may lie, as of what was told last."""
        if not self.known:
            return None
        if self._room is None:
            self._room = LocalRoom(self, self.known, self.straight, relative=self._relative_room)
        return self._room

    @property
    def untouched(self) -> bool:
        """Whether there is a tile with open cells, within reach or not, and no measurement in or
        around it."""
        return bool(self._open - self.near)

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
        for number in set(self._around(self._new, MARGIN)) - self.near:
            self.near.add(number)
            self.near_blocks[[block for block, _ in self.blocks(number)]] = True

    def _around(self, cells: Iterable[Cell], before: int, behind: int | None = None) -> list[int]:
        """Tiles with any of these cells in their boxes."""
        each = (self.tiles.near(cell, before, behind) for cell in cells)
        return sorted({number for numbers in each for number in numbers})

    @property
    def margin(self) -> int:
        """Cells around a tile that are looked at to say what copies say of it."""
        return max((max(one.target.shape) for one in self.known), default=0) + BESIDE

    def part(self, box: Box) -> Part:
        """Rows and columns as a part of the area."""
        shape = (box[0].stop - box[0].start, box[1].stop - box[1].start)
        return Part((box[0].start, box[1].start), shape, (self.grid.rows, self.grid.cols))

    @torch.inference_mode()
    def _compute(self, numbers: Iterable[int], free: NDArray[np.bool_]) -> None:
        """What copies say of these tiles, and how far those that begin there are turned."""
        changed, numbers = set(), sorted(numbers)
        self._stale.difference_update(numbers)
        for number in numbers if self.known or self._said else ():
            before = self._said.pop(number, None)
            self._odds.pop(number, None)
            core = self.tiles.box(number)
            fit = self._fit(core)
            said = None if fit is None else self._spoken(fit, core)
            if fit is not None:
                self._odds[number] = self._turns(fit, core)
            if said is not None:
                self._said[number] = said
            if said is not None or before is not None:
                changed.add(number)
        self._store(changed, free)

    @torch.inference_mode()
    def _compute_around(self, cell: Cell, free: NDArray[np.bool_]) -> None:
        """What copies say of the cells around one, as far as a template reaches."""
        rows, cols = (
            slice(max(at - self.margin, 0), min(at + self.margin + 1, size))
            for at, size in zip(cell, (self.grid.rows, self.grid.cols), strict=True)
        )
        fit = self._fit((rows, cols))
        if fit is None:
            return
        said = self._spoken(fit, (rows, cols))
        changed = set(self._around([cell], self.margin))
        changed = changed if said is not None else changed & self._said.keys()
        for number in changed:
            tile = self.tiles.box(number)
            blank = np.broadcast_to(NOTHING_SAID, (2, *self.part(tile).shape))
            table = self._said.get(number, blank).copy()
            down, across = (
                slice(max(a.start, b.start), min(a.stop, b.stop))
                for a, b in zip((rows, cols), tile, strict=True)
            )
            both = NOTHING_SAID if said is None else said[:, *within((down, across), (rows, cols))]
            table[:, *within((down, across), tile)] = both
            self._said[number] = table
        self._store(changed, free)

    def _fit(self, core: Box) -> Fit | None:
        """How templates fit what was measured in and around some cells; None without any find."""
        box = self.around(core)
        found = self.found[box]
        if not self.known or not found.any():
            return None
        part = self.part(box)
        if part.shape not in self._stamps:
            self._stamps[part.shape] = Stamps(self.known, part.shape)
        return self._stamps[part.shape].fit(found, self.blank[box], part)

    def _turns(self, fit: Fit, core: Box) -> float:
        """Log-odds of being the same way round by the groups of finds that begin in the core."""
        box = self.around(core)
        down, across = within(core, box)

        def begins_here(row: int, col: int) -> bool:
            return bool(down.start <= row < down.stop and across.start <= col < across.stop)

        own = self.known[0].place(self.part(box))
        return turn_odds(fit, own, self.found[box], begins_here)

    def _spoken(self, fit: Fit, core: Box) -> NDArray[np.float32] | None:
        """(2, rows, cols) t and 1 - c of a core; None where copies say nothing of it."""
        inside = within(core, self.around(core))
        target, counts = (table[inside] for table in spoken(fit, self.straight))
        speak = (counts > CLEAR) & ~self.found[core] & ~self.blank[core]
        if not speak.any():
            return None
        said = np.stack([np.where(speak, target, 0.0), np.where(speak, 1 - counts, 1.0)])
        return said.astype(np.float32)

    def around(self, core: Box) -> Box:
        """Rows and columns of a core and what is looked at around it."""
        down, across = (
            slice(max(side.start - self.margin, 0), min(side.stop + self.margin, size))
            for side, size in zip(core, (self.grid.rows, self.grid.cols), strict=True)
        )
        return down, across

    def blocks(self, number: int) -> Iterator[tuple[int, Box]]:
        """Blocks of a tile, and their rows and columns in it."""
        tile = self.tiles.box(number)
        for block in self.layout.between(*((side.start, side.stop) for side in tile)):
            yield block, within(self.layout.box(block), tile)

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
        box = self.tiles.box(number, *OBJECTS)
        found, blank = self.found[box], self.blank[box]
        if found.sum() < LEAST_FINDS:
            return
        p = np.where(found, 1.0, np.where(blank, 0.0, believed.region(*box)))
        core = self.tiles.box(number)
        here = [
            one
            for one in outlined(p, found, blank, self.part(box))
            if all(s.start <= at + 1 < s.stop for at, s in zip(one.corner, core, strict=True))
        ]
        if here:
            self.objects[number] = here

    def _choose(self, enough: float) -> bool:
        """The best templates, and how far copies are turned; whether they are others now, by
        ``enough`` of a change."""
        objects = [one for number in sorted(self.objects) for one in self.objects[number]]
        straight = float(expit(sum(self._odds[number] for number in sorted(self._odds))))
        if _change(self._chosen, objects) < enough and abs(straight - self.straight) < TURNED:
            return False
        self._chosen, self.straight = best(objects), straight
        self.known = folded(self._chosen)
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
            "copies/stale": torch.tensor(sorted(self._stale), dtype=torch.int64),
            "copies/straight": torch.tensor([self.straight], dtype=torch.float64),
            "copies/tiles": torch.tensor(tiles, dtype=torch.int64),
            "copies/said": torch.from_numpy(said),
            "copies/judged": torch.tensor([number for number, _ in odds], dtype=torch.int64),
            "copies/odds": torch.tensor([value for _, value in odds], dtype=torch.float64),
            **packed("copies/chosen", [(0, one) for one in self._chosen]),
            **packed("copies/objects", numbered),
        }

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self._forget()
        told, self._anchor = state["copies/at"].tolist()
        self.straight = float(state["copies/straight"][0])
        self._chosen = [one for _, one in unpacked("copies/chosen", state)]
        self.known = folded(self._chosen)
        self.objects = {}
        for number, one in unpacked("copies/objects", state):
            self.objects.setdefault(number, []).append(one)
        self._tell(observations)
        self._new, self._stale = self._new[told:], set(state["copies/stale"].tolist())
        judged = state["copies/judged"].tolist()
        self._odds = dict(zip(judged, state["copies/odds"].tolist(), strict=True))
        tiles = state["copies/tiles"].tolist()
        for number, own in zip(tiles, state["copies/said"].numpy(), strict=True):
            down, across = self.tiles.box(number)
            rows, cols = down.stop - down.start, across.stop - across.start
            self._said[number] = np.array(own[:, :rows, :cols])
        self._store(set(self._said), observations.available)


def _change(chosen: Sequence[Template], objects: Sequence[Template]) -> float:
    """By how much templates that were chosen have changed, or are no longer among the best: the
    largest difference of what one says of a cell, or of what those of one rank count, in parts of
    what the best says."""
    top = max((one.weight for one in objects), default=0.0)
    there = {one.corner: replace(one, weight=one.weight - top) for one in objects}
    present = [there.get(one.corner) for one in chosen]
    changes = [0.0]
    for before, now in zip(chosen, present, strict=True):
        said = np.exp(before.weight) * before.target
        if now is None or not np.array_equal(now.counts, before.counts):
            changes.append(float(said.max()))
        else:
            changes.append(float(np.abs(said - np.exp(now.weight) * now.target).max()))
    kept = sorted((one.weight for one in present if one is not None), reverse=True)
    pairs = zip_longest((one.weight for one in best(objects)), kept, fillvalue=-np.inf)
    return max(changes + [float(np.exp(new) - np.exp(old)) for new, old in pairs])
