"""Eqs. 9 to 11 of what the memories imagine: the terms that explain a suggestion.

Particles are renewed every few measurements; between two renewals the terms stand. They decide
nothing, so nothing is drawn before somebody looks. What is drawn does not depend on who looked
when: warm particles go on from those before them, which are then drawn first.
"""

from __future__ import annotations

from copy import copy
from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch import Tensor

from engram.detection import Detection
from engram.memory.denoiser import Denoiser
from engram.observation import Observations
from engram.policies.imagination import Imagination, Particles
from engram.policies.remembering import MemoryBelief, MemoryForecaster
from engram.reward import RewardModel
from engram.scores import Terms, paper_scores


@dataclass(frozen=True, eq=False)
class Moment:
    """What particles and their terms are made of, as it was after ``at`` measurements.

    denoiser : both memories as one;  observations : the first ``at`` of them count, with the
        ``detection`` that was believed then
    sigma    : sigma_x of Eq. 9, in model units
    """

    imagination: Imagination
    denoiser: Denoiser
    reward: RewardModel
    observations: Observations
    at: int
    sigma: float
    detection: Detection

    def drawn(self, before: Particles | None) -> Particles:
        seen = self.observations.subset(range(self.at), self.detection)
        return self.imagination.after(before, self.denoiser, seen)

    def scored(self, particles: Particles) -> Terms:
        cells = self.imagination.cells(particles.images)
        count, n = cells.shape[:2]
        rewards = self.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        return paper_scores(flat, rewards.reshape(count, n), 0.0, self.sigma).imagined


class Imagined:
    """Particles of a moment and their terms, drawn when they are asked for.

    before : what was imagined last, kept until these are drawn from it
    """

    def __init__(self, moment: Moment, before: Imagined | None) -> None:
        self.at, self._moment = moment.at, moment
        self._before = before if moment.imagination.chained else None
        self._particles: Particles | None = None
        self._terms: Terms | None = None

    @property
    def particles(self) -> Particles:
        if self._particles is None:
            waiting = [self]
            while (last := waiting[-1]._before) is not None and last._particles is None:
                waiting.append(last)
            for one in reversed(waiting):
                before = None if one._before is None else one._before._particles
                one._particles, one._before = one._moment.drawn(before), None
            assert self._particles is not None
        return self._particles

    def terms(self) -> Terms:
        if self._terms is None:
            self._terms = self._moment.scored(self.particles)
        return self._terms

    def restore(self, particles: Particles, terms: Terms) -> Imagined:
        """The same with what was drawn and kept."""
        self._particles, self._terms, self._before = particles, terms, None
        return self


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
            moment = self._moment(self.memory.composite(belief), observations, t)
            last = self._last = Imagined(moment, last)
        return last

    def _moment(self, denoiser: Denoiser, observations: Observations, at: int) -> Moment:
        memory = self.memory
        reward = copy(memory.reward)
        return Moment(
            memory.imagination,
            denoiser,
            reward,
            observations,
            at,
            self.sigma,
            observations.detection,
        )

    def state(self) -> dict[str, Tensor]:
        """Particles and terms; they are drawn for it, so that nobody draws them twice."""
        if self._last is None:
            return {}
        out = {f"draws/{k}": v for k, v in self._last.particles.state().items()}
        return {**out, "terms": torch.from_numpy(np.stack(astuple(self._last.terms())))}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Go on from a saved state."""
        self._last = None
        kept = Particles.kept({k[6:]: v for k, v in state.items() if k.startswith("draws/")})
        if kept is not None:
            moment = self._moment(self.memory.frozen, observations, kept.at)
            self._last = Imagined(moment, None).restore(kept, Terms(*state["terms"].numpy()))
