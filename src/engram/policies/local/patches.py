r"""A Gaussian process on one patch of an area, given the measurements in and around it.

With :math:`L L^\top = K(X, X) + s I` for the measured cells X of the patch and its margin, rows of
``rows`` are :math:`L^{-1} K(X, \cdot)` on the cells of the patch, so that

.. math::  \mu = m + z^\top L^{-1} K(X, \cdot) , \quad z = L^{-1} (y - m) , \qquad
           V = k(0) - \sum_i (L^{-1} K(X, \cdot))_i^2 .

One more measurement is one more row. This is the posterior of ``engram.spatial`` itself wherever
the margin holds all measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.geometry import CellPairs, Geometry
from engram.spatial import MEAN, SpatialModel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

MORE = 32
"""Measurements that a patch gets room for when it is told one more than it has room for. Its rows
are long: twice the room would be megabytes that other patches are forgotten for."""


@dataclass(frozen=True, eq=False)
class Terms:
    """The covariance of cells of a patch of ``shape`` cells and of a ``margin`` around it.

    Cells are given by row and column from the corner of the margin.
    noise : of every outcome;  level : variance of a cell before any measurement
    """

    pairs: CellPairs
    shape: tuple[int, int]
    margin: int
    noise: float
    level: float

    @classmethod
    def of(cls, model: SpatialModel, shape: tuple[int, int], margin: int) -> Terms:
        """As a model has learnt them."""
        geometry = model.grid.geometry
        rows, cols = (n + 2 * margin for n in shape)
        box = Geometry(rows, cols, geometry.height, geometry.width)
        noise = model.hyperparameters.noise
        return cls(model.covariance(box), shape, margin, noise, model.prior_variance)

    def row(self, row: int, col: int) -> Array:
        """(cells of the patch,) between a cell and those of the patch."""
        (rows, cols), (down, right) = self.shape, self.pairs.corner(row, col)
        down, right = down + self.margin, right + self.margin
        return self.pairs.values[down : down + rows, right : right + cols].ravel()

    def among(self, rows: Index, cols: Index) -> Array:
        """(n, n) of some cells."""
        return self.pairs.between(rows * self.pairs.cols + cols)

    def between(self, row: int, col: int, rows: Index, cols: Index) -> Array:
        """(n,) between one cell and others."""
        down, right = self.pairs.corner(row, col)
        return np.asarray(self.pairs.values[down + rows, right + cols])

    def inside(self, row: int, col: int) -> int | None:
        """Position of a cell in the patch, None where it lies in the margin."""
        down, right = row - self.margin, col - self.margin
        if not (0 <= down < self.shape[0] and 0 <= right < self.shape[1]):
            return None
        return down * self.shape[1] + right


class Patch:
    """The process on a patch, mean and var (cells of the patch,).

    rows, cols, values : (n,) measured cells and outcomes;  more : noise of each beside that of all
    """

    def __init__(
        self, terms: Terms, rows: Index, cols: Index, values: Array, more: Array | float = 0.0
    ) -> None:
        from scipy.linalg import cholesky, solve_triangular

        self.terms, self.count = terms, len(values)
        cells = terms.shape[0] * terms.shape[1]
        self.rows, self.cols = rows, cols
        self.lower, self.factor = np.zeros((0, 0)), np.zeros((0, cells))
        self.scaled = np.zeros(0)
        self.mean, self.var = np.full(cells, MEAN), np.full(cells, terms.level)
        if self.count:
            own = terms.among(rows, cols) + (terms.noise + more) * np.eye(self.count)
            lower = cholesky(own, lower=True, check_finite=False)
            places = zip(rows.tolist(), cols.tolist(), strict=True)
            both = np.column_stack([np.stack([terms.row(*p) for p in places]), values - MEAN])
            solved = solve_triangular(lower, both, lower=True, check_finite=False)
            self.lower, self.scaled = lower, solved[:, -1].copy()
            self.factor = np.ascontiguousarray(solved[:, :-1])
            self.mean += solved[:, -1] @ solved[:, :-1]
            self.var -= np.einsum("ij,ij->j", solved[:, :-1], solved[:, :-1])

    def append(self, row: int, col: int, value: float) -> None:
        """One more measurement."""
        from scipy.linalg import solve_triangular

        n = self.count
        if n == len(self.scaled):
            self._grow()
        shared = self.terms.between(row, col, self.rows[:n], self.cols[:n])
        known = solve_triangular(self.lower[:n, :n], shared, lower=True, check_finite=False)
        left = max(self.terms.level - known @ known, 0.0)
        spread = np.sqrt(left + self.terms.noise)
        new = (self.terms.row(row, col) - known @ self.factor[:n]) / spread
        expected = MEAN + known @ self.scaled[:n]
        self.rows[n], self.cols[n] = row, col
        self.lower[n, :n], self.lower[n, n] = known, spread
        self.factor[n], self.scaled[n] = new, (value - expected) / spread
        self.count = n + 1
        self.mean = self.mean + new * self.scaled[n]
        self.var = self.var - new**2

    def _grow(self) -> None:
        n = self.count
        for name in ("rows", "cols", "scaled", "factor"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((MORE, *old.shape[1:]), old.dtype)]))
        lower = np.zeros((n + MORE, n + MORE))
        lower[:n, :n] = self.lower
        self.lower = lower

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return self.lower.nbytes + self.factor.nbytes

    def responses(
        self, rows: Index, cols: Index, box: tuple[slice, slice], more: float = 0.0
    ) -> Array:
        """(k, rows, cols of ``box``) what a measurement of each of k cells does to the mean of the
        cells of a box, all of them cells of the patch.

        box : rows and columns from the corner of the patch;  more : further noise
        """
        places = zip(rows.tolist(), cols.tolist(), strict=True)
        shape = (-1, *self.terms.shape)
        shared = np.stack([self.terms.row(*p).reshape(shape)[(0, *box)] for p in places])
        at = (rows - self.terms.margin) * self.terms.shape[1] + cols - self.terms.margin
        if self.count:
            past = self.factor[: self.count]
            around = past.reshape(shape)[(slice(None), *box)].reshape(self.count, -1)
            shared -= (past[:, at].T @ around).reshape(shared.shape)
        spread = np.maximum(self.var[at], 0.0) + self.terms.noise + more
        return np.asarray(shared / spread[:, None, None])
