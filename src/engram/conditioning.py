"""A Gaussian process over the cells, conditioned on observations that come one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Pairs(Protocol):
    """A covariance of all pairs of cells, by rows."""

    def row(self, index: int) -> Array:
        """(n_cells,) between one cell and every cell."""

    def block(self, index: NDArray[np.intp]) -> Array:
        """(len(index), n_cells) between some cells and every cell."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The process before any observation: mean and variance (n_cells,), covariance by rows."""

    mean: Array
    variance: Array
    pairs: Pairs


class Posterior:
    r"""The process given observations, for fixed hyperparameters.

    Rows of ``factor`` are :math:`L^{-1} K(X, \cdot)`, (n, n_cells), with :math:`L` the Cholesky
    factor of the covariance of the n outcomes; mean and var are (n_cells,).
    """

    def __init__(
        self,
        prior: Prior,
        noise: float,
        index: NDArray[np.intp],
        values: Array,
        more: Array | float = 0.0,
    ) -> None:
        """``more`` is noise of each outcome beside the ``noise`` of all."""
        from scipy.linalg import cholesky, solve_triangular

        self._pairs, self._noise = prior.pairs, noise
        self.count = len(index)
        self.factor = np.zeros((max(64, 2 * self.count), len(prior.mean)))
        self.mean = prior.mean.copy()
        self.var = prior.variance.copy()
        if self.count:
            shared = prior.pairs.block(index)
            own = shared[:, index] + (noise + more) * np.eye(self.count)
            lower = cholesky(own, lower=True, check_finite=False)
            both = np.column_stack([shared, values - prior.mean[index]])
            solved = solve_triangular(lower, both, lower=True, check_finite=False)
            rows = solved[:, :-1]
            self.factor[: self.count] = rows
            self.mean += solved[:, -1] @ rows
            self.var -= np.einsum("ij,ij->j", rows, rows)

    def append(self, index: int, value: float) -> None:
        """One more observation: one more row of the factor."""
        if self.count == len(self.factor):
            self.factor = np.concatenate([self.factor, np.zeros_like(self.factor)])
        past = self.factor[: self.count]
        spread = np.sqrt(max(self.var[index], 0.0) + self._noise)
        row = (self._pairs.row(index) - past[:, index] @ past) / spread
        self.factor[self.count] = row
        self.count += 1
        self.mean += row * ((value - self.mean[index]) / spread)
        self.var -= row**2

    def responses(self) -> Responses:
        """As of now: rows that are written are never changed."""
        return Responses(self._pairs, self._noise, self.factor[: self.count], self.var.copy())


@dataclass(frozen=True, eq=False)
class Responses:
    """What a measurement of a cell does to the mean of every cell, at one moment of a model."""

    pairs: Pairs
    noise: float
    rows: Array
    var: Array

    def __call__(self, cells: NDArray[np.intp], more: float = 0.0) -> Array:
        """(len(cells), n_cells), see :meth:`SpatialModel.response`; ``more`` is further noise."""
        shared = self.pairs.block(cells) - self.rows[:, cells].T @ self.rows
        spread = np.maximum(self.var[cells], 0.0) + self.noise + more
        return np.asarray(shared / spread[:, None])
