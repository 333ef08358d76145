r"""How many target cells have not been found yet, and how sure that is.

Cells were not measured at random: a search goes where targets are, so the share of finds says
little about the rest, and a policy's own chances carry its optimism. What is asked for is the
total :math:`N = \sum_{q \in U} y_q` over the cells U that can still be measured, given the
measured ones; geostatistics calls this block kriging. Outcomes are taken as

.. math::  y_q = \mu_0 + \beta + f_q + e_q, \qquad
           \beta \sim \mathcal N(0, B s^2),\; \mathrm{Cov}(f_p, f_q) = s^2 e^{-d_{pq}/\ell},\;
           e_q \sim \mathcal N(0, g s^2)

so that many finds side by side count as little more than one. Where to measure was decided from
measured cells alone, hence the choice of cells needs no model of its own. With
:math:`k = \mathrm{Cov}(N, y) / s^2` and :math:`C = \mathrm{Cov}(y) / s^2`

.. math::  \mathbb E N = \mu_0 |U| + k^\top C^{-1} (y - \mu_0), \qquad
           \mathrm{Var} N = s^2 (1^\top C_{UU} 1 - k^\top C^{-1} k),

averaged over reaches :math:`\ell` and nuggets g by their (tempered) likelihood. N is taken as
normal with these moments, cut off at 0 and :math:`|U|`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid

Array = NDArray[np.float64]

REACHES = (0.7, 1.5, 2.5, 4.0, 6.0, 9.0)
"""Candidates for l, in cells."""

NUGGETS = (0.02, 0.15)
"""Candidates for g."""

MU, SPREAD = 0.2, 0.6
"""Share of target cells expected before any measurement, and B."""

TRUST = 0.3
"""Power of the likelihood: a search that follows its finds learns less about reaches than the
Gaussian model thinks. Chosen on ball-task backtests (``benchmarks/coverage.py``)."""

SCALE, COUNT = 0.15, 4.0
"""s^2 expected before any measurement, and the number of measurements that counts for."""


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


def moments(
    grid: Grid, searchable: NDArray[np.bool_], cells: NDArray[np.intp], hits: Array
) -> tuple[float, float]:
    """Mean and variance of the number of target cells among the searchable ones.

    searchable : (n_cells,) cells that can still be measured
    cells, hits : (n,) measured cells, and 1 where target was found
    """
    rows, cols = np.divmod(cells, grid.cols)
    apart = np.hypot(rows[:, None] - rows, cols[:, None] - cols)
    y, n, m = hits - MU, len(cells), float(searchable.sum())
    logs, means, variances = [], [], []
    for length in REACHES:
        near = _sum_over(grid, searchable, length)
        total = float(near[searchable].sum()) + SPREAD * m * m
        k = near[cells] + SPREAD * m
        for nugget in NUGGETS:
            c = np.exp(-apart / length) + SPREAD + nugget * np.eye(n)
            lower = np.linalg.cholesky(c) if n else c
            a, b = (np.linalg.solve(lower, v) for v in (y, k))
            scale = (float(a @ a) + COUNT * SCALE) / (n + COUNT)
            logs.append(-0.5 * (n + COUNT) * np.log(scale) - np.log(np.diag(lower)).sum())
            means.append(MU * m + float(b @ a))
            variances.append(max(scale * (total + nugget * m - float(b @ b)), 1e-9))
    weights = np.exp(TRUST * (np.array(logs) - max(logs)))
    weights /= weights.sum()
    mean = float(weights @ means)
    return mean, float(weights @ (np.array(variances) + (np.array(means) - mean) ** 2))


def _sum_over(grid: Grid, searchable: NDArray[np.bool_], length: float) -> Array:
    """(n_cells,) for each cell, the sum of exp(-d / length) over the searchable ones."""
    from scipy.signal import fftconvolve

    r, c = grid.rows, grid.cols
    dy, dx = np.mgrid[1 - r : r, 1 - c : c]
    kernel = np.exp(-np.hypot(dy, dx) / length)
    image = searchable.reshape(r, c).astype(np.float64)
    full = fftconvolve(image, kernel)
    return np.asarray(full[r - 1 : 2 * r - 1, c - 1 : 2 * c - 1]).ravel()


def remaining(
    grid: Grid,
    searchable: NDArray[np.bool_],
    cells: NDArray[np.intp],
    hits: Array,
    *,
    level: float = 0.8,
) -> Remaining:
    """What is left among the searchable cells; arguments as for ``moments``."""
    from scipy.stats import truncnorm

    m = int(searchable.sum())
    if m == 0:
        return Remaining(0.0, 0, 0, level, 0.0)
    mean, variance = moments(grid, searchable, cells, hits)
    spread = np.sqrt(variance)
    left = truncnorm((-0.5 - mean) / spread, (m + 0.5 - mean) / spread, mean, spread)
    low, high = left.ppf([(1 - level) / 2, (1 + level) / 2])
    expected = float(np.clip(left.mean(), 0, m))
    return Remaining(
        round(expected, 2),
        int(np.clip(np.floor(low), 0, m)),
        int(np.clip(np.ceil(high), 0, m)),
        level,
        round(float(left.sf(0.5)), 4),
    )
