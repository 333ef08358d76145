r"""The transient memory of the default preset: an h-transform of the outcomes.

The frozen memory gives each cell q a probability of target :math:`p_\theta(q)`. h tilts it,

.. math::  \mathrm{logit}\, p(q) = \mathrm{logit}\, p_\theta(q) + \zeta^\top \varphi(q) ,

where :math:`\varphi` sees what the paper's h sees, the memory's own estimate, the measured
values and the mask: the share of measured targets and of measured blanks in rings around the
cell, the memory's logit, a plain spatial model's logit and doubt, and a constant. It is
isotropic, has a dozen weights, and is zero at birth.

The M-step maximises the evidence of the measurements itself (Proposition 1, Theorem 1),

.. math::  \zeta \leftarrow \arg\max_\zeta \sum_i \log p(y_{q_i} \mid y_{q_1 \dots q_{i-1}})
           - \tfrac\lambda2 \|\zeta\|^2 ,

each measurement predicted from those before it. Which cell is measured next depends on the
past alone, so this likelihood is free of the selection bias that haunts any training on
"measured cells given the others": a search measures targets far more often than they occur.
The problem is convex; a few Newton steps solve it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve
from scipy.special import expit, logit

from engram.grid import Grid
from engram.observation import Observation, Observations

Array = NDArray[np.float64]

RINGS = ((0.0, 1.1), (1.1, 2.3), (2.3, 3.7), (3.7, 5.2))
"""Inner and outer radii, in cells."""
FLOOR = 0.01


def _ring_kernels() -> list[Array]:
    reach = int(np.ceil(RINGS[-1][1]))
    yy, xx = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    distance = np.hypot(yy, xx)
    rings = [((distance > a) & (distance <= b)).astype(float) for a, b in RINGS]
    return [ring / ring.sum() for ring in rings]


@dataclass(frozen=True)
class HUpdate:
    """One judged update: evidence of the latest outcomes before and after."""

    t: int
    accepted: bool
    before: float
    after: float
    held_out: int


class OutcomeTransform:
    """h on outcomes: learns from every measurement, changes only by judged updates."""

    def __init__(self, grid: Grid, strength: float = 5.0, block: int = 12) -> None:
        self.grid, self.strength, self.block = grid, strength, block
        self.kernels = _ring_kernels()
        self.weights = np.zeros(2 * len(RINGS) + 4)
        self._rows: list[Array] = []
        self._hits: list[float] = []

    @property
    def blank(self) -> bool:
        """True while h is zero."""
        return not self.weights.any()

    def features(
        self, own: Array, spatial: tuple[Array, Array], observations: Observations
    ) -> Array:
        """(n_cells, k) for the memory's probability and the spatial model's (p, sd)."""
        shape = (self.grid.rows, self.grid.cols)
        hits, blanks = np.zeros(self.grid.n_cells), np.zeros(self.grid.n_cells)
        for item in observations:
            index = self.grid.index(item.cell)
            hit = float(item.outcome > 0)
            hits[index], blanks[index] = hit, 1 - hit
        columns = [_logit(own), _logit(spatial[0], 0.03), 2 * spatial[1], np.ones(len(own))]
        for kernel in self.kernels:
            for kind in (hits, blanks):
                around = convolve(kind.reshape(shape), kernel, mode="constant")
                columns.append(4 * around.ravel())
        return np.stack(columns, axis=1)

    def apply(self, features: Array) -> Array:
        """Tilted probability (n_cells,)."""
        return np.asarray(expit(features[:, 0] + features @ self.weights), np.float64)

    def note(self, features: Array, new: Sequence[Observation]) -> None:
        """Keep what was known of the measured cells before they were measured."""
        for item in new:
            self._rows.append(features[self.grid.index(item.cell)])
            self._hits.append(float(item.outcome > 0))

    def update(self, t: int) -> HUpdate | None:
        """Learn from all but the latest block, judge on it, keep or roll back.

        Neither the old h nor the new one has seen the block: blocks move on with the search.
        """
        rows, hits = np.array(self._rows), np.array(self._hits)
        block = min(self.block, len(hits) // 3)
        if block < 2:
            return None
        candidate = self._solve(rows[:-block], hits[:-block])
        before = _evidence(rows[-block:], hits[-block:], self.weights)
        after = _evidence(rows[-block:], hits[-block:], candidate)
        accepted = after >= before
        if accepted:
            self.weights = candidate
        return HUpdate(t, accepted, before, after, block)

    def _solve(self, rows: Array, hits: Array) -> Array:
        """Maximum of the penalised evidence by damped Newton steps from zero."""
        zeta = np.zeros(rows.shape[1])
        for _ in range(12):
            p = expit(rows[:, 0] + rows @ zeta)
            slope = rows.T @ (p - hits) + self.strength * zeta
            curve = (rows * (p * (1 - p))[:, None]).T @ rows + self.strength * np.eye(len(zeta))
            step = np.linalg.solve(curve, slope)
            zeta = zeta - step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-6:
                break
        return zeta

    def state(self) -> dict[str, Array]:
        """Arrays that restore it."""
        width = len(self.weights)
        return {
            "weights": self.weights.copy(),
            "rows": np.array(self._rows, np.float64).reshape(-1, width),
            "hits": np.array(self._hits, np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Return to a saved state."""
        self.weights = np.array(state["weights"], np.float64)
        self._rows = list(np.array(state["rows"], np.float64))
        self._hits = [float(v) for v in state["hits"]]


def _logit(p: Array, floor: float = FLOOR) -> Array:
    return np.asarray(logit(np.clip(p, floor, 1 - floor)), np.float64)


def _evidence(rows: Array, hits: Array, zeta: Array) -> float:
    """Mean log-likelihood of the outcomes (1 = target)."""
    p = np.clip(expit(rows[:, 0] + rows @ zeta), FLOOR, 1 - FLOOR)
    return float((hits * np.log(p) + (1 - hits) * np.log(1 - p)).mean())
