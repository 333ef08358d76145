r"""A Gaussian process over the cells, learnt from a search's own outcomes.

The outcome of cell :math:`q` is modelled as :math:`y_q = m + f(q) + \varepsilon` with

* :math:`m \sim \mathcal N(0.2, 0.1^2)`, the mean level (integrated out),
* :math:`f` a zero-mean process with a Matern kernel of variance :math:`a` and length
  :math:`\ell`,
* :math:`\varepsilon \sim \mathcal N(0, s)`, everything that neighbours do not share.

:math:`a, \ell, s` maximise the marginal likelihood (scikit-learn's) times weak log-normal
priors. They are learnt again at fixed numbers of observations (``last_refit``), always from
the same start and from the observations up to that number, so the model is a function of the
ordered observations alone: it does not matter whether they came one by one or all at once.
Between refits the posterior grows by one row of the Cholesky factor per observation.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.errors import InputError
from engram.grid import Grid

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

Array = NDArray[np.float64]

MEAN, MEAN_SD = 0.2, 0.1
FIRST_REFIT = 5
PRIOR_SD = (1.0, 0.7, 1.5)
"""Standard deviations of the log-normal priors of variance, length and noise."""
EVALUATIONS = 30
"""Marginal likelihoods evaluated by one refit, at most."""


@dataclass(frozen=True)
class Hyperparameters:
    """variance of the field, its length in cells, variance of the noise."""

    variance: float
    length: float
    noise: float


class CellPairs:
    """A function of the offset between two cells, for all pairs without a table of all pairs.

    distances : (2 rows - 1, 2 cols - 1) distance of every offset, in cells: the side of a
                square of a cell's area is 1, so cells that are not square are no distortion
    """

    def __init__(self, grid: Grid) -> None:
        self.rows, self.cols = grid.rows, grid.cols
        height, width = (side / np.sqrt(grid.cell[0] * grid.cell[1]) for side in grid.cell)
        dr = np.arange(1 - grid.rows, grid.rows) * height
        dc = np.arange(1 - grid.cols, grid.cols) * width
        self.distances: Array = np.hypot(dr[:, None], dc[None, :])
        self._values = self.distances

    def use(self, values: Array) -> None:
        """Values of the function at ``distances``."""
        self._values = values

    def row(self, index: int) -> Array:
        """(n_cells,) the function between one cell and every cell."""
        r, c = self.rows - 1 - index // self.cols, self.cols - 1 - index % self.cols
        return self._values[r : r + self.rows, c : c + self.cols].ravel()

    def block(self, index: NDArray[np.intp]) -> Array:
        """(len(index), n_cells) the function between some cells and every cell."""
        if not len(index):
            return np.zeros((0, self.rows * self.cols))
        return np.stack([self.row(int(i)) for i in index])


class SpatialModel:
    """Posterior of the outcome of every cell given the measured ones.

    Give ``hyperparameters`` to keep them fixed; otherwise they are learnt.
    """

    def __init__(
        self, grid: Grid, *, nu: float = 1.5, hyperparameters: Hyperparameters | None = None
    ) -> None:
        self.grid, self.nu = grid, nu
        self._pairs = CellPairs(grid)
        self._fixed = hyperparameters
        extent = max(grid.height, grid.width) / float(np.sqrt(grid.cell[0] * grid.cell[1]))
        self._start = Hyperparameters(0.2, max(1.0, float(np.sqrt(extent)) / 2), 0.01)
        self._bounds = np.log([(1e-2, 2.0), (0.5, max(2.0, extent)), (1e-4, 0.25)])
        self._condition(hyperparameters or self._start, np.zeros(0, np.intp), np.zeros(0))

    def fit(self, coords: ArrayLike, outcomes: ArrayLike) -> Self:
        """Take the observations, in the order of measurement.

        coords : (n, 2) row and column of the measured cells; outcomes : (n,) in [0, 1]
        """
        index, values = self._checked(coords, outcomes)
        anchor = 0 if self._fixed else last_refit(len(values))
        known = len(self._index)
        grows = np.array_equal(index[:known], self._index) and np.array_equal(
            values[:known], self._values
        )
        if anchor != self._anchor or not grows:
            learnt = self._fixed or self._learn(index[:anchor], values[:anchor])
            self._condition(learnt, index[:anchor], values[:anchor])
        for i in range(len(self._index), len(index)):
            self._append(int(index[i]), float(values[i]))
        self._index, self._values = index, values
        return self

    def predict(self) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of m + f, each (n_cells,)."""
        return self._mean.copy(), np.sqrt(np.maximum(self._var, 0.0))

    def probability(self) -> Array:
        """(n_cells,) in [0, 1]: the expected outcome, which for yes/no outcomes is the
        probability of target."""
        return np.clip(self._mean, 0.0, 1.0)

    def response(self, cells: NDArray[np.intp]) -> Array:
        r"""(len(cells), n_cells) what a measurement of a cell does to the mean of every cell.

        Measuring y in cell x moves the mean of cell z by response[x, z] (y - mean[x]), with
        response = :math:`\mathrm{Cov}(x, z) / (\mathrm{Var}(x) + s)`.
        """
        rows = self._factor[: self._count]
        shared = self._pairs.block(cells) - rows[:, cells].T @ rows
        spread = np.maximum(self._var[cells], 0.0) + self.hyperparameters.noise
        return np.asarray(shared / spread[:, None])

    def _checked(self, coords: ArrayLike, outcomes: ArrayLike) -> tuple[NDArray[np.intp], Array]:
        values = np.asarray(outcomes, np.float64).reshape(-1)
        cells = np.asarray(coords, np.float64).reshape(-1, 2)
        if len(cells) != len(values):
            raise InputError(f"{len(cells)} cells but {len(values)} outcomes; give one per cell")
        if not np.isfinite(values).all():
            raise InputError("outcomes must be finite numbers; leave out failed measurements")
        index = [self.grid.index((int(r), int(c))) for r, c in cells]
        return np.array(index, np.intp), values

    def _kernel(self, hyperparameters: Hyperparameters) -> Kernel:
        """Covariance of y; its parameters are log (variance, length, noise), in this order."""
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        variance, length, noise = astuple(hyperparameters)
        field = ConstantKernel(variance) * Matern(length, nu=self.nu)
        return field + WhiteKernel(noise) + ConstantKernel(MEAN_SD**2, "fixed")

    def _learn(self, index: NDArray[np.intp], values: Array) -> Hyperparameters:
        """Marginal likelihood times priors, maximised from the prior's mode."""
        if not len(index):
            return self._start
        from scipy.optimize import minimize
        from sklearn.gaussian_process import GaussianProcessRegressor

        height, width = self.grid.cell
        scale = np.array([height, width]) / np.sqrt(height * width)
        places = np.stack(np.divmod(index, self.grid.cols), axis=1) * scale
        process = GaussianProcessRegressor(self._kernel(self._start), optimizer=None)
        process.fit(places, values - MEAN)
        mode, width_of = np.log(astuple(self._start)), np.array(PRIOR_SD)

        def loss(theta: Array) -> tuple[float, Array]:
            value, slope = process.log_marginal_likelihood(
                theta, eval_gradient=True, clone_kernel=False
            )
            away = (theta - mode) / width_of
            return 0.5 * float(away @ away) - value, away / width_of - slope

        best = minimize(
            loss,
            np.clip(mode, self._bounds[:, 0], self._bounds[:, 1]),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxfun": EVALUATIONS, "ftol": 1e-5},
        )
        return Hyperparameters(*(float(v) for v in np.exp(best.x)))

    def _condition(
        self, hyperparameters: Hyperparameters, index: NDArray[np.intp], values: Array
    ) -> None:
        """Start again from these hyperparameters and observations."""
        from scipy.linalg import cholesky, solve_triangular

        self.hyperparameters = hyperparameters
        kernel = self._kernel(hyperparameters)
        distances = self._pairs.distances
        flat = kernel(np.zeros((1, 1)), distances.reshape(-1, 1))
        self._pairs.use(flat.reshape(distances.shape))
        self._index, self._values, self._anchor = index, values, len(index)
        self._count = len(index)
        self._factor = np.zeros((max(64, 2 * len(index)), self.grid.n_cells))
        self._mean = np.full(self.grid.n_cells, MEAN)
        self._var = np.full(self.grid.n_cells, hyperparameters.variance + MEAN_SD**2)
        if len(index):
            shared = self._pairs.block(index)
            own = shared[:, index] + hyperparameters.noise * np.eye(len(index))
            lower = cholesky(own, lower=True, check_finite=False)
            both = np.column_stack([shared, values - MEAN])
            solved = solve_triangular(lower, both, lower=True, check_finite=False)
            rows = solved[:, :-1]
            self._factor[: len(index)] = rows
            self._mean += solved[:, -1] @ rows
            self._var -= np.einsum("ij,ij->j", rows, rows)

    def _append(self, index: int, value: float) -> None:
        r"""One more observation: one more row of the factor :math:`L^{-1} K(X, \cdot)`."""
        n = self._count
        if n == len(self._factor):
            self._factor = np.concatenate([self._factor, np.zeros_like(self._factor)])
        spread = np.sqrt(max(self._var[index], 0.0) + self.hyperparameters.noise)
        past = self._factor[:n]
        row = (self._pairs.row(index) - past[:, index] @ past) / spread
        self._factor[n], self._count = row, n + 1
        self._mean = self._mean + row * ((value - self._mean[index]) / spread)
        self._var = self._var - row**2


def last_refit(n: int) -> int:
    """The largest number of observations, up to n, at which hyperparameters are learnt.

    5, 10, ... 50, then a tenth of the number apart: 28 refits in 250 observations.
    """
    at = 0
    following = FIRST_REFIT
    while following <= n:
        at = following
        following += max(FIRST_REFIT, at // 10)
    return at


def expected_finds(
    mean: Array,
    response: Array,
    cells: NDArray[np.intp],
    available: NDArray[np.bool_],
    left: int,
) -> Array:
    r"""Finds to be expected from ``left`` measurements if some cell is the next of them.

    Looks past the next measurement: after cell x has shown y, the other ``left - 1`` go to
    the most probable cells, all at once,

    .. math::  v(x) = p_x + \sum_{y \in \{0, 1\}} P(y)\, \max_{|S| = left - 1}
               \sum_{z \in S} p(z \mid x, y) , \quad p = \mathrm{clip}(mean, 0, 1) .

    This is exact for ``cells`` (whose ``response`` (len(cells), n_cells) is given); for the
    others the second measurement learns nothing from the first. mean, available : (n_cells,)
    """
    p = np.where(available, np.clip(mean, 0.0, 1.0), 0.0)
    others = min(left, int(available.sum())) - 1
    if others < 1:
        return np.clip(mean, 0.0, 1.0)
    ranked = np.sort(p)[::-1]
    total = ranked[:others].sum() + np.minimum(np.clip(mean, 0.0, 1.0), ranked[others])
    value = p[cells].copy()
    for outcome, chance in ((1.0, p[cells]), (0.0, 1 - p[cells])):
        after = mean + response * (outcome - mean[cells])[:, None]
        np.clip(after, 0.0, 1.0, out=after)
        after[:, ~available] = 0.0
        after[np.arange(len(cells)), cells] = 0.0
        after.partition(after.shape[1] - others, axis=1)
        value += chance * after[:, -others:].sum(axis=1)
    total[cells] = value
    return np.asarray(total)
