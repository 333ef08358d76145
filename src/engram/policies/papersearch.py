"""Algorithm 1 and its relatives: particles, reward model, scores of Eqs. 9 to 12.

One search serves three policies of the paper: DiffATD (permanent memory alone),
Greedy-Adaptive (its exploitation term alone), and EM-PTDM's ``paper`` preset, which adds the
transient memory and updates it by Algorithm 2 on the schedule of appendix B.2. What the text
leaves open are named settings (``PaperSettings``, ``DrawPlan``), so that every reading can be
measured, and so that the rivals can be given the search rule of the default engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import CountedDenoiser, Denoiser, Known
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
from engram.policies.imagination import DrawPlan, Imagination, evidence_of
from engram.policies.outcome_h import PATIENCE, RECENT
from engram.policies.ranking import Foraging, Progress, checked_rule
from engram.posterior import Replacement, Sampler, pinned
from engram.reward import make_reward, presence_prior
from engram.scores import Scores, paper_scores
from engram.spatial import SpatialModel

Array = NDArray[np.float64]

PAPER_DRAWS = DrawPlan(particles=16, guidance="dps", steps=30, trajectory="fresh")
FAST_DRAWS = DrawPlan(particles=16, guidance="amortised", steps=8, trajectory="warm")

LESSONS = ("posterior", "measured", "joint", "prior", "prequential")
REHEARSED = 64
"""Draws of the permanent memory that lessons of kind ``prior`` use."""


class _Kept(Protocol):
    """A part of a search whose state is saved and restored."""

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


@dataclass(frozen=True)
class PaperSettings:
    """Settings of a search by the paper's scores.

    a : exploration factor of appendix G;  sigma : sigma_x of Eq. 9, in model units
    rule : how cells are ranked (``ranking``);  exploit_only : Eq. 11 instead of Eq. 12
    reward : ``network`` (N.2), ``affine`` or ``none``;  presence : the affine one begins with the
        presence layer of a memory of cells
    h : adapt the transient memory
    lesson : what h learns from. ``posterior``: samples of the area, with the measurements that
        were made (Algorithm 2). ``measured``: the same, the loss at measured pixels alone, where
        the samples are true. ``joint``: the same samples, each measured anew in cells chosen at
        random, so that (X_0, Y) are joint draws. ``prior``: joint draws of the permanent memory
        itself, each measured in the cells that the search has measured: the h-transform of these
        measurements under that memory. ``prequential``: h is told the first
        measurements, a random number of them, and the loss is at the later ones, so that it
        learns from the truth and never sees what it predicts
    rollback : h decides only while it has predicted the latest outcomes (``outcome_h.RECENT``)
        no worse than the permanent memory alone, which is then drawn from as well
    """

    draws: DrawPlan = PAPER_DRAWS
    a: float = 1.0
    sigma: float = 1.0
    rule: str = "paper"
    exploit_only: bool = False
    reward: str = "network"
    presence: bool = False
    h: bool = False
    lesson: str = "posterior"
    rollback: bool = False
    schedule: UpdateSchedule = field(default_factory=UpdateSchedule)
    adapt: AdaptPlan = field(default_factory=AdaptPlan)

    def __post_init__(self) -> None:
        checked_rule(self.rule)
        if self.lesson not in LESSONS:
            raise InputError(f"lesson={self.lesson!r}: choose one of {', '.join(LESSONS)}")
        for name in ("a", "sigma"):
            if not 0 < getattr(self, name) < np.inf:
                raise InputError(f"{name}={getattr(self, name)}: give a number above 0")


def h_network(memory: PermanentMemory, grid: Grid, seed: int) -> HNetwork:
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
        memory: PermanentMemory,
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
        self._dreams: Tensor | None = None
        self._spatial = SpatialModel(grid) if settings.rule == "foraging" else None
        self._updates = set(settings.schedule.times(budget)) if settings.h else set()

    def denoiser(self, known: Known) -> Denoiser:
        """The composite of both memories, h being told ``known``."""
        if not self.settings.h:
            return self.frozen
        return CompositeDenoiser(self.frozen, self.transient, known)

    def composite(self) -> Denoiser:
        """Both memories with everything that was measured; the frozen one while h misleads."""
        known = self.imagination.evidence(self.observations).known
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
        known = self.imagination.evidence(self.observations).known
        self.imagination.imagine(self.denoiser(known), self.observations)
        if self._judged:
            self._imagine_alone()
        self.log.evaluations = self.frozen.evaluations
        weight = 0.0 if self.settings.exploit_only else self._alpha()
        assert self._in_use.particles is not None
        scores = self._score(self._in_use.particles, weight)
        if self.settings.rule == "paper":
            return scores
        return replace(scores, total=self._ranked(scores.probability))

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

    def _ranked(self, p: Array) -> Array:
        """Cells by another rule than the paper's."""
        if self._spatial is None:
            return p
        cells = np.array(self.observations.cells).reshape(-1, 2)
        self._spatial.fit(cells, self.observations.outcomes)
        progress = Progress(int((self.observations.outcomes > 0).sum()), self.t, self.budget)
        doubt = self._spatial.predict()[1]
        return Foraging().rank(p, doubt, self.observations.available, progress).total

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
        losses = self._adapt(particles, self.observations, due)
        self.log.updates.append(
            {
                "t": due,
                "accepted": self._trusted,
                "gain": self._gain,
                "loss": float(np.mean(losses)),
            }
        )

    def _adapt(self, samples: Tensor, observations: Observations, due: int) -> list[float]:
        """Eq. 7 on samples (P, C, H, W) of the area given these observations."""
        evidence = evidence_of(observations)
        whole, made = torch.ones_like(evidence.mask), _ANEW.get(self.settings.lesson)
        if self.settings.lesson == "prior":
            examples = Examples(
                self._rehearsed(), evidence.known, whole, _measured_there(observations)
            )
            return self.transient.adapt(
                self.frozen, examples, self.settings.adapt, seed=self.seed, path=due
            )
        examples = Examples(
            pinned(samples, evidence),
            evidence.known,
            evidence.mask if self.settings.lesson == "measured" else whole,
            None if made is None else made(observations),
        )
        return self.transient.adapt(
            self.frozen, examples, self.settings.adapt, seed=self.seed, path=due
        )

    def _rehearsed(self) -> Tensor:
        """Unprompted draws (N, C, H, W) of the permanent memory, made once."""
        if self._dreams is None:
            blank = evidence_of(Observations(self.grid))
            sampler = Sampler(Replacement(), 12, eta=0.5, first=0.99)
            self._dreams = sampler.draw(
                self.frozen, blank, REHEARSED, seed=self.seed, path=(self.budget,)
            ).clamp(-1, 1)
        return self._dreams

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


Anew = Callable[[Tensor, torch.Generator], tuple[Known, Tensor]]


def _measured_anew(observations: Observations) -> Anew:
    """Draws measured in cells chosen at random, as many as were measured at most."""
    grid, most = observations.grid, len(observations)

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Known, Tensor]:
        order = torch.rand(len(draws), grid.n_cells, generator=generator).argsort(dim=1)
        counts = torch.randint(1, most + 1, (len(draws), 1), generator=generator)
        mask = _pixel_masks(grid, order < counts)
        return Known(draws * mask, mask), torch.ones_like(mask)

    return anew


def _measured_there(observations: Observations) -> Anew:
    """Draws measured in the very cells that were measured."""
    mask = evidence_of(observations).known.weight

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Known, Tensor]:
        there = mask.expand(len(draws), -1, -1, -1)
        return Known(draws * there, there), torch.ones_like(there)

    return anew


def _told_the_first(observations: Observations) -> Anew:
    """The first measurements, a random number of them, to predict the later ones."""
    grid, count = observations.grid, len(observations)
    place = torch.full((1, grid.n_cells), count)
    for position, item in enumerate(observations):
        place[0, grid.index(item.cell)] = position

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Known, Tensor]:
        told = torch.randint(0, count, (len(draws), 1), generator=generator)
        mask = _pixel_masks(grid, place < told)
        return Known(draws * mask, mask), _pixel_masks(grid, (place >= told) & (place < count))

    return anew


def _pixel_masks(grid: Grid, cells: Tensor) -> Tensor:
    """(B, n_cells) -> (B, 1, H, W), 1 at the pixels of chosen cells."""
    rows = cells.float().numpy()
    return torch.from_numpy(np.stack([grid.pixels(row) for row in rows]))[:, None]


_ANEW: dict[str, Callable[[Observations], Anew]] = {
    "joint": _measured_anew,
    "prequential": _told_the_first,
}


def paper_settings(preset: str, memory: PermanentMemory) -> PaperSettings:
    """The paper's guided draws, or warm draws of a mask-conditioned memory."""
    if preset == "paper" or not memory.conditioned:
        return PaperSettings()
    return replace(PaperSettings(), draws=FAST_DRAWS, reward="affine")
