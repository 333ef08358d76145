r"""Permanent and transient memory where the transient one dreams.

Beside the permanent memory stands a copy of it that learns from dreams (``dreams``) while the
search goes on. Both forecast every measurement; the probability of target is

.. math::  p = w\, p_\text{dreaming} + (1 - w)\, p_\text{permanent} , \qquad
           w = \sigma\Bigl(f + \sum_i \lambda^{t - i}
               \log \frac{p_\text{dreaming}(y_i)}{p_\text{permanent}(y_i)}\Bigr) ,

each outcome predicted before it was seen. A copy that dreamt of the wrong things loses its weight
within a few surprises: that is its roll-back. h tilts what both say together.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from engram.detection import after
from engram.memory.denoiser import CountedDenoiser, Memory, NetworkDenoiser
from engram.memory.permanent import PermanentMemory
from engram.memory.unet import UNet
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule
from engram.policies.base import log_likelihood
from engram.policies.dreams import DreamAreas, DreamPlan, learnt_from
from engram.policies.forecast import Array
from engram.policies.imagination import Imagination
from engram.policies.layering import LayerForecaster
from engram.policies.looks import Plain, Seen
from engram.policies.mixing import DISCOUNT
from engram.policies.outlines import Mask, outlines
from engram.policies.process import ProcessForecaster
from engram.policies.remembering import MemoryBelief, MemoryForecaster, Remembering

FAVOUR = 2.0
"""Nats by which a memory that dreams starts ahead."""
FIRST_DREAM = 20
"""Measured before which nobody dreams."""
DREAMS = 10
"""How often a thorough search dreams."""


def dreamable(memory: Memory, *, by_itself: bool = False) -> bool:
    """Whether a copy of the memory can learn from dreams: a network of ours of one channel or of
    cells, on the cpu. Those of cells are not asked to ``by_itself``: they found no more for it."""
    return (
        isinstance(memory, PermanentMemory)
        and memory.device == "cpu"
        and isinstance(memory.denoiser, NetworkDenoiser)
        and memory.conditioned
        and (memory.channels == 1 or bool(memory.card.layers))
        and not (by_itself and memory.card.layers)
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class DreamingBelief(MemoryBelief):
    """What both say. dreaming, permanent : (n_cells,) probability of target as each has it."""

    dreaming: Array
    permanent: Array


@dataclass(frozen=True)
class Dreaming:
    """How much the copy learns, and after how many measurements."""

    plan: DreamPlan
    schedule: UpdateSchedule


class DreamingForecaster(MemoryForecaster):
    """Memory, its dreaming copy, reward and h."""

    def __init__(
        self,
        memory: Memory,
        imagination: Imagination,
        spatial: ProcessForecaster,
        plan: Remembering,
        layered: LayerForecaster | None,
        dreaming: Dreaming,
        budget: int,
    ) -> None:
        super().__init__(memory, imagination, spatial, plan, layered)
        assert isinstance(memory, PermanentMemory)  # dreamable
        self.permanent, self.dreaming = memory, dreaming
        self.due = frozenset(dreaming.schedule.times(budget))
        self.copy: CountedDenoiser | None = None
        self._dreaming: UNet | None = None
        self._gains: list[float] = []

    # -- beliefs ---------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """w, what the dreaming copy counts."""
        if self.copy is None:
            return 0.0
        age = np.arange(len(self._gains))[::-1]
        return float(expit(FAVOUR + np.sum(np.array(self._gains) * DISCOUNT**age)))

    def belief(self, observations: Observations) -> MemoryBelief:
        if self.copy is None:
            return super().belief(observations)
        w = self.weight
        means = [self.posterior_mean(one, observations) for one in (self.copy, self.frozen)]
        dreaming, permanent = (self.target(mean) for mean in means)
        mean, own = w * means[0] + (1 - w) * means[1], w * dreaming + (1 - w) * permanent
        both = self.believed(mean, own, observations)
        return DreamingBelief(**vars(both), dreaming=dreaming, permanent=permanent)

    @property
    def imagining(self) -> CountedDenoiser:
        return self.frozen if self.copy is None or self.weight < 0.5 else self.copy

    @property
    def evaluations(self) -> float:
        """Evaluations of both networks so far."""
        return self.frozen.evaluations + (0 if self.copy is None else self.copy.evaluations)

    # -- learning --------------------------------------------------------------------------

    def learn(
        self, before: MemoryBelief, new: Sequence[Observation], observations: Observations
    ) -> dict[str, Any] | None:
        if isinstance(before, DreamingBelief):
            for item in new:
                cell, hit = self.grid.index(item.cell), float(item.outcome > 0)
                told = (before.dreaming[cell], before.permanent[cell])
                ours, theirs = (
                    log_likelihood(hit, item.reported(float(after(p, before.odds[cell]))), 0.02)
                    for p in told
                )
                self._gains.append(ours - theirs)
        return super().learn(before, new, observations)

    def is_due(self, new: Sequence[Observation], observations: Observations) -> bool:
        """Whether these new measurements are those after which it dreams."""
        t = len(observations)
        return any(t - len(new) < when <= t for when in self.due)

    def dream(self, observations: Observations, seed: int) -> dict[str, Any] | None:
        """Learn from dreams where something is outlined; what came of those before."""
        t, (drawn, samples) = len(observations), self._samples(observations)
        found = outlines(samples, observations)
        if not found:
            return None
        expected, layers = float(samples.mean(axis=0).sum()), self.permanent.card.layers
        looks = Seen.of(drawn, samples, observations) if layers else Plain.of(observations)
        areas = DreamAreas(found, expected, self.grid, looks, layers)
        memory, loss = learnt_from(
            self.permanent, self._learner, areas, self.dreaming.plan, seed, t
        )
        gain, accepted = float(np.sum(self._gains)), self.copy is None or self.weight >= 0.5
        self._take(memory.network)
        return {"t": t, "objects": len(found), "accepted": accepted, "gain": gain, "loss": loss}

    def _samples(self, observations: Observations) -> tuple[NDArray[np.float32], Mask]:
        """(P, C, H, W) areas that agree with what was measured, and (P, rows, cols) where target
        is in them."""
        measured = self.imagination.measurements(observations)
        drawn = self.imagination.draw(self.imagining, measured, len(observations))
        cells = self.imagination.cells(drawn)  # (P, n_cells, C, h, w)
        count, n = cells.shape[:2]
        target = self.reward.predict(cells.reshape(count * n, *cells.shape[2:])) > 0.5
        return drawn.numpy(), target.reshape(count, self.grid.rows, self.grid.cols)

    @property
    def _learner(self) -> UNet:
        """The network that dreams: at first as the permanent memory is."""
        return self.permanent.network if self._dreaming is None else self._dreaming

    def _take(self, network: UNet) -> None:
        """Use this network as the copy that dreams; its evaluations are counted on."""
        counted = 0.0 if self.copy is None else self.copy.evaluations
        self._dreaming = network
        self.copy = CountedDenoiser(PermanentMemory(NetworkDenoiser(network), self.permanent.card))
        self.copy.evaluations = counted

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        out = super().state()
        if self._dreaming is None:
            return out
        weights = {f"dreaming/{k}": v.clone() for k, v in self._dreaming.state_dict().items()}
        return {**out, **weights, "dreams": torch.tensor(self._gains, dtype=torch.float64)}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        weights = {k[9:]: v for k, v in state.items() if k.startswith("dreaming/")}
        self._dreaming, self.copy, self._gains = None, None, []
        if weights:
            network = deepcopy(self.permanent.network)
            network.load_state_dict(weights)
            self._take(network)
            self._gains = state["dreams"].tolist()
