r"""Objects that a search has outlined: what it can dream of.

Samples of the area given the measurements (the E-step) show what has been found and ways in which
it may go on where nobody has looked. An object is a connected part of a sample's target cells that
holds a few finds; it is cut out as an :class:`Outline`. With :math:`p_q` the share of samples that
have target in cell q, the expected number of wrong cells in and around it,

.. math::  u = \sum_q \min(p_q, 1 - p_q) ,

says how far it is outlined: 0 when all of its cells and all around it have been measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, find_objects, label

from engram.observation import Observations

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

EIGHT = np.ones((3, 3), bool)
"""The cells that touch a cell, by a side or a corner."""
LEAST_FINDS = 4
"""Measured targets that an object must hold."""
LOOSE = 0.35
"""Wrong cells that an outline may expect, as a share of its size (and one more)."""
SURE = 4.0
"""Wrong cells at which an outline counts e times less; with more it says nothing of turns."""
NUDGE = 2
"""Cells by which two shapes are moved against each other to compare them."""
ALIKE, BETTER = 0.7, 0.1
"""Overlap of two shapes that are the same way round; by how much turns have to improve it."""


@dataclass(frozen=True, eq=False)
class Outline:
    """One object as one sample has it.

    shape  : (h, w) its cells
    found  : targets measured in it
    unsure : wrong cells to be expected in it
    cut    : whether it reaches the border of the area, so that part of it may lie beyond
    """

    shape: Mask
    found: int
    unsure: float
    cut: bool

    @property
    def size(self) -> int:
        return int(self.shape.sum())

    @property
    def weight(self) -> float:
        """How much it counts: finds, as far as they are outlined."""
        return self.found * float(np.exp(-self.unsure / SURE))


def outlines(samples: Mask, observations: Observations) -> list[Outline]:
    """The objects of samples (P, rows, cols) that are outlined well enough to dream of.

    Every sample is true to the measurements: target in it is what was found and what may be.
    """
    finds = np.zeros(samples.shape[1:], bool)
    for item in observations:
        finds[item.cell] = item.outcome > 0
    chance = samples.mean(axis=0)
    wrong = np.minimum(chance, 1 - chance)
    return [
        outline
        for sample in samples
        for outline in _objects(sample, finds, wrong)
        if outline.unsure <= LOOSE * outline.size + 1
    ]


def _objects(sample: Mask, finds: Mask, wrong: Array) -> Iterator[Outline]:
    parts, _ = label(sample)
    for number, window in enumerate(find_objects(parts), start=1):
        body = parts == number
        found = int((finds & body).sum())
        if found >= LEAST_FINDS:
            unsure = float(wrong[binary_dilation(body, EIGHT)].sum())
            cut = any(
                side.start == 0 or side.stop == size
                for side, size in zip(window, sample.shape, strict=True)
            )
            yield Outline(body[window], found, unsure, cut)


def views(mask: NDArray[np.generic]) -> list[NDArray[np.generic]]:
    """The eight turns and mirrorings of a table of cells, itself first."""
    turns = [np.rot90(mask, k) for k in range(4)]
    return turns + [np.fliplr(turn) for turn in turns]


def overlap(a: Mask, b: Mask) -> float:
    """Largest intersection over union of two shapes moved against each other a little."""
    height, width = (max(a.shape[i], b.shape[i]) + 2 * NUDGE for i in (0, 1))
    still = np.zeros((height, width), bool)
    still[NUDGE : NUDGE + a.shape[0], NUDGE : NUDGE + a.shape[1]] = a
    best = 0.0
    for down in range(2 * NUDGE + 1):
        for right in range(2 * NUDGE + 1):
            moved = np.zeros_like(still)
            part = moved[down : down + b.shape[0], right : right + b.shape[1]]
            part |= b[: part.shape[0], : part.shape[1]]
            best = max(best, float((still & moved).sum() / (still | moved).sum()))
    return best


def turning(found: Sequence[Outline]) -> float:
    """Chance that the next object is turned against those found, as far as these tell.

    Objects outlined well and entirely inside are compared in pairs, as they lie and in all turns.
    """
    clear = [o.shape for o in found if o.unsure <= SURE and not o.cut]
    pairs = list(combinations(clear, 2))
    if not pairs:
        return 0.5
    straight = float(np.mean([overlap(a, b) for a, b in pairs]))
    turned = float(np.mean([max(overlap(a, v) for v in views(b)) for a, b in pairs]))  # type: ignore[arg-type]
    if turned - straight > BETTER:
        return 0.95
    return 0.1 if straight > ALIKE else 0.5
