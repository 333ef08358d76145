r"""EM-PTDM: permanent and transient memory together.

``paper`` preset: Algorithms 1 and 2 as written (``papersearch``). ``default`` preset: the
same two memories, made fast and checked.

* A forecaster of both memories (``remembering``) and one of the outcomes alone (``process``).
* They are mixed by prequential evidence (``mixing``); while the process predicts better, its
  look-ahead decides, so that a useless memory costs little.
* Particles, drawn with the tilt and renewed every few queries, give the terms of Eqs. 9 to 12
  that explain a suggestion (``particle_terms``); they are drawn when somebody looks, or for
  rule ``paper``.
* Cells are ranked by the foraging rule (``ranking``): by probability while some cell promises
  more than the search finds on average; otherwise doubt counts too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from engram.detection import PERFECT, Detection
from engram.errors import InputError
from engram.grid import Grid
from engram.layered import Explained
from engram.layers import Layers
from engram.memory.denoiser import Denoiser, Memory
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule, alpha
from engram.policies.base import Answer, Policy, View, log_likelihood
from engram.policies.base_rate import BaseRate
from engram.policies.dreaming import (
    DREAMS,
    FIRST_DREAM,
    Dreaming,
    DreamingForecaster,
    dreamable,
)
from engram.policies.dreams import DreamPlan
from engram.policies.forecast import Belief
from engram.policies.imagination import DrawPlan, Imagination
from engram.policies.layering import LayerBelief, LayerForecaster
from engram.policies.local import is_large
from engram.policies.local.lookahead import LocalLookAhead
from engram.policies.local.memory import LocalMemory, LocalMemoryBelief
from engram.policies.local.process import LocalProcess
from engram.policies.local.terms import WindowImagined, WindowTerms
from engram.policies.local.ties import FieldTies
from engram.policies.mixing import EvidenceMixture, MixedBelief
from engram.policies.options import with_options
from engram.policies.papersearch import PaperSearch, paper_settings
from engram.policies.particle_terms import Imagined, ParticleTerms
from engram.policies.process import LookAhead, ProcessBelief, ProcessForecaster, SpreadTies
from engram.policies.ranking import (
    Foraging,
    Likely,
    Offer,
    Progress,
    Ranker,
    Ranking,
    checked_rule,
)
from engram.policies.remembering import MemoryBelief, MemoryForecaster, Remembering
from engram.policies.spread import spread_blocks
from engram.scores import Scores
from engram.symmetry import TURNS


@dataclass(frozen=True)
class EmPtdmSettings:
    """Settings of the default preset.

    h        : use the transient memory: its hyperprior and what it learns;  strength : how
        firmly it is held to its hyperprior
    guard    : mix with a Gaussian process by evidence, and leave the ranking to its look-ahead
        while it is the better predictor
    base_rate : mix with the share of targets as well (``base_rate``)
    views    : symmetries averaged in the mean, 1 or 8 (8 needs a square area without a
        preferred direction)
    rule     : how cells are ranked, ``foraging``, ``probability`` or ``paper`` (``ranking``)
    frontier, explore : of the foraging rule (``ranking.Foraging``); doubt is the spatial model's
    a        : factor of alpha(B) (appendix G): decides under rule ``paper``, explains otherwise
    every    : measurements between two refreshes of the particles (1 under rule ``paper``)
    sigma    : sigma_x of Eq. 9, in model units
    dreams   : how often a copy of the memory learns from dreams (``dreaming``), 0 = never
    dream_steps : training steps of each of these
    windows  : compute areas of more than ``local.LARGEST`` cells a side by windows (``local``)
    """

    h: bool = True
    strength: float = 1.0
    guard: bool = True
    base_rate: bool = False
    views: int = 8
    rule: str = "foraging"
    a: float = 1.0
    explore: float = 2.5
    frontier: float | None = None
    every: int = 10
    sigma: float = 1.0
    dreams: int = 0
    dream_steps: int = 60
    windows: bool = True
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
        _ = self.foraging, self.dreaming

    @property
    def dreaming(self) -> Dreaming:
        """When and how much is dreamt."""
        schedule = UpdateSchedule(updates=self.dreams, first=FIRST_DREAM)
        return Dreaming(DreamPlan(steps=self.dream_steps), schedule)

    @property
    def foraging(self) -> Foraging:
        """The rule with these settings; refuses those that cannot be."""
        return Foraging(self.explore, self.frontier)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """All that was believed before the next outcome."""

    memory: MemoryBelief
    process: ProcessBelief
    mixed: MixedBelief
    imagined: Imagined | WindowImagined
    layered: LayerBelief | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Query(Answer):
    """One answer of the engine, and what it rests on."""

    beliefs: Beliefs


def by_windows(grid: Grid, memory: Memory, settings: EmPtdmSettings, layers: Layers | None) -> bool:
    """Whether an area is computed by windows: a large one of cells of one pixel, without layers,
    dreams or anything else that looks at all cells at once."""
    whole = layers or settings.dreams or settings.base_rate or settings.rule == "paper"
    larger = max(grid.rows, grid.cols) > max(memory.card.height, memory.card.width)
    return settings.windows and is_large(grid) and larger and grid.cell == (1, 1) and not whole


class EmPtdm(Policy):
    """The default preset: two forecasters, their mixture, and a rule."""

    name = "em-ptdm"

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int,
        *,
        memory: Memory,
        settings: EmPtdmSettings,
        layers: Layers | None = None,
        detection: Detection = PERFECT,
    ) -> None:
        super().__init__(grid, budget, seed, detection)
        self.settings = settings
        self._beliefs: Beliefs | None = None
        self.imagination = Imagination(grid, settings.draws, seed, self.budget)
        updates = frozenset(settings.schedule.times(budget) if settings.h else ())
        plan = Remembering(settings.h, settings.strength, updates, settings.views)
        self.local = by_windows(grid, memory, settings, layers)
        self.process: ProcessForecaster | LocalProcess
        self.look_ahead: Ranker[Any]
        self.known = LayerForecaster(grid, layers) if layers else None
        if self.local:
            layout = spread_blocks(grid, min(memory.card.height, memory.card.width) // 2, seed)
            self.process, self.look_ahead = LocalProcess(grid, layout), LocalLookAhead()
            self.memory: MemoryForecaster = LocalMemory(
                memory, self.imagination, self.process, plan, layout
            )
        else:
            self.process = ProcessForecaster(grid)
            self.look_ahead = LookAhead(SpreadTies(grid, self.seed))
            parts = (memory, self.imagination, self.process, plan, self.known)
            self.memory = (
                DreamingForecaster(*parts, settings.dreaming, budget)
                if settings.dreams
                else MemoryForecaster(*parts)
            )
        self.base_rate = BaseRate(grid) if settings.base_rate else None
        others = {
            "layers": settings.guard and self.known is not None,
            "process": settings.guard,
            "base rate": settings.base_rate,
        }
        self.mixes = ("memory", *(name for name, counts in others.items() if counts))
        leader = self.mixes.index("layers") if others["layers"] else 0
        self.mixture = EvidenceMixture(grid, count=len(self.mixes), leader=leader)
        self.ranker: Ranker[Belief] = (
            Likely() if settings.rule == "probability" else settings.foraging
        )
        every = 1 if settings.rule == "paper" else settings.every
        self.explained: ParticleTerms | WindowTerms = (
            WindowTerms(self.memory, self.seed, settings.sigma)
            if isinstance(self.memory, LocalMemory)
            else ParticleTerms(self.memory, every, settings.sigma)
        )

    # -- beliefs and ranking ---------------------------------------------------------------

    def scores(self) -> Scores:
        return self.current_scores()

    def answer(self, offer: Offer) -> Query:
        beliefs = self._beliefs or self._believe()
        self._beliefs, mixed = beliefs, beliefs.mixed
        weight = alpha(min(self.t, self.budget), self.budget, self.settings.a)
        eager, terms = self.settings.rule == "paper", beliefs.imagined.terms
        scores = Scores(
            mixed.probability, mixed.probability, mixed.doubt, weight, terms() if eager else terms
        )
        ranking = self._ranking(beliefs, scores, offer)
        return Query(
            replace(scores, total=ranking.total),
            ranking.why,
            dict(zip(self.mixes, mixed.weights.tolist(), strict=True)),
            beliefs.memory.tilt if self.settings.h else None,
            beliefs=beliefs,
        )

    def prepare(self) -> None:
        if self.local and self._beliefs is None:
            self._beliefs = self._believe()

    def _believe(self) -> Beliefs:
        """What the measurements say, whatever can be visited."""
        memory = self.memory.belief(self.observations)
        process = self.process.belief(self.observations)
        layered = None if self.known is None else self.known.belief(self.observations)
        parts: list[Belief] = [memory]
        if self.settings.guard:
            parts += [process] if layered is None else [layered, process]
        if self.base_rate is not None:
            parts.append(self.base_rate.belief(self.observations))
        mixed = self.mixture.mixed(*parts)
        imagined = self.explained.of(memory, self.observations)
        self.log.evaluations = self.memory.evaluations
        return Beliefs(memory, process, mixed, imagined, layered)

    def believed(self) -> Query:
        answer = super().believed()
        assert isinstance(answer, Query)
        return answer

    def _ranking(self, beliefs: Beliefs, scores: Scores, offer: Offer) -> Ranking:
        """The rule of the settings, or the look-ahead once the process predicts better."""
        mixed = beliefs.mixed
        progress = Progress.of(self.observations, self.budget, offer.out)
        if mixed.weights[0] < 0.5 and self.known is None:
            return self.look_ahead.order(beliefs.process, offer.available, progress)
        if self.settings.rule == "paper":
            weight, explore, exploit = scores.alpha, scores.exploration, scores.exploitation
            return Ranking(weight * explore + (1 - weight) * exploit, "eq12")
        ranking = self._rule(mixed).order(mixed, offer.available, progress)
        return replace(ranking, total=FieldTies().broken(ranking.total)) if self.local else ranking

    def _rule(self, mixed: MixedBelief) -> Ranker[Belief]:
        """The rule of the settings; doubt counts as far as layers do not tell where targets are."""
        if not isinstance(self.ranker, Foraging) or "layers" not in self.mixes:
            return self.ranker
        blind = 1 - float(mixed.weights[self.mixes.index("layers")])
        return replace(self.ranker, explore=blind * self.ranker.explore)

    def layered(self) -> Explained | None:
        if self.known is None:
            return None
        self.known.belief(self.observations)
        return self.known.model

    def composite(self) -> Denoiser:
        """Both memories with everything that was measured."""
        return self.memory.composite(self.believed().beliefs.memory)

    def view(self) -> View:
        scores, beliefs = self.current_scores(), self.believed().beliefs
        if isinstance(beliefs.memory, LocalMemoryBelief):
            image = torch.from_numpy(beliefs.memory.image())
            return View(scores, self.imagination.in_range(image))
        assert isinstance(beliefs.imagined, Imagined)
        particles = self.imagination.in_range(beliefs.imagined.particles.images)
        return View(scores, beliefs.mixed.content, particles)

    # -- learning --------------------------------------------------------------------------

    def take(self, items: list[Observation]) -> None:
        before = self.believed().beliefs
        super().take(items)
        self._beliefs = None
        self._learn(before, [self.observations.resolved(item) for item in items])

    def _learn(self, before: Beliefs, new: list[Observation]) -> None:
        """Everything learns from what was believed before these outcomes."""
        update = self.memory.learn(before.memory, new, self.observations)
        if update is not None:
            self.log.updates.append(update)
        self.process.learn(before.process, new, self.observations)
        self.mixture.learn(before.mixed, new)
        stages = {
            "memory": before.memory.own,
            "h": before.memory.probability,
            "process": before.process.probability,
        }
        if before.layered is not None:
            stages["layers"] = before.layered.probability
        for name, p in stages.items():
            kept = self.log.stages.setdefault(name, [])
            told = [o.reported(p[self.grid.index(o.cell)]) for o in new]
            kept += [
                log_likelihood(float(o.outcome > 0), q) for o, q in zip(new, told, strict=True)
            ]
        self._dream(new)

    def _dream(self, new: list[Observation]) -> None:
        """Learn from dreams where that is due."""
        memory = self.memory
        if not isinstance(memory, DreamingForecaster) or not memory.is_due(new, self.observations):
            return
        update = memory.dream(self.observations, self.seed)
        if update is not None:
            self.log.updates.append(update)

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        mixture = {"mixture": torch.from_numpy(self.mixture.history())}
        return {**super().state(), **self.memory.state(), **mixture, **self.explained.state()}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self._beliefs = None
        self.memory.restore(observations, state)
        self.mixture.restore(state["mixture"].numpy())
        self.explained.restore(observations, state)


def em_ptdm(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: Memory,
    preset: str = "default",
    layers: Layers | None = None,
    detection: Detection = PERFECT,
    **options: object,
) -> Policy:
    """EM-PTDM with the ``paper`` or the ``default`` preset; layers, and visits that may miss a
    target, are for the latter alone."""
    if preset == "paper" or not memory.conditioned:
        if not detection.perfect:
            raise InputError(
                f"the paper preset takes every visit for the truth ({detection}); leave it out, or "
                "choose the default preset with a memory that takes measurements"
            )
        if layers:
            raise InputError(
                "the paper preset knows no layers; leave them out, or choose the default preset "
                "with a memory that takes measurements"
            )
        settings = with_options(replace(paper_settings(preset, memory), h=True), **options)
        return PaperSearch(grid, budget, seed, memory=memory, name="em-ptdm", settings=settings)
    dreams = DREAMS if preset == "thorough" and dreamable(memory) else 0
    chosen = with_options(EmPtdmSettings(dreams=dreams), **options)
    if chosen.dreams and not dreamable(memory):
        raise InputError(
            f"dreams={chosen.dreams}: memory {memory.card.name!r} does not dream, it is no network "
            "of engram's that sees one channel; give dreams=0 or choose another (engram prior list)"
        )
    return EmPtdm(
        grid, budget, seed, memory=memory, settings=chosen, layers=layers, detection=detection
    )
