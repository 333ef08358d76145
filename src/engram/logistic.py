r"""A logistic process over place and layers: what layers say multiplies odds.

Where observers never go no species is recorded, however many are recorded next door: what a layer
says scales the odds of what neighbours say, which a process on the outcomes themselves
(``engram.layered``) cannot express. Here the log-odds of target of cell :math:`q` are

.. math::  f(q) = m_q + \sum_l \phi_l(q)^\top w_l + g(q) , \quad w_l \sim \mathcal N(0, a_l I) ,

with the terms :math:`\phi_l` of ``engram.layered`` and a field :math:`g` with a Matern kernel. The
mean is the level, the slope that a user expects, and for a belief map b
:math:`w\,(\mathrm{logit}\,b_q - m)` with :math:`w \sim \mathcal N(1, 0.5^2)`.

The posterior is Laplace's: normal around its mode. With labels y, weights c (how much the reports
of a cell count, ``detection.weight_of``), :math:`p = \sigma(f)` and :math:`W = c\,p\,(1-p)`,

.. math::  f = m + K\,c\,(y - p), \qquad
           \log p(y) \approx \sum_i c_i \log p(y_i) - \tfrac12 (f - m)^\top K^{-1} (f - m)
           - \tfrac12 \log |I + W^{1/2} K W^{1/2}| .

The last is maximised times log-normal priors for the field's variance and length and the layers'
sizes, from the same start and at the same numbers of visits as ``engram.spatial``, so that the
model is a function of the ordered visits alone. Of several layers most may be useless: as in
``engram.layered`` the mode of the prior of each is ``SIZE`` times the probability that it is the
one that matters, given the visits.

Whether anything that was told beforehand matters at all is judged by the same evidences
(``relevance``): of a field alone at the usual level, :math:`Z_0`, of each layer beside it, as large
as one that is worth following (``WORTH``), and of what is expected alone, :math:`Z_1, \dots, Z_n`,

.. math::  r = \frac{\rho\,\bar Z}{\rho\,\bar Z + (1 - \rho)\,Z_0} , \qquad
           \bar Z = \tfrac1n \sum_l Z_l ,

with :math:`\rho` = ``RELEVANT`` before the first visit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from engram.detection import BOUNDS, weight_of
from engram.geometry import CellPairs
from engram.grid import Grid
from engram.layer_effects import Effect
from engram.layered import (
    DISTRUST,
    EXPECTED_SLOPE,
    NINETY,
    Terms,
    Weights,
    known_layers,
    strongest_kind,
    terms_of,
)
from engram.layers import BELIEF, Layers
from engram.spatial import Array, Sites, last_refit

LEVEL, LEVEL_SD = -1.4, 1.5
"""Log-odds of target of a cell of which nothing is known (0.2), and how they vary between areas."""
FIELD = (1.0, 3.0)
"""Variance of the field in log-odds, and its length in cells: modes of their priors."""
FIELD_SD = (1.0, 0.8)
SIZE, SIZE_SD, SIZES_SD = 1.0, 1.5, 1.5
"""Size of a layer that matters; log-normal widths of the prior of one layer's size, and of each of
several."""
FADED = 3e-3
"""Smallest mode of that prior."""
RELEVANT, WORTH = 0.9, 3.0
"""Chance that anything told beforehand matters, before the first visit, and the size of a layer
that does: the larger, the sooner useless ones are known."""
LIMITS = (0.02, 20.0), (0.5, 30.0), (1e-3, 30.0)
"""Bounds of variance, length and sizes."""
SLOPE = 1.0
"""Log-odds per unit of score that 'more' and 'less' start from."""
EVALUATIONS = 15
"""Evidences evaluated by one refit, at most."""
STEPS, CLOSE = 40, 1e-6
"""Newton steps, at most, and the gain below which the mode is found."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Where the log-odds of n visited cells are most likely.

    p, slope, root : (n,) probability, c (y - p), and the root of W;  lower : the Cholesky factor of
        B = I + root K root;  evidence : Laplace's, without priors
    """

    p: Array
    slope: Array
    root: Array
    lower: Array
    evidence: float


def mode_of(covariance: Array, mean: Array, labels: Array, counts: Array) -> Mode:
    """By damped Newton steps from the prior mean; all arguments (n,) but the covariance (n, n)."""
    from scipy.linalg import cho_solve

    a, signs = np.zeros(len(labels)), 2 * labels - 1

    def worth(a: Array) -> tuple[float, Array]:
        away = covariance @ a
        told = counts * np.logaddexp(0, -signs * (mean + away))
        return float(-0.5 * a @ away - told.sum()), np.asarray(mean + away)

    value, f = worth(a)
    for _ in range(STEPS):
        p = expit(f)
        weight = counts * p * (1 - p)
        root = np.sqrt(weight)
        lower = _lower(covariance, root)
        b = weight * (f - mean) + counts * (labels - p)
        solved = cho_solve((lower, True), root * (covariance @ b), check_finite=False)
        step = b - root * solved - a
        better, at = worth(a + step)
        while better < value and np.abs(step).max() > CLOSE:
            step = step / 2
            better, at = worth(a + step)
        gain, value, f, a = better - value, better, at, a + step
        if gain < CLOSE:
            break
    p = np.asarray(expit(f))
    root = np.sqrt(counts * p * (1 - p))
    lower = _lower(covariance, root)
    evidence = value - float(np.log(np.diag(lower)).sum())
    return Mode(p, counts * (labels - p), root, lower, evidence)


def _lower(covariance: Array, root: Array) -> Array:
    """Cholesky factor of B = I + root K root."""
    from scipy.linalg import cholesky

    inside = np.eye(len(root)) + root[:, None] * covariance * root
    return np.asarray(cholesky(inside, lower=True, check_finite=False))


def slopes_of(mode: Mode, covariance: Array, changes: Sequence[Array], counts: Array) -> Array:
    """(len(changes),) slope of the evidence along changes (n, n) of the covariance.

    That of the evidence at the mode, and what the mode's own move does to the last term.
    """
    from scipy.linalg import cho_solve, solve_triangular

    root, p = mode.root, mode.p
    inner = root[:, None] * cho_solve((mode.lower, True), np.diag(root), check_finite=False)
    halves = solve_triangular(mode.lower, root[:, None] * covariance, lower=True)
    left = np.diag(covariance) - np.einsum("ij,ij->j", halves, halves)
    bend = -0.5 * left * counts * p * (1 - p) * (1 - 2 * p)
    out = []
    for change in changes:
        moved = change @ mode.slope
        direct = 0.5 * mode.slope @ moved - 0.5 * float(np.vdot(inner, change))
        out.append(direct + bend @ (moved - covariance @ (inner @ moved)))
    return np.array(out)


class LogisticModel:
    """Posterior of the log-odds of target of every cell, given visits and layers."""

    def __init__(self, grid: Grid, layers: Layers) -> None:
        self.grid, self.layers = grid, layers
        self.terms: Sequence[Terms] = [
            terms_of(layer, layers.grid) for layer in known_layers(layers)
        ]
        usual = np.full(grid.n_cells, LEVEL)
        believed = usual if layers.belief is None else logit(np.clip(layers.belief, *BOUNDS))
        self.trust = DISTRUST * (believed - usual)
        self.believed = np.asarray(believed)
        expected = sum((t.expected for t in self.terms), np.zeros(grid.n_cells))
        self.expected: Array = self.believed + SLOPE / EXPECTED_SLOPE * expected
        self.pairs = CellPairs(grid.geometry)
        self.start = np.log([*FIELD, *[SIZE] * len(self.terms)])
        self._theta, self._keys = self.start, (b"", b"")
        self.relevance = RELEVANT
        self._condition(Sites(np.zeros(0, np.intp), np.zeros(0), np.zeros(0)))

    # -- fitting ---------------------------------------------------------------------------

    def fit(self, index: NDArray[np.intp], found: Array, factors: Array) -> Self:
        """Take visits in their order: cells, 1 for a find, what each adds to the log-odds."""
        anchor = last_refit(len(index))
        first = Sites.of(index[:anchor], found[:anchor], factors[:anchor])
        every = Sites.of(index, found, factors)
        keys = _key(first), _key(every)
        if keys[0] != self._keys[0]:
            self._theta, self.relevance = self._learn(first)
        if keys != self._keys:
            self._condition(every)
        self._keys = keys
        return self

    def _condition(self, sites: Sites) -> None:
        """The posterior of every cell under the present hyperparameters."""
        from scipy.linalg import solve_triangular

        variance, length = np.exp(self._theta[:2])
        self.pairs.use(_matern(self.pairs.distances, variance, length)[0] + LEVEL_SD**2)
        roots = np.sqrt(np.exp(self._theta[2:]))
        scaled = [a * t.columns for a, t in zip(roots, self.terms, strict=True)]
        shared = np.column_stack([*scaled, self.trust])
        prior = variance + LEVEL_SD**2 + np.einsum("ij,ij->i", shared, shared)
        index, weights = sites.index, np.eye(shared.shape[1])
        if not len(index):
            self.mean, self.var = self.expected.copy(), np.asarray(prior)
            self.weights = Weights(shared, np.zeros(len(weights)), weights)
            self._sites = None
            return
        across = self.pairs.block(index) + shared[index] @ shared.T
        mode = mode_of(across[:, index], self.expected[index], *_labels(sites))
        both = mode.root[:, None] * np.column_stack([across, shared[index]])
        solved = solve_triangular(mode.lower, both, lower=True, check_finite=False)
        cells, own = solved[:, : self.grid.n_cells], solved[:, self.grid.n_cells :]
        self.mean = self.expected + mode.slope @ across
        self.var = np.maximum(prior - np.einsum("ij,ij->j", cells, cells), 0.0)
        self.weights = Weights(shared, mode.slope @ shared[index], weights - own.T @ own)
        self._sites = sites, mode

    def _learn(self, sites: Sites) -> tuple[Array, float]:
        """Evidence times priors, maximised from the prior's mode: log (variance, length, sizes).
        And r, the chance that anything told beforehand matters."""
        from scipy.optimize import minimize

        labels, counts = _labels(sites)
        if not 0 < labels.sum() < len(labels):
            return self.start, RELEVANT
        index, mean = sites.index, self.expected[sites.index]
        apart = self.grid.geometry.between(index)
        parts = [t.columns[index] @ t.columns[index].T for t in self.terms]
        fixed = np.outer(self.trust[index], self.trust[index]) + LEVEL_SD**2

        def covariance(theta: Array) -> tuple[Array, list[Array]]:
            own, *changes = _matern(apart, *np.exp(theta[:2]))
            changes += [a * part for a, part in zip(np.exp(theta[2:]), parts, strict=True)]
            return fixed + own + sum(changes[2:], np.zeros_like(own)), changes

        def evidence(kernels: Iterable[Array]) -> Array:
            return np.array([mode_of(one, mean, labels, counts).evidence for one in kernels])

        field = _matern(apart, *FIELD)[0]
        without = fixed + field
        start, width = self.start.copy(), np.array([*FIELD_SD, *[SIZE_SD] * len(parts)])
        if len(parts) > 1:
            start[2:] = _modes(evidence((without, *(without + SIZE * part for part in parts))))
            width[2:] = SIZES_SD

        def loss(theta: Array) -> tuple[float, Array]:
            total, changes = covariance(theta)
            mode = mode_of(total, mean, labels, counts)
            away = (theta - start) / width
            slope = slopes_of(mode, total, changes, counts)
            return 0.5 * float(away @ away) - mode.evidence, away / width - slope

        limits = np.log([*LIMITS[:2], *[LIMITS[2]] * len(parts)])
        options = {"maxfun": EVALUATIONS, "ftol": 1e-4}
        best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        level = np.full(len(index), LEVEL)
        alone = mode_of(field + LEVEL_SD**2, level, labels, counts).evidence
        told = [without] if self.expects else []
        told += [without + WORTH * part for part in parts]
        return np.asarray(best.x, np.float64), _relevance(alone, evidence(told))

    @property
    def expects(self) -> bool:
        """Whether a belief or a sign was given."""
        return bool((self.expected != LEVEL).any())

    # -- what is believed ------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[float, ...]:
        """Of every layer, as learnt."""
        return tuple(float(v) for v in np.exp(self._theta[2:]))

    def probability(self) -> Array:
        """(n_cells,) that a cell holds target, averaged over what its log-odds may be."""
        return averaged(self.mean, self.var)

    def others(self) -> Array:
        """(n_cells,) as ``probability``, of each cell from all visits but its own where those left
        doubt."""
        mean, var = self.mean.copy(), self.var.copy()
        if self._sites is not None:
            sites, mode = self._sites
            unsure = np.isfinite(sites.odds)
            cells = sites.index[unsure]
            own = np.maximum(var[cells], 1e-9)
            without = own / np.maximum(1 - own * mode.root[unsure] ** 2, 1e-3)
            mean[cells] -= without * mode.slope[unsure]
            var[cells] = without
        return averaged(mean, var)

    def doubt(self) -> Array:
        """(n_cells,) standard deviation of the probability of target."""
        p = self.probability()
        return np.asarray(np.minimum(p * (1 - p) * np.sqrt(self.var), 0.5))

    # -- what layers contributed -----------------------------------------------------------

    def contributions(self, index: int) -> dict[str, float]:
        """What every layer adds to the log-odds of target of a cell, beside an average cell."""
        added = {t.name: self._function(i) for i, t in enumerate(self.terms)}
        if self.layers.belief is not None:
            trusted = self.believed + self.trust * self.weights.mean[-1]
            added[BELIEF] = added.get(BELIEF, 0.0) + trusted
        cells = self.layers.grid.open_cells
        return {name: float(g[index] - g[cells].mean()) for name, g in added.items()}

    def effects(self) -> list[Effect]:
        """What every layer is believed to do, with intervals; the strongest first."""
        found = [self._effect(i) for i in range(len(self.terms))]
        return sorted(found, key=lambda effect: -abs(effect.change))

    def _slice(self, i: int) -> slice:
        """Where the weights of layer i lie among all."""
        widths = [t.columns.shape[1] for t in self.terms]
        return slice(sum(widths[:i]), sum(widths[: i + 1]))

    def _function(self, i: int) -> Array:
        """(n_cells,) what layer i is expected to add to the log-odds."""
        own = self._slice(i)
        told = SLOPE / EXPECTED_SLOPE * self.terms[i].expected
        return np.asarray(told + self.weights.terms[:, own] @ self.weights.mean[own])

    def _effect(self, i: int) -> Effect:
        terms, own, g = self.terms[i], self._slice(i), self._function(i)
        ends, best = terms.ends, ""
        if not ends.any():
            ends, best = strongest_kind(terms, self.layers, g)
        along = ends @ self.weights.terms[:, own]
        variance = float(along @ self.weights.covariance[own, own] @ along)
        change, spread = float(ends @ g), NINETY * max(variance, 0.0) ** 0.5
        return Effect(terms.name, change, change - spread, change + spread, best)


def averaged(mean: Array, var: Array) -> Array:
    """Mean of the logistic function of a normal variable (MacKay's approximation)."""
    return np.asarray(expit(mean / np.sqrt(1 + np.pi / 8 * var)), np.float64)


def _key(sites: Sites) -> bytes:
    """What tells visits from others."""
    return sites.index.tobytes() + sites.odds.tobytes()


def _labels(sites: Sites) -> tuple[Array, Array]:
    """Labels and what they count, (n,) each."""
    return (sites.odds > 0).astype(np.float64), weight_of(sites.odds)


def _matern(apart: Array, variance: float, length: float) -> tuple[Array, Array, Array]:
    """Covariance at some distances, and its slopes along log variance and log length."""
    u = np.sqrt(3.0) / length * apart
    decay = variance * np.exp(-u)
    own = (1 + u) * decay
    return own, own, u**2 * decay


def _relevance(alone: float, told: Array) -> float:
    """r, by the logarithms of the evidence of a field alone and of what was told."""
    gain = float(np.logaddexp.reduce(told)) - np.log(len(told)) - alone
    return float(expit(logit(RELEVANT) + gain))


def _modes(evidence: Array) -> Array:
    """Logarithms of the modes of the priors of sizes, by the evidence of none and of each layer
    alone."""
    chances = np.exp(evidence - evidence.max())
    return np.asarray(np.log(np.maximum(SIZE * chances[1:] / chances.sum(), FADED)))
