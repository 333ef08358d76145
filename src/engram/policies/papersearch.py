"""Algorithm 1 and its relatives: particles, reward model, scores of Eqs. 9 to 12.

One search serves three policies of the paper: DiffATD (permanent memory alone),
Greedy-Adaptive (its exploitation term alone), and EM-PTDM's ``paper`` preset, which adds the
transient memory and updates it by Algorithm 2 on the schedule of appendix B.2. What the text
leaves open are named settings (``PaperSettings``, ``DrawPlan``), so that every reading can be
measured, and so that the rivals can be given the search rule of the default engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import CountedDenoiser, Denoiser, Known, Memory
from engram.memory.transient import (
    AdaptPlan,
    CompositeDenoiser,
    HNetwork,
    TransientMemory,
)
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule, alpha
from engram.policies.base import Answer, Policy, View, log_likelihood
from engram.policies.forecast import Belief
from engram.policies.imagination import DrawPlan, Imagination
from engram.policies.lessons import LESSONS, Lessons
from engram.policies.options import with_options
from engram.policies.outcome_h import PATIENCE, RECENT
from engram.policies.process import ProcessForecaster
from engram.policies.ranking import (
    LEAST_RATE,
    Foraging,
    Likely,
    Offer,
    Progress,
    Ranker,
    Ranking,
    checked_rule,
)
from engram.reward import make_reward, presence_prior
from engram.scores import Scores, normalised, paper_scores

Array = NDArray[np.float64]

PAPER_DRAWS = DrawPlan(particles=8, guidance="amortised", steps=8, trajectory="warm")
GUIDED_DRAWS = DrawPlan(particles=8, guidance="mmps", steps=6, trajectory="warm", refresh_steps=3)
"""Those of a memory that cannot be told measurements."""
FAST_DRAWS = replace(PAPER_DRAWS, particles=16)

SCALES = ("raw", "normalised")


class _Kept(Protocol):
    """A part of a search whose state is saved and restored."""

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


@dataclass(frozen=True)
class PaperSettings:
    """Settings of a search by the paper's scores; the defaults are the ``paper`` preset.

    a : exploration factor of appendix G;  sigma : sigma_x of Eq. 9, in model units
    rule : how cells are ranked (``ranking``);  exploit_only : Eq. 11 instead of Eq. 12
    least_rate : of finds, in rule ``foraging``
    scale : ``raw`` sums in Eq. 12, or ``normalised`` (``scores.normalised``)
    reward : ``network`` (N.2), ``affine`` or ``none``;  presence : the affine one begins with the
        presence layer of a memory of cells
    h : adapt the transient memory
    lesson : what h learns from (``lessons``);  imagined : what an unmeasured pixel counts in it
    rollback : h decides only while it has predicted the latest outcomes (``outcome_h.RECENT``)
        no worse than the permanent memory alone, which is then drawn from as well
    """

    draws: DrawPlan = PAPER_DRAWS
    a: float = 1.0
    sigma: float = 1.0
    rule: str = "paper"
    least_rate: float = LEAST_RATE
    scale: str = "raw"
    exploit_only: bool = False
    reward: str = "network"
    presence: bool = False
    h: bool = False
    lesson: str = "hindsight"
    imagined: float = 0.05
    rollback: bool = False
    schedule: UpdateSchedule = field(default_factory=UpdateSchedule)
    adapt: AdaptPlan = field(default_factory=lambda: AdaptPlan(m_steps=10, batch=8))

    def __post_init__(self) -> None:
        checked_rule(self.rule)
        if self.scale not in SCALES:
            raise InputError(f"scale={self.scale!r}: choose one of {', '.join(SCALES)}")
        if self.lesson not in LESSONS:
            raise InputError(f"lesson={self.lesson!r}: choose one of {', '.join(LESSONS)}")
        for name in ("a", "sigma"):
            if not 0 < getattr(self, name) < np.inf:
                raise InputError(f"{name}={getattr(self, name)}: give a number above 0")
        if not 0 <= self.imagined <= 1:
            raise InputError(f"imagined={self.imagined}: give a weight between 0 and 1")
        _ = Foraging(least_rate=self.least_rate)


def h_network(memory: Memory, grid: Grid, seed: int) -> HNetwork:
    """h of the size of appendix N.1: for small pictures, for maps of records, for colour."""
    if memory.channels >= 3:
        return HNetwork(memory.channels, (32, 64, 128), seed, time_features=128)
    if memory.card.layers or max(grid.height, grid.width) > 32:
        return HNetwork(memory.channels, (32, 64, 128), seed)
    return HNetwork(memory.channels, (32, 64), seed)


class PaperSearch(Policy):
    """Rank by alpha x exploration + (1 - alpha) x exploitation of the particles."""

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int,
        *,
        memory: Memory,
        name: str,
        settings: PaperSettings,
    ) -> None:
        super().__init__(grid, budget, seed)
        self.name, self.memory, self.settings = name, memory, settings
        self.frozen = CountedDenoiser(memory)
        self.imagination = Imagination(grid, settings.draws, seed, self.budget)
        self.reward = make_reward(
            settings.reward,
            grid.content_shape,
            seed=seed,
            prior=presence_prior(memory.card.layers) if settings.presence else None,
        )
        told = settings.draws.guidance == "amortised"
        self.transient = TransientMemory(h_network(memory, grid, seed), told=told)
        self._alone = Imagination(grid, settings.draws, seed, self.budget)
        self._forecasts: tuple[Array, Array] | None = None
        self._gains: list[float] = []
        self._lessons = Lessons(settings.lesson, memory, self.frozen, seed, settings.imagined)
        self._process = ProcessForecaster(grid) if settings.rule == "foraging" else None
        self._updates = set(settings.schedule.times(budget)) if settings.h else set()

    def denoiser(self, known: Known) -> Denoiser:
        """The composite of both memories, h being told ``known``."""
        if not self.settings.h:
            return self.frozen
        return CompositeDenoiser(self.frozen, self.transient, known)

    def composite(self) -> Denoiser:
        """Both memories with everything that was measured; the frozen one while h misleads."""
        known = self.imagination.measurements(self.observations).known
        return self.denoiser(known) if self._trusted else self.frozen

    @property
    def _judged(self) -> bool:
        return self.settings.h and self.settings.rollback

    @property
    def _gain(self) -> float:
        """Nats by which h has predicted the latest outcomes better than the memory alone."""
        return float(sum(self._gains[-RECENT:]))

    @property
    def _trusted(self) -> bool:
        return not self._judged or self._gain >= -PATIENCE

    @property
    def _in_use(self) -> Imagination:
        return self.imagination if self._trusted else self._alone

    def scores(self) -> Scores:
        return self.current_scores()

    def answer(self, offer: Offer) -> Answer:
        known = self.imagination.measurements(self.observations).known
        self.imagination.imagine(self.denoiser(known), self.observations)
        if self._judged:
            self._imagine_alone()
        self.log.evaluations = self.frozen.evaluations
        weight = 0.0 if self.settings.exploit_only else self._alpha()
        assert self._in_use.particles is not None
        scores = self._score(self._in_use.particles, weight)
        if self._process is not None:
            scores = replace(scores, doubt=self._process.belief(self.observations).doubt)
        ranking = self._ranking(scores, offer)
        return Answer(replace(scores, total=ranking.total), ranking.why)

    def _imagine_alone(self) -> None:
        """Particles of the permanent memory alone, and what both forecast of every cell."""
        if self.transient.blank:  # the same particles still
            self._alone.restore(self.imagination.state())
        self._alone.imagine(self.frozen, self.observations)
        both = [self.imagination.particles, self._alone.particles]
        with_h, without = (self._score(p, 0.0).probability for p in both if p is not None)
        self._forecasts = with_h, without

    def _alpha(self) -> float:
        return alpha(min(self.t, self.budget), self.budget, self.settings.a)

    def _ranking(self, scores: Scores, offer: Offer) -> Ranking:
        """Cells by Eq. 11, Eq. 12 or another rule."""
        if self.settings.rule == "paper" and self.settings.exploit_only:
            return Ranking(scores.exploitation, "eq11")
        if self.settings.rule == "paper" and self.settings.scale == "normalised":
            return Ranking(normalised(scores, offer.available), "eq12-normalised")
        if self.settings.rule == "paper":
            return Ranking(scores.total, "eq12")
        rule: Ranker[Belief] = Likely()
        if self._process is not None:
            rule = Foraging(least_rate=self.settings.least_rate)
        belief = Belief(probability=scores.probability, doubt=scores.doubt)
        progress = Progress.of(self.observations, self.budget, offer.out)
        return rule.order(belief, offer.available, progress)

    def _score(self, particles: Tensor, weight: float) -> Scores:
        cells = self.imagination.cells(particles)
        count, n = cells.shape[:2]
        rewards = self.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        return paper_scores(flat, rewards.reshape(count, n), weight, self.settings.sigma)

    def view(self) -> View:
        scores, particles = self.current_scores(), self._in_use.particles
        if particles is None:
            return View(scores)
        mean = self.imagination.in_range(particles.mean(dim=0))
        return View(scores, mean, self.imagination.in_range(particles))

    # -- learning --------------------------------------------------------------------------

    def learn(self, new: list[Observation]) -> None:
        if self._forecasts is not None:
            for item in new:
                cell, hit = self.grid.index(item.cell), float(item.outcome > 0)
                with_h, without = (log_likelihood(hit, float(p[cell])) for p in self._forecasts)
                self._gains.append(with_h - without)
        contents = self.grid.to_model(self.observations.contents)
        self.reward.update(contents, self.observations.outcomes)
        before = self.t - len(new)
        for due in sorted(t for t in self._updates if before < t <= self.t):
            self._update(due)
        self.log.evaluations = self.frozen.evaluations

    def _update(self, due: int) -> None:
        """Algorithm 2 on the particles of the last query."""
        particles = self.imagination.particles
        if particles is None:
            return
        examples = self._lessons.examples(particles, self.observations)
        plan = self.settings.adapt
        losses = self.transient.adapt(self.frozen, examples, plan, seed=self.seed, path=due)
        self.log.updates.append(
            {
                "t": due,
                "accepted": self._trusted,
                "gain": self._gain,
                "loss": float(np.mean(losses)),
            }
        )

    # -- keeping state ---------------------------------------------------------------------

    @property
    def _parts(self) -> dict[str, _Kept]:
        return {
            "h/": self.transient,
            "reward/": self.reward,
            "draws/": self.imagination,
            "alone/": self._alone,
        }

    def state(self) -> dict[str, Tensor]:
        """h and how it is judged, the reward model, the kept particles."""
        out = {f"{n}{k}": v for n, part in self._parts.items() for k, v in part.state().items()}
        return {**out, "gains": torch.tensor(self._gains, dtype=torch.float64)}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        for name, part in self._parts.items():
            part.restore({k[len(name) :]: v for k, v in state.items() if k.startswith(name)})
        self._gains, self._forecasts = state["gains"].tolist(), None


def paper_settings(preset: str, memory: Memory) -> PaperSettings:
    """The ``paper`` preset, or the quick search of the rivals in the others.

    A memory that takes no measurements as input is guided by MMPS under any preset.
    """
    if not memory.conditioned:
        return PaperSettings(draws=GUIDED_DRAWS)
    if preset == "paper":
        return PaperSettings()
    return PaperSettings(draws=FAST_DRAWS, reward="affine")


def diffatd(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: Memory,
    preset: str = "default",
    **options: object,
) -> PaperSearch:
    """DiffATD: the frozen memory, no transient one."""
    settings = with_options(paper_settings(preset, memory), **options)
    return PaperSearch(grid, budget, seed, memory=memory, name="diffatd", settings=settings)


def greedy_adaptive(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: Memory,
    preset: str = "default",
    **options: object,
) -> PaperSearch:
    """Greedy-Adaptive: exploitation alone (Eq. 11); the reward model learns after each
    measurement."""
    policy = diffatd(grid, budget, seed, memory=memory, preset=preset, exploit_only=True, **options)
    policy.name = "greedy"
    return policy
