"""Algorithm 1 and its relatives: particles, reward model, raw scores of Eqs. 9 to 12.

One search serves three policies of the paper: DiffATD (permanent memory alone),
Greedy-Adaptive (its exploitation term alone), and EM-PTDM's ``paper`` preset, which adds the
transient memory and updates it by Algorithm 2 on the schedule of appendix B.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.grid import Grid
from engram.memory.denoiser import Denoiser, Known
from engram.memory.permanent import PermanentMemory
from engram.memory.transient import (
    AdaptPlan,
    CompositeDenoiser,
    Examples,
    HNetwork,
    TransientMemory,
)
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule, alpha
from engram.policies.base import Policy, View, log_likelihood
from engram.policies.imagination import DrawPlan, Imagination, evidence_of, known_of
from engram.reward import make_reward
from engram.scores import Scores, paper_scores
from engram.seeding import numpy_generator

PAPER_DRAWS = DrawPlan(particles=16, guidance="dps", steps=30, warm=False)
FAST_DRAWS = DrawPlan(particles=16, guidance="amortised", steps=8, warm=True, refresh_steps=2)


@dataclass(frozen=True)
class PaperSettings:
    """Settings of a search by the paper's scores.

    a : exploration factor of appendix G;  sigma : sigma_x of Eq. 9, in model units
    h : adapt the transient memory;  held_out : share of measured cells that judge an update
    """

    draws: DrawPlan = PAPER_DRAWS
    a: float = 1.0
    sigma: float = 1.0
    exploit_only: bool = False
    paper_reward: bool = True
    h: bool = False
    schedule: UpdateSchedule = field(default_factory=UpdateSchedule)
    adapt: AdaptPlan = field(default_factory=AdaptPlan)
    held_out: float = 0.2


class PaperSearch(Policy):
    """Rank by alpha x exploration + (1 - alpha) x exploitation of the particles."""

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int,
        *,
        memory: PermanentMemory,
        name: str,
        settings: PaperSettings,
    ) -> None:
        super().__init__(grid, budget, seed)
        self.name, self.memory, self.settings = name, memory, settings
        self.imagination = Imagination(grid, settings.draws, seed)
        self.reward = make_reward(grid.content_shape, seed=seed, paper=settings.paper_reward)
        told = settings.draws.guidance == "amortised"
        self.transient = TransientMemory(HNetwork(memory.channels, seed=seed), told=told)
        self._updates = set(settings.schedule.times(budget)) if settings.h else set()
        self._particles: Tensor | None = None

    def denoiser(self, known: Known) -> Denoiser:
        """The composite of both memories, h being told ``known``."""
        if not self.settings.h:
            return self.memory
        return CompositeDenoiser(self.memory, self.transient, known)

    def scores(self) -> Scores:
        known = known_of(self.observations)
        self._particles = self.imagination.imagine(self.denoiser(known), self.observations)
        self.log.evaluations = self.imagination.evaluations
        weight = 0.0 if self.settings.exploit_only else self._alpha()
        return self._score(self._particles, weight)

    def _alpha(self) -> float:
        return alpha(min(self.t, self.budget), self.budget, self.settings.a)

    def _score(self, particles: Tensor, weight: float) -> Scores:
        cells = self.imagination.cells(particles)
        count, n = cells.shape[:2]
        rewards = self.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        return paper_scores(flat, rewards.reshape(count, n), weight, self.settings.sigma)

    def view(self) -> View:
        scores = self.current_scores()
        if self._particles is None:
            return View(scores)
        mean = self.imagination.in_range(self._particles.mean(dim=0))
        return View(scores, mean, self.imagination.in_range(self._particles))

    def learn(self, new: list[Observation]) -> None:
        contents = self.grid.to_model(self.observations.contents)
        self.reward.update(contents, self.observations.outcomes)
        before = self.t - len(new)
        for due in sorted(t for t in self._updates if before < t <= self.t):
            self._update(due)

    def _update(self, due: int) -> None:
        """Algorithm 2 with a check: an update that worsens held-out cells is rolled back."""
        rest, held = self._split(due)
        if not held or len(rest) < 4:
            return
        evidence, known = evidence_of(rest), known_of(rest)
        samples = self.imagination.draw(self.denoiser(known), evidence, due).particles
        before = self._held_out_evidence(samples, held)
        saved = self.transient.state()
        examples = Examples(
            samples,
            known.expand(len(samples)),
            torch.ones(len(samples), 1, *samples.shape[2:]),
        )
        self.transient.adapt(self.memory, examples, self.settings.adapt, seed=self.seed, path=due)
        after_samples = self.imagination.draw(self.denoiser(known), evidence, due).particles
        after = self._held_out_evidence(after_samples, held)
        accepted = after >= before
        if not accepted:
            self.transient.restore(saved)
        per_draw = self.settings.draws.particles / 16 * self.settings.draws.steps
        self.imagination.evaluations += (
            2 * per_draw * self.imagination.sampler.guidance.evaluations
            + self.settings.draws.particles / 16
        )
        self.log.updates.append(
            {"t": due, "accepted": accepted, "before": before, "after": after,
             "steps": self.settings.adapt.steps, "held_out": len(held)}
        )  # fmt: skip

    def _split(self, due: int) -> tuple[Observations, list[Observation]]:
        """The rest and a held-out part of the measured cells; the seed decides."""
        count = max(1, round(self.settings.held_out * self.t))
        chosen = numpy_generator(self.seed, "holdout", due).permutation(self.t)[:count]
        held = {int(i) for i in chosen}
        rest = self.observations.subset(i for i in range(self.t) if i not in held)
        return rest, [self.observations.items[i] for i in sorted(held)]

    def _held_out_evidence(self, samples: Tensor, held: list[Observation]) -> float:
        """Mean predictive log-likelihood of held-out outcomes under the samples."""
        probability = self._score(samples, 0.0).probability
        values = [
            log_likelihood(item.outcome, float(probability[self.grid.index(item.cell)]))
            for item in held
        ]
        return float(np.mean(values))

    def state(self) -> dict[str, Tensor]:
        """h and the kept particles; the reward model is rebuilt from the observations."""
        out = {f"h/{k}": v for k, v in self.transient.state().items()}
        if self.imagination.particles is not None:
            out["particles"] = self.imagination.particles
        return out

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self.transient.restore({k[2:]: v for k, v in state.items() if k.startswith("h/")})
        self.imagination.particles = state.get("particles")
        contents: NDArray[np.float32] = self.grid.to_model(observations.contents)
        for n in range(1, len(observations) + 1):
            self.reward.update(contents[:n], observations.outcomes[:n])


def paper_settings(preset: str, memory: PermanentMemory) -> PaperSettings:
    """The paper's fresh guided draws, or warm draws of a mask-conditioned memory."""
    if preset == "paper" or not memory.conditioned:
        return PaperSettings()
    return replace(PaperSettings(), draws=FAST_DRAWS, paper_reward=False)
