r"""How measurements agree with themselves, shifted and turned: what a network is told to copy by.

A cell x lies in its copy of a figure as a measured cell z lies in another, perhaps turned by g
(one of the eight symmetries of a square), as far as what was measured around the two is alike,

.. math::

    A_g(x, z) = \sum_{|d| \le r} \bigl[ a\, f_{x+d} f_{z+gd} + b\, o_{x+d} o_{z+gd}
        - c\, (f_{x+d} o_{z+gd} + o_{x+d} f_{z+gd}) \bigr] ,

f finds and o blanks, each counted with its weight, 0 where nothing was measured. So many nats speak
for what was found at z to be at x too. The network is told, for :math:`\tau = 1, 2`, with g the
identity alone and with all eight,

.. math::

    \tfrac1s \Bigl[ \tfrac1\tau \log \Bigl( \epsilon + \sum_{z, g} f_z\, e^{\tau A_g(x, z)}
    \Bigr) \Bigr] ,

and the same with :math:`o_z`: eight numbers a cell. A z within ``NEAR`` cells of x is left out:
that a figure looks like itself, moved a little, the network knows. Cells far from every find have
no say, and nothing is said of them.

A search measures one cell after another, and only pairs with the new cell around one of them change
(``memory.comparing``): the latest areas are kept and followed. What is said does not depend on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import accumulate
from threading import Lock

import torch
from torch import Tensor

from engram.memory.comparing import (
    SHARPNESS,
    SUMS,
    Comparison,
    compared_once,
    heard,
    near_finds,
    plain,
)
from engram.symmetry import TURNS, turned

FLOOR, SCALE = 1e-2, 8.0
"""epsilon and s."""
CHANNELS = 2 * SUMS
"""Numbers a cell."""
KEPT, NUMBERS = 8, 3 * 2**24
"""Areas that are kept to be followed, at the most, and numbers that are kept of them together (of
4 bytes; a quarter more may be reserved). An area of 64 x 64 cells with 1,024 measured takes all."""


def nothing_said(sharpness: int) -> float:
    """What a cell is told that agrees with nothing."""
    return math.log(FLOOR) / sharpness / SCALE


@torch.inference_mode(mode=False)
@torch.no_grad()
def agreement(values: Tensor, weight: Tensor, size: tuple[int, int] | None = None) -> Tensor:
    """(B, CHANNELS, H, W) of values times weight and weight, both (B, H, W), values in [-1, 1].

    size : rows and columns of the area, where what is given has a border around it to the right and
        below; nothing is said of that

    For each tau: finds and blanks the same way round, then finds and blanks in all turns. An area
    that is another of the batch, turned, is told the same, turned.
    """
    height, width = size or (values.shape[1], values.shape[2])
    said = [nothing_said(s) for s in SHARPNESS for _ in range(4)]
    out = torch.tensor(said, dtype=values.dtype, device=values.device)[None, :, None, None]
    out = out.expand(-1, -1, *values.shape[1:]).repeat(len(values), 1, 1, 1)
    values, weight, inner = (x[..., :height, :width] for x in (values, weight, out))
    found = ((weight + values) / 2).clamp(min=0).minimum(weight)
    first, turn = _alike(torch.stack([found, weight], dim=1))
    alone = sum(n == number for number, n in enumerate(first)) == 1
    for number, n in enumerate(first):
        if n == number:
            with torch.autocast(values.device.type, enabled=False):  # nats in half are no nats
                _say(found[n], weight[n], inner[n], keep=alone)
        elif n is not None:
            inner[number] = turned(inner[n], turn[number])
    return out


def _alike(areas: Tensor) -> tuple[list[int | None], list[int]]:
    """For each area (B, 2, H, W) of finds and weights the first that is the same turned, None
    where nothing was found, and the turn."""
    first, turn = list[int | None](), list[int]()
    seen = defaultdict[tuple[int, int], list[int]](list)
    counts = torch.count_nonzero(areas.flatten(2), dim=2).tolist()
    for number, (finds, cells) in enumerate(counts):
        before = seen[finds, cells]
        same = ((n, k) for n in before if (k := _turn(areas[n], areas[number])) is not None)
        n, k = next(same, (number, 0)) if finds else (None, 0)
        first.append(n)
        turn.append(k)
        if n == number:
            before.append(n)
    return first, turn


def _turn(one: Tensor, other: Tensor) -> int | None:
    """The symmetry that brings one area (2, H, W) to another, or None."""
    square = one.shape[-1] == one.shape[-2]
    ways = range(TURNS) if square else range(1)
    return next((k for k in ways if torch.equal(turned(one, k), other)), None)


def _say(found: Tensor, weight: Tensor, out: Tensor, *, keep: bool) -> None:
    """One area of finds and weights (H, W) into (CHANNELS, H, W), where something can be said; it
    is compared by the processor, wherever the network is. ``keep`` : it may be followed later."""
    device, (found, weight) = out.device, (x.float().cpu() for x in (found, weight))
    blank, told = weight - found, near_finds(found) & (weight < 1)
    if keep and plain(weight) and plain(found) and _takes(found, blank) <= NUMBERS:
        compared = _latest.followed(found, blank)
        odds = compared.says()  # (SUMS, 2, H, W)
        _latest.keep(compared)
    else:
        odds = compared_once(found, blank, told)
    for i, sharpness in enumerate(SHARPNESS):
        said = (odds[2 * i : 2 * i + 2] + FLOOR).log() / (sharpness * SCALE)
        part = out[4 * i : 4 * i + 4]
        part[:, told.to(device)] = said.flatten(0, 1)[:, told].to(part)


def _takes(found: Tensor, blank: Tensor) -> int:
    """Numbers that are kept of an area."""
    return len(heard(found, blank)) * (TURNS + SUMS) * found.numel()


class _Latest:
    """Areas that were compared lately, to be followed; whoever has one has it alone."""

    def __init__(self) -> None:
        self._kept, self._lock = list[Comparison](), Lock()

    def followed(self, found: Tensor, blank: Tensor) -> Comparison:
        """An area compared with itself; taken out, if it is one that was kept."""
        with self._lock:
            kept = next((c for c in self._kept if c.grows_to(found, blank)), None)
            self._kept = [c for c in self._kept if c is not kept]
        if kept is None:
            return Comparison(found, blank)
        kept.follow(found, blank)
        return kept

    def keep(self, compared: Comparison) -> None:
        """Keep an area for whoever measures in it next, and of others as many as there is room
        for, the latest first."""
        with self._lock:
            areas = [compared, *self._kept][:KEPT]
            taken = accumulate(area.numbers for area in areas)
            self._kept = [a for a, n in zip(areas, taken, strict=True) if n <= NUMBERS]


_latest = _Latest()
