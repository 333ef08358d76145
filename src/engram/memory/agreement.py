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
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engram.symmetry import TURNS, turned

REACH = 7
"""r: cells around two cells that are compared."""
BOTH_FOUND, BOTH_BLANK, DIFFERENT = 1.2, 0.6, 2.0
"""a, b and c, in nats."""
NEAR = 4
"""Cells, along rows and along columns, within which nothing is compared."""
SHARPNESS = (1, 2)
"""tau, from 1 on."""
FLOOR, SCALE = 1e-2, 8.0
"""epsilon and s."""
MOST = 38.0
"""Nats from which on agreement is no surer; twice as much is still a number."""
CHANNELS = 4 * len(SHARPNESS)
"""Numbers a cell."""
SIDE = 2 * REACH + 1
"""Cells a side of what is compared."""


def nothing_said(sharpness: int) -> float:
    """What a cell is told that agrees with nothing."""
    return math.log(FLOOR) / sharpness / SCALE


@torch.no_grad()
def agreement(values: Tensor, weight: Tensor) -> Tensor:
    """(B, CHANNELS, H, W) of values times weight and weight, both (B, H, W), values in [-1, 1].

    For each tau: finds and blanks the same way round, then finds and blanks in all turns. An area
    that is another of the batch, turned, is told the same, turned.
    """
    found = ((weight + values) / 2).clamp(min=0).minimum(weight)
    said = [nothing_said(s) for s in SHARPNESS for _ in range(4)]
    out = torch.tensor(said, dtype=values.dtype, device=values.device)[None, :, None, None]
    out = out.expand(-1, -1, *values.shape[1:]).repeat(len(values), 1, 1, 1)
    both, alike = torch.stack([found, weight], dim=1), defaultdict[tuple[int, int], list[int]](list)
    counts = torch.count_nonzero(both.flatten(2), dim=2).tolist()
    for number, (finds, cells) in enumerate(counts):
        if not finds:
            continue
        before = alike[finds, cells]
        seen = next(
            ((n, k) for n in before if (k := _turn(both[n], both[number])) is not None), None
        )
        if seen is None:
            with torch.autocast(values.device.type, enabled=False):  # nats in half are no nats
                _compare(found[number], weight[number], out[number].flatten(1))
            before.append(number)
        else:
            out[number] = turned(out[seen[0]], seen[1])
    return out


def _turn(one: Tensor, other: Tensor) -> int | None:
    """The symmetry that brings one area (2, H, W) to another, or None."""
    square = one.shape[-1] == one.shape[-2]
    ways = range(TURNS) if square else range(1)
    return next((k for k in ways if torch.equal(turned(one, k), other)), None)


def _compare(found: Tensor, weight: Tensor, out: Tensor) -> None:
    """One area (H, W) into (CHANNELS, H W), where something can be said."""
    blank, width = weight - found, found.shape[1]
    near = F.max_pool2d(found[None], SIDE, 1, REACH).flatten() > 0
    asked = torch.nonzero(near & (weight.flatten() < 1)).flatten()
    known = torch.nonzero(near & (weight.flatten() > 0)).flatten()
    if not len(asked):
        return
    around = F.unfold(torch.stack([found, blank])[:, None], SIDE, padding=REACH)  # (2, D, H W)
    f, o = around[..., known]
    alike = torch.stack([BOTH_FOUND * f - DIFFERENT * o, BOTH_BLANK * o - DIFFERENT * f])
    alike = alike[:, _turns().to(f.device)].transpose(1, 2)  # (2, D, 8, known)
    nats = around[..., asked].flatten(0, 1).T @ alike.flatten(0, 1).flatten(1)
    rows, cols = (part[:, None] - other for part, other in _pairs(asked, known, width))
    close = torch.maximum(rows.abs(), cols.abs()) <= NEAR
    odds = nats.view(len(asked), TURNS, len(known)).clamp_(max=MOST).exp_()
    odds.masked_fill_(close[:, None], 0.0)
    shown = torch.stack([found.flatten()[known], blank.flatten()[known]], dim=1)
    sharp = torch.ones(())
    for i, sharpness in enumerate(SHARPNESS):
        sharp = sharp * odds  # a power by multiplying takes a third of the time
        both = torch.stack([sharp[:, 0], sharp.sum(dim=1)]) @ shown  # (2, asked, 2)
        said = (both + FLOOR).log() / (sharpness * SCALE)
        out[4 * i : 4 * i + 4, asked] = said.transpose(1, 2).flatten(0, 1)


def _pairs(asked: Tensor, known: Tensor, width: int) -> list[tuple[Tensor, Tensor]]:
    """Rows of both, and columns of both."""
    return [(asked // width, known // width), (asked % width, known % width)]


@cache
def _turns() -> Tensor:
    """(8, D) the place that each symmetry brings to each place of what is compared."""
    places = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    return torch.stack([turned(places, k).flatten() for k in range(TURNS)])
