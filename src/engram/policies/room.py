r"""Room: where a target of the kind that was outlined may lie, although nobody has touched it.

A search that looks for its next find need not fill gaps in which no such target fits. With the
templates e of what was outlined (``templates``), turned by g, a copy with its corner at s is
possible where no find lies in its body, and as far as the blanks in it allow,

.. math::  w_{e,g}(s) = v_e\, q_g\, i(s)^2 \prod_{\text{blank } q} \min\Bigl(1,
           \frac{1 - T_{e,g}(q - s)}{1 - b}\Bigr) ,

:math:`v_e` being what a template counts, :math:`q_g` the chance of its turn, b the chance of target
of a cell that is part of none, and i(s) the share of the copy that lies inside the area: one that
is cut is worth so much less, and is so much less likely to be one. The room of a cell c is

.. math::  R(c) = \sum_{e,g,s} w_{e,g}(s)\, T_{e,g}(c - s) ,

as a share of the largest of all cells that are open and not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from engram.policies.forecast import Array
from engram.policies.outlines import Mask
from engram.policies.templates import CLEAR, Places, Template, turned, ways

STRAY = 0.03
"""b, the chance of target of a cell that is part of no copy."""
CUT_POWER = 2.0
"""Power of the share of a copy that lies inside the area."""


class Bodies:
    """Templates in all their turns, ready to be asked for room in parts of an area (rows, cols).

    known : templates;  straight : chance that copies are the same way round
    """

    def __init__(self, known: Sequence[Template], straight: float, shape: tuple[int, int]) -> None:
        self.places = places = Places.of(known, shape)
        target, counts = places.tables(known)
        allowed = np.minimum(np.clip(1 - target, CLEAR, 1.0) / (1 - STRAY), 1.0)
        said, body, miss = turned(np.stack([target, target > 0.5, counts * np.log(allowed)]))
        self._cells = body.sum((-1, -2), keepdims=True)
        trust = np.exp([one.weight for one in known])
        self._weight = ways(straight) * trust[:, None, None, None]
        self._body, self._miss = places.mirrored(body), places.mirrored(miss)
        self._said = places.transform(said)
        self.untouched = float((target.sum((1, 2)) * trust).sum())
        """R of a cell that is far from the border and from all that was measured."""

    def room(self, found: Mask, blank: Mask, area: Mask) -> Array:
        """(rows, cols) R of open cells that are not measured; 0 of all others."""
        places = self.places
        there = places.transform(np.stack([found, blank, area]))
        held = places.at_places(there[0] * self._body)
        inside = places.at_places(there[2] * self._body) / self._cells
        against = places.at_places(there[1] * self._miss)
        weight = np.where(held < 0.5, np.exp(np.minimum(against, 0.0)), 0.0)
        weight *= np.clip(inside, 0.0, 1.0) ** CUT_POWER * self._weight
        room = places.on_cells((places.transform(weight) * self._said).sum((0, 1)))
        return np.where(area & ~found & ~blank, np.maximum(room, 0.0), 0.0)


class Spacious(Protocol):
    """Says how far doubt counts where another copy may lie, and where none can."""

    def doubt(self, doubt: Array, w: float) -> Array:
        """(n_cells,) doubt where there is room, less of it elsewhere as far as room counts, w."""
        ...


@dataclass(frozen=True, eq=False)
class Room:
    """What room there is, computed when somebody asks.

    known        : templates;  straight : chance that copies are the same way round
    found, blank : (rows, cols) what was measured;  area : (rows, cols) cells that are open
    """

    known: Sequence[Template]
    straight: float
    found: Mask
    blank: Mask
    area: Mask

    @cached_property
    @torch.inference_mode()
    def share(self) -> Array:
        """(rows, cols) R of open cells that are not measured, 1 at the most; 0 of all others."""
        shape = (self.found.shape[0], self.found.shape[1])
        room = Bodies(self.known, self.straight, shape).room(self.found, self.blank, self.area)
        largest = float(room.max())
        return room / largest if largest > 0 else np.ones_like(room)

    def doubt(self, doubt: Array, w: float) -> Array:
        return np.asarray(doubt * (1 - w + w * self.share.ravel()))
