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
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from engram.campaign.coefficients import CONCENTRATION, SHARE
from engram.campaign.correction import corrected
from engram.campaign.kriging import moments
from engram.grid import Grid

Array = NDArray[np.float64]

RECENT = 20
"""Measurements that count as the latest ones."""

LONG, LARGE = 300, 1024
"""Measurements, and cells left, beyond which a search counts as just long and an area as just
large: none in the fit was longer or larger."""

INSURANCE = 0.1
"""Share of kriging in a search led by finds. On held-out scenes 0.02 to 0.05 is best and 0.1 costs
0.01 nats; chosen on ball tasks 0 to 99, where too little remained in the tails."""

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
class Evidence:
    """What a search has measured and what its policy believes.

    searchable  : (n_cells,) cells that can still be measured
    cells, hits : (n,) measured cells in order, and 1 where target was found
    forecast    : (n,) the policy's chance of target of each, before it was measured
    probability : (n_cells,) its chances now
    """

    grid: Grid
    searchable: NDArray[np.bool_]
    cells: NDArray[np.intp]
    hits: Array
    forecast: Array
    probability: Array


def features(seen: Evidence, kriged_moments: tuple[float, float]) -> dict[str, float]:
    """What the coefficients are applied to, in logits and logarithms.

    kriged, corrected : share of target by kriging, and by the policy's corrected chances
    length, area      : measurements made, cells left; done: the measured share of the area
    rate, recent      : share of finds, in all and among the latest; none: not one so far
    top, contrast     : the largest chance; how much of all chance lies in likely cells
    surprise          : finds against what was forecast
    firm              : how sure kriging is (the concentration that gives its variance)
    groups, size      : groups of touching finds, and cells found in each
    """
    m, n, found = int(seen.searchable.sum()), len(seen.cells), float(seen.hits.sum())

    def logit(count: float) -> float:
        inside = min(max(count, 0.0), float(m))
        return float(np.log((inside + 0.5) / (m - inside + 0.5)))

    mean, variance = kriged_moments
    p = seen.probability[seen.searchable]
    total, top = float(p.sum()), float(p.max())
    kriged, better = logit(mean), logit(float(corrected(p, seen.forecast, seen.hits).sum()))
    rate = float(np.log((found + 0.5) / (n - found + 2.0)))
    recent = float(seen.hits[-RECENT:].mean()) if n else 0.2
    share = 1 / (1 + np.exp(-kriged))
    firm = float(np.log(share * (1 - share) * m * m / variance))
    length = float(np.log1p(min(n, LONG))) / 5
    groups = _groups(seen)
    return {
        "one": 1.0,
        "kriged": kriged,
        "corrected": better,
        "length": length,
        "length x (corrected - kriged)": length * (better - kriged),
        "rate": rate,
        "length x (rate - kriged)": length * (rate - kriged),
        "length x recent": length * (recent - 0.3),
        "none": length * (found == 0),
        "top": top - 0.5,
        "length x top": length * (top - 0.5),
        "contrast": float(np.log((float((p * p).sum()) + 0.1) / (total + 0.1))),
        "surprise": float(np.log((found + 1) / (float(seen.forecast.sum()) + 1))),
        "length x firm": length * firm,
        "groups": float(np.log1p(groups)),
        "size": float(np.log((found + 1) / (groups + 1))),
        "area": float(np.log(min(m, LARGE) / LARGE)),
        "done": n / (n + m),
    }


def _groups(seen: Evidence) -> int:
    """Number of groups of touching finds."""
    from scipy.ndimage import label

    found = np.zeros((seen.grid.rows, seen.grid.cols), bool)
    found.flat[seen.cells[seen.hits > 0]] = True
    return int(label(found, np.ones((3, 3)))[1])


def log_masses(m: int, share: float, concentration: float) -> Array:
    """(m + 1,) log-probabilities of 0, ..., m under the beta-binomial distribution."""
    from scipy.special import betaln, gammaln

    i = np.arange(m + 1)
    a, b = share * concentration, (1 - share) * concentration
    ways = gammaln(m + 1) - gammaln(i + 1) - gammaln(m - i + 1)
    return np.asarray(ways + betaln(i + a, m - i + b) - betaln(a, b))


def distribution(seen: Evidence) -> Array:
    """(m + 1,) probabilities of 0, ..., m targets among the m searchable cells."""
    m = int(seen.searchable.sum())
    if m == 0:
        return np.ones(1)
    kriged = kriging_of(seen)
    masses = _blind(m, *kriged)
    if np.ptp(seen.probability[seen.searchable]) >= EVEN:
        masses = INSURANCE * masses + (1 - INSURANCE) * _led(m, features(seen, kriged))
    return masses


def kriging_of(seen: Evidence) -> tuple[float, float]:
    """Mean and variance of the number of targets left by kriging alone."""
    return moments(seen.grid, seen.searchable, seen.cells, seen.hits)


def _blind(m: int, mean: float, variance: float) -> Array:
    """Kriging alone: the normal density at 0, ..., m, scaled to a sum of 1."""
    logs = -((np.arange(m + 1) - mean) ** 2) / (2 * variance)
    masses = np.exp(logs - logs.max())
    return np.asarray(masses / masses.sum())


def _led(m: int, x: dict[str, float]) -> Array:
    """The learnt beta-binomial distribution for features x."""
    eta, log_kappa = (
        float(np.clip(sum(weight * x[name] for name, weight in table.items()), *limits))
        for table, limits in zip((SHARE, CONCENTRATION), LIMITS, strict=True)
    )
    masses = np.exp(log_masses(m, 1 / (1 + np.exp(-eta)), np.exp(log_kappa)))
    return np.asarray(masses / masses.sum())


def remaining(seen: Evidence, *, level: float = 0.8) -> Remaining:
    """What is left among the searchable cells.

    The interval leaves out at most (1 - level) / 2 on each side; where the distribution is so
    lopsided that the expectation would lie outside, the interval is widened to hold it.
    """
    masses = distribution(seen)
    m = len(masses) - 1
    below = np.cumsum(masses)
    expected = min(float(masses @ np.arange(m + 1)), float(m))
    low, high = np.searchsorted(below, [(1 - level) / 2, (1 + level) / 2])
    return Remaining(
        round(expected, 2),
        int(min(low, np.floor(expected))),
        int(min(max(high, np.ceil(expected)), m)),
        level,
        round(float(max(1 - masses[0], 0.0)), 4),
    )
