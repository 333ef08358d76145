r"""A Gaussian process over the cells, learnt from a search's own outcomes.

The outcome of cell :math:`q` is modelled as :math:`y_q = m + f(q) + \varepsilon` with

* :math:`m \sim \mathcal N(0.2, 0.1^2)`, the mean level (integrated out),
* :math:`f` a zero-mean process with a Matern kernel of variance :math:`a` and length
  :math:`\ell`,
* :math:`\varepsilon \sim \mathcal N(0, s)`, everything that neighbours do not share.

:math:`a, \ell, s` maximise the marginal likelihood (``marginal``; scikit-learn's for other
kernels than the usual one) times weak log-normal priors. They are learnt again at fixed numbers of
observations (``last_refit``), always from the same start and from the observations up to that
number, so the model is a function of the ordered observations alone: it does not matter whether
they came one by one or all at once. Between refits the posterior grows by one row of the Cholesky
factor per observation.

Visits that may have missed a target (``engram.detection``) count with noise, all those of one cell
together. What they say of their own cell is Bayes' rule on what all others say of it (the cavity),

.. math::  1 / V_{-q} = 1 / V_q - 1 / n_q, \qquad
           \mu_{-q} = V_{-q} (\mu_q / V_q - y_q / n_q) ,

with :math:`\mu_q, V_q` the posterior of cell q and :math:`y_q, n_q` its outcome and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.conditioning import Posterior, Prior, Responses
from engram.detection import noise_of
from engram.errors import InputError
from engram.geometry import CellPairs, Geometry
from engram.grid import Grid
from engram.marginal import JITTER, matern, matern_evidence

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


@dataclass(frozen=True)
class Learnt:
    """Terms, and the hash of the measurements that they were learnt from."""

    source: bytes
    terms: Hyperparameters


@dataclass(frozen=True, eq=False)
class Sites:
    """Visits put together by cell, in the order of the first visits.

    index, values, odds : (m,) cell, outcome, and what all its visits add to its log-odds of target
    """

    index: NDArray[np.intp]
    values: Array
    odds: Array

    @classmethod
    def of(cls, index: NDArray[np.intp], values: Array, factors: Array) -> Sites:
        """Of visits, (n,); a cell whose visits say nothing in sum is left out."""
        cells, first, place = np.unique(index, return_index=True, return_inverse=True)
        odds, largest = np.zeros(len(cells)), np.zeros(len(cells))
        np.add.at(odds, place, factors)
        np.maximum.at(largest, place, values)
        order = np.argsort(first, kind="stable")
        order = order[odds[order] != 0]
        return cls(cells[order], np.where(odds > 0, largest, 0.0)[order], odds[order])

    @property
    def noise(self) -> Array:
        """(m,) variance of the outcomes."""
        return noise_of(self.odds)


class SpatialModel:
    """Posterior of the outcome of every cell given the measured ones.

    Give ``hyperparameters`` to keep them fixed; otherwise they are learnt.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        nu: float = 1.5,
        hyperparameters: Hyperparameters | None = None,
        extent: float | None = None,
    ) -> None:
        """``extent`` is the longest length that can be learnt, in cells; the area's by default."""
        self.grid, self.nu = grid, nu
        self._fixed = hyperparameters
        extent = grid.geometry.extent if extent is None else extent
        self.start = self._first(max(1.0, float(np.sqrt(extent)) / 2))
        self._bounds = np.log([(1e-2, 2.0), (0.5, max(2.0, extent)), (1e-4, 0.25)])
        self.hyperparameters = hyperparameters or self.start
        self.learnt_last: Learnt | None = None
        self._anchor = 0
        self._sites: Sites | None = None
        self._index: NDArray[np.intp] = np.zeros(0, np.intp)
        self._values: Array = np.zeros(0)
        self._factors: Array = np.zeros(0)
        self._made: Posterior | None = None

    @property
    def _posterior(self) -> Posterior:
        """Made when it is first looked at: it is a table of measurements and cells."""
        if self._made is None:
            self._made = self._conditioned(self._index, self._values)
        return self._made

    def _first(self, length: float) -> Hyperparameters:
        """The mode of the priors, from which learning starts."""
        return Hyperparameters(0.2, length, 0.01)

    def fit(self, coords: ArrayLike, outcomes: ArrayLike, factors: Array | None = None) -> Self:
        """Take the observations, in the order of measurement.

        coords : (n, 2) row and column of the measured cells; outcomes : (n,) in [0, 1]
        factors : (n,) what each report adds to the log-odds of target; None = all are certain
        """
        index, values = self._checked(coords, outcomes)
        if factors is not None and np.isfinite(factors).any():
            return self._fit_visits(index, values, factors)
        anchor = 0 if self._fixed else last_refit(len(values))
        known = len(self._index)
        grows = np.array_equal(index[:known], self._index) and np.array_equal(
            values[:known], self._values
        )
        if anchor != self._anchor or not grows:
            found = self.learnt(index[:anchor], values[:anchor]) if anchor else self.start
            self.hyperparameters = self._fixed or found
            self._made = self._conditioned(index[:anchor], values[:anchor])
        for i in range(self._posterior.count, len(index)):
            self._posterior.append(int(index[i]), float(values[i]))
        self._anchor, self._index, self._values = anchor, index, values
        self._factors, self._sites = np.where(values > 0, np.inf, -np.inf), None
        return self

    def _fit_visits(self, index: NDArray[np.intp], values: Array, factors: Array) -> Self:
        """Take visits of which some leave doubt; the terms are learnt as often as otherwise."""
        anchor = 0 if self._fixed else last_refit(len(values))
        first = (index[:anchor], values[:anchor], factors[:anchor])
        before = (self._index[:anchor], self._values[:anchor], self._factors[:anchor])
        same = all(np.array_equal(a, b) for a, b in zip(first, before, strict=True))
        if anchor != self._anchor or not same:
            sites = Sites.of(*first)
            found = self.learnt(sites.index, sites.values, sites.noise) if anchor else self.start
            self.hyperparameters = self._fixed or found
        sites = Sites.of(index, values, factors)
        noise = self.hyperparameters.noise
        self._made = Posterior(self.prior(), noise, sites.index, sites.values, sites.noise)
        self._anchor, self._index, self._values = anchor, index, values
        self._factors, self._sites = factors, sites
        return self

    def others(self) -> tuple[Array, Array]:
        """As ``predict``, each cell from all visits but its own where those left doubt."""
        mean, var = self._posterior.mean.copy(), np.maximum(self._posterior.var, 0.0)
        if self._sites is not None:
            unsure = np.isfinite(self._sites.odds)
            cells, values = self._sites.index[unsure], self._sites.values[unsure]
            noise = self._sites.noise[unsure] + self.hyperparameters.noise
            mean[cells], var[cells] = without_own(mean[cells], var[cells], values, noise)
        return mean, np.sqrt(var)

    def predict(self) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of m + f, each (n_cells,)."""
        return self._posterior.mean.copy(), np.sqrt(np.maximum(self._posterior.var, 0.0))

    def probability(self) -> Array:
        r"""(n_cells,) probability that a cell holds target, y > 0, in [0, 1].

        The expected outcome is :math:`P(y > 0)\, E[y \mid y > 0]`; the second factor is the
        mean share in the cells found so far (1 where outcomes are yes or no).
        """
        return self.chance_of(self._posterior.mean)

    def chance_of(self, mean: Array) -> Array:
        """The same of any expected outcome."""
        share = (self._values.sum() + 1) / ((self._values > 0).sum() + 1)
        return np.asarray(np.clip(mean / share, 0.0, 1.0))

    def response(self, cells: NDArray[np.intp]) -> Array:
        r"""(len(cells), n_cells) what a measurement of a cell does to the mean of every cell.

        Measuring y in cell x moves the mean of cell z by response[x, z] (y - mean[x]), with
        response = :math:`\mathrm{Cov}(x, z) / (\mathrm{Var}(x) + s)`.
        """
        return self.responses()(cells)

    def responses(self) -> Responses:
        """``response`` as it is now, whatever the model is fitted to later."""
        return self._posterior.responses()

    def _checked(self, coords: ArrayLike, outcomes: ArrayLike) -> tuple[NDArray[np.intp], Array]:
        values = np.array(outcomes, np.float64).reshape(-1)
        cells = np.asarray(coords, np.float64).reshape(-1, 2)
        if len(cells) != len(values):
            raise InputError(f"{len(cells)} cells but {len(values)} outcomes; give one per cell")
        if not np.isfinite(values).all():
            raise InputError("outcomes must be finite numbers; leave out failed measurements")
        rows, cols = cells.astype(np.intp).T
        outside = (rows < 0) | (rows >= self.grid.rows) | (cols < 0) | (cols >= self.grid.cols)
        for i in np.flatnonzero(outside):
            self.grid.index((int(rows[i]), int(cols[i])))  # refuses it
        return np.asarray(rows * self.grid.cols + cols), values

    def _kernel(self, hyperparameters: Hyperparameters) -> Kernel:
        """Covariance of y; its parameters are log (variance, length, noise), in this order."""
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        field = ConstantKernel(hyperparameters.variance) * Matern(
            hyperparameters.length, nu=self.nu
        )
        noise = WhiteKernel(hyperparameters.noise)
        return field + noise + ConstantKernel(MEAN_SD**2, "fixed")

    def _covariance(self, apart: Array) -> Array:
        """Covariance of m + f at these distances."""
        terms = self.hyperparameters
        if self.nu == 1.5:
            return terms.variance * matern(apart / terms.length) + MEAN_SD**2
        flat = self._kernel(terms)(np.zeros((1, 1)), apart.reshape(-1, 1))
        return np.asarray(flat.reshape(apart.shape))

    def _conditioned(self, index: NDArray[np.intp], values: Array) -> Posterior:
        """The posterior under the present hyperparameters."""
        return Posterior(self.prior(), self.hyperparameters.noise, index, values)

    def prior(self) -> Prior:
        """The process under the present hyperparameters, before any observation."""
        cells, pairs = self.grid.n_cells, self.covariance(self.grid.geometry)
        return Prior(np.full(cells, MEAN), np.full(cells, self.prior_variance), pairs)

    @property
    def prior_variance(self) -> float:
        """Variance of every cell before any observation."""
        return self.hyperparameters.variance + MEAN_SD**2

    def covariance(self, geometry: Geometry) -> CellPairs:
        """Of m + f in two cells of an area, or of a part of it."""
        pairs = CellPairs(geometry)
        pairs.use(self._covariance(pairs.distances))
        return pairs

    def learnt(
        self, index: NDArray[np.intp], values: Array, more: Array | float = 0.0
    ) -> Hyperparameters:
        """Marginal likelihood times priors, maximised from the prior's mode.

        ``more`` is noise of each outcome beside the noise that is learnt. What was learnt last is
        not learnt again from the same measurements: a new process that was given it
        (``learnt_last``) does without.
        """
        last, source = self.learnt_last, _digest(index, values, np.asarray(more, np.float64))
        if last is None or last.source != source:
            last = self.learnt_last = Learnt(source, self._most_likely(index, values, more))
        return last.terms

    def _most_likely(
        self, index: NDArray[np.intp], values: Array, more: Array | float
    ) -> Hyperparameters:
        from scipy.optimize import minimize

        evidence = self._evidence(index, values - MEAN, more)
        mode, width = np.log(astuple(self.start)), np.array(PRIOR_SD)

        def loss(theta: Array) -> tuple[float, Array]:
            value, slope = evidence(theta)
            away = (theta - mode) / width
            return 0.5 * float(away @ away) - value, away / width - slope

        best = minimize(
            loss,
            mode,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxfun": EVALUATIONS, "ftol": 1e-5},
        )
        return Hyperparameters(*(float(v) for v in np.exp(best.x)))

    def _evidence(
        self, index: NDArray[np.intp], values: Array, more: Array | float = 0.0
    ) -> Callable[[Array], tuple[float, Array]]:
        """Log marginal likelihood of the parameters of the kernel, and its slope."""
        geometry = self.grid.geometry
        if self.nu == 1.5:
            return matern_evidence(*geometry.pairs(index), values, MEAN_SD**2, more)
        from sklearn.gaussian_process import GaussianProcessRegressor

        process = GaussianProcessRegressor(
            self._kernel(self.start), alpha=more + JITTER, optimizer=None
        )
        process.fit(geometry.places(index), values)
        return partial(process.log_marginal_likelihood, eval_gradient=True, clone_kernel=False)


def _digest(*arrays: NDArray[Any]) -> bytes:
    found = sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    return found.digest()


def without_own(mean: Array, var: Array, values: Array, noise: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of cells as all others have them (the cavity), given their own
    outcomes ``values`` and the noise of these."""
    own = np.maximum(var, 1e-12)
    without = 1 / np.maximum(1 / own - 1 / noise, 1e-3)
    return without * (mean / own - values / noise), without


def last_refit(n: int, part: int = 10) -> int:
    """The largest number of observations, up to n, at which hyperparameters are learnt.

    5, 10, ... 50, then a tenth of the number apart (or another ``part`` of it): 27 refits in 250
    observations.
    """
    at = 0
    following = FIRST_REFIT
    while following <= n:
        at = following
        following += max(FIRST_REFIT, at // part)
    return at
