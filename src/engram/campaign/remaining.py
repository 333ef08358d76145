r"""How many target cells have not been found yet, and how sure that is.

A policy that gives all cells the same chance (random search, a fixed design) has not been led
by its finds: block kriging of the outcomes (``kriging``) says what is left, as a normal
distribution of the number N of target cells, cut to 0, ..., m, the cells that can still be
measured.

Any other search goes where targets are, so the finds say little about the rest, and kriging
alone expects too much. There is a second estimate: the sum of the policy's chances, corrected by
how its forecasts turned out (``correction``). Which of them to believe, and how much, depends on
how far the search is and how it went. That was learnt from searches in procedural scenes, where
N is known:

.. math::  N \sim \mathrm{BetaBinomial}(m, \pi\kappa, (1 - \pi)\kappa), \qquad
           \mathrm{logit}\,\pi = a^\top x, \quad \log\kappa = b^\top x

with the features x of ``features`` and the coefficients a, b of ``coefficients``, which
``benchmarks/remaining_fit.py`` makes. A small :math:`\kappa` is how targets that come in groups
show. A share ``INSURANCE`` of the distribution stays with kriging: areas may be unlike the scenes.
Where visits may miss, the targets they missed are counted apart (``missed``), and kriging has a
larger share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.campaign.coefficients import CONCENTRATION, SHARE
from engram.campaign.correction import corrected
from engram.campaign.kriging import moments
from engram.campaign.missed import Misses, sum_of
from engram.detection import doubtful
from engram.grid import Grid
from engram.observation import Observations
from engram.policies.separate import groups_of

Array = NDArray[np.float64]

LONG = 300
"""Measurements beyond which a search counts as just long: none in the fit was longer."""

INSURANCE = 0.02
"""Share of kriging in a search led by finds. Chosen on ball tasks 0:40 and rare maps 0:24: more
of it widens the intervals of rare targets, where kriging expects far too many."""

MISSING, MOST = 2.0, 0.7
"""How much more of kriging there is where visits miss a share of the targets, and how much at most:
the coefficients are of searches that miss nothing, and expect too few. Chosen on ball tasks 24, 25,
33, 38 and 59 with d = 0.7."""

EVEN = 1e-9
"""Chances that differ by less than this are the same."""

LIMITS = (-10.0, 10.0), (-3.0, 9.0)
"""Bounds of logit pi and of log kappa."""


@dataclass(frozen=True)
class Remaining:
    """Target cells not yet found: expectation, interval at ``level``, chance of at least one."""

    expected: float
    low: int
    high: int
    level: float
    chance: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class SearchSoFar:
    """What a search has measured and what its policy believes.

    searchable  : (n_cells,) cells that can still be measured
    cells, hits : (n,) measured cells in order, and 1 where target was found; where it may have been
        missed, the policy's chance that it was
    forecast    : (n,) the policy's chance of target of each, before it was measured
    probability : (n_cells,) its chances now
    chance      : that a visit finds a target that is there
    misses      : what is known of targets that may have been missed, None where none can be
    """

    grid: Grid
    searchable: NDArray[np.bool_]
    cells: NDArray[np.intp]
    hits: Array
    forecast: Array
    probability: Array
    chance: float = 1.0
    misses: Misses | None = None

    @classmethod
    def of(
        cls,
        seen: Observations,
        searchable: NDArray[np.bool_],
        forecast: Array,
        probability: Array,
    ) -> SearchSoFar:
        """Of visits: each cell once, with the forecast before its first visit."""
        index, hits = seen.indices, (seen.outcomes > 0).astype(float)
        odds = seen.log_odds
        if not doubtful(odds).any():
            return cls(seen.grid, searchable, index, hits, forecast, probability)
        first = np.sort(np.unique(index, return_index=True)[1])
        cells = index[first]
        misses = Misses.of(seen, forecast, probability)
        missed = probability.copy()
        missed[misses.cells] = misses.expected
        hits = np.where(doubtful(odds[cells]), missed[cells], odds[cells] > 0)
        chance = seen.detection.chance
        return cls(seen.grid, searchable, cells, hits, forecast[first], probability, chance, misses)

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """(n_cells,) cells that were visited and may still hold target."""
        visited = np.zeros(self.grid.n_cells, bool)
        visited[self.cells] = True
        return self.searchable & visited


def features(seen: SearchSoFar, kriged_moments: tuple[float, float]) -> dict[str, float]:
    """What the coefficients are applied to, in logits and logarithms.

    kriged, corrected : share of target by kriging, and by the policy's corrected chances
    length            : measurements made
    rate, none        : share of finds; not one so far
    top               : the largest chance
    size              : cells found in each group of touching finds
    """
    m, n, found = int(seen.searchable.sum()), len(seen.cells), float(seen.hits.sum())

    def logit(count: float) -> float:
        inside = min(max(count, 0.0), float(m))
        return float(np.log((inside + 0.5) / (m - inside + 0.5)))

    p = seen.probability[seen.searchable]
    kriged = logit(kriged_moments[0])
    better = logit(float(corrected(p, seen.forecast, seen.hits).sum()))
    rate = float(np.log((found + 0.5) / (n - found + 2.0)))
    length = float(np.log1p(min(n, LONG))) / 5
    groups = groups_of(seen.grid, seen.cells[seen.hits > 0.5])
    return {
        "one": 1.0,
        "kriged": kriged,
        "corrected": better,
        "length": length,
        "rate": rate,
        "none": length * (found == 0),
        "size": float(np.log((found + 1) / (groups + 1))),
        "length x (corrected - kriged)": length * (better - kriged),
        "length x (rate - kriged)": length * (rate - kriged),
        "length x top": length * (float(p.max()) - 0.5),
    }


def log_choose(n: Array | float, k: Array | float) -> Array:
    """Logarithm of the number of ways to choose k of n."""
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def log_beta_binomial(k: Array, n: Array | float, a: Array | float, b: Array | float) -> Array:
    """Log-probability of k out of n where the chance is Beta(a, b)."""
    from scipy.special import betaln, gammaln

    tried = gammaln(k + a) + gammaln(n - k + b) - gammaln(n + a + b)
    return np.asarray(log_choose(n, k) + tried - betaln(a, b))


def quantiles(masses: Array, level: float) -> tuple[int, int]:
    """The narrowest whole numbers that leave out at most (1 - level) / 2 on each side."""
    ends = np.searchsorted(np.cumsum(masses), [(1 - level) / 2, (1 + level) / 2])
    low, high = np.minimum(ends, len(masses) - 1)
    return int(low), int(high)


def is_led(seen: SearchSoFar) -> bool:
    """Whether the policy tells the cells apart, so that its finds led it."""
    p = seen.probability[seen.searchable]
    return bool(len(p) and np.ptp(p) >= EVEN)


def distribution(seen: SearchSoFar) -> Array:
    """(m + 1,) probabilities of 0, ..., m targets among the m searchable cells.

    Cells that were visited and may hold a target that was missed add theirs (``missed``).
    """
    unsure = seen.unsure
    if unsure.any() and seen.misses is not None:
        never = distribution(replace(seen, searchable=seen.searchable & ~unsure))
        return sum_of(never, seen.misses.masses(unsure))
    m = int(seen.searchable.sum())
    if m == 0:
        return np.ones(1)
    kriged = kriging_of(seen)
    masses = _normal(m, *kriged)
    if is_led(seen):
        share = insurance(seen.chance)
        masses = share * masses + (1 - share) * _led(m, features(seen, kriged))
    return masses


def insurance(chance: float) -> float:
    """Share of kriging where visits find a target with this chance."""
    return min(INSURANCE + MISSING * (1 - chance), MOST)


def kriging_of(seen: SearchSoFar) -> tuple[float, float]:
    """Mean and variance of the number of targets left by kriging alone."""
    return moments(seen.grid, seen.searchable, seen.cells, seen.hits)


def by_kriging(seen: SearchSoFar) -> Array:
    """(m + 1,) the same probabilities by kriging alone."""
    return _normal(int(seen.searchable.sum()), *kriging_of(seen))


def _normal(m: int, mean: float, variance: float) -> Array:
    """The normal density at 0, ..., m, scaled to a sum of 1."""
    logs = -((np.arange(m + 1) - mean) ** 2) / (2 * variance)
    masses = np.exp(logs - logs.max())
    return np.asarray(masses / masses.sum())


def _led(m: int, x: dict[str, float]) -> Array:
    """The learnt beta-binomial distribution for features x."""
    eta, log_kappa = (
        float(np.clip(sum(weight * x[name] for name, weight in table.items()), *limits))
        for table, limits in zip((SHARE, CONCENTRATION), LIMITS, strict=True)
    )
    share, kappa = 1 / (1 + np.exp(-eta)), np.exp(log_kappa)
    masses = np.exp(log_beta_binomial(np.arange(m + 1.0), m, share * kappa, (1 - share) * kappa))
    return np.asarray(masses / masses.sum())


def remaining(seen: SearchSoFar, *, level: float = 0.8) -> Remaining:
    """What is left among the searchable cells."""
    return summary(distribution(seen), level)


def summary(masses: Array, level: float) -> Remaining:
    """Probabilities of 0, ..., m targets in a few figures.

    The interval leaves out at most (1 - level) / 2 on each side; where the distribution is so
    lopsided that the expectation would lie outside, the interval is widened to hold it.
    """
    m = len(masses) - 1
    expected = min(float(masses @ np.arange(m + 1)), float(m))
    low, high = quantiles(masses, level)
    return Remaining(
        round(expected, 2),
        int(min(low, np.floor(expected))),
        int(min(max(high, np.ceil(expected)), m)),
        level,
        round(float(max(1 - masses[0], 0.0)), 4),
    )
