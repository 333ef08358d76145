r"""Predictors mixed by how well they have predicted so far.

Each predictor k gives every cell a probability of target; its weight is

.. math::  w_k \propto \exp\Bigl(\sum_i \lambda^{t - i} \log p_k(y_i)\Bigr) ,

the discounted prequential evidence (each outcome predicted before it was seen). A useless
memory loses its weight after a few surprises; one that starts badly can win it back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid
from engram.observation import Observation
from engram.policies.base import log_likelihood

DISCOUNT = 0.98


class EvidenceMixture:
    """Mixes a memory's prediction with a spatial model's; ``favour`` is the memory's start."""

    def __init__(self, grid: Grid, favour: float = 2.0) -> None:
        self.grid, self.favour = grid, favour
        self._log: list[tuple[float, float]] = []
        self._last: NDArray[np.float64] | None = None

    def weights(self) -> NDArray[np.float64]:
        """(2,) weights of the memory and of the spatial model."""
        log = self.history()
        age = np.arange(len(log))[::-1]
        total = (log * DISCOUNT ** age[:, None]).sum(axis=0) + np.array([self.favour, 0.0])
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def mixed(self, own: NDArray[np.float64], plain: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mixed probability (n_cells,); remembers both predictions for the next outcome."""
        self._last = np.stack([own, plain])
        return np.asarray(np.clip(self.weights() @ self._last, 0.0, 1.0), np.float64)

    def learn(self, new: Sequence[Observation]) -> None:
        """Score the predictions that were made before these outcomes."""
        if self._last is None:
            return
        for item in new:
            hit, pair = float(item.outcome > 0), self._last[:, self.grid.index(item.cell)]
            own, plain = (log_likelihood(hit, float(p), floor=0.02) for p in pair)
            self._log.append((own, plain))

    def history(self) -> NDArray[np.float64]:
        """(n, 2) log-likelihoods so far."""
        return np.asarray(self._log, np.float64).reshape(-1, 2)

    def restore(self, history: NDArray[np.float64]) -> None:
        """Go on from a saved history."""
        self._log = [(float(a), float(b)) for a, b in history]
        self._last = None
