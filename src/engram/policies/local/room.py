"""Room for further copies (``policies.room``) in a large area: of tiles, where the best cells are
looked for.

Room is a share of that of land far from everything; tiles without a measurement in or around them
have all of it. Once there are none, and all land is measured here and there, there is little room
anywhere: then doubt counts by the share of the largest there is, as in small areas, so that the
largest gaps still stand out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import torch

from engram.blocks import Array, Field, Stored, as_array, field_of
from engram.policies.local.tiles import within
from engram.policies.room import Bodies
from engram.policies.templates import Template

if TYPE_CHECKING:
    from engram.policies.local.copies import LocalCopies

ALL = 0.99
"""Share from which on a cell has all the room there can be."""


class LocalRoom:
    """What room there is in the area of ``copies``, for these templates, as of what was told last.

    relative : doubt counts by shares of the largest room there is; otherwise of untouched land's

    Shares of tiles are kept until something is measured around them.
    """

    def __init__(
        self,
        copies: LocalCopies,
        known: Sequence[Template],
        straight: float,
        *,
        relative: bool = True,
    ) -> None:
        self._copies, self.known, self.straight = copies, known, straight
        self.relative = relative
        self._bodies: dict[tuple[int, int], Bodies] = {}
        self._shares: dict[int, Array] = {}
        self._high = np.ones(copies.layout.count)

    def forget(self, numbers: Iterable[int]) -> None:
        """The shares of these tiles."""
        for number in numbers:
            if self._shares.pop(number, None) is not None:
                self._high[[block for block, _ in self._copies.blocks(number)]] = 1.0

    @torch.inference_mode()
    def share(self, number: int) -> Array:
        """(rows, cols) of a tile."""
        if number not in self._shares:
            copies = self._copies
            core = copies.tiles.box(number)
            box = copies.around(core)
            part = copies.part(box)
            if part.shape not in self._bodies:
                self._bodies[part.shape] = Bodies(self.known, self.straight, part.shape)
            bodies, open_cells = self._bodies[part.shape], ~copies.grid.closed[box]
            room = bodies.room(copies.found[box], copies.blank[box], open_cells)
            share = np.minimum(room[within(core, box)] / bodies.untouched, 1.0)
            for block, inside in copies.blocks(number):
                self._high[block] = share[inside].max()
            self._shares[number] = share
        return self._shares[number]

    def largest(self) -> float:
        """The largest share of any cell, 1 while a part of the area is untouched. Tiles are looked
        at no further than one that has all there can be."""
        copies = self._copies
        if copies.untouched:
            return 1.0
        largest = 0.0
        for number in sorted(copies.near, key=self._shares.__contains__, reverse=True):
            largest = max(largest, float(self.share(number).max()))
            if largest > ALL:
                return 1.0
        return largest or 1.0

    def doubt(self, doubt: Array, w: float) -> Array:
        field = field_of(doubt)
        count, inner = len(field.parts), field.combine
        largest = self.largest() if self.relative else 1.0

        def combine(*values: Array) -> Array:
            share = np.minimum(values[count] / largest, 1.0)
            return np.asarray(inner(*values[:count]) * (1 - w + w * share))

        return as_array(Field(field.layout, (*field.parts, self._stored()), combine))

    def _stored(self) -> Stored:
        """The share of every cell; where it is not known yet, no more than 1."""
        copies = self._copies
        label = np.where(copies.near_blocks, -1, 0)
        least = np.zeros(copies.layout.count)
        return Stored(Shares(self, copies), label, self._high.copy(), least)


class Shares(Sequence[Array]):
    """The shares of the cells of every block, computed when somebody looks."""

    def __init__(self, room: LocalRoom, copies: LocalCopies) -> None:
        self._room, self._copies = room, copies

    def __len__(self) -> int:
        return self._copies.layout.count

    @overload
    def __getitem__(self, block: int) -> Array: ...
    @overload
    def __getitem__(self, block: slice) -> Sequence[Array]: ...
    def __getitem__(self, block: int | slice) -> Array | Sequence[Array]:
        if isinstance(block, slice):
            return [self[number] for number in range(*block.indices(len(self)))]
        copies = self._copies
        rows, cols = copies.layout.box(block)
        if not copies.near_blocks[block]:
            return np.ones((rows.stop - rows.start) * (cols.stop - cols.start))
        number = next(copies.tiles.near((rows.start, cols.start), 0))
        return self._room.share(number)[dict(copies.blocks(number))[block]].ravel()
