"""Consolidation: after a task, the permanent memory learns from what was imagined of it.

"Enhancing permanent memory" of the main text and appendix F: posterior samples of finished
tasks, conditioned on all their measurements, become training images of a *new* memory. Images
that the old memory draws on its own are rehearsed along with them, so that it does not forget
what it knew; the old memory itself is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engram.errors import InputError
from engram.memory.denoiser import Denoiser, Memory
from engram.memory.layers import LayerSet
from engram.memory.permanent import PermanentMemory
from engram.memory.training import Progress, Trainer, TrainingPlan
from engram.posterior import Amortised, Measured, Replacement, Sampler
from engram.symmetry import turned


@dataclass(frozen=True)
class ConsolidationPlan:
    """How much to learn and how much to rehearse.

    rehearsal : share of the training images that the old memory drew unprompted
    turns     : learn from turned and mirrored samples as well (areas without a direction)
    """

    steps: int = 300
    batch: int = 32
    learning_rate: float = 3e-4
    rehearsal: float = 0.3
    rehearsed: int = 96
    turns: bool = True
    seed: int = 0


def dream(
    memory: Memory,
    count: int,
    *,
    seed: int,
    steps: int = 20,
    size: tuple[int, int] | None = None,
    through: Denoiser | None = None,
) -> Tensor:
    """``count`` images (count, C, H, W) in model units that the memory draws unprompted.

    Half of the ancestral noise (eta 0.5) gives cleaner images than all or none of it. ``through``
    is asked instead of the memory: one that counts, say.
    """
    height, width = size or (memory.card.height, memory.card.width)
    blank = torch.zeros(1, 1, height, width)
    nothing = Measured(torch.zeros(1, memory.channels, height, width), blank, blank)
    sampler = Sampler(Amortised() if memory.conditioned else Replacement(), steps, eta=0.5)
    batches = [
        sampler.draw(through or memory, nothing, min(32, count - start), seed=seed, path=(start,))
        for start in range(0, count, 32)
    ]
    return torch.cat(batches).clamp(-1, 1)


class _Lessons:
    """Training source: samples of finished tasks, mixed with rehearsed dreams."""

    description = "posterior samples of finished tasks and rehearsed samples of the old memory"

    def __init__(
        self, lessons: Tensor, dreams: Tensor, plan: ConsolidationPlan, layers: LayerSet
    ) -> None:
        self.lessons, self.dreams, self.plan, self.layers = lessons, dreams, plan, layers

    @property
    def shape(self) -> tuple[int, int, int]:
        _, c, h, w = self.lessons.shape
        return c, h, w

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        """Lessons and dreams; the unconditional part (``plain``) gets them alike."""
        if count == 0:
            return torch.empty(0, *self.shape)
        pick = torch.randint(0, len(self.lessons), (count,), generator=generator)
        lessons = self.lessons[pick]
        if self.plan.turns and lessons.shape[2] == lessons.shape[3]:
            turn = torch.randint(0, 8, (count,), generator=generator)
            lessons = torch.stack([turned(x, int(k)) for x, k in zip(lessons, turn, strict=True)])
        dreams = self.dreams[torch.randint(0, len(self.dreams), (count,), generator=generator)]
        old = torch.rand(count, 1, 1, 1, generator=generator) < self.plan.rehearsal
        return torch.where(old, dreams, lessons)


def consolidate(
    memory: PermanentMemory,
    samples: Sequence[Tensor],
    plan: ConsolidationPlan | None = None,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> PermanentMemory:
    """A new memory that has learnt from posterior samples (P, C, H, W) of finished tasks."""
    plan = plan or ConsolidationPlan()
    if not samples:
        raise InputError("no posterior samples given: consolidate after at least one search")
    lessons = torch.cat([s.detach().float() for s in samples]).clamp(-1, 1)
    if lessons.shape[1] != memory.channels or not torch.isfinite(lessons).all():
        raise InputError(
            f"posterior samples of shape {tuple(lessons.shape)} do not fit memory "
            f"{memory.card.name!r} ({memory.channels} channels), or are not finite"
        )
    if lessons.shape[2:] != (memory.card.height, memory.card.width):
        raise InputError(
            f"posterior samples of {lessons.shape[2]}x{lessons.shape[3]} pixels; memory "
            f"{memory.card.name!r} was trained at {memory.card.height}x{memory.card.width}"
        )
    dreams = dream(memory, plan.rehearsed, seed=plan.seed)
    source = _Lessons(lessons, dreams, plan, memory.card.layers)
    network = deepcopy(memory.network).requires_grad_(True)
    training = TrainingPlan(
        steps=plan.steps,
        batch=plan.batch,
        learning_rate=plan.learning_rate,
        warmup=20,
        ema=0.98,
        seed=plan.seed,
    )
    trainer = Trainer(network, source, training)
    trainer.run(progress)
    event = {
        "what": "consolidated",
        "samples": int(lessons.shape[0]),
        "steps": plan.steps,
        "rehearsal": plan.rehearsal,
    }
    card = replace(
        memory.card,
        name=name or f"{memory.card.name}+",
        parent=memory.card.sha256,
        sha256="",
        loss=trainer.held_out_loss(2),
        history=[*memory.card.history, event],
        seen=f"{memory.card.seen or memory.card.data}; since then {len(lessons)} areas that it "
        "imagined at the end of finished searches",
    )
    return PermanentMemory(trainer.averaged, card)
