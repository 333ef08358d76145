r"""How many finds the measurements that are left can still bring, and how sure that is.

Of the N target cells nobody has found (``remaining``) further measurements find F. They go to
the likeliest cells first: let s be the share of all chance that lies in as many of the likeliest
cells as can still be measured, and h the mean chance of the ten likeliest. Then

.. math::  F \mid N \sim \mathrm{BetaBinomial}(n, \varphi\kappa, (1 - \varphi)\kappa), \qquad
           n = \min(N, \text{measurements}), \quad \varphi = N (1 - (1 - s)^\gamma) / n, \quad
           \log\kappa = e_0 + e_1 \log n + e_2 \log (h + h_0)

with the pace :math:`\gamma` and the evenness e of ``coefficients``, learnt from searches in
procedural scenes that went on. A search with nothing in hand finds a patch as a whole or not at
all, which is a small :math:`\kappa`. A policy that gives all cells the same chance draws its cells
blindly: there F is hypergeometric. Either way F is at most N and at most the number of measurements
and grows with it, so that the figures of a status agree with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.campaign.coefficients import EVENNESS, PACE
from engram.campaign.correction import corrected
from engram.campaign.remaining import (
    SearchSoFar,
    is_led,
    log_beta_binomial,
    log_choose,
    quantiles,
)

Array = NDArray[np.float64]

EXACT, BLOCKS = 200, 200
"""Values of N looked at one by one, and blocks into which larger ones are put together."""
NOTHING = 1e-12
"""Values of N that are so much less likely than the likeliest do not count."""

MANY, TABLE = 2000, 4_000_000
"""Measurements beyond which numbers of targets are put together in blocks here too, and numbers in
the largest table that is made."""

UNLIKELY = 1e-12
"""Blocks less likely than this part of the likeliest are left out of large tables."""

HAND, LITTLE = 10, 0.003
"""Likeliest cells that count as being in hand, and h_0."""

LIMITS = (-3.0, 7.0)
"""Bounds of log kappa."""

ROUNDING = 1e-9

UNSURE, SURE = 1e-6, 0.98
"""The smallest and the largest chance of each of the n to be found."""


@dataclass(frozen=True, eq=False)
class Prospect:
    """Finds that so many measurements would bring.

    masses : (measurements + 1,) probabilities of 0, 1, ... finds
    """

    masses: Array
    level: float

    @property
    def measurements(self) -> int:
        return len(self.masses) - 1

    @property
    def expected(self) -> float:
        return float(self.masses @ np.arange(len(self.masses)))

    @property
    def interval(self) -> tuple[int, int]:
        """Both ends of the interval at ``level``."""
        return quantiles(self.masses, self.level)

    def chance(self, count: float) -> float:
        """Chance of at least so many finds."""
        reached = np.arange(len(self.masses)) >= count - ROUNDING
        return min(float(self.masses[reached].sum()), 1.0)

    def to_dict(self) -> dict[str, float]:
        low, high = self.interval
        return {
            "measurements": self.measurements,
            "expected": round(self.expected, 3),
            "low": low,
            "high": high,
            "level": self.level,
        }


def prospect(seen: SearchSoFar, left: Array, count: int, *, level: float = 0.8) -> Prospect:
    """What ``count`` further measurements would find.

    left : (m + 1,) probabilities of 0, ..., m targets among the m searchable cells
    """
    masses = finds(seen, left, count)
    return Prospect(masses if seen.chance == 1 else seen_of(masses, seen.chance), level)


def seen_of(masses: Array, chance: float) -> Array:
    """(n + 1,) probabilities of finds where each target is found with this chance only."""
    n = len(masses) - 1
    found, values, weights = np.arange(n + 1.0), np.arange(n + 1.0), masses
    if n > MANY:
        values, weights = _condensed(masses)

    def given(there: Array) -> Array:
        there = there[:, None]
        logs = log_choose(there, np.minimum(found, there)) + found * np.log(chance)
        logs = logs + np.maximum(there - found, 0) * np.log1p(-chance)
        return np.where(found <= there, np.exp(logs), 0.0)

    return _averaged(values, weights, n, given)


def _averaged(values: Array, weights: Array, n: int, given: Callable[[Array], Array]) -> Array:
    """(n + 1,) the mean of distributions ``given`` (k, n + 1) some values; tables stay small."""
    at_once = max(1, TABLE // (n + 1))
    if len(values) <= at_once:
        return np.asarray(weights @ given(values))
    out = np.zeros(n + 1)
    some = np.flatnonzero(weights > UNLIKELY * weights.max())
    for begin in range(0, len(some), at_once):
        part = some[begin : begin + at_once]
        out += weights[part] @ given(values[part])
    return np.asarray(out / weights[some].sum())


def finds(seen: SearchSoFar, left: Array, count: int) -> Array:
    """(n + 1,) probabilities of 0, ..., n finds in n = min(count, m) measurements."""
    m = len(left) - 1
    n = min(count, m)
    targets, weights = _condensed(left)
    counts = weights > NOTHING * weights.max()
    targets, weights = targets[counts], weights[counts]
    if not is_led(seen):
        return _averaged(targets, weights, n, lambda some: _found_blindly(m, some, n))
    chances = likeliest(seen)
    share, inhand = share_of(chances, n), hand(chances)
    return _averaged(targets, weights, n, lambda some: found_of(some, n, share, inhand))


def likeliest(seen: SearchSoFar) -> Array:
    """(m,) corrected chances of the searchable cells, the largest first."""
    chances = corrected(seen.probability, seen.forecast, seen.hits)[seen.searchable]
    return np.asarray(np.sort(chances)[::-1])


def share_of(chances: Array, count: int) -> float:
    """s: share of all chance that lies in the ``count`` likeliest cells."""
    return min(float(chances[:count].sum() / chances.sum()), 1.0)


def hand(chances: Array) -> float:
    """log (h + h_0): what the search has in hand."""
    return float(np.log(chances[:HAND].mean() + LITTLE))


def chance_of_each(targets: Array, n: Array, share: Array | float, pace: float = PACE) -> Array:
    """phi: the chance of each of the n to be found."""
    expected = targets * (1 - (1 - share) ** pace)
    return np.asarray(np.clip(expected / np.maximum(n, 1), UNSURE, SURE))


def evenness(n: Array, inhand: Array | float, weights: Sequence[float] = EVENNESS) -> Array:
    """kappa for n and log (h + h_0)."""
    logs = weights[0] + weights[1] * np.log(np.maximum(n, 1)) + weights[2] * inhand
    return np.asarray(np.exp(np.clip(logs, *LIMITS)))


def found_of(targets: Array, count: int, share: float, inhand: float) -> Array:
    """(k, count + 1) probabilities of 0, ..., count finds for each of k numbers of targets."""
    targets, found = targets[:, None], np.arange(count + 1.0)
    n = np.minimum(targets, count)
    chance, kappa = chance_of_each(targets, n, share), evenness(n, inhand)
    rows, columns = np.nonzero(found <= n)
    tried, a, b = n[rows, 0], (chance * kappa)[rows, 0], ((1 - chance) * kappa)[rows, 0]
    out = np.zeros((len(targets), count + 1))
    out[rows, columns] = np.exp(log_beta_binomial(found[columns], tried, a, b))
    return out


def _found_blindly(m: int, targets: Array, count: int) -> Array:
    """The same for ``count`` of m cells drawn without regard to the targets among them."""
    found, k = np.arange(count + 1.0), targets[:, None]
    possible = (found <= k) & (count - found <= m - k)
    hit, miss = np.where(possible, found, 0.0), np.where(possible, count - found, 0.0)
    logs = log_choose(k, hit) + log_choose(m - k, miss) - log_choose(float(m), float(count))
    return np.asarray(np.where(possible, np.exp(logs), 0.0))


def _condensed(masses: Array) -> tuple[Array, Array]:
    """Values and their probabilities, large values put together in blocks at their mean."""
    m = len(masses) - 1
    starts = np.unique(np.linspace(min(EXACT, m), m + 1, BLOCKS).astype(int)[:-1])
    starts = np.concatenate([np.arange(min(EXACT, m)), starts])
    weights = np.add.reduceat(masses, starts)
    sums = np.add.reduceat(masses * np.arange(m + 1), starts)
    means = np.divide(sums, weights, out=starts.astype(float), where=weights > 0)
    return np.rint(means), weights
