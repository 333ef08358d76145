r"""How many separate targets nobody has touched, and how sure that is.

Targets lie within discs (``covering``) whose places are a Poisson process of :math:`\lambda` a
cell. Those that were touched and those that were not are then independent given :math:`\lambda`,
however the cells to measure were chosen, and the number U of the latter is

.. math::  U \sim \mathrm{Poisson}(\lambda W), \qquad W = \textstyle\sum_g w_g ,

with the chance w that a target at a place has not been touched. At the other n - W of n places it
would have been. With T targets touched and, before that, an exponential distribution of
:math:`\lambda n` with mean M,

.. math::  \lambda \sim \mathrm{Gamma}(T + 1,\; n - W + n / M), \qquad
           U \sim \mathrm{NegBin}(T + 1), \quad
           \mathrm{E}\, U = \frac{(T + 1)\, W}{n - W + n / M} :

a target that was touched stands for :math:`1 / \pi` of them, :math:`\pi = 1 - W / n` being the
chance of one at a random place to be touched by what was measured (Horvitz and Thompson).

Neither T nor the radius is known, since finds that lie apart may be of one target. Sets of discs
that cover all finds are drawn, each as likely as it makes what was measured,

.. math::  \frac{T!\; n / M}{(n - W + n / M)^{T + 1}} \prod_{t=1}^{T} b_t ,

for all radii (uniform beforehand) and M of ``NUMBERS`` (in proportion to 1 / M). Blanks between
finds speak against large discs, finds that lie together against many small ones. Small targets that
lie together would be taken for a large one, though. So where finds hold target partly, or the
extent L is given, that says the radius: a square of this extent touches
:math:`\pi r^2 = L^2 + 8 L / \pi + 1` cells (``policies/separate.py``), give or take ``DOUBT``.
Targets of one search differ in size, by ``SPREAD``: W is the mean over discs of other areas, of
which small ones are missed more often.

The constants were chosen on ball and shape tasks 0:12 and overhead tiles 0:12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.campaign.covering import HOLES, Reports, covers
from engram.campaign.prospect import Prospect
from engram.observation import Observations
from engram.policies.separate import cells_touched, extent_of

Array = NDArray[np.float64]

NUMBERS = np.array([3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
"""M: how many targets there are on average, before anything is known."""

AREAS = (1.6, 1.45, 1 / 6)
"""Cells of the smallest disc, how many times as many the next has, and the largest share of the
area."""

SPREAD = 0.7
"""Standard deviation of the logarithm of the area of targets in one search."""

DOUBT = (0.5, 1.6)
"""Standard deviation of the logarithm of the area that the extent tells: always, and what one find
adds to it (many add less)."""

UNLIKELY = 1e-6
"""Sets of discs less likely than this part of the likeliest do not count."""


@dataclass(frozen=True, eq=False)
class Untouched:
    """Ways to explain what was measured, each with its probability.

    weight : (k,) probability;  touched : (k,) T;  area : (k,) cells of a disc
    missed : (k,) W;  met : (k,) n - W + n / M
    """

    weight: Array
    touched: Array
    area: Array
    missed: Array
    met: Array

    @property
    def apart(self) -> float:
        """Expected number of separate targets that were touched."""
        return float(self.weight @ self.touched)

    def masses(self, most: int, shares: Array | float = 1.0) -> Array:
        """(most + 1,) probabilities of 0, ..., most untouched targets; with ``shares`` (k,), of
        those that are met where each is with this chance."""
        from scipy.special import gammaln, xlog1py, xlogy

        keep = self.weight > UNLIKELY * self.weight.max()
        shape, met = (self.touched + 1)[keep, None], self.met[keep, None]
        mean = (self.missed * shares)[keep, None]
        count, odds = np.arange(most + 1.0), mean / (met + mean)
        logs = gammaln(count + shape) - gammaln(shape) - gammaln(count + 1)
        logs = logs + xlogy(count, odds) + xlog1py(shape, -odds)
        masses = self.weight[keep] @ np.exp(logs)
        return np.asarray(masses / masses.sum())

    def left(self, cells: Array) -> Array:
        """(m + 1,) probabilities of 0, ..., m untouched targets.

        cells : (m + 1,) those of as many target cells left, of which each has at least one
        """
        return lesser(self.masses(len(cells) - 1), cells)

    def prospect(self, left: Array, count: int, *, level: float = 0.8) -> Prospect:
        """How many untouched targets ``count`` further measurements would touch.

        A space-filling design comes to a target of c cells with the chance min(1, c count / m).

        left : (m + 1,) probabilities of 0, ..., m untouched targets among the m searchable cells
        """
        m = len(left) - 1
        n = min(count, m)
        cells = np.maximum((1 - HOLES) * self.area, 1.0)
        few = lesser(self.masses(m, np.minimum(cells * n / max(m, 1), 1.0)), left)
        return Prospect(np.append(few[:n], few[n:].sum()), level)


def lesser(one: Array, other: Array) -> Array:
    """(k,) probabilities of the lesser of two numbers that are large together."""
    sums = np.maximum(np.cumsum(one), np.cumsum(other))
    return np.diff(np.minimum(sums, 1.0), prepend=0.0)


def untouched(seen: Observations, searchable: NDArray[np.bool_], extent: float = 0.0) -> Untouched:
    """What visits say of targets that were touched and that were not.

    searchable : (n_cells,) cells that can still be measured
    extent     : of a target in cells, 0 = learnt from the finds
    """
    reports = Reports.of(seen, searchable)
    n = max(int(reports.area.sum()), 1)
    areas = disc_areas(n)
    sets = [covers(reports, float(np.sqrt(a / np.pi)), i) for i, a in enumerate(areas)]
    missed = _blur(areas) @ np.array([some.missed for some in sets])
    told, rate = _told(areas, seen, extent), n / NUMBERS[:, None]
    parts = []
    for i, some in enumerate(sets):
        met = n - missed[i] + rate
        logs = some.log_weight + _log_evidence(some.touched, rate, met) - np.log(NUMBERS)[:, None]
        if told is None:
            logs = logs + 0.5 * np.log(areas[i])  # uniform in the radius
        else:
            logs = logs - np.logaddexp.reduce(logs, axis=None) + told[i]
        columns = np.broadcast_arrays(logs, some.touched, areas[i], missed[i], met)
        parts.append(np.stack([column.ravel() for column in columns]))
    logs, touched, area, places, met = np.concatenate(parts, axis=1)
    weight = np.exp(logs - logs.max())
    return Untouched(weight / weight.sum(), touched, area, places, met)


def disc_areas(n: int) -> Array:
    """Cells of discs in an area of n cells, from the smallest to the largest."""
    least, times, share = AREAS
    steps = max(int(np.log(max(share * n / least, 1.0)) / np.log(times)), 0)
    return np.asarray(least * times ** np.arange(steps + 1.0))


def _blur(areas: Array) -> Array:
    """(k, k) of targets that are usually of one area, the share of each other."""
    logs = np.log(areas)
    table = np.exp(-(((logs[:, None] - logs) / SPREAD) ** 2) / 2)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _told(areas: Array, seen: Observations, extent: float) -> Array | None:
    """(k,) logarithms of how likely each area is by the extent; None where nothing tells it."""
    shares = seen.shares[seen.outcomes > 0]
    always, by_one = DOUBT
    if extent:
        side, doubt = extent, always
    elif (shares < 1).any():
        side, doubt = extent_of(shares), float(np.hypot(always, by_one / np.sqrt(len(shares))))
    else:
        return None
    logs = np.log(areas)
    middle = np.clip(np.log(cells_touched(side)), logs[0], logs[-1])
    return np.asarray(-(((logs - middle) / doubt) ** 2) / 2)


def _log_evidence(touched: Array, rate: Array, met: Array) -> Array:
    """log T! + log (n / M) - (T + 1) log (n - W + n / M)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(touched + 1) + np.log(rate) - (touched + 1) * np.log(met))
