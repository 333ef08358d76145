r"""How many targets visits have missed, by what the finds say of it.

Every visit of a cell that holds target finds it with the chance d, whatever led the search there.
So F finds by visits with chances :math:`d_i` come with

.. math::  M = \sum_{i=0}^{F} \frac{1 - d_i}{d_i} , \qquad
           \mathrm{Var}\,M = \sum_{i=0}^{F} \frac{1 - d_i}{d_i^2}

visits that missed (a negative binomial number; :math:`d_0` is the usual chance, since the next find
may be on its way). Those of cells where a later visit found target are
known; the others were made in cells that may still hold it. A policy's chances :math:`p_c` of these
cells, each visited :math:`k_c` times, expect :math:`\sum_c k_c p_c` of them, often too few. Their
log-odds are all moved by the same :math:`\varepsilon \sim \mathcal N(0, 1)`, of which the number
above says how likely it is: the number of missed targets is a mixture over :math:`\varepsilon` of
sums of independent cells. Where d is learnt, its spread widens Var M by
:math:`(F / d^2)^2\,\mathrm{Var}\,d`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.detection import chance_posterior
from engram.observation import Observations

Array = NDArray[np.float64]

MANY = 2000
"""Counts beyond which distributions are added by Fourier transforms."""

SHIFTS = np.linspace(-3.0, 3.0, 25)
"""Values of the common move of the log-odds."""
EDGE, LEAST = 1e-4, 0.25
"""Chances are held this far from 0 and 1; the smallest variance of a whole number."""


@dataclass(frozen=True, eq=False)
class Misses:
    """What is known of targets that may have been missed.

    cells   : (k,) visited cells that may hold target;  visits : (k,) how often each was visited
    chances : (k,) the policy's chances of target
    count, variance : of the visits of these cells that missed, by the finds
    """

    cells: NDArray[np.intp]
    visits: Array
    chances: Array
    count: float
    variance: float

    @classmethod
    def of(cls, seen: Observations, forecast: Array, probability: Array) -> Misses:
        """Of a search; forecast (n,) before each visit, probability (n_cells,) now."""
        odds, index = seen.log_odds, seen.indices
        unsure = seen.measured & np.isfinite(odds)
        hit = seen.outcomes > 0
        settled = ~unsure[index]
        d = np.array([seen.detection_of(item).chance for item in seen.items])
        finds = np.append(d[hit & settled], seen.detection.chance)
        known = float((~hit & settled & (odds[index] > 0)).sum())
        variance = float(((1 - finds) / finds**2).sum())
        if seen.detection.learnt:
            spread = chance_posterior(index, hit, forecast, seen.detection.false_alarm)[1]
            variance += (len(finds) / seen.detection.chance**2 * spread) ** 2
        cells = np.flatnonzero(unsure)
        return cls(
            cells,
            seen.visits[cells].astype(np.float64),
            probability[cells],
            max(float(((1 - finds) / finds).sum()) - known, 0.0),
            max(variance, LEAST),
        )

    def moved(self) -> tuple[Array, Array]:
        """(s,) how likely each shift is, and (s, k) the chances under each."""
        held = np.clip(self.chances, EDGE, 1 - EDGE)
        odds = np.log(held / (1 - held))[None, :] + SHIFTS[:, None]
        chances = 1 / (1 + np.exp(-odds))
        away = chances @ self.visits - self.count
        logs = -0.5 * SHIFTS**2 - 0.5 * away**2 / self.variance
        weights = np.exp(logs - logs.max())
        return weights / weights.sum(), chances

    @property
    def expected(self) -> Array:
        """(k,) chances of target after what the finds say."""
        weights, chances = self.moved()
        return np.asarray(weights @ chances)

    def masses(self, among: NDArray[np.bool_]) -> Array:
        """Probabilities of 0, 1, ... missed targets in those of the cells that are ``among``
        (n_cells,)."""
        weights, chances = self.moved()
        inside = among[self.cells]
        rows = [w * poisson_binomial(p[inside]) for w, p in zip(weights, chances, strict=True)]
        return np.asarray(np.sum(rows, axis=0))


def poisson_binomial(chances: Array) -> Array:
    """(k + 1,) probabilities of 0, ..., k targets in k cells with these chances."""
    if len(chances) > MANY:
        half = len(chances) // 2
        return sum_of(poisson_binomial(chances[:half]), poisson_binomial(chances[half:]))
    masses = np.ones(1)
    for p in chances:
        masses = np.convolve(masses, [1 - p, p])
    return masses


def sum_of(one: Array, other: Array) -> Array:
    """Probabilities of the sum of two independent counts; of long ones by Fourier transforms."""
    if min(len(one), len(other)) <= MANY:
        return np.asarray(np.convolve(one, other))
    from scipy.fft import irfft, next_fast_len, rfft

    length = len(one) + len(other) - 1
    room = next_fast_len(length, True)
    masses = irfft(rfft(one, room) * rfft(other, room), room)[:length]
    return np.asarray(np.maximum(masses, 0.0))
