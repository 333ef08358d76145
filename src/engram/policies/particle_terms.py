"""Eqs. 9 to 11 of what the memories imagine: the terms that explain a suggestion.

Particles are renewed every few measurements; between two renewals the terms stand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engram.observation import Observations
from engram.policies.remembering import MemoryBelief, MemoryForecaster
from engram.scores import Scores, paper_scores

_TERMS = ("exploration", "likelihood", "reward", "exploitation", "total", "probability")


@dataclass(frozen=True, eq=False)
class Imagined:
    """Particles (P, C, H, W) in model units, their terms, and after how many measurements."""

    terms: Scores
    particles: Tensor | None
    at: int


class ParticleTerms:
    """Keeps what was imagined last.

    every : measurements between two renewals;  sigma : sigma_x of Eq. 9, in model units
    """

    def __init__(self, memory: MemoryForecaster, every: int, sigma: float) -> None:
        self.memory, self.every, self.sigma = memory, every, sigma
        self._last: Imagined | None = None

    def of(self, belief: MemoryBelief, observations: Observations) -> Imagined:
        """What is imagined at these measurements; renewed if that is due, once for each."""
        t, last = len(observations), self._last
        if last is None or t // self.every > last.at // self.every:
            last = self._last = self._imagined(belief, observations)
        return last

    def _imagined(self, belief: MemoryBelief, observations: Observations) -> Imagined:
        particles = self.memory.samples(belief, observations)
        cells = self.memory.imagination.cells(particles)
        count, n = cells.shape[:2]
        rewards = self.memory.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        terms = paper_scores(flat, rewards.reshape(count, n), 0.0, self.sigma)
        return Imagined(terms, particles, len(observations))

    def state(self) -> dict[str, Tensor]:
        """The terms; the particles are the memory's to keep."""
        if self._last is None:
            return {}
        rows = np.stack([getattr(self._last.terms, name) for name in _TERMS])
        return {"terms": torch.from_numpy(rows), "terms_at": torch.tensor(self._last.at)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state, after the memory."""
        self._last = None
        if "terms" in state:
            terms = dict(zip(_TERMS, state["terms"].numpy(), strict=True))
            particles = self.memory.imagination.particles
            self._last = Imagined(Scores(**terms, alpha=0.0), particles, int(state["terms_at"]))
