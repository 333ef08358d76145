r"""Block kriging from thousands of measurements, in time that grows with their number and the area.

With :math:`C = C_0 + B 1 1^\top` (``campaign.kriging``), each measurement is told by its nearest
neighbours among those before it in a random order (Vecchia's approximation),
:math:`C_0^{-1} \approx W^\top W` with the sparse rows

.. math::  W_i = (e_i - C_i^{-1} c_i) / \sqrt{d_i} , \qquad d_i = 1 + g - c_i^\top C_i^{-1} c_i .

That is enough for the likelihood, :math:`\log |C_0| \approx \sum_i \log d_i`, and leaves few
reaches and nuggets in question. For these the sums are exact: :math:`C_0` is applied by Fourier
transforms, and conjugate gradients, with :math:`W^\top W` before them, solve for y, for 1 and for
the covariance f of y with the sum of the field. What all cells share, :math:`\beta`, is put back by
Woodbury's identity, with :math:`q = 1^\top C_0^{-1} 1`:

.. math::  k^\top C^{-1} y = f^\top C_0^{-1} y
           + B\, (|U| - 1^\top C_0^{-1} f)\; 1^\top C_0^{-1} y \,/\, (1 + B q) .
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engram.campaign.kriging import (
    COUNT,
    MU,
    NUGGETS,
    REACHES,
    SPREAD,
    TRUST,
    Solved,
    scale_of,
    sum_over,
)
from engram.grid import Grid
from engram.seeding import numpy_generator

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]

NEIGHBOURS = 16
"""Neighbours that tell a measurement."""

NEGLIGIBLE = 1e-3
"""Reaches and nuggets whose weight is less than this part of the largest are left out."""

SHARED = 20.0
"""Reaches beyond which cells are taken to share nothing."""

CLOSE, STEPS = 1e-6, 200
"""Conjugate gradients end when what is left is so small, or after so many steps."""


def by_neighbours(
    grid: Grid, searchable: NDArray[np.bool_], cells: NDArray[np.intp], y: Array
) -> list[Solved]:
    """The reaches and nuggets that count."""
    order = numpy_generator(0, "kriging").permutation(len(cells))
    cells, y = cells[order], y[order]
    near = Neighbours.of(grid.geometry.places(cells))
    n, m = len(cells), float(searchable.sum())
    tried: list[tuple[float, float, float, csr_array]] = []
    for length in REACHES:
        for nugget in NUGGETS:
            rows, half_log = near.factor(length, nugget)
            white = rows @ np.column_stack([y, np.ones(n)])
            (yy, y1), (_, q) = white.T @ white
            shared = 1 + SPREAD * q
            scale = scale_of(float(yy - SPREAD * y1**2 / shared), n)
            half_log += 0.5 * float(np.log(shared))
            tried.append((-0.5 * (n + COUNT) * np.log(scale) - half_log, length, nugget, rows))
    best = max(log for log, *_ in tried)
    found = []
    for log, length, nugget, rows in tried:
        if np.exp(TRUST * (log - best)) >= NEGLIGIBLE:
            covariance = Covariance(grid, cells, length, nugget)
            sums = sum_over(grid, searchable, length)
            sides = np.column_stack([y, sums[cells], np.ones(n)])
            solved = conjugate_gradients(covariance, rows, sides)
            (yy, yf, y1), (_, ff, f1), (_, _, q) = sides.T @ solved
            shared, less = 1 + SPREAD * q, m - f1
            scale = scale_of(float(yy - SPREAD * y1**2 / shared), n)
            mean = MU * m + float(yf + SPREAD * less * y1 / shared)
            rest = float(sums[searchable].sum()) + nugget * m - ff + SPREAD * less**2 / shared
            found.append(Solved(float(log), mean, max(scale * rest, 1e-9)))
    return found


@dataclass(frozen=True, eq=False)
class Neighbours:
    """told : (n, k) nearest before each;  known : whether there is one;  apart : (n, k) how far;
    among : (n, k, k) how far from each other."""

    told: NDArray[np.intp]
    known: NDArray[np.bool_]
    apart: Array
    among: Array

    @classmethod
    def of(cls, places: Array) -> Neighbours:
        """Of places (n, 2) in their order, which are taken in growing steps: those of one step
        look at those of the steps before."""
        from scipy.spatial import cKDTree

        n, k = len(places), min(NEIGHBOURS, len(places) - 1)
        told, known = np.zeros((n, k), np.intp), np.zeros((n, k), bool)
        begin = 1
        while begin < n:
            end = min(n, begin + max(1, begin // 4))
            count = min(k, begin)
            tree = cKDTree(places[:begin])
            told[begin:end, :count] = tree.query(places[begin:end], k=[*range(1, count + 1)])[1]
            known[begin:end, :count] = True
            begin = end
        near = places[told]
        return cls(
            told, known, _length(near - places[:, None]), _length(near[:, :, None] - near[:, None])
        )

    def factor(self, length: float, nugget: float) -> tuple[csr_array, float]:
        """W, and log |C_0| / 2."""
        from scipy.sparse import csr_array

        n, k = self.told.shape
        both = self.known[:, :, None] & self.known[:, None]
        among = np.where(both, np.exp(-self.among / length), 0.0)
        among += np.where(self.known, nugget, 1.0)[:, :, None] * np.eye(k)
        own = np.where(self.known, np.exp(-self.apart / length), 0.0)
        weights = np.linalg.solve(among, own[..., None])[..., 0]
        rest = 1 + nugget - np.einsum("nk,nk->n", weights, own)
        values = np.column_stack([np.ones(n), -weights]) / np.sqrt(rest)[:, None]
        columns = np.column_stack([np.arange(n), self.told])
        ends = np.arange(n + 1) * (k + 1)
        rows = csr_array((values.ravel(), columns.ravel(), ends), shape=(n, n))
        return rows, 0.5 * float(np.log(rest).sum())


class Covariance:
    """C_0 applied to columns (n, c), by Fourier transforms over the part of the area that was
    measured."""

    def __init__(self, grid: Grid, cells: NDArray[np.intp], length: float, nugget: float) -> None:
        from scipy.fft import next_fast_len, rfftn

        rows, cols = np.divmod(cells, grid.cols)
        self._rows, self._cols = rows - rows.min(), cols - cols.min()
        self._nugget = nugget
        kernel = np.exp(-grid.geometry.offsets(SHARED * length) / length)
        middle = tuple(side // 2 for side in kernel.shape)
        box = [int(self._rows.max()) + 1, int(self._cols.max()) + 1]
        reach = tuple(map(min, middle, (side - 1 for side in box)))
        kernel = kernel[tuple(slice(c - r, c + r + 1) for c, r in zip(middle, reach, strict=True))]
        self._room = [next_fast_len(b + r, True) for b, r in zip(box, reach, strict=True)]
        spread = np.zeros(self._room)
        spread[: kernel.shape[0], : kernel.shape[1]] = kernel
        spread = np.roll(spread, [-r for r in reach], (0, 1))
        self._kernel = rfftn(spread)

    def __call__(self, columns: Array) -> Array:
        from scipy.fft import irfftn, rfftn

        out = self._nugget * columns
        for c in range(columns.shape[1]):
            image = np.zeros(self._room)
            image[self._rows, self._cols] = columns[:, c]
            full = irfftn(rfftn(image) * self._kernel, self._room)
            out[:, c] += full[self._rows, self._cols]
        return out


def conjugate_gradients(covariance: Covariance, rows: csr_array, sides: Array) -> Array:
    """(n, c) C_0^-1 sides, each column by itself; ``rows`` is W."""
    out = np.zeros_like(sides)
    rest = sides.copy()
    better = rows.T @ (rows @ rest)
    way, product = better.copy(), np.einsum("nc,nc->c", rest, better)
    limit = CLOSE * np.linalg.norm(sides, axis=0)
    for _ in range(STEPS):
        along = covariance(way)
        step = product / np.maximum(np.einsum("nc,nc->c", way, along), 1e-300)
        out += step * way
        rest -= step * along
        if (np.linalg.norm(rest, axis=0) <= limit).all():
            break
        better = rows.T @ (rows @ rest)
        following = np.einsum("nc,nc->c", rest, better)
        way = better + following / np.maximum(product, 1e-300) * way
        product = following
    return out


def _length(apart: Array) -> Array:
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]))
