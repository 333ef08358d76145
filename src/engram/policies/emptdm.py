r"""EM-PTDM: permanent and transient memory together.

``paper`` preset: Algorithms 1 and 2 as written (``papersearch``). ``default`` preset: the
same two memories, made fast and checked.

* A forecaster of both memories (``remembering``) and one of the outcomes alone (``process``).
* They are mixed by prequential evidence (``mixing``); while the process predicts better, its
  look-ahead decides, so that a useless memory costs little.
* Particles, drawn with the tilt and renewed every few queries, give the terms of Eqs. 9 to 12
  that explain a suggestion (``particle_terms``); they are drawn when somebody looks, or for
  rule ``paper``.
* With ``goal=objects`` cells are ranked by the chance of a target that nobody has touched
  (``separate``).
* Cells are ranked by the foraging rule (``ranking``): by probability while some cell promises
  more than the search finds on average; otherwise doubt counts too, where a target of the kind
  that was outlined has room (``room``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engram.detection import PERFECT, Detection
from engram.errors import InputError
from engram.grid import Grid
from engram.layer_effects import Explained
from engram.layers import Layers
from engram.memory.denoiser import Denoiser, Memory
from engram.observation import Observation, Observations
from engram.pacing import alpha
from engram.policies.base import Answer, Policy, View, log_likelihood
from engram.policies.base_rate import BaseRate
from engram.policies.context import check_fits
from engram.policies.copies import Copied, CopyForecaster
from engram.policies.dreaming import DREAMS, DreamingForecaster, dreamable
from engram.policies.emptdm_settings import EmPtdmSettings
from engram.policies.forecast import Array, Belief
from engram.policies.imagination import Imagination
from engram.policies.layering import LayerBelief, LayerForecaster
from engram.policies.local import is_large
from engram.policies.local.copies import LocalCopies
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
)
from engram.policies.remembering import MemoryBelief, MemoryForecaster, Remembering
from engram.policies.separate import Separate
from engram.policies.spread import spread_blocks
from engram.scores import Scores

BEFOREHAND = ("memory", "layers")
"""Forecasters that know something before the first measurement."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """All that was believed before the next outcome."""

    memory: MemoryBelief
    process: ProcessBelief
    mixed: MixedBelief
    imagined: Imagined | WindowImagined
    layered: LayerBelief | None = None
    copied: Copied | None = None


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
        period = 1 if settings.dreams else settings.period
        views = (settings.views, period, settings.context, settings.window_views, settings.wide)
        plan = Remembering(settings.h, settings.strength, updates, *views)
        self.local = by_windows(grid, memory, settings, layers)
        check_fits(settings.context, grid, self.local)
        self.process: ProcessForecaster | LocalProcess
        self.look_ahead: Ranker[Any]
        self.known = LayerForecaster(grid, layers, judged=settings.judged) if layers else None
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
        alike = settings.copies and settings.goal == "cells" and detection.perfect
        self.copies: CopyForecaster | None = None
        if isinstance(self.process, LocalProcess):
            if alike and settings.local_copies:
                self.copies = LocalCopies(
                    grid, self.process.layout, relative_room=settings.relative_room
                )
        elif alike and (settings.judged or not layers):
            self.copies = CopyForecaster(grid)
        self.ranker: Ranker[Belief] = (
            Likely() if settings.rule == "probability" else settings.foraging
        )
        self.separate = (
            Separate(grid, self.seed, settings.extent) if settings.goal == "objects" else None
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
            self._weights(beliefs),
            beliefs.memory.tilt if self.settings.h else None,
            beliefs=beliefs,
        )

    def prepare(self) -> None:
        if self.local and self._beliefs is None:
            self._beliefs = self._believe()

    def _believe(self) -> Beliefs:
        """What the measurements say, whatever can be visited."""
        memory = self.memory.belief(self.observations)
        process, layered = memory.spatial, memory.layered
        parts: list[Belief] = [memory]
        if self.settings.guard:
            parts += [process] if layered is None else [layered, process]
        if self.base_rate is not None:
            parts.append(self.base_rate.belief(self.observations))
        relevance = 1.0 if layered is None else layered.relevance
        mixed = self.mixture.mixed(*parts, relevance=relevance)
        copied = None
        if self.copies is not None:
            copied = self._heard(self.copies.belief(mixed.probability, self.observations), mixed)
            mixed = replace(mixed, probability=copied.probability)
        imagined = self.explained.of(memory, self.observations)
        self.log.evaluations = self.memory.evaluations
        return Beliefs(memory, process, mixed, imagined, layered, copied)

    def _weights(self, beliefs: Beliefs) -> dict[str, float]:
        """What each forecaster counts; copies where they speak of any cell."""
        weights = dict(zip(self.mixes, beliefs.mixed.weights.tolist(), strict=True))
        copied = beliefs.copied
        if copied is None or not copied.heard:
            return weights
        rest = {name: (1 - copied.weight) * weight for name, weight in weights.items()}
        return {**rest, "copies": copied.weight}

    def believed(self) -> Query:
        answer = super().believed()
        assert isinstance(answer, Query)
        return answer

    def _ranking(self, beliefs: Beliefs, scores: Scores, offer: Offer) -> Ranking:
        """The rule of the settings, or the look-ahead once the process predicts better."""
        mixed = beliefs.mixed
        progress = Progress.of(self.observations, self.budget, offer.out)
        if self.separate is not None:
            return self.separate.rule(self.observations).order(mixed, offer.available, progress)
        if self._outdone(mixed):
            return self.look_ahead.order(beliefs.process, offer.available, progress)
        if self.settings.rule == "paper":
            weight, explore, exploit = scores.alpha, scores.exploration, scores.exploitation
            return Ranking(weight * explore + (1 - weight) * exploit, "eq12")
        rule = self._rule(mixed)
        ranking = rule.order(mixed, offer.available, progress)
        doubt = self._doubt_by_room(beliefs) if ranking.why == "frontier" else None
        if doubt is not None:
            where = replace(mixed, doubt=doubt)
            ranking = replace(rule.order(where, offer.available, progress), why="room")
        return replace(ranking, total=FieldTies().broken(ranking.total)) if self.local else ranking

    def _doubt_by_room(self, beliefs: Beliefs) -> Array | None:
        """(n_cells,) doubt, less where no further copy has room, as far as copies have proven to be
        copies; None where nothing is outlined."""
        copied = beliefs.copied
        if not self.settings.room or copied is None or copied.room is None:
            return None
        return copied.room.doubt(beliefs.mixed.doubt, copied.proven)

    def _outdone(self, mixed: MixedBelief) -> bool:
        """Whether the outcomes alone predict better than all that knew something beforehand."""
        if self.known is not None and not self.settings.judged:
            return False
        named = zip(self.mixes, mixed.weights.tolist(), strict=True)
        return bool(sum(weight for name, weight in named if name in BEFOREHAND) < 0.5)

    def _rule(self, mixed: MixedBelief) -> Ranker[Belief]:
        """The rule of the settings; doubt counts as far as layers do not tell where targets are."""
        if not isinstance(self.ranker, Foraging) or "layers" not in self.mixes:
            return self.ranker
        return replace(self.ranker, explore=self._blind(mixed) * self.ranker.explore)

    def _heard(self, copied: Copied, mixed: MixedBelief) -> Copied:
        """Copies, which know nothing of layers, as far as these do not tell where targets are."""
        if "layers" not in self.mixes:
            return copied
        blind = self._blind(mixed)
        both = blind * copied.probability + (1 - blind) * copied.others
        w, proven = blind * copied.weight, blind * copied.proven
        return replace(copied, probability=both, weight=w, proven=proven)

    def _blind(self, mixed: MixedBelief) -> float:
        """What all but layers count."""
        return 1 - float(mixed.weights[self.mixes.index("layers")])

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
        if self.copies is not None and before.copied is not None:
            self.copies.learn(before.copied, new)
        stages = {
            "memory": before.memory.own,
            "h": before.memory.probability,
            "process": before.process.probability,
        }
        if before.layered is not None:
            stages["layers"] = before.layered.probability
        if before.copied is not None:
            stages["copies"] = before.copied.copies
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
        copies = {} if self.copies is None else self.copies.state()
        parts = (super().state(), self.memory.state(), mixture, copies, self.explained.state())
        return {name: value for part in parts for name, value in part.items()}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self._beliefs = None
        self.memory.restore(observations, state)
        self.mixture.restore(state["mixture"].numpy())
        if self.copies is not None:
            self.copies.restore(observations, state)
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
    dreams = DREAMS if preset == "thorough" and dreamable(memory, by_itself=True) else 0
    chosen = with_options(EmPtdmSettings(dreams=dreams), **options)
    if chosen.dreams and not dreamable(memory):
        raise InputError(
            f"dreams={chosen.dreams}: memory {memory.card.name!r} does not dream, it is no network "
            "of engram's of one channel or of cells; give dreams=0 or choose another (prior list)"
        )
    return EmPtdm(
        grid, budget, seed, memory=memory, settings=chosen, layers=layers, detection=detection
    )
