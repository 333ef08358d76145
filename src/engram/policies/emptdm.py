r"""EM-PTDM: permanent and transient memory together.

``paper`` preset: Algorithms 1 and 2 as written (``papersearch``). ``default`` preset: the
same two memories, made fast and checked.

* E-step. The mask-conditioned permanent memory is told the measurements; its estimate at full
  noise is the posterior mean of the area in one evaluation, averaged over the symmetries of a
  square. An affine reward turns it into the probability of target of every cell.
* M-step. The transient memory tilts those probabilities and learns by maximising the evidence
  of the measurements (``outcome_h``). Updates that predict worse than none are rolled back.
* The result is mixed with a Gaussian process by prequential evidence (``mixing``); while that
  predicts better, its look-ahead decides, so that a useless memory costs little.
* Particles, drawn with the tilt, are refreshed every few queries: they give the terms of
  Eqs. 9 to 12 that explain a suggestion.
* Cells are ranked by the foraging rule (``ranking``): by probability while some cell promises
  more than the search finds on average; otherwise doubt counts too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import CountedDenoiser, Denoiser
from engram.memory.permanent import PermanentMemory
from engram.memory.transient import ShiftedDenoiser
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule, alpha
from engram.policies.base import Policy, View, log_likelihood
from engram.policies.habits import habits_for
from engram.policies.imagination import DrawPlan, Imagination, evidence_of
from engram.policies.mixing import EvidenceMixture
from engram.policies.options import with_options
from engram.policies.outcome_h import OutcomeTransform
from engram.policies.papersearch import PaperSearch, paper_settings
from engram.policies.process import LookAhead, ProcessBelief, ProcessForecaster, SpreadTies
from engram.policies.ranking import Foraging, Progress, Ranking, checked_rule
from engram.posterior import Evidence
from engram.reward import AffineReward, presence_prior
from engram.scores import Scores, paper_scores
from engram.symmetry import TURNS, turned, turned_back

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EmPtdmSettings:
    """Settings of the default preset.

    h        : use the transient memory, its habits and what it learns;  strength : how firmly it
        is held to its habits
    guard    : mix with a Gaussian process by evidence, and leave the ranking to its look-ahead
        while it is the better predictor
    views    : symmetries averaged in the mean, 1 or 8 (8 needs a square area without a
        preferred direction)
    rule     : how cells are ranked, ``foraging``, ``probability`` or ``paper`` (``ranking``)
    frontier, explore : of the foraging rule (``ranking.Foraging``); doubt is the spatial model's
    a        : factor of alpha(B) (appendix G): decides under rule ``paper``, explains otherwise
    every    : measurements between two refreshes of the particles (1 under rule ``paper``)
    sigma    : sigma_x of Eq. 9, in model units
    """

    h: bool = True
    strength: float = 1.0
    guard: bool = True
    views: int = 8
    rule: str = "foraging"
    a: float = 1.0
    explore: float = 2.5
    frontier: float | None = None
    every: int = 10
    sigma: float = 1.0
    schedule: UpdateSchedule = field(
        default_factory=lambda: UpdateSchedule(updates=50, first=8, stretch=True)
    )
    draws: DrawPlan = field(default_factory=DrawPlan)

    def __post_init__(self) -> None:
        if self.views not in (1, TURNS):
            raise InputError(f"views={self.views}: choose 1 or {TURNS}")
        for name in ("strength", "a", "sigma"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name}={getattr(self, name)}: give a number above 0")
        if self.every < 1:
            raise InputError(f"every={self.every}: give at least 1")
        checked_rule(self.rule)
        _ = self.foraging

    @property
    def foraging(self) -> Foraging:
        """The rule with these settings; refuses those that cannot be."""
        return Foraging(self.explore, self.frontier)


class EmPtdm(Policy):
    """The default preset."""

    name = "em-ptdm"

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int,
        *,
        memory: PermanentMemory,
        settings: EmPtdmSettings,
    ) -> None:
        super().__init__(grid, budget, seed)
        self.memory, self.settings = memory, settings
        self.frozen = CountedDenoiser(memory)
        self.imagination = Imagination(grid, settings.draws, seed, self.budget)
        layers = memory.card.layers
        self.reward = AffineReward(grid.channels, prior=presence_prior(layers))
        self.process = ProcessForecaster(grid)
        self.look_ahead = LookAhead(SpreadTies(grid, self.seed))
        self.transient = OutcomeTransform(grid, settings.strength, habits_for(layers))
        self.mixture = EvidenceMixture(grid)
        self._updates = set(settings.schedule.times(budget)) if settings.h else set()
        self._mean: Tensor | None = None
        self._features: Array | None = None
        self._stages: dict[str, Array] = {}
        self._terms: Scores | None = None
        self._terms_at = 0

    # -- beliefs ---------------------------------------------------------------------------

    def scores(self) -> Scores:
        self._mean = self._posterior_mean(evidence_of(self.observations))
        own = self.reward.predict(self.imagination.cells(self._mean)[0])
        process = self.process.belief(self.observations)
        tilted = self._tilted(own, process)
        p = self.mixture.mixed(tilted, process.probability) if self.settings.guard else tilted
        self._stages = {"memory": own, "h": tilted, "process": process.probability}
        weight = alpha(min(self.t, self.budget), self.budget, self.settings.a)
        if self._terms is None or self._stale:
            self._terms, self._terms_at = self._particle_terms(tilted - own), self.t
        self.log.evaluations = self.frozen.evaluations
        ranking = self._ranking(p, process, weight)
        return replace(self._terms, probability=p, alpha=weight, total=ranking.total)

    @property
    def _stale(self) -> bool:
        """Whether a tenth measurement (``every``) was taken since the particles were drawn."""
        every = 1 if self.settings.rule == "paper" else self.settings.every
        return self.t // every > self._terms_at // every

    def _ranking(self, p: Array, process: ProcessBelief, weight: float) -> Ranking:
        """What cells are ranked by, and why.

        The rule of the settings, or the spatial model's look-ahead once it predicts better than
        the memory.
        """
        available = self.observations.available
        progress = Progress.of(self.observations, self.budget)
        if self.settings.guard and self.mixture.weights()[0] < 0.5:
            return self.look_ahead.order(process, available, progress)
        if self.settings.rule == "paper":
            assert self._terms is not None
            explore, exploit = self._terms.exploration, self._terms.exploitation
            return Ranking(weight * explore + (1 - weight) * exploit, "eq12")
        if self.settings.rule == "probability":
            return Ranking(p, "likely")
        return self.settings.foraging.rank(p, process.doubt, available, progress)

    def _tilted(self, own: Array, process: ProcessBelief) -> Array:
        """Probability of target after h."""
        spatial = (process.probability, process.doubt)
        self._features = self.transient.features(own, spatial, self.observations)
        return self.transient.apply(self._features) if self.settings.h else own

    def _posterior_mean(self, evidence: Evidence) -> Tensor:
        """(1, C, H, W) by one evaluation, averaged over symmetries."""
        if self.settings.views == 1 or self.grid.height != self.grid.width:
            return self.imagination.mean(self.frozen, evidence)
        parts = (evidence.values, evidence.mask, evidence.sigma)
        views = Evidence(*(torch.cat([turned(p, k) for k in range(TURNS)]) for p in parts))
        means = self.imagination.mean(self.frozen, views)
        back = [turned_back(means[k : k + 1], k) for k in range(TURNS)]
        return torch.cat(back).mean(dim=0, keepdim=True)

    def _particle_terms(self, tilt: Array) -> Scores:
        particles = self.imagination.imagine(self._composite(tilt), self.observations)
        cells = self.imagination.cells(particles)
        count, n = cells.shape[:2]
        rewards = self.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        return paper_scores(flat, rewards.reshape(count, n), 0.0, self.settings.sigma)

    def composite(self) -> Denoiser:
        """Both memories with everything that was measured."""
        self.current_scores()
        return self._composite(self._stages["h"] - self._stages["memory"])

    def _composite(self, tilt: Array) -> Denoiser:
        """Both memories as one denoiser: h's change of the outcome, as a change of content."""
        if not tilt.any():
            return self.frozen
        weights = self.reward.weights
        per_unit = weights / max(float(weights @ weights), 0.05)
        table = np.stack([self.grid.pixels(tilt.astype(np.float32)) * w for w in per_unit])
        shift = torch.from_numpy(np.clip(table, -2, 2).astype(np.float32))[None]
        return ShiftedDenoiser(self.frozen, shift)

    def view(self) -> View:
        scores = self.current_scores()
        particles = self.imagination.particles
        return View(
            scores,
            None if self._mean is None else self.imagination.in_range(self._mean[0]),
            None if particles is None else self.imagination.in_range(particles),
        )

    # -- learning --------------------------------------------------------------------------

    def learn(self, new: list[Observation]) -> None:
        contents = self.grid.to_model(self.observations.contents)
        self.reward.update(contents, (self.observations.outcomes > 0).astype(float))
        self.mixture.learn(new)
        if self._features is not None:
            self.transient.note(self._features, new)
        for name, p in self._stages.items():
            kept = self.log.stages.setdefault(name, [])
            kept += [log_likelihood(float(o.outcome > 0), p[self.grid.index(o.cell)]) for o in new]
        if any(self.t - len(new) < due <= self.t for due in self._updates):
            judged = self.transient.update(self.t)
            if judged is not None:
                self.log.updates.append(vars(judged))

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        arrays = {f"h/{k}": v for k, v in self.transient.state().items()}
        arrays["mixture"] = self.mixture.history()
        out = {k: torch.from_numpy(np.array(v)) for k, v in arrays.items()}
        out |= {f"draws/{k}": v for k, v in self.imagination.state().items()}
        if self._terms is not None:
            rows = [getattr(self._terms, name) for name in _TERMS]
            out["terms"] = torch.from_numpy(np.stack(rows))
            out["terms_at"] = torch.tensor(self._terms_at)
        return out

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        arrays = {k: v.numpy() for k, v in state.items()}
        self.transient.restore({k[2:]: v for k, v in arrays.items() if k.startswith("h/")})
        self.mixture.restore(arrays["mixture"])
        self.imagination.restore({k[6:]: v for k, v in state.items() if k.startswith("draws/")})
        self._terms, self._stages = None, {}
        if "terms" in arrays:
            terms = dict(zip(_TERMS, arrays["terms"], strict=True))
            self._terms, self._terms_at = Scores(**terms, alpha=0.0), int(arrays["terms_at"].item())
        if len(observations):
            contents = self.grid.to_model(observations.contents)
            self.reward.update(contents, (observations.outcomes > 0).astype(float))


_TERMS = ("exploration", "likelihood", "reward", "exploitation", "total", "probability")


def auto(
    grid: Grid, budget: int, seed: int = 0, *, memory: PermanentMemory, preset: str = "default"
) -> Policy:
    """EM-PTDM under guard: it mixes with, and yields to, the better predictor."""
    policy = em_ptdm(grid, budget, seed, memory=memory, preset=preset)
    policy.name = "auto"
    return policy


def em_ptdm(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: PermanentMemory,
    preset: str = "default",
    **options: object,
) -> Policy:
    """EM-PTDM with the ``paper`` or the ``default`` preset."""
    if preset == "paper" or not memory.conditioned:
        settings = with_options(replace(paper_settings(preset, memory), h=True), **options)
        return PaperSearch(grid, budget, seed, memory=memory, name="em-ptdm", settings=settings)
    chosen = with_options(EmPtdmSettings(), **options)
    return EmPtdm(grid, budget, seed, memory=memory, settings=chosen)
