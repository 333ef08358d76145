r"""Predictors mixed by how well they have predicted so far.

Each predictor k gives every cell a probability of target; its weight is

.. math::  w_k \propto \exp\Bigl(\sum_i \lambda^{t - i} \log p_k(y_i)\Bigr) ,

the discounted prequential evidence (each outcome predicted before it was seen). A useless
memory loses its weight after a few surprises; one that starts badly can win it back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid
from engram.observation import Observations
from engram.policies.base import log_likelihood
from engram.spatial import SpatialModel

DISCOUNT = 0.98


class EvidenceMixture:
    """Mixes a memory's prediction with a spatial Gaussian process."""

    def __init__(self, grid: Grid, favour: float = 2.0) -> None:
        self.grid, self.favour = grid, favour
        self.spatial = SpatialModel(grid)
        self._log: list[tuple[float, float]] = []
        self._last: NDArray[np.float64] | None = None
        self._fitted = -1

    def weights(self) -> NDArray[np.float64]:
        """(2,) weights of the memory and of the spatial model; the memory starts ahead."""
        if not self._log:
            return np.array([1.0, 0.0])
        log = np.asarray(self._log)
        age = np.arange(len(log))[::-1]
        total = (log * DISCOUNT ** age[:, None]).sum(axis=0) + np.array([self.favour, 0.0])
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def probability(
        self, own: NDArray[np.float64], observations: Observations
    ) -> NDArray[np.float64]:
        """Mixed probability (n_cells,); remembers both predictions for the next outcome."""
        plain = self._spatial_probability(observations)
        self._last = np.stack([own, plain])
        return np.asarray(self.weights() @ self._last)

    def _spatial_probability(self, observations: Observations) -> NDArray[np.float64]:
        if self._fitted != len(observations):
            coords = np.array(observations.cells, float).reshape(-1, 2)
            self.spatial.fit(coords, observations.outcomes)
            self._fitted = len(observations)
        return self.spatial.probability()

    def learn(self, observations: Observations, new: int) -> None:
        """Score the predictions made before the latest ``new`` outcomes."""
        for item in observations.items[len(observations) - new :]:
            if self._last is None:
                continue
            index = self.grid.index(item.cell)
            own, plain = (
                log_likelihood(item.outcome, float(row[index]), floor=0.02) for row in self._last
            )
            self._log.append((own, plain))

    def history(self) -> NDArray[np.float64]:
        """(n, 2) log-likelihoods so far."""
        return np.asarray(self._log, np.float64).reshape(-1, 2)

    def restore(self, observations: Observations, history: NDArray[np.float64]) -> None:
        """Go on from a saved history."""
        self._log = [(float(a), float(b)) for a, b in history]
        self._last = None
