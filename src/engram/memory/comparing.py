r"""Every cell of one area compared with every measured cell, and followed as more are measured.

Agreement (``memory.agreement``) is counted here in whole numbers of ``UNIT`` nats, as are a, b and
c. With the terms of a pair of cells p, q

.. math::

    s(p, q) = a\, f_p f_q + b\, o_p o_q - c\, (f_p o_q + o_p f_q) ,
    \qquad A_g(x, z) = \sum_{|d| \le r} s(x + d, z + g d) ,

a new measurement u adds to the pairs of which it is in the one surrounding or in the other:

.. math::

    A_g(x, z) \mathrel{+}= s(u, z + g(u - x)) \ \text{for x around u,} \qquad
    A_g(x, z) \mathrel{+}= s(x + g^{-1}(u - z), u) \ \text{for z around u} ,

the first with u measured already, the second with u not measured yet. Whole numbers below
:math:`2^{24}` are exact in float32 in whatever order they are added, and the exponentials, of
``MOST`` units at the most, stand in a table, so an area that was followed cell by cell is the same,
to the last bit, as one that is compared anew. Reports in doubt are no whole numbers: areas with
them are compared anew every time, and so are those that are too large to be kept; of these only
the cells are compared that something is to be told (``compared_once``).
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engram.symmetry import TURNS, turned

REACH = 7
"""r: cells around two cells that are compared."""
SIDE = 2 * REACH + 1
"""Cells a side of what is compared."""
UNIT = 0.2
"""Nats of the smallest difference."""
BOTH_FOUND, BOTH_BLANK, DIFFERENT = 6, 3, 10
"""a, b and c, in units."""
NEAR = 4
"""Cells, along rows and along columns, within which nothing is compared."""
MOST, LEAST = 190, -150
"""Units from which on agreement is no surer (its square is still a number), and below which it is
nothing."""
SHARPNESS = (1, 2)
"""tau, from 1 on; powers are kept by multiplying."""
SUMS = 2 * len(SHARPNESS)
"""Sums of two cells that are kept: for each tau that of the identity and that of all turns."""
AT_ONCE = 2**17
"""Numbers that are calculated with at once: as many as stay near the processor."""
MORE = 4
"""Measurements by which an area may have grown, and still be followed."""


class Comparison:
    """All cells x of an area of plain reports compared with its measured cells z.

    found, blank : (H, W) finds and blanks, 0 or 1
    cells        : (n,) measured cells near a find, in no order
    units        : (n, TURNS, H, W) agreement
    sums         : (n, SUMS, H, W) its exponentials, 0 where x is near z

    The tables of both have room for up to a quarter more rows.
    """

    def __init__(self, found: Tensor, blank: Tensor) -> None:
        self.found, self.blank = found, blank
        self.cells = heard(found, blank)
        self.units = self._units = self._compared(self.cells)
        self.sums = self._sums = self._exponentials(self.units, self.cells)

    @property
    def numbers(self) -> int:
        """Numbers that are kept of it."""
        return self.units.numel() + self.sums.numel()

    def says(self) -> Tensor:
        r"""(SUMS, 2, H, W) :math:`\sum_z f_z e^{\tau A(x, z)}`, and the same with o."""
        order = self.cells.argsort()
        said = _shown(self.found, self.blank, self.cells[order]) @ self.sums[order].flatten(1)
        return said.view(2, SUMS, *self.found.shape).transpose(0, 1)

    def grows_to(self, found: Tensor, blank: Tensor) -> bool:
        """Whether an area of plain reports is this one with a few measurements more, or none."""
        if self.found.shape != found.shape:
            return False
        more = (self.found != found) | (self.blank != blank)
        return not (more & (self.found + self.blank > 0)).any() and int(more.sum()) <= MORE

    def follow(self, found: Tensor, blank: Tensor) -> None:
        """Become the area that this one ``grows_to``."""
        more = (self.found != found) | (self.blank != blank)
        for row, col in torch.nonzero(more).tolist():
            self._add(row, col, found[row, col], blank[row, col])
        known = heard(found, blank)
        new = known[~torch.isin(known, self.cells)]
        if len(new):
            units = self._compared(new)
            self.units, self._units = _with_rows(self._units, len(self.cells), units)
            sums = self._exponentials(units, new)
            self.sums, self._sums = _with_rows(self._sums, len(self.cells), sums)
            self.cells = torch.cat([self.cells, new])

    def _add(self, row: int, col: int, f: Tensor, o: Tensor) -> None:
        """One more measurement u at (row, col), f found and o blank."""
        before = _with(self.found, self.blank, f, o)
        self.found, self.blank = self.found.clone(), self.blank.clone()
        self.found[row, col], self.blank[row, col] = f, o
        after = _with(self.found, self.blank, f, o)
        (height, width), turns = self.found.shape, _turns()
        rows = slice(max(0, row - REACH), min(height, row + REACH + 1))
        cols = slice(max(0, col - REACH), min(width, col + REACH + 1))
        down, across = _numbers(height), _numbers(width)
        place = _place(row - down[rows, None], col - across[cols])  # of u - x
        beside = _around(after, SIDE)[self.cells // width, self.cells % width].flatten(1)  # (n, D)
        seen = turns[:, place]  # (TURNS, h, w)
        more = beside.index_select(1, seen.flatten())
        self.units[:, :, rows, cols] += more.view(-1, *seen.shape)
        changed = self.units[:, :, rows, cols]
        self.sums[:, :, rows, cols] = self._exponentials(changed, self.cells, rows, cols)
        off = torch.stack([row - self.cells // width, col - self.cells % width])  # u - z
        near = torch.nonzero((off.abs() <= REACH).all(dim=0)).flatten()
        back = turns.argsort(dim=1)[:, _place(*off[:, near])].T  # (near, TURNS)
        changed = self.units[near] + _around(before, height, width)[back // SIDE, back % SIDE]
        self.units[near] = changed
        self.sums[near] = self._exponentials(changed, self.cells[near])

    def _compared(self, cells: Tensor) -> Tensor:
        """(len(cells), TURNS, H, W) agreement of all cells with these."""
        height, width = self.found.shape
        if not len(cells):
            return self.found.new_empty(0, TURNS, height, width)
        both, kernels = (
            torch.stack([self.found, self.blank]),
            _kernels(self.found, self.blank, cells),
        )
        units = F.conv2d(both[None], kernels.view(-1, 2, SIDE, SIDE), padding=REACH)
        return units.view(-1, TURNS, height, width)

    def _exponentials(
        self, units: Tensor, cells: Tensor, rows: slice = slice(None), cols: slice = slice(None)
    ) -> Tensor:
        """(n, SUMS, h, w) of units (n, TURNS, h, w): cells and the part of the area that is
        given."""
        height, width = self.found.shape
        down = (_numbers(height)[rows] - (cells // width)[:, None]).abs() > NEAR
        across = (_numbers(width)[cols] - (cells % width)[:, None]).abs() > NEAR
        return exponentials(units, down[:, :, None] | across[:, None], whole=True)


def compared_once(found: Tensor, blank: Tensor, told: Tensor) -> Tensor:
    r"""(SUMS, 2, H, W) :math:`\sum_z f_z e^{\tau A(x, z)}`, and the same with o, of the cells that
    are told something (H, W); 0 of all others. Nothing of it is kept."""
    cells, asked, width = (
        heard(found, blank),
        torch.nonzero(told.flatten()).flatten(),
        found.shape[1],
    )
    both = torch.stack([found, blank])[:, None]
    around = F.unfold(both, SIDE, padding=REACH)[..., asked].flatten(0, 1)  # (2 D, asked)
    units = (_kernels(found, blank, cells) @ around).view(len(cells), TURNS, len(asked))
    down = (asked // width - (cells // width)[:, None]).abs() > NEAR
    across = (asked % width - (cells % width)[:, None]).abs() > NEAR
    sums = exponentials(units, down | across, whole=plain(found) and plain(blank))
    out = found.new_zeros(SUMS, 2, found.numel())
    said = _shown(found, blank, cells) @ sums.flatten(1)
    out[:, :, asked] = said.view(2, SUMS, len(asked)).transpose(0, 1)
    return out.view(SUMS, 2, *found.shape)


def exponentials(units: Tensor, apart: Tensor, *, whole: bool) -> Tensor:
    """(n, SUMS, ...) of units (n, TURNS, ...), whole numbers or not; 0 where not apart (n, ...)."""
    out = units.new_empty(len(units), SUMS, *units.shape[2:])
    step = max(1, AT_ONCE // max(1, units.shape[1:].numel()))
    parts = zip(*(torch.split(x, step) for x in (units, apart, out)), strict=True)
    for part, counts, sums in parts:
        power = odds = _odds(part, whole).mul_(counts[:, None])
        for tau in range(len(SHARPNESS)):
            power = power * odds if tau else odds
            sums[:, 2 * tau] = power[:, 0]
            total = torch.add(power[:, 0], power[:, 1], out=sums[:, 2 * tau + 1])
            for turn in range(2, TURNS):  # in the same order, however many cells there are
                total += power[:, turn]
    return out


def _odds(units: Tensor, whole: bool) -> Tensor:
    """e to the power of agreement."""
    if not whole:
        return (units.clamp(max=MOST) * UNIT).exp()
    places = (units.clamp(LEAST, MOST) - LEAST).int()
    return _table().index_select(0, places.flatten()).view(units.shape)


def _kernels(found: Tensor, blank: Tensor, cells: Tensor) -> Tensor:
    """(len(cells) TURNS, 2 D) what a find, and a blank, at each place around a cell adds to its
    agreement with these."""
    rows, cols = cells // found.shape[1], cells % found.shape[1]
    f, o = (_around(x, SIDE)[rows, cols].flatten(1) for x in (found, blank))  # (n, D)
    alike = torch.stack([BOTH_FOUND * f - DIFFERENT * o, BOTH_BLANK * o - DIFFERENT * f], dim=1)
    return alike[..., _turns()].transpose(1, 2).reshape(-1, 2 * SIDE * SIDE)


def _shown(found: Tensor, blank: Tensor, cells: Tensor) -> Tensor:
    """(2, n) what was found, and what was not, at these cells."""
    return torch.stack([found.flatten(), blank.flatten()])[:, cells]


def _with_rows(table: Tensor, count: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The first ``count`` rows of a table and more of them, and the table itself: it has room for a
    quarter more, so that rows are seldom moved."""
    total = count + len(rows)
    if total > len(table):
        roomy = table.new_empty(total + total // 4, *table.shape[1:])
        roomy[:count] = table[:count]
        table = roomy
    table[count:total] = rows
    return table[:total], table


def near_finds(found: Tensor) -> Tensor:
    """(H, W) cells that have a find around them."""
    across = F.max_pool2d(found[None], (1, SIDE), 1, (0, REACH))
    return F.max_pool2d(across, (SIDE, 1), 1, (REACH, 0))[0] > 0


def heard(found: Tensor, blank: Tensor) -> Tensor:
    """(n,) measured cells near a find."""
    return torch.nonzero((near_finds(found) & (found + blank > 0)).flatten()).flatten()


def plain(weights: Tensor) -> bool:
    """Whether all reports are sure."""
    return bool(((weights == 0) | (weights == 1)).all())


def _with(found: Tensor, blank: Tensor, f: Tensor, o: Tensor) -> Tensor:
    """(H, W) s(u, x) of all cells x with one u, f found and o blank."""
    alike = f * (BOTH_FOUND * found - DIFFERENT * blank)
    return alike + o * (BOTH_BLANK * blank - DIFFERENT * found)


def _around(of: Tensor, height: int, width: int = 0) -> Tensor:
    """(H', W', height, width) parts of a map (H, W) with ``REACH`` cells of nothing around it, one
    a place where they begin: with ``SIDE`` cells a side what is around every cell, with H and W the
    map moved to every place."""
    padded = F.pad(of, (REACH, REACH, REACH, REACH))
    return padded.unfold(0, height, 1).unfold(1, width or height, 1)


def _place(rows: Tensor, cols: Tensor) -> Tensor:
    """The number of a place around a cell."""
    return (rows + REACH) * SIDE + cols + REACH


@cache
def _numbers(count: int) -> Tensor:
    """(count,) 0, 1, ..., where areas are compared."""
    return torch.arange(count, device="cpu")


@cache
def _turns() -> Tensor:
    """(TURNS, D) the place that each symmetry brings to each place."""
    places = _numbers(SIDE * SIDE).reshape(SIDE, SIDE)
    return torch.stack([turned(places, k).flatten() for k in range(TURNS)])


@cache
def _table() -> Tensor:
    """(MOST - LEAST + 1,) e to the power of whole units."""
    return torch.exp(UNIT * (_numbers(MOST - LEAST + 1) + LEAST).double()).float()
