r"""Copies: what was outlined once is recognised where the next one begins.

Targets of one area are often alike: equal discs, ships of one class, burrows, letters. A search
that has outlined the first of them knows what the next one looks like, and two or three hits say
where it lies. No training tells a permanent memory of another domain this; the measurements do.

**Templates.** Connected cells that were found or are likelier target than not, with a few finds
among them, are a template: the probability :math:`T(i)` of target of its cells and of those around
it, 0 or 1 where they were measured. The fewer of them are known, the less it counts.

**E-step.** A copy of template e, turned by g (one of eight), with its corner at s, is supported by
the measurements in it with the log Bayes factor

.. math::  B_{e,g}(s) = \sum_{q \text{ measured}} \log
           \frac{p(y_q \mid T_{e,g}(q - s))}{p(y_q \mid \pi)}

against cells that hold target with probability :math:`\pi` each on their own. A find f is explained
by one copy: those that cover it share it in proportion to :math:`e^{B}`, so that copy (e, g, s)
exists with probability

.. math::  r(s) = e^{B(s)} \operatorname*{mean}_{f \in s} \frac{1}{1 + \sum_{s' \ni f} e^{B(s')}} .

Whether copies are turned against each other at all is judged by the same factors. A template says
nothing of its own cells; the others do.

**M-step.** What copies say of cells nobody has measured fills the open cells of the templates, and
the E-step is done once more: partial outlines complete each other.

Finds are few, so sums over the copies that hold one go by a list of these; sums over all cells and
places are convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.ndimage import find_objects, label
from scipy.special import expit
from torch import Tensor
from torch.fft import irfft2, rfft2

from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import log_likelihood
from engram.policies.forecast import Array
from engram.policies.mixing import DISCOUNT
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
ALONE = 0.3
"""pi, the chance of target of a measured cell that no copy explains."""
CAPPED = 3.0
"""Nats that one group of finds may say on whether copies are turned."""
MOST_NATS = 60.0
"""Bound of the logarithm of a copy's weight."""
PASSES = 2
"""E-steps."""
FAVOUR = 1.0
"""Nats by which copies start ahead of those who do not know them."""


@dataclass(frozen=True, eq=False)
class Template:
    """What copies are taken to look like.

    target : (h, w) probability of target;  counts : (h, w) cells it speaks of, its own and those
        around them
    place  : (rows, cols) where in the area that is
    weight : logarithm of how much it counts
    """

    target: Array
    counts: Mask
    place: Mask
    weight: float


def templates(p: Array, found: Mask, blank: Mask) -> list[Template]:
    """The best known objects of an area (rows, cols), best first."""
    wrong = np.where(found | blank, 0.0, np.minimum(p, 1 - p))
    parts, _ = label(((p > 0.5) | found) & ~blank, EIGHT)
    padded, made = _framed(p, 1), []
    for number, window in enumerate(find_objects(parts), start=1):
        body = parts[window] == number
        finds = int((found[window] & body).sum())
        if finds < LEAST_FINDS or max(body.shape) > LARGEST:
            continue
        around = tuple(slice(side.start, side.stop + 2) for side in window)
        place: Mask = np.zeros(padded.shape, bool)
        place[around] = _with_neighbours(body)
        place = place[1:-1, 1:-1]
        cut = any(
            side.start == 0 or side.stop == size for side, size in zip(window, p.shape, strict=True)
        )
        unsure = float(wrong[place].sum()) + cut * CUT
        target = np.clip(padded[around], CLEAR, 1 - CLEAR)
        counts = _framed(place, 1)[around]
        made.append(Template(target, counts, place, float(np.log(finds)) - unsure / UNSURE))
    return sorted(made, key=lambda one: -one.weight)[:MOST]


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


@dataclass(frozen=True, eq=False)
class Fit:
    """How E templates fit in each of eight turns at every place: E x 8 x S x S copies, by the
    corners of their windows of K x K cells, where S = (rows or cols) + K - 1.

    finds      : (F, 2) cells that were found
    touching   : (F, M) the copies that each of them may be a part of, by their number; those that
        are the template itself are no copies, and have the number behind the last
    log_factor : (E, 8, S, S) log Bayes factor and weight of a copy, -inf where it covers no find
    covers     : (E, 8, S, S) how many finds it covers
    speaks     : (2, E, 8, K, K) chance of target of its cells, and whether it speaks of them
    """

    finds: NDArray[np.int64]
    touching: NDArray[np.int64]
    log_factor: Array
    covers: NDArray[np.int64]
    speaks: Array

    def claimed(self, weight: Array) -> Array:
        """(F,) what copies of these weights (E, 8, S, S) that hold a find weigh together."""
        total: Array = np.append(weight, 0.0).take(self.touching).sum(axis=1)
        return total

    def covered(self, worth: Array) -> Array:
        """(E, 8, S, S) what the finds in a copy are worth together, each (F,)."""
        each, count = np.repeat(worth, self.touching.shape[1]), self.log_factor.size
        total = np.bincount(self.touching.ravel(), each, count + 1)[:count].astype(np.float64)
        return total.reshape(self.log_factor.shape)

    def spread(self, weight: Array, shape: tuple[int, int]) -> Array:
        """(2, rows, cols) what copies of these weights (E, 8, S, S) say of every cell."""
        margin, places = self.speaks.shape[-1] - 1, weight.shape[2:]
        sizes = [next_fast_len(size, real=True) for size in places]
        said = (_transform(weight, sizes) * _transform(self.speaks, sizes)).sum((1, 2))
        ends = tuple(margin + size for size in shape)
        return _table(said, sizes, ends)[:, margin:, margin:]


def _transform(tables: Array | Mask, sizes: list[int]) -> Tensor:
    """Fourier transform of tables (..., rows, cols), filled up to ``sizes``."""
    spectrum: Tensor = rfft2(torch.from_numpy(tables).float(), s=sizes)
    return spectrum


def _table(spectrum: Tensor, sizes: list[int], shape: tuple[int, ...]) -> Array:
    """Inverse of ``_transform``: tables (..., *shape)."""
    table: Array = irfft2(spectrum, s=sizes).double().numpy()
    return table[..., : shape[0], : shape[1]]


def _turned(known: Sequence[Template], side: int) -> Array:
    """(4, E, 8, K, K) every template in each of its turns, in a window of ``side`` cells: target,
    whether it speaks of a cell, log Bayes factor of a find and of a blank there."""
    tables = np.zeros((4, len(known), side, side))
    for e, one in enumerate(known):
        hit, miss = np.log(one.target / ALONE), np.log((1 - one.target) / (1 - ALONE))
        rows, cols = one.target.shape
        tables[:, e, :rows, :cols] = one.counts * np.stack([one.target, one.counts, hit, miss])
    turns = views(np.moveaxis(tables, (0, 1), (2, 3)))
    return np.ascontiguousarray(np.stack(turns).transpose(3, 4, 0, 1, 2))


def _touching(
    finds: NDArray[np.int64], own: Mask, speaks: Array, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """(F, M) ``Fit.touching``; own : (E, rows, cols) cells of each template."""
    template, turn, row, col = np.nonzero(speaks[0] > 0.5)  # M cells of bodies, by template
    side = speaks.shape[-1]
    corner = (side - 1 - row) * shape[1] + side - 1 - col
    offset = (template * 8 + turn) * math.prod(shape) + corner
    touching: NDArray[np.int64] = (finds @ (shape[1], 1))[:, None] + offset
    ends = np.searchsorted(template, np.arange(len(own) + 1))
    for e, mine in enumerate(own[:, *finds.T]):
        touching[mine, ends[e] : ends[e + 1]] = 8 * len(own) * math.prod(shape)
    return touching


def _fit(known: Sequence[Template], found: Mask, blank: Mask) -> Fit:
    side = max(max(one.target.shape) for one in known)
    shape = tuple(size + side - 1 for size in found.shape)
    sizes = [next_fast_len(size, real=True) for size in shape]
    turned = _turned(known, side)
    own = np.stack([one.place for one in known])
    outside = np.stack([found, blank])[:, None] & ~own  # (2, E, rows, cols)
    factors = _transform(turned[2:, ..., ::-1, ::-1].copy(), sizes)
    there = _transform(outside, sizes)[:, :, None]
    factor = _table((there * factors).sum(0), sizes, shape)
    finds = np.argwhere(found)
    touching = _touching(finds, own, turned[:2], shape)
    covers = np.bincount(touching.ravel(), minlength=factor.size + 1)[:-1].reshape(factor.shape)
    weight = np.array([one.weight for one in known]) - known[0].weight
    factor = np.where(covers > 0, factor + weight[:, None, None, None], -np.inf)
    return Fit(finds, touching, factor, covers, turned[:2])


def straightness(fit: Fit, first: Template, found: Mask) -> float:
    """Chance that copies are the same way round, by the groups of finds outside the first
    template."""
    parts, count = label(found & ~first.place, EIGHT)
    group, odds = parts[tuple(fit.finds.T)], 0.0
    copies = fit.log_factor[0].size
    for number in range(1, count + 1):
        touching = fit.touching[group == number]
        held = np.bincount(touching[touching < copies])
        most = np.flatnonzero(held > 0.5 * len(touching))
        if len(most):
            said, turn = fit.log_factor.ravel()[most], most // fit.log_factor[0, 0].size
            straight, any_way = (np.logaddexp.reduce(x) for x in (said[turn == 0], said))
            odds += np.clip(straight - any_way + np.log(8), -CAPPED, CAPPED)
    return float(expit(odds))


def _e_step(
    p: Array, found: Mask, blank: Mask, straight: float | None
) -> tuple[Array, Array, float] | None:
    """(rows, cols) probability of target by copies, times how far they speak of a cell, and that;
    and the chance that copies are the same way round, if it is not known yet."""
    known = templates(p, found, blank)
    if not known:
        return None
    fit = _fit(known, found, blank)
    straight = straightness(fit, known[0], found) if straight is None else straight
    ways = np.full((8, 1, 1), (1 - straight) / 8)
    ways[0] += straight
    weight, known_to_cover = np.zeros_like(fit.log_factor), fit.covers > 0
    np.exp(np.minimum(fit.log_factor, MOST_NATS), out=weight, where=known_to_cover)
    weight *= ways
    share = fit.covered(1 / (1 + fit.claimed(weight)))
    both = fit.spread(weight * share / np.maximum(fit.covers, 1.0), p.shape)
    target, counts = both / np.maximum(both[1], 1.0)
    return target, counts, straight


@torch.inference_mode()
def by_copies(p: Array, found: Mask, blank: Mask) -> tuple[Array, Mask]:
    """(rows, cols) probability of target as copies have it, and the cells they speak of.

    p : (rows, cols) as it is believed without them;  found, blank : what was measured
    """
    p = np.where(found, 1.0, np.where(blank, 0.0, p))
    believed, speak, straight = p, np.zeros(p.shape, bool), None
    for _ in range(PASSES):
        said = _e_step(believed, found, blank, straight)
        if said is None:
            break
        target, counts, straight = said
        speak = (counts > CLEAR) & ~found & ~blank
        believed = np.where(speak, np.clip(target + (1 - counts) * p, 0.0, 1.0), p)
    return believed, speak


@dataclass(frozen=True, eq=False)
class Copied:
    """What is believed of every cell with and without copies.

    probability : (n_cells,) of both together;  copies, others : (n_cells,) of each
    speak       : (n_cells,) cells that copies speak of;  weight : what they count
    """

    probability: Array
    copies: Array
    others: Array
    speak: Mask
    weight: float


class CopyForecaster:
    r"""Copies beside whatever else is believed, by how well they have predicted:

    .. math::  p = w\, p_\text{copies} + (1 - w)\, p_\text{others} , \qquad
               w = \sigma\Bigl(f + \sum_i \lambda^{t - i}
                   \log \frac{p_\text{copies}(y_i)}{p_\text{others}(y_i)}\Bigr) ,

    each outcome predicted before it was seen, in cells that copies speak of.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._gains: list[float] = []

    @property
    def weight(self) -> float:
        """w."""
        age = np.arange(len(self._gains))[::-1]
        return float(expit(FAVOUR + np.sum(np.array(self._gains) * DISCOUNT**age)))

    def belief(self, others: Array, observations: Observations) -> Copied:
        """What copies change in what is believed (n_cells,)."""
        shape = (self.grid.rows, self.grid.cols)
        found: NDArray[np.bool_] = np.zeros(self.grid.n_cells, bool)
        found[observations.indices] = observations.outcomes > 0
        blank = observations.measured & ~found
        table, cells = by_copies(others.reshape(shape), found.reshape(shape), blank.reshape(shape))
        speak, w = cells.ravel(), self.weight
        copies = np.where(speak, table.ravel(), others)
        both = np.where(speak, w * copies + (1 - w) * others, others)
        return Copied(both, copies, others, speak, w)

    def learn(self, before: Copied, new: Sequence[Observation]) -> None:
        """Score what was said before these outcomes."""
        for item in new:
            cell, hit = self.grid.index(item.cell), float(item.outcome > 0)
            ours, theirs = (
                log_likelihood(hit, float(p[cell]), 0.02) for p in (before.copies, before.others)
            )
            self._gains.append(ours - theirs)

    def state(self) -> dict[str, Tensor]:
        return {"copies": torch.tensor(self._gains, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._gains = state["copies"].tolist()
