r"""A network that says in one evaluation what a memory says in eight.

The mean of an area that a memory expects is averaged over the symmetries g of a square, since a
network is not symmetric by itself:

.. math::  \bar m(y) = \tfrac18 \sum_g g^{-1} m_\theta(g\,y) .

A copy of the network learns that mean of a single view,

.. math::  \min_\phi \; \mathbb E \, \| m_\phi(g\,y) - g\,\bar m(y) \|^2 ,

over the states y of searches under way that the memory itself was trained on, each in several of
its turns, which cost one teaching. Only estimates at full noise are learnt (the mean); samples are
drawn from the memory as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor

from engram.errors import InputError
from engram.memory.denoiser import Denoiser, Known, NetworkDenoiser, noise_to_weight
from engram.memory.permanent import PermanentMemory
from engram.memory.practice import near_finds, scattered_masks
from engram.memory.recipes import claim
from engram.memory.sources import Source
from engram.memory.training import Batch, Trainer, TrainingPlan
from engram.seeding import torch_generator
from engram.symmetry import TURNS, turned, turned_back

COPIES = 3
"""Turns of a state that are learnt from one teaching; the first is the state as it is."""
PLAN = TrainingPlan(
    steps=2000,
    batch=16,
    learning_rate=3e-4,
    warmup=50,
    ema=0.995,
    episodes=0.75,
    resumed=0.0,
    noisy=0.1,
    unprompted=0.05,
    focus=4.0,
    checkpoint_every=50,
)
"""How a symmetric network is trained; ``batch`` are states, each of them in ``COPIES`` turns."""


def mean_at_full_noise(denoiser: Denoiser, known: Known) -> Tensor:
    """(B, C, H, W) what is expected given what is known (B, ...)."""
    return denoiser.estimate(torch.zeros_like(known.values), torch.ones(1), known).x0


@torch.no_grad()
def symmetric_mean(denoiser: Denoiser, known: Known) -> Tensor:
    r"""(B, C, H, W) :math:`\bar m(y)`, by eight evaluations."""
    each = range(TURNS)
    values, weight = (torch.cat([turned(x, k) for k in each]) for x in (known.values, known.weight))
    means = mean_at_full_noise(denoiser, Known(values, weight)).chunk(TURNS)
    return torch.stack([turned_back(m, k) for k, m in zip(each, means, strict=True)]).mean(dim=0)


class Distiller(Trainer):
    """Trains a copy of a memory's network to its symmetric mean."""

    def __init__(self, memory: PermanentMemory, source: Source, plan: TrainingPlan = PLAN) -> None:
        card = memory.card
        if not memory.conditioned or card.height != card.width:
            raise InputError(
                f"memory {card.name!r} ({card.height}x{card.width}, "
                f"{'told measurements' if memory.conditioned else 'told nothing'}): only a memory "
                "of square areas that takes measurements as input has a symmetric mean to learn"
            )
        if source.shape != (card.channels, card.height, card.width):
            raise InputError(
                f"training areas of shape {source.shape}, memory {card.name!r} imagines "
                f"{(card.channels, card.height, card.width)}; give the data it was trained on"
            )
        super().__init__(deepcopy(memory.network).requires_grad_(True).train(), source, plan)
        self.memory = memory

    def _batch(self, generator: torch.Generator) -> Batch:
        """``plan.batch`` states at full noise, then the same in other turns."""
        states = super()._batch(generator)
        turns = [0, *(1 + torch.randperm(TURNS - 1, generator=generator)[: COPIES - 1]).tolist()]
        x0, mask = (torch.cat([turned(x, k) for k in turns]) for x in (states.x0, states.mask))
        self._turns = turns
        return Batch(x0, torch.ones(len(x0)), mask, states.sigma.repeat(COPIES, 1, 1, 1))

    def _velocities(
        self, batch: Batch, eps: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        n = self.plan.batch
        noise = batch.sigma[:n] * torch.randn(batch.x0[:n].shape, generator=generator)
        values, weight = batch.x0[:n] + noise, batch.mask[:n] * noise_to_weight(batch.sigma[:n])
        taught = symmetric_mean(self.memory, Known(values * batch.mask[:n], weight))
        goal, values, weight = (
            torch.cat([turned(x, k) for k in self._turns])
            for x in (taught, values * batch.mask[:n], weight)
        )
        said = mean_at_full_noise(self.denoiser, Known(values, weight))
        return -goal, -said

    def _focus(self, batch: Batch) -> Tensor:
        """(B, 1, H, W) weights of pixels, 1 on average: what was measured is not asked for."""
        shown = batch.x0[:, -1:] if self.source.layers else batch.x0
        weights = (1 - batch.mask) * (1 + self.plan.focus * near_finds(shown, batch.mask))
        return weights / weights.mean()

    def held_out_loss(self, batches: int = 8) -> float:
        """Error of the averaged network in one view (``error_of``)."""
        return self.error_of(self.averaged, batches)

    @torch.no_grad()
    def error_of(self, denoiser: Denoiser, batches: int = 8) -> float:
        """Mean squared distance of a denoiser in one view to the symmetric mean, in held-out areas
        with cells measured at random."""
        total = 0.0
        for i in range(batches):
            generator = torch_generator(self.plan.seed, "train", 2, i)
            x0 = self.source.draw(self.plan.batch, generator, held_out=True)
            height, width = x0.shape[2:]
            mask = scattered_masks(len(x0), height, width, generator)
            known = Known(x0 * mask, mask)
            said = mean_at_full_noise(denoiser, known)
            total += float((said - symmetric_mean(self.memory, known)).square().mean())
        return total / batches


def distil(
    memory: PermanentMemory,
    source: Source,
    plan: TrainingPlan = PLAN,
    *,
    recipe: str = "",
    checkpoint: Path | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> PermanentMemory:
    """The memory with a symmetric network; how it was made stands on its card.

    With ``checkpoint`` an interrupted training goes on where it stopped; one of another training
    is refused.
    """
    distiller = Distiller(memory, source, plan)
    if checkpoint is not None:
        claim(checkpoint, source, memory.network.config, plan, memory)
    distiller.run(progress, checkpoint)
    about = {
        "steps": plan.steps,
        "recipe": recipe,
        "error": round(distiller.held_out_loss(), 6),
        "error_of_one_view": round(distiller.error_of(memory), 6),
    }
    return memory.with_symmetric(NetworkDenoiser(distiller.averaged.network), about)
