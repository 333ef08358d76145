r"""Block kriging: the total of an outcome over many cells, from outcomes measured at others.

What is asked for is :math:`N = \sum_{q \in U} y_q` over the cells U that can still be measured.
Outcomes are taken as

.. math::  y_q = \mu_0 + \beta + f_q + e_q, \qquad
           \beta \sim \mathcal N(0, B s^2),\; \mathrm{Cov}(f_p, f_q) = s^2 e^{-d_{pq}/\ell},\;
           e_q \sim \mathcal N(0, g s^2)

so that many finds side by side count as little more than one. With
:math:`k = \mathrm{Cov}(N, y) / s^2` and :math:`C = \mathrm{Cov}(y) / s^2`

.. math::  \mathbb E N = \mu_0 |U| + k^\top C^{-1} (y - \mu_0), \qquad
           \mathrm{Var} N = s^2 (1^\top C_{UU} 1 - k^\top C^{-1} k),

averaged over reaches :math:`\ell` and nuggets g by their (tempered) likelihood.

Thousands of measurements are not inverted as a whole but solved for (``campaign.nearest``).
"""

from __future__ import annotations

from typing import NamedTuple

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


EXACT = 1000
"""Measurements up to which C is inverted as a whole."""

FAR = 40.0
"""Reaches beyond which cells share nothing that double precision could hold."""


class Solved(NamedTuple):
    """One reach and nugget: log-likelihood, mean and variance of N."""

    log: float
    mean: float
    variance: float


def moments(
    grid: Grid, searchable: NDArray[np.bool_], cells: NDArray[np.intp], hits: Array
) -> tuple[float, float]:
    """Mean and variance of the number of target cells among the searchable ones.

    searchable : (n_cells,) cells that can still be measured
    cells, hits : (n,) measured cells, and 1 where target was found
    """
    if len(cells) <= EXACT:
        solved = _as_a_whole(grid, searchable, cells, hits - MU)
    else:
        from engram.campaign.nearest import by_neighbours

        solved = by_neighbours(grid, searchable, cells, hits - MU)
    logs, means, variances = (np.array(column) for column in zip(*solved, strict=True))
    weights = np.exp(TRUST * (logs - logs.max()))
    weights /= weights.sum()
    mean = float(weights @ means)
    return mean, float(weights @ (variances + (means - mean) ** 2))


def _as_a_whole(
    grid: Grid, searchable: NDArray[np.bool_], cells: NDArray[np.intp], y: Array
) -> list[Solved]:
    """All reaches and nuggets, by the Cholesky factor of C."""
    from scipy.linalg import solve_triangular

    apart = grid.geometry.between(cells)
    n, m = len(cells), float(searchable.sum())
    found = []
    for length in REACHES:
        near = sum_over(grid, searchable, length)
        total = float(near[searchable].sum()) + SPREAD * m * m
        k = near[cells] + SPREAD * m
        for nugget in NUGGETS:
            c = np.exp(-apart / length) + SPREAD + nugget * np.eye(n)
            lower, sides = np.linalg.cholesky(c), np.column_stack([y, k])
            a, b = (solve_triangular(lower, sides, lower=True) if n else sides).T
            scale = scale_of(float(a @ a), n)
            log = -0.5 * (n + COUNT) * np.log(scale) - np.log(np.diag(lower)).sum()
            variance = max(scale * (total + nugget * m - float(b @ b)), 1e-9)
            found.append(Solved(float(log), MU * m + float(b @ a), variance))
    return found


def scale_of(square: float, n: int) -> float:
    """s^2 given y C^-1 y of n measurements."""
    return (square + COUNT * SCALE) / (n + COUNT)


def sum_over(grid: Grid, searchable: NDArray[np.bool_], length: float) -> Array:
    """(n_cells,) for each cell, the sum of exp(-d / length) over the searchable ones."""
    from scipy.fft import irfftn, next_fast_len, rfftn

    r, c = grid.rows, grid.cols
    kernel = np.exp(-grid.geometry.offsets(FAR * length) / length)
    down, right = (side // 2 for side in kernel.shape)
    image = searchable.reshape(r, c).astype(np.float64)
    room = [next_fast_len(n, True) for n in (r + 2 * down, c + 2 * right)]
    full = irfftn(rfftn(image, room) * rfftn(kernel, room), room)
    return np.asarray(full[down : down + r, right : right + c]).ravel()
