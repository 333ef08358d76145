r"""EM-PTDM: permanent and transient memory together.

``paper`` preset: Algorithms 1 and 2 as written (``papersearch``). ``default`` preset: the
same two memories, made fast and checked:

* the mask-conditioned permanent memory is told the measurements; its estimate at full noise
  is the posterior mean in one evaluation, and an affine reward turns it into the probability
  of target of every cell;
* the transient memory is a plastic copy of the memory's last stage. Its M-step is Eq. 7 on
  joint draws :math:`(X_0, Y)`: X_0 a posterior sample of the whole area, Y what a search of
  X_0 would have known earlier (a prefix of the measurements, or a fresh random part);
* an update is judged on the latest measurements, each predicted from those before it. If
  their evidence falls, the update is rolled back;
* the memory's prediction is mixed with a plain spatial model by prequential evidence, so
  that a useless memory costs little;
* cells are ranked by probability of target plus a share of its standard deviation that fades
  with :math:`\alpha(B)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import Known
from engram.memory.permanent import PermanentMemory
from engram.memory.transient import (
    AdaptPlan,
    CompositeDenoiser,
    Examples,
    PlasticTail,
    TransientMemory,
)
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule, alpha
from engram.policies.base import Policy, View
from engram.policies.imagination import DrawPlan, Imagination, evidence_of
from engram.policies.mixing import EvidenceMixture
from engram.policies.papersearch import PaperSearch, PaperSettings, paper_settings, with_options
from engram.posterior import Evidence
from engram.reward import AffineReward
from engram.scores import Scores, paper_scores
from engram.seeding import torch_generator
from engram.symmetry import TURNS, turned, turned_back


@dataclass(frozen=True)
class EmPtdmSettings:
    """Settings of the default preset.

    a, explore : alpha(B) of Eq. 12 with factor a, times ``explore``, weighs the standard
        deviation sqrt(p (1 - p)) of a cell's outcome
    h        : learn the transient memory;  views : symmetries averaged in the mean (1 or 8)
    guard    : mix with a spatial model by evidence
    every    : queries between two refreshes of the particles
    examples : training pairs of one update;  scatter : share with a fresh random mask
    block    : latest measurements that judge an update
    """

    h: bool = True
    guard: bool = True
    a: float = 1.0
    explore: float = 0.0
    views: int = 1
    every: int = 10
    sigma: float = 1.0
    examples: int = 64
    scatter: float = 0.3
    block: int = 16
    directed: bool = False
    schedule: UpdateSchedule = field(default_factory=lambda: UpdateSchedule(updates=8, first=40))
    adapt: AdaptPlan = field(
        default_factory=lambda: AdaptPlan(steps=30, learning_rate=3e-4, at_full_noise=0.8)
    )
    draws: DrawPlan = field(default_factory=DrawPlan)


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
        self.transient = TransientMemory(PlasticTail(memory.denoiser.network), told=True)
        self.composite = CompositeDenoiser(memory, self.transient)
        self.imagination = Imagination(grid, settings.draws, seed)
        self.reward = AffineReward(grid.channels)
        self.mixture = EvidenceMixture(grid) if settings.guard else None
        self._updates = set(settings.schedule.times(budget)) if settings.h else set()
        self._mean: Tensor | None = None
        self._terms: Scores | None = None

    # -- beliefs ---------------------------------------------------------------------------

    def scores(self) -> Scores:
        evidence = evidence_of(self.observations)
        self._mean = self._posterior_mean(evidence)
        own = self._probability(self._mean)
        p = own if self.mixture is None else self.mixture.probability(own, self.observations)
        if self._terms is None or self.t % self.settings.every == 0:
            self._terms = self._particle_terms()
        self.log.evaluations = self.imagination.evaluations
        weight = alpha(min(self.t, self.budget), self.budget, self.settings.a)
        deviation = np.sqrt(p * (1 - p))
        return replace(
            self._terms,
            probability=p,
            alpha=weight,
            total=p + self.settings.explore * weight * deviation,
        )

    def _posterior_mean(self, evidence: Evidence) -> Tensor:
        """(1, C, H, W) by one evaluation, averaged over symmetries when asked for."""
        square = self.grid.height == self.grid.width
        if self.settings.views == 1 or not square or self.settings.directed:
            return self.imagination.mean(self.composite, evidence)
        values = torch.cat([turned(evidence.values, k) for k in range(TURNS)])
        mask = torch.cat([turned(evidence.mask, k) for k in range(TURNS)])
        sigma = torch.cat([turned(evidence.sigma, k) for k in range(TURNS)])
        means = self.imagination.mean(self.composite, Evidence(values, mask, sigma))
        back = [turned_back(means[k : k + 1], k) for k in range(TURNS)]
        return torch.cat(back).mean(dim=0, keepdim=True)

    def _probability(self, image: Tensor) -> NDArray[np.float64]:
        """Probability of target of every cell from an expected content (1, C, H, W)."""
        return self.reward.predict(self.imagination.cells(image)[0])

    def _particle_terms(self) -> Scores:
        particles = self.imagination.imagine(self.composite, self.observations)
        cells = self.imagination.cells(particles)
        count, n = cells.shape[:2]
        rewards = self.reward.predict(cells.reshape(count * n, *cells.shape[2:]))
        flat = cells.reshape(count, n, -1)
        return paper_scores(flat, rewards.reshape(count, n), 0.0, self.settings.sigma)

    def view(self) -> View:
        scores = self.current_scores()
        assert self._mean is not None
        particles = self.imagination.particles
        return View(
            scores,
            self.imagination.in_range(self._mean[0]),
            None if particles is None else self.imagination.in_range(particles),
        )

    # -- learning --------------------------------------------------------------------------

    def learn(self, new: list[Observation]) -> None:
        contents = self.grid.to_model(self.observations.contents)
        self.reward.update(contents, self.observations.outcomes)
        if self.mixture is not None:
            self.mixture.learn(self.observations, len(new))
        before = self.t - len(new)
        for due in sorted(t for t in self._updates if before < t <= self.t):
            self._update(due)

    def _update(self, due: int) -> None:
        """One EM step: draw, learn by Eq. 7, judge on the latest measurements, keep or not."""
        block = min(self.settings.block, due // 3)
        if block < 2:
            return
        early = self.observations.subset(range(due - block))
        before = self._block_evidence(due, block)
        saved = self.transient.state()
        examples = self._examples(early, due)
        self.transient.adapt(self.memory, examples, self.settings.adapt, seed=self.seed, path=due)
        after = self._block_evidence(due, block)
        accepted = after >= before
        if not accepted:
            self.transient.restore(saved)
        adapt = self.settings.adapt
        trained = adapt.steps * adapt.batch / 16 * TAIL_COST
        self.imagination.evaluations += trained + self.settings.examples / 16
        self.log.updates.append(
            {"t": due, "accepted": accepted, "before": before, "after": after,
             "steps": adapt.steps, "held_out": block}
        )  # fmt: skip

    def _examples(self, early: Observations, due: int) -> Examples:
        """Joint draws (X_0, Y): posterior samples, and what a search knew of them earlier."""
        evidence = evidence_of(early)
        drawn = self.imagination.draw(self.composite, evidence, due)
        self.imagination.evaluations += drawn.evaluations * self.settings.draws.particles / 16
        generator = torch_generator(self.seed, "adapt", due, 1)
        samples = drawn.particles.clamp(-1, 1)
        order = self._visit_order(early)
        images, masks = [], []
        turns = 1 if self.settings.directed or self.grid.height != self.grid.width else TURNS
        for j in range(self.settings.examples):
            u = torch.rand(2, generator=generator)
            if float(u[0]) < self.settings.scatter:
                noise = torch.rand(self.grid.rows, self.grid.cols, generator=generator)
                cells = (noise < 0.3 * u[1]).float()
            else:
                cells = (order < float(u[1]) * len(early)).float()
            mask = self._cell_pixels(cells)
            k = int(torch.randint(0, turns, (1,), generator=generator))
            images.append(turned(samples[j % len(samples)], k))
            masks.append(turned(mask, k))
        x0, mask = torch.stack(images), torch.stack(masks)
        return Examples(x0, Known(x0, mask), 1 - mask)

    def _visit_order(self, observations: Observations) -> Tensor:
        """(rows, cols) position of each cell in the search, infinity where not visited."""
        order = torch.full((self.grid.n_cells,), torch.inf)
        for i, cell in enumerate(observations.cells):
            order[self.grid.index(cell)] = i
        return order.reshape(self.grid.rows, self.grid.cols)

    def _cell_pixels(self, cells: Tensor) -> Tensor:
        """(rows, cols) -> (1, H, W)."""
        h, w = self.grid.cell
        return cells.repeat_interleave(h, 0).repeat_interleave(w, 1)[None]

    @torch.no_grad()
    def _block_evidence(self, due: int, block: int) -> float:
        """Mean log-likelihood of the latest ``block`` outcomes, each given those before it."""
        items = self.observations.items[:due]
        full = evidence_of(self.observations.subset(range(due)))
        order = self._visit_order(self.observations.subset(range(due)))
        starts = range(due - block, due)
        mask = torch.stack([self._cell_pixels((order < s).float()) for s in starts])
        known = Evidence(full.values * mask, mask, full.sigma.expand(block, -1, -1, -1))
        means = self.imagination.mean(self.composite, known)
        self.imagination.evaluations += (block - 1) / 16
        total = 0.0
        for row, start in enumerate(starts):
            item = items[start]
            content = self.imagination.cells(means[row : row + 1])[0]
            p = float(self.reward.predict(content[[self.grid.index(item.cell)]])[0])
            p = min(max(p, 0.01), 0.99)
            total += item.outcome * np.log(p) + (1 - item.outcome) * np.log(1 - p)
        return total / block

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        out = {f"h/{k}": v for k, v in self.transient.state().items()}
        if self.imagination.particles is not None:
            out["particles"] = self.imagination.particles
        if self.mixture is not None:
            out["mixture"] = torch.from_numpy(self.mixture.history())
        return out

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self.transient.restore({k[2:]: v for k, v in state.items() if k.startswith("h/")})
        self.imagination.particles = state.get("particles")
        if len(observations):
            contents = self.grid.to_model(observations.contents)
            self.reward.update(contents, observations.outcomes)
        if self.mixture is not None:
            self.mixture.restore(observations, state["mixture"].numpy())


TAIL_COST = 0.8
"""Forward and backward of the plastic tail, in forward passes of the whole network."""


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
        base = replace(paper_settings(preset, memory), h=True)
        settings: PaperSettings = with_options(base, **options)
        return PaperSearch(grid, budget, seed, memory=memory, name="em-ptdm", settings=settings)
    unknown = set(options) - set(EmPtdmSettings.__dataclass_fields__)
    if unknown:
        raise InputError(
            f"unknown option(s) {', '.join(sorted(unknown))} of em-ptdm; known are "
            f"{', '.join(EmPtdmSettings.__dataclass_fields__)}"
        )
    chosen = replace(EmPtdmSettings(), **options)  # type: ignore[arg-type]
    return EmPtdm(grid, budget, seed, memory=memory, settings=chosen)
