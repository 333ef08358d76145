r"""The transient memory of the default preset: an h-transform of the outcomes.

The frozen memory gives each cell q a probability of target :math:`p_\theta(q)`. h tilts it,

.. math::  \mathrm{logit}\, p(q) = \mathrm{logit}\, p_\theta(q) + \zeta^\top \varphi(q) ,

where :math:`\varphi` sees what the paper's h sees, the memory's own estimate, the measured
values and the mask: the share of measured targets and of measured blanks in rings around the
cell, the memory's logit, a plain spatial model's logit and doubt, and a constant. It is
isotropic and has a dozen weights. It starts from what is usual in searches of areas of its kind
(``hyperprior``): :math:`\zeta \sim \mathcal N(\mu, \Sigma)`, how such weights usually are and how
they vary together from area to area.

The M-step maximises the evidence of the measurements itself (Proposition 1, Theorem 1),

.. math::  \zeta \leftarrow \arg\max_\zeta \sum_i \log p(y_{q_i} \mid y_{q_1 \dots q_{i-1}})
           - \tfrac\lambda2 (\zeta - \mu)^\top \Sigma^{-1} (\zeta - \mu) ,

each measurement predicted from those before it. Which cell is measured next depends on the
past alone, so this likelihood is free of the selection bias that haunts any training on
"measured cells given the others": a search measures targets far more often than they occur.
The problem is convex; a few Newton steps solve it, and the evidence never falls.

Where a visit may miss a target or report one that is not there (``engram.detection``),
:math:`p(q)` is what everything but the cell's own visits says: a visit counts in the rings as much
as its report is worth, Bayes' rule with the cell's own reports comes after the tilt, and what the
M-step maximises is the probability of the *reports*. Its gradient is that of soft labels, the
probability of target after each report (an EM step).

What the updates are worth is judged by measurements they have not seen: each outcome is
predicted by the h of the last update and by h as it began. Where the updates have lately
predicted worse, h goes back to its initial weights until they predict better again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import expit, logit

from engram.detection import PERFECT, after, weight_of
from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.around import Around
from engram.policies.base import log_likelihood
from engram.policies.hyperprior import Hyperprior, usual

Array = NDArray[np.float64]

RINGS = ((0.0, 1.1), (1.1, 2.3), (2.3, 3.7), (3.7, 5.2))
"""Inner and outer radii, in cells."""
FLOOR = 0.01
LEAST = 0.03
"""Smallest probability of the spatial models that h sees."""
LAYERED = (1.0, 0.5)
"""Mean and standard deviation, over areas, of the weight of what layers say."""
CERTAIN = (0.0, PERFECT.chance, PERFECT.false_alarm)
"""What a first report that cannot be wrong is kept as."""
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
        began;  accepted : whether the search uses the new h or goes back to the initial one
    """

    t: int
    accepted: bool
    before: float
    after: float
    gain: float


class OutcomeTransform:
    """h on outcomes: learns from every measurement, changes only by judged updates.

    strength : how firmly h is held to its hyperprior, 1 = as learnt
    hyperprior : the distribution it starts from; by default the one for any area
    layered  : whether there are layers; what they say beyond the spatial model is then one more
        feature, in log-odds, with the initial weight ``LAYERED``
    """

    def __init__(
        self,
        grid: Grid,
        strength: float = 1.0,
        hyperprior: Hyperprior | None = None,
        *,
        layered: bool = False,
    ) -> None:
        self.grid = grid
        self.kernels = _ring_kernels(grid)
        self._around = Around(grid.rows, grid.cols, self.kernels)
        hyperprior = hyperprior or usual()
        self.initial = hyperprior.mean.copy()
        inverse = np.linalg.inv(hyperprior.covariance)
        self.precision: Array = np.asarray(strength * inverse, np.float64)
        if layered:
            mean, width = LAYERED
            self.initial = np.append(self.initial, mean)
            self.precision = block_diag(self.precision, strength / width**2)
        self.weights = self.initial.copy()
        self.learnt = self.initial.copy()
        self._rows: list[Array] = []
        self._hits: list[float] = []
        self._gains: list[float] = []
        self._seen: list[tuple[float, float, float]] = []

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
        cells = np.flatnonzero(observations.measured)
        odds = observations.log_odds[cells]
        worth, found = weight_of(odds), odds > 0
        hits, blanks = (self._around.sums(cells[kind], worth[kind]) for kind in (found, ~found))
        rings = [ring for both in zip(hits, blanks, strict=True) for ring in both]
        return self.columns(own, spatial, rings, layered)

    @staticmethod
    def columns(
        own: Array,
        spatial: tuple[Array, Array],
        rings: Sequence[Array],
        layered: Array | None = None,
    ) -> Array:
        """(n, k) of n cells; ``rings`` are shares of measured targets and blanks, ring by ring."""
        columns = [_logit(own), _logit(spatial[0], LEAST), 2 * spatial[1], np.ones(len(own))]
        columns += [4 * around for around in rings]
        if layered is not None:
            columns.append(_logit(layered, LEAST) - _logit(spatial[0], LEAST))
        return np.stack(columns, axis=1)

    def apply(self, features: Array) -> Array:
        """Tilted probability (n_cells,)."""
        return tilted(features, self.weights)

    def note(self, features: Array, new: Sequence[Observation], odds: Array | None = None) -> None:
        """Keep what was known of the measured cells before they were measured.

        odds : (n_cells,) what earlier reports of each cell had added to its log-odds of target
        """
        for item in new:
            cell, hit = self.grid.index(item.cell), float(item.outcome > 0)
            row, seen = features[cell], item.detection or PERFECT
            before = 0.0 if odds is None else float(odds[cell])
            both = (
                log_likelihood(hit, item.reported(float(after(tilted(row, w), before))))
                for w in (self.learnt, self.initial)
            )
            learnt, initial = both
            self._rows.append(row)
            self._seen.append((before, seen.chance, seen.false_alarm))
            self._hits.append(hit)
            self._gains.append(learnt - initial)

    def update(self, t: int) -> HUpdate | None:
        """Learn from all measurements; use what was learnt unless updates lately misled."""
        rows, hits = np.array(self._rows), np.array(self._hits)
        if not len(hits):
            return None
        visits = self._visits()
        candidate = most_likely(rows, hits, self.initial, self.precision, self.learnt, visits)
        before, now = (self._evidence(rows, hits, w, visits) for w in (self.learnt, candidate))
        if now < before:  # the optimum was there already, to the last digits
            candidate, now = self.learnt, before
        gain = float(sum(self._gains[-RECENT:]))
        accepted = gain >= -PATIENCE
        self.learnt = candidate
        self.weights = candidate if accepted else self.initial.copy()
        return HUpdate(t, accepted, before, now, gain)

    def _visits(self) -> Visits | None:
        """What the reports so far were worth; None where all were certain."""
        if all(one == CERTAIN for one in self._seen):
            return None
        return Visits(*np.array(self._seen).T)

    def _evidence(self, rows: Array, hits: Array, zeta: Array, visits: Visits | None) -> float:
        """What the M-step maximises, a measurement."""
        odds, off = rows[:, 0] + rows @ zeta, zeta - self.initial
        if visits is None:
            logs = hits * odds - np.logaddexp(0, odds)
        else:
            logs = visits.log_likelihood(np.asarray(expit(odds + visits.before)), hits)
        return float((logs.sum() - off @ self.precision @ off / 2) / len(hits))

    def state(self) -> dict[str, Array]:
        """Arrays that restore it."""
        doubted = self._visits() is not None
        return {
            **({"seen": np.array(self._seen, np.float64)} if doubted else {}),
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
        seen = state.get("seen")
        self._seen = (
            [CERTAIN] * len(self._hits)
            if seen is None
            else [(a, b, c) for a, b, c in seen.tolist()]
        )


@dataclass(frozen=True, eq=False)
class Visits:
    """What the reports of n visits are worth, each (n,).

    before : what earlier reports of the cell had added to its log-odds of target
    chance, false_alarm : of detection, of a report without target
    """

    before: Array
    chance: Array
    false_alarm: Array

    def reported(self, p: Array) -> Array:
        """(n,) probability of a report of target, for probabilities (n,) of target."""
        return np.asarray(self.chance * p + self.false_alarm * (1 - p))

    def labels(self, p: Array, hits: Array) -> Array:
        """(n,) probability of target after the reports."""
        there, report = np.where(hits > 0, self.chance, 1 - self.chance), self.reported(p)
        total = np.where(hits > 0, report, 1 - report)
        return np.asarray(np.divide(there * p, total, out=hits.copy(), where=total > 0))

    def log_likelihood(self, p: Array, hits: Array) -> Array:
        """(n,) of the reports."""
        report = np.clip(self.reported(p), 1e-12, 1 - 1e-12)
        return np.asarray(hits * np.log(report) + (1 - hits) * np.log(1 - report))


def tilted(features: Array, zeta: Array) -> Array:
    """Probability of target (...,) for features (..., k), the memory's logit first."""
    return np.asarray(expit(features[..., 0] + features @ zeta), np.float64)


def most_likely(
    rows: Array,
    hits: Array,
    mean: Array,
    precision: Array,
    start: Array | None = None,
    visits: Visits | None = None,
) -> Array:
    """Weights (k,) of the highest evidence of ``hits`` (n,) given ``rows`` (n, k), times the
    normal density of ``mean`` and ``precision``, by damped Newton steps.

    ``visits`` says what the hits are worth; None = all are certain.
    """
    zeta = np.array(mean if start is None else start)
    for _ in range(20):
        p = tilted(rows, zeta)
        labels = hits
        if visits is not None:
            p = after(p, visits.before)
            labels = visits.labels(p, hits)
        slope = rows.T @ (p - labels) + precision @ (zeta - mean)
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
