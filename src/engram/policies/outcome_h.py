r"""The transient memory of the default preset: an h-transform of the outcomes.

The frozen memory gives each cell q a probability of target :math:`p_\theta(q)`. h tilts it,

.. math::  \mathrm{logit}\, p(q) = \mathrm{logit}\, p_\theta(q) + \zeta^\top \varphi(q) ,

where :math:`\varphi` sees what the paper's h sees, the memory's own estimate, the measured
values and the mask: the share of measured targets and of measured blanks in rings around the
cell, the memory's logit, a plain spatial model's logit and doubt, and a constant. It is
isotropic and has a dozen weights. It is born with the habits of searches in areas of its kind
(``habits``): :math:`\zeta \sim \mathcal N(\mu, \Sigma)`, how such weights usually are and how
they vary together from area to area.

The M-step maximises the evidence of the measurements itself (Proposition 1, Theorem 1),

.. math::  \zeta \leftarrow \arg\max_\zeta \sum_i \log p(y_{q_i} \mid y_{q_1 \dots q_{i-1}})
           - \tfrac\lambda2 (\zeta - \mu)^\top \Sigma^{-1} (\zeta - \mu) ,

each measurement predicted from those before it. Which cell is measured next depends on the
past alone, so this likelihood is free of the selection bias that haunts any training on
"measured cells given the others": a search measures targets far more often than they occur.
The problem is convex; a few Newton steps solve it, and the evidence never falls.

What the updates are worth is judged by measurements they have not seen: each outcome is
predicted by the h of the last update and by h as it was born. Where the updates have lately
predicted worse, h goes back to its initial weights until they predict better again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.ndimage import convolve
from scipy.special import expit, logit

from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import log_likelihood
from engram.policies.habits import Habits, usual

Array = NDArray[np.float64]

RINGS = ((0.0, 1.1), (1.1, 2.3), (2.3, 3.7), (3.7, 5.2))
"""Inner and outer radii, in cells."""
FLOOR = 0.01
LEAST = 0.03
"""Smallest probability of the spatial models that h sees."""
LAYERED = (1.0, 0.5)
"""Mean and standard deviation, over areas, of the weight of what layers say."""
RECENT = 40
"""Measurements that judge the updates."""
PATIENCE = 1.0
"""By how many nats the updates may have predicted them worse."""


def _ring_kernels(grid: Grid) -> list[Array]:
    distance = grid.geometry.neighbourhood(RINGS[-1][1])
    rings = [((distance > a) & (distance <= b)).astype(float) for a, b in RINGS]
    return [ring / ring.sum() for ring in rings]


@dataclass(frozen=True)
class HUpdate:
    """One judged update.

    before, after : penalised evidence of the measurements so far, a measurement, under the h of
        the last update and under the new one
    gain : by how many nats updates have predicted the latest measurements better than h as it
        was born;  accepted : whether the search uses the new h or goes back to the initial one
    """

    t: int
    accepted: bool
    before: float
    after: float
    gain: float


class OutcomeTransform:
    """h on outcomes: learns from every measurement, changes only by judged updates.

    strength : how firmly h is held to its habits, 1 = as learnt
    habits   : those it is born with; by default the ones for any area
    layered  : whether there are layers; what they say beyond the spatial model is then one more
        feature, in log-odds, with the initial weight ``LAYERED``
    """

    def __init__(
        self,
        grid: Grid,
        strength: float = 1.0,
        habits: Habits | None = None,
        *,
        layered: bool = False,
    ) -> None:
        self.grid = grid
        self.kernels = _ring_kernels(grid)
        habits = habits or usual()
        self.initial = habits.mean.copy()
        self.precision: Array = np.asarray(strength * np.linalg.inv(habits.covariance), np.float64)
        if layered:
            mean, width = LAYERED
            self.initial = np.append(self.initial, mean)
            self.precision = block_diag(self.precision, strength / width**2)
        self.weights = self.initial.copy()
        self.learnt = self.initial.copy()
        self._rows: list[Array] = []
        self._hits: list[float] = []
        self._gains: list[float] = []

    def features(
        self,
        own: Array,
        spatial: tuple[Array, Array],
        observations: Observations,
        layered: Array | None = None,
    ) -> Array:
        """(n_cells, k) for the memory's probability and the spatial model's (p, sd).

        layered : (n_cells,) probability by the spatial model that knows the layers, or None
        """
        shape = (self.grid.rows, self.grid.cols)
        hits, blanks = np.zeros(self.grid.n_cells), np.zeros(self.grid.n_cells)
        found, measured = observations.outcomes > 0, observations.indices
        hits[measured], blanks[measured] = found, ~found
        columns = [_logit(own), _logit(spatial[0], LEAST), 2 * spatial[1], np.ones(len(own))]
        for kernel in self.kernels:
            for kind in (hits, blanks):
                around = convolve(kind.reshape(shape), kernel, mode="constant")
                columns.append(4 * around.ravel())
        if layered is not None:
            columns.append(_logit(layered, LEAST) - _logit(spatial[0], LEAST))
        return np.stack(columns, axis=1)

    def apply(self, features: Array) -> Array:
        """Tilted probability (n_cells,)."""
        return tilted(features, self.weights)

    def note(self, features: Array, new: Sequence[Observation]) -> None:
        """Keep what was known of the measured cells before they were measured."""
        for item in new:
            row, hit = features[self.grid.index(item.cell)], float(item.outcome > 0)
            both = (log_likelihood(hit, float(tilted(row, w))) for w in (self.learnt, self.initial))
            learnt, initial = both
            self._rows.append(row)
            self._hits.append(hit)
            self._gains.append(learnt - initial)

    def update(self, t: int) -> HUpdate | None:
        """Learn from all measurements; use what was learnt unless updates lately misled."""
        rows, hits = np.array(self._rows), np.array(self._hits)
        if not len(hits):
            return None
        candidate = most_likely(rows, hits, self.initial, self.precision, self.learnt)
        before, after = (self._evidence(rows, hits, w) for w in (self.learnt, candidate))
        if after < before:  # the optimum was there already, to the last digits
            candidate, after = self.learnt, before
        gain = float(sum(self._gains[-RECENT:]))
        accepted = gain >= -PATIENCE
        self.learnt = candidate
        self.weights = candidate if accepted else self.initial.copy()
        return HUpdate(t, accepted, before, after, gain)

    def _evidence(self, rows: Array, hits: Array, zeta: Array) -> float:
        """What the M-step maximises, a measurement."""
        odds, off = rows[:, 0] + rows @ zeta, zeta - self.initial
        logs = hits * odds - np.logaddexp(0, odds)
        return float((logs.sum() - off @ self.precision @ off / 2) / len(hits))

    def state(self) -> dict[str, Array]:
        """Arrays that restore it."""
        return {
            "weights": self.weights.copy(),
            "learnt": self.learnt.copy(),
            "rows": np.array(self._rows, np.float64).reshape(-1, len(self.weights)),
            "hits": np.array(self._hits, np.float64),
            "gains": np.array(self._gains, np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Return to a saved state."""
        self.weights = np.array(state["weights"], np.float64)
        self.learnt = np.array(state["learnt"], np.float64)
        self._rows = list(np.array(state["rows"], np.float64))
        self._hits = [float(v) for v in state["hits"]]
        self._gains = [float(v) for v in state["gains"]]


def tilted(features: Array, zeta: Array) -> Array:
    """Probability of target (...,) for features (..., k), the memory's logit first."""
    return np.asarray(expit(features[..., 0] + features @ zeta), np.float64)


def most_likely(
    rows: Array, hits: Array, mean: Array, precision: Array, start: Array | None = None
) -> Array:
    """Weights (k,) of the highest evidence of ``hits`` (n,) given ``rows`` (n, k), times the
    normal density of ``mean`` and ``precision``, by damped Newton steps."""
    zeta = np.array(mean if start is None else start)
    for _ in range(20):
        p = tilted(rows, zeta)
        slope = rows.T @ (p - hits) + precision @ (zeta - mean)
        step = np.linalg.solve(curvature(rows, p, precision), slope)
        zeta = zeta - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-6:
            break
    return zeta


def curvature(rows: Array, p: Array, precision: Array) -> Array:
    """(k, k) second derivative of the penalised evidence, with the sign of a precision."""
    return np.asarray((rows * (p * (1 - p))[:, None]).T @ rows + precision)


def _logit(p: Array, floor: float = FLOOR) -> Array:
    return np.asarray(logit(np.clip(p, floor, 1 - floor)), np.float64)
