r"""Copies: what was outlined once is recognised where the next one begins.

Targets of one area are often alike: equal discs, ships of one class, burrows, letters. A search
that has outlined the first of them knows what the next one looks like, and two or three hits say
where it lies. No training tells a permanent memory of another domain this; the measurements do.

**Templates** (``templates``) are what was outlined: the probability :math:`T(i)` of target of their
cells and of those around them.

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

**Room.** Where no copy has shown yet, the templates still say where one may lie (``room``).

Finds are few, so sums over the copies that hold one go by a list of these; sums over all cells and
places are convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import find_objects, label
from scipy.special import expit
from torch import Tensor

from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import log_likelihood
from engram.policies.forecast import Array
from engram.policies.mixing import DISCOUNT
from engram.policies.outlines import EIGHT, Mask
from engram.policies.room import Room, Spacious
from engram.policies.templates import CLEAR, Part, Places, Template, templates, turned, ways

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
class Fit:
    """How E templates fit in each of eight turns at every place: E x 8 x S x S copies.

    places     : all of them
    finds      : (F, 2) cells that were found
    touching   : (F, M) the copies that each of them may be a part of, by their number; those that
        are the template itself are no copies, and have the number behind the last
    log_factor : (E, 8, S, S) log Bayes factor and weight of a copy, -inf where it covers no find
    covers     : (E, 8, S, S) how many finds it covers
    speaks     : Fourier transform of (2, E, 8, K, K) the chance of target of its cells, and whether
        it speaks of them
    """

    places: Places
    finds: NDArray[np.int64]
    touching: NDArray[np.int64]
    log_factor: Array
    covers: NDArray[np.int64]
    speaks: Tensor

    def claimed(self, weight: Array) -> Array:
        """(F,) what copies of these weights (E, 8, S, S) that hold a find weigh together."""
        total: Array = np.append(weight, 0.0).take(self.touching).sum(axis=1)
        return total

    def covered(self, worth: Array) -> Array:
        """(E, 8, S, S) what the finds in a copy are worth together, each (F,)."""
        each, count = np.repeat(worth, self.touching.shape[1]), self.log_factor.size
        total = np.bincount(self.touching.ravel(), each, count + 1)[:count].astype(np.float64)
        return total.reshape(self.log_factor.shape)

    def spread(self, weight: Array) -> Array:
        """(2, rows, cols) what copies of these weights (E, 8, S, S) say of every cell."""
        places = self.places
        return places.on_cells((places.transform(weight) * self.speaks).sum((1, 2)))


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


class Stamps:
    """Templates in all their turns, ready to be laid over parts of an area (rows, cols).

    known : E templates
    """

    def __init__(self, known: Sequence[Template], shape: tuple[int, int]) -> None:
        self.known, self.places = known, Places.of(known, shape)
        target, counts = self.places.tables(known)
        chance = np.where(counts > 0, target, 0.5)
        hit, miss = np.log(chance / ALONE), np.log((1 - chance) / (1 - ALONE))
        tables = turned(np.stack([target, counts, counts * hit, counts * miss]))
        self._tables, self._factors = tables[:2], self.places.mirrored(tables[2:])
        self._speaks = self.places.transform(self._tables)
        weight = np.array([one.weight for one in known])
        self._weight = weight[:, None, None, None]

    def fit(self, found: Mask, blank: Mask, part: Part) -> Fit:
        """How they fit what was measured in a part (rows, cols)."""
        places = self.places
        own = np.stack([one.place(part) for one in self.known])
        outside = np.stack([found, blank])[:, None] & ~own  # (2, E, rows, cols)
        there = places.transform(outside)[:, :, None]
        factor = places.at_places((there * self._factors).sum(0))
        finds = np.argwhere(found)
        touching = _touching(finds, own, self._tables, places.shape)
        covers = np.bincount(touching.ravel(), minlength=factor.size + 1)[:-1].reshape(factor.shape)
        factor = np.where(covers > 0, factor + self._weight, -np.inf)
        return Fit(places, finds, touching, factor, covers, self._speaks)


def turn_odds(
    fit: Fit, own: Mask, found: Mask, counted: Callable[[int, int], bool] | None = None
) -> float:
    """Log-odds that copies are the same way round, by the groups of finds outside the best
    template, which has the cells ``own``; of those groups alone whose first row and column are
    ``counted``."""
    parts, _ = label(found & ~own, EIGHT)
    group, odds = parts[tuple(fit.finds.T)], 0.0
    copies = fit.log_factor[0].size
    for number, (rows, cols) in enumerate(find_objects(parts), start=1):
        if counted is not None and not counted(rows.start, cols.start):
            continue
        touching = fit.touching[group == number]
        held = np.bincount(touching[touching < copies])
        most = np.flatnonzero(held > 0.5 * len(touching))
        if len(most):
            said, turn = fit.log_factor.ravel()[most], most // fit.log_factor[0, 0].size
            straight, any_way = (np.logaddexp.reduce(x) for x in (said[turn == 0], said))
            odds += np.clip(straight - any_way + np.log(8), -CAPPED, CAPPED)
    return float(odds)


def spoken(fit: Fit, straight: float) -> tuple[Array, Array]:
    """(rows, cols) what copies say of every cell, the probability of target by copies times how far
    they speak of it, and that; ``straight`` is the chance that they are the same way round."""
    weight, known_to_cover = np.zeros_like(fit.log_factor), fit.covers > 0
    np.exp(np.minimum(fit.log_factor, MOST_NATS), out=weight, where=known_to_cover)
    weight *= ways(straight)
    share = fit.covered(1 / (1 + fit.claimed(weight)))
    both = fit.spread(weight * share / np.maximum(fit.covers, 1.0))
    target, counts = both / np.maximum(both[1], 1.0)
    return target, counts


@torch.inference_mode()
def by_copies(
    p: Array, found: Mask, blank: Mask, area: Mask | None = None
) -> tuple[Array, Mask, Room | None]:
    """(rows, cols) probability of target as copies have it, the cells they speak of, and where
    there is room for further ones; None where nothing is outlined.

    p : (rows, cols) as it is believed without them;  found, blank : what was measured
    area : (rows, cols) cells that are open, by default all of them
    """
    area = np.ones(p.shape, bool) if area is None else area
    p = np.where(found, 1.0, np.where(blank, 0.0, p))
    believed, speak, part = p, np.zeros(p.shape, bool), Part.whole(p)
    straight: float | None = None
    room: Room | None = None
    for _ in range(PASSES):
        known = templates(believed, found, blank)
        if not known:
            break
        fit = Stamps(known, part.shape).fit(found, blank, part)
        if straight is None:
            straight = float(expit(turn_odds(fit, known[0].place(part), found)))
        target, counts = spoken(fit, straight)
        room = Room(known, straight, found, blank, area)
        speak = (counts > CLEAR) & ~found & ~blank
        both = np.clip(target + (1 - counts) * p, 0.0, 1.0)
        believed = np.where(speak, both, p)
    return believed, speak, room


@dataclass(frozen=True, eq=False)
class Copied:
    """What is believed of every cell with and without copies.

    probability : (n_cells,) of both together;  copies, others : (n_cells,) of each
    heard       : whether copies speak of any cell;  weight : what they count
    room        : where further ones may lie; None where nothing is outlined
    proven      : what they count without a head start
    """

    probability: Array
    copies: Array
    others: Array
    heard: bool
    weight: float
    room: Spacious | None
    proven: float


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
        return float(expit(FAVOUR + self._gain))

    @property
    def proven(self) -> float:
        """w without a head start."""
        return float(expit(self._gain))

    @property
    def _gain(self) -> float:
        """Nats by which copies have predicted better, of late."""
        age = np.arange(len(self._gains))[::-1]
        return float(np.sum(np.array(self._gains) * DISCOUNT**age))

    def belief(self, others: Array, observations: Observations) -> Copied:
        """What copies change in what is believed (n_cells,)."""
        shape = (self.grid.rows, self.grid.cols)
        found: NDArray[np.bool_] = np.zeros(self.grid.n_cells, bool)
        found[observations.indices] = observations.outcomes > 0
        blank = observations.measured & ~found
        there = (found.reshape(shape), blank.reshape(shape), ~self.grid.closed)
        table, cells, room = by_copies(others.reshape(shape), *there)
        speak, w = cells.ravel(), self.weight
        copies = np.where(speak, table.ravel(), others)
        both = np.where(speak, w * copies + (1 - w) * others, others)
        return Copied(both, copies, others, bool(speak.any()), w, room, self.proven)

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

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        self._gains = state["copies"].tolist()
