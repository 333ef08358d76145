r"""A Gaussian process over place and layers: "layer and neighbourhood" in one belief.

The outcome of cell :math:`q` is modelled as :math:`y_q = m_q + \sum_l g_l(q) + f(q) + \varepsilon`
with the field :math:`f`, level and noise of ``engram.spatial``, and for every layer a smooth
function of its scores (``engram.layers``) with few terms :math:`\phi_l(q)`,

.. math::  g_l(q) = \phi_l(q)^\top w_l , \quad w_l \sim \mathcal N(0, a_l I) .

The terms are the score itself and smooth bumps along it, or one for each category; cells where the
layer is missing have one of their own. The size :math:`a_l` of every layer is learnt with the
field's hyperparameters by marginal likelihood under a wide log-normal prior. Of several layers most
may be useless: the mode of the prior of each is ``SIZE`` times the probability, given the
measurements, that it is the one that matters (each alone, or none, equally likely beforehand). So a
layer that explains nothing fades at once, and a second one that explains much comes back. While
little is measured, cells at the ends of a layer are the doubtful ones, so that a rule that values
doubt tests the layer there.

A user who expects more (or less) target where a layer is high gives :math:`w_l` a mean of that
sign. A belief map :math:`b` is the mean, :math:`m_q = 0.2 + w (b_q - 0.2)` with
:math:`w \sim \mathcal N(1, 0.5^2)`: how far it is trusted is learnt; its scores count as one more
layer, so that a map that is right in its order only is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.conditioning import Prior
from engram.geometry import CellPairs
from engram.grid import Grid
from engram.layer_effects import Effect
from engram.layers import BELIEF, Layer, Layers, normal_scores
from engram.spatial import EVALUATIONS, MEAN, PRIOR_SD, Array, Hyperparameters, SpatialModel

SIZE, SIZE_SD, SIZES_SD = 0.1, 3.0, 2.0
"""Size of a layer that matters; log-normal widths of the prior of one layer's size, and of each of
several, of which most may not matter."""
FADED = 3e-4
"""Smallest mode of that prior."""
SMALLEST, LARGEST = 1e-5, 2.0
"""Bounds of a layer's size."""
BUMPS, WIDTH, CURVED = 7, 0.7, 0.5
"""Smooth terms of a layer, their width in units of its scores, their variance beside the line's."""
EXPECTED_SLOPE = 0.15
"""Outcome per unit of score that 'more' and 'less' start from."""
DISTRUST = 0.5
"""Standard deviation of the weight of a belief map."""
FEWEST = 3
"""Finds, and blanks, before sizes are learnt: blanks alone would say that nothing varies."""
TEST = 1.5
"""How much doubt of layers counts beyond the doubt of the cell."""
ENDS = 0.1
"""Share of the cells that are called a layer's high end, and its low end."""
NINETY = 1.6449
"""Standard deviations on each side of a 90 % interval."""
FLOOR = 0.01


@dataclass(frozen=True)
class LayeredHyperparameters(Hyperparameters):
    """Those of the field, and the size of every layer."""

    sizes: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Terms:
    """What one layer brings: terms (n_cells, k), their expected sum (n_cells,), its ends.

    ends : (n_cells,) weights whose sum with the layer's function is its high end less its low one;
        zero for categories
    """

    name: str
    columns: Array
    expected: Array
    ends: Array


def known_layers(layers: Layers) -> list[Layer]:
    """The layers, and the scores of a belief map that tells cells apart as one more."""
    known = list(layers)
    if layers.belief is not None and np.ptp(layers.belief[layers.grid.open_cells]) > 0:
        known.append(Layer(BELIEF, layers.belief))
    return known


def terms_of(layer: Layer, grid: Grid) -> Terms:
    """The terms of one layer."""
    none = layer.missing
    own = [none.astype(np.float64)] if none.any() else []
    flat = np.zeros(grid.n_cells)
    if layer.categories:
        kinds = [(layer.values == k).astype(np.float64) for k in range(len(layer.categories))]
        return Terms(layer.name, np.stack([*kinds, *own], axis=1), flat, flat)
    u, sign = normal_scores(layer.values, grid.open_cells)
    bumps = np.where(none[:, None], 0.0, _bumps(u))
    up = {"more": sign, "less": -sign}.get(layer.expected, 0.0)
    columns = np.column_stack([u, np.sqrt(CURVED) * bumps, *own])
    return Terms(layer.name, columns, EXPECTED_SLOPE * up * u, sign * _ends(u, none, grid))


def _bumps(u: Array) -> Array:
    """(n_cells, BUMPS) terms whose products are smooth bumps around evenly spaced scores."""
    knots = np.linspace(u.min(), u.max(), BUMPS)

    def near(a: Array, b: Array) -> Array:
        return np.asarray(np.exp(-((a[:, None] - b) ** 2) / (2 * WIDTH**2)))

    root = np.linalg.cholesky(near(knots, knots) + 1e-6 * np.eye(BUMPS))
    return np.linalg.solve(root, near(knots, u)).T


def _ends(u: Array, none: NDArray[np.bool_], grid: Grid) -> Array:
    """(n_cells,) weights of the open cells with the highest and lowest scores."""
    cells = grid.open_cells[~none[grid.open_cells]]
    count = max(1, int(np.ceil(ENDS * len(cells))))
    order = np.sort(u[cells])
    high, low = u >= order[-count], u <= order[count - 1]
    inside = np.zeros(grid.n_cells, bool)
    inside[cells] = True
    high, low = high & inside, low & inside
    return np.asarray(high / high.sum() - low / low.sum())


def strongest_kind(terms: Terms, layers: Layers, g: Array) -> tuple[Array, str]:
    """The category that the function g (n_cells,) of a layer raises most.

    Weights (n_cells,) whose sum with g is that category less all open cells, and its name.
    """
    kinds, cells = layers.get(terms.name).categories, layers.grid.open_cells
    every = np.bincount(cells, minlength=len(g)) / len(cells)
    shares = [k * every / max((k * every).sum(), 1e-12) for k in terms.columns.T]
    chosen = int(np.argmax([share @ g for share in shares[: len(kinds)]]))
    return shares[chosen] - every, kinds[chosen]


def _odds(p: float) -> float:
    """Log-odds of a probability, held away from 0 and 1."""
    held = min(max(p, FLOOR), 1 - FLOOR)
    return float(np.log(held / (1 - held)))


class _LayeredPairs:
    """Covariance of all pairs of cells: of the field, and of terms (n_cells, k) that are shared."""

    def __init__(self, field: CellPairs, terms: Array) -> None:
        self.field, self.terms = field, terms

    def row(self, index: int) -> Array:
        return np.asarray(self.field.row(index) + self.terms @ self.terms[index])

    def block(self, index: NDArray[np.intp]) -> Array:
        return np.asarray(self.field.block(index) + self.terms[index] @ self.terms.T)


@dataclass(frozen=True, eq=False)
class Weights:
    """Normal belief of the weights of all terms: terms (n_cells, k), mean (k,), covariance (k, k).

    The prior of every weight is the standard normal one: sizes are part of the terms.
    """

    terms: Array
    mean: Array
    covariance: Array

    def spread(self) -> Array:
        """(n_cells,) standard deviation of what layers add to a cell."""
        variance = np.einsum("ij,ij->i", self.terms @ self.covariance, self.terms)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)), np.float64)


class LayeredModel(SpatialModel):
    """Posterior of the outcome of every cell given the measured ones and the layers."""

    def __init__(self, grid: Grid, layers: Layers, *, nu: float = 1.5) -> None:
        self.layers = layers
        self.terms: Sequence[Terms] = [
            terms_of(layer, layers.grid) for layer in known_layers(layers)
        ]
        self.level = np.full(grid.n_cells, MEAN) if layers.belief is None else layers.belief
        self.trust = DISTRUST * (self.level - MEAN)
        self.expected: Array = self.level + sum((t.expected for t in self.terms), 0.0)
        self._weights: Weights | None = None
        super().__init__(grid, nu=nu)

    def _first(self, length: float) -> LayeredHyperparameters:
        count = len(self.terms)
        size = SIZE / np.sqrt(max(1, count))
        return LayeredHyperparameters(0.2, length, 0.01, (size,) * count)

    @property
    def sizes(self) -> tuple[float, ...]:
        """Of every layer, as learnt."""
        assert isinstance(self.hyperparameters, LayeredHyperparameters)
        return self.hyperparameters.sizes

    def prior(self) -> Prior:
        field = super().prior()
        assert isinstance(field.pairs, CellPairs)
        scaled = [np.sqrt(a) * t.columns for a, t in zip(self.sizes, self.terms, strict=True)]
        shared = np.column_stack([*scaled, self.trust])
        more = np.einsum("ij,ij->i", shared, shared)
        return Prior(self.expected, field.variance + more, _LayeredPairs(field.pairs, shared))

    def fit(self, coords: ArrayLike, outcomes: ArrayLike, factors: Array | None = None) -> Self:
        super().fit(coords, outcomes, factors)
        self._weights = None
        return self

    def weights(self) -> Weights:
        """What is believed of the weights of all terms, given the observations."""
        if self._weights is None:
            self._weights = self._believed()
        return self._weights

    def _believed(self) -> Weights:
        from scipy.linalg import cho_factor, cho_solve

        index, values, more = self._index, self._values, np.zeros(len(self._index))
        if self._sites is not None:
            index, values, more = self._sites.index, self._sites.values, self._sites.noise
        noise = self.hyperparameters.noise + more
        prior = self.prior()
        assert isinstance(prior.pairs, _LayeredPairs)
        shared = prior.pairs.terms
        if not len(index):
            return Weights(shared, np.zeros(shared.shape[1]), np.eye(shared.shape[1]))
        own = prior.pairs.field.between(index) + shared[index] @ shared[index].T
        factor = cho_factor(own + noise * np.eye(len(index)), lower=True, check_finite=False)
        residual = values - prior.mean[index]
        both = np.column_stack([residual, shared[index]])
        solved = cho_solve(factor, both, check_finite=False)
        mean = shared[index].T @ solved[:, 0]
        return Weights(shared, mean, np.eye(len(mean)) - shared[index].T @ solved[:, 1:])

    def doubt(self) -> Array:
        """(n_cells,) doubt of every cell, that of its layers counted once more.

        What a measurement says of a layer it says of many cells, which the doubt of the cell alone
        does not tell.
        """
        _, sd = self.predict()
        return np.asarray(sd + TEST * self.weights().spread())

    # -- what layers contributed -----------------------------------------------------------

    def contributions(self, index: int) -> dict[str, float]:
        """What every layer adds to the log-odds of target of a cell, beside an average cell."""
        p = float(self.predict()[0][index])
        added = {t.name: self._function(i) for i, t in enumerate(self.terms)}
        if self.layers.belief is not None:
            trusted = self.level + self.trust * self.weights().mean[-1] - MEAN
            added[BELIEF] = added.get(BELIEF, 0.0) + trusted
        cells = self.layers.grid.open_cells
        return {
            name: float(_odds(p) - _odds(p - (g[index] - g[cells].mean())))
            for name, g in added.items()
        }

    def effects(self) -> list[Effect]:
        """What every layer is believed to do, with intervals; the strongest first."""
        found = [self._effect(i) for i in range(len(self.terms))]
        return sorted(found, key=lambda effect: -abs(effect.change))

    def _slice(self, i: int) -> slice:
        """Where the weights of layer i lie among all."""
        widths = [t.columns.shape[1] for t in self.terms]
        return slice(sum(widths[:i]), sum(widths[: i + 1]))

    def _function(self, i: int) -> Array:
        """(n_cells,) what layer i is expected to add to the outcome."""
        weights, own = self.weights(), self._slice(i)
        return np.asarray(self.terms[i].expected + weights.terms[:, own] @ weights.mean[own])

    def _effect(self, i: int) -> Effect:
        terms, weights, own = self.terms[i], self.weights(), self._slice(i)
        g, cells = self._function(i), self.layers.grid.open_cells
        ends, best = terms.ends, ""
        if not ends.any():
            ends, best = strongest_kind(terms, self.layers, g)
        level = float(np.clip(self.predict()[0][cells].mean(), 0.0, 1.0)) - g[cells].mean()
        high, low = (float(np.maximum(s * ends, 0) @ g) + level for s in (1, -1))
        along = ends @ weights.terms[:, own]
        variance = float(along @ weights.covariance[own, own] @ along)
        spread = NINETY * max(variance, 0.0) ** 0.5

        def change(by: float) -> float:
            return float(_odds(high + by / 2) - _odds(low - by / 2))

        return Effect(terms.name, change(0.0), change(-spread), change(spread), best)

    def learnt(
        self, index: NDArray[np.intp], values: Array, more: Array | float = 0.0
    ) -> LayeredHyperparameters:
        """Marginal likelihood times priors, maximised from the prior's mode."""
        from scipy.linalg import cho_factor, cho_solve
        from scipy.optimize import minimize

        start = self.start
        assert isinstance(start, LayeredHyperparameters)
        if min((values > 0).sum(), (values <= 0).sum()) < FEWEST:
            return start
        several = len(self.terms) > 1
        width = np.array([*PRIOR_SD, *[SIZES_SD if several else SIZE_SD] * len(self.terms)])
        limits = np.log([(SMALLEST, LARGEST)] * len(self.terms)).reshape(-1, 2)
        places, residual = self.grid.geometry.places(index), values - self.expected[index]
        parts = [t.columns[index] @ t.columns[index].T for t in self.terms]
        trust = np.outer(self.trust[index], self.trust[index]) + more * np.eye(len(index))
        kernel = self._kernel(start)
        sizes = start.sizes
        if several:
            sizes = _modes(kernel(places) + trust, parts, residual)
        mode = np.log([start.variance, start.length, start.noise, *sizes])

        def loss(theta: Array) -> tuple[float, Array]:
            own, slopes = kernel.clone_with_theta(theta[:3])(places, eval_gradient=True)
            now = np.exp(theta[3:])
            total = own + trust + sum((a * k for a, k in zip(now, parts, strict=True)), 0.0)
            factor = cho_factor(total, lower=True, check_finite=False)
            solved = cho_solve(factor, residual, check_finite=False)
            inverse = cho_solve(factor, np.eye(len(index)), check_finite=False)
            value = -0.5 * residual @ solved - np.log(np.diag(factor[0])).sum()
            weight = np.outer(solved, solved) - inverse
            field = 0.5 * np.einsum("ij,ijk->k", weight, slopes)
            layers = [0.5 * a * (weight * k).sum() for a, k in zip(now, parts, strict=True)]
            away = (theta - mode) / width
            slope = np.array([*field, *layers])
            return 0.5 * float(away @ away) - float(value), away / width - slope

        best = minimize(
            loss,
            mode,
            jac=True,
            method="L-BFGS-B",
            bounds=np.concatenate([self._bounds, limits]),
            options={"maxfun": EVALUATIONS, "ftol": 1e-5},
        )
        variance, length, noise, *learnt = (float(v) for v in np.exp(best.x))
        return LayeredHyperparameters(variance, length, noise, tuple(learnt))


def _modes(without: Array, parts: Sequence[Array], residual: Array) -> tuple[float, ...]:
    """Modes of the priors of the layers' sizes, by the evidence of each alone beside that of none.

    without : (n, n) covariance of the outcomes without layers;  parts : the layers', of size 1
    """
    from scipy.linalg import cho_factor, cho_solve

    evidence = []
    for covariance in (without, *(without + SIZE * part for part in parts)):
        factor = cho_factor(covariance, lower=True, check_finite=False)
        solved = cho_solve(factor, residual, check_finite=False)
        evidence.append(-0.5 * residual @ solved - np.log(np.diag(factor[0])).sum())
    chances = np.exp(np.array(evidence) - max(evidence))
    chances /= chances.sum()
    return tuple(float(v) for v in np.maximum(SIZE * chances[1:], FADED))
