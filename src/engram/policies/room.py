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

import numpy as np
import torch

from engram.policies.forecast import Array
from engram.policies.outlines import Mask
from engram.policies.templates import CLEAR, Places, Template, turned, ways

STRAY = 0.03
"""b, the chance of target of a cell that is part of no copy."""
CUT_POWER = 2.0
"""Power of the share of a copy that lies inside the area."""


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
        rows, cols = self.found.shape
        places = Places.of(self.known, (rows, cols))
        target, counts = places.tables(self.known)
        allowed = np.minimum(np.clip(1 - target, CLEAR, 1.0) / (1 - STRAY), 1.0)
        said, body, miss = turned(np.stack([target, target > 0.5, counts * np.log(allowed)]))
        there = places.transform(np.stack([self.found, self.blank, self.area]))
        bodies = places.mirrored(body)
        held = places.at_places(there[0] * bodies)
        inside = places.at_places(there[2] * bodies) / body.sum((-1, -2), keepdims=True)
        against = places.at_places(there[1] * places.mirrored(miss))
        trust = np.exp([one.weight - self.known[0].weight for one in self.known])
        weight = np.where(held < 0.5, np.exp(np.minimum(against, 0.0)), 0.0)
        weight *= np.clip(inside, 0.0, 1.0) ** CUT_POWER * ways(self.straight)
        weight *= trust[:, None, None, None]
        room = places.on_cells((places.transform(weight) * places.transform(said)).sum((0, 1)))
        free = self.area & ~self.found & ~self.blank
        room = np.where(free, np.maximum(room, 0.0), 0.0)
        largest = float(room.max())
        return room / largest if largest > 0 else np.ones_like(room)
