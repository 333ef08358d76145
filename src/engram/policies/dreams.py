r"""Dreams: areas composed of what a search has found, and a memory that learns from them.

The E-step of Algorithm 2 draws areas that agree with what was measured; particles of a memory that
does not know the shape of things here cannot show it. A dream carries it: copies of the objects
that were outlined (``outlines``) at random places of an empty area, as many as are expected, turned
as far as the finds say that things are turned. The M-step is Eq. 7 on joint draws
:math:`(X_0, Y)`: the dreamt area and what a search in it would have measured,

.. math::  \min_\phi \; \mathbb E \| v_\phi(x_t, t, m \odot x_0, m) - v \|^2 ,

with the mask-conditioned network of the permanent memory as the start of :math:`\phi`. The truth
of a dream is known everywhere, so learning is free of the bias of cells that a search chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.layers import LayerSet
from engram.memory.permanent import PermanentMemory
from engram.memory.training import Trainer, TrainingPlan
from engram.memory.unet import UNet
from engram.policies.looks import Looks, Plain
from engram.policies.outlines import EIGHT, Mask, Outline, turning, views
from engram.seeding import numpy_generator

TRIES = 20
"""Places that are tried for one copy."""
APART = 0.75
"""Share of dreams in which copies do not touch."""
OVER_THE_EDGE = 0.2
"""Share of copies that may lie partly outside, and by how many cells."""
EDGE_CELLS = 2


@dataclass(frozen=True)
class DreamPlan:
    """How much is learnt from dreams.

    steps, batch, learning_rate : of one update
    searching : share of a batch that is estimates at full noise in searches under way, which is
        what a forecast is made of; the rest is at any noise level
    """

    steps: int = 60
    batch: int = 24
    learning_rate: float = 5e-4
    searching: float = 0.85

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 4:
            raise InputError(
                f"steps={self.steps}, batch={self.batch}: give at least 1 step and 4 dreams a step"
            )

    def training(self, seed: int, emphasis: float = 1.0) -> TrainingPlan:
        """The same as a plan of the trainer."""
        return TrainingPlan(
            steps=self.steps, batch=self.batch, learning_rate=self.learning_rate, warmup=10,
            ema=0.97, episodes=self.searching, resumed=0.0, noisy=0.0, unprompted=0.0, focus=2.0,
            emphasis=emphasis, seed=seed,
        )  # fmt: skip


class DreamAreas:
    """Training source: areas (C, H, W) in [-1, 1] with copies of outlined objects.

    expected : number of target cells in the area, found and to be expected
    looks    : contents of cells, of a memory with these ``layers`` (none: of pixels)
    """

    description = "areas composed of what a search has found"

    def __init__(
        self,
        found: Sequence[Outline],
        expected: float,
        grid: Grid,
        looks: Looks | None = None,
        layers: LayerSet | None = None,
    ) -> None:
        if not found:
            raise InputError("no outlined object to dream of")
        self.found, self.grid, self.looks = list(found), grid, looks or Plain()
        self.layers = layers or LayerSet()
        weights = np.array([outline.weight for outline in found])
        self.weights = weights / weights.sum()
        self.copies = expected / float(self.weights @ [outline.size for outline in found])
        self.turning = turning(found)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.looks.channels, self.grid.height, self.grid.width)

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        if count == 0:
            return torch.empty(0, *self.shape)
        seed = int(torch.randint(0, 2**31 - 1, (1,), generator=generator))
        areas = [self._seen(numpy_generator(seed, "dream", i)) for i in range(count)]
        return torch.from_numpy(np.stack(areas))

    def _seen(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """(C, H, W) one dreamt area as the memory sees it."""
        contents = self.looks.draw(self.area(rng), rng).astype(np.float32)
        return np.stack([self.grid.pixels(channel.ravel()) for channel in contents])

    def area(self, rng: np.random.Generator) -> Mask:
        """(rows, cols) one dreamt area: where target is."""
        area = np.zeros((self.grid.rows, self.grid.cols), bool)
        count = max(1, round(self.copies * rng.uniform(0.6, 1.5)))
        each_turned, apart = rng.random() < self.turning, rng.random() < APART
        alike = self._pick(rng) if rng.random() < 0.5 else None
        common = int(rng.integers(8)) if rng.random() < 0.3 else 0
        for _ in range(count):
            drawn = (alike or self._pick(rng)).shape
            turn = int(rng.integers(8)) if each_turned else common
            _put(area, np.asarray(views(drawn)[turn], bool), apart, rng)
        return area

    def _pick(self, rng: np.random.Generator) -> Outline:
        return self.found[int(rng.choice(len(self.found), p=self.weights))]


def _put(area: Mask, drawn: Mask, apart: bool, rng: np.random.Generator) -> None:
    """Add a copy at a random place; none where no place was found in a few tries."""
    sizes, taken = list(zip(area.shape, drawn.shape, strict=True)), binary_dilation(area, EIGHT)
    for _ in range(TRIES):
        over = EDGE_CELLS if rng.random() < OVER_THE_EDGE else 0
        spans = [(min(over, part // 2), whole, part) for whole, part in sizes]
        if any(whole - part + 2 * beyond < 0 for beyond, whole, part in spans):
            continue
        corner = [int(rng.integers(-o, whole - part + o + 1)) for o, whole, part in spans]
        there = tuple(
            slice(max(at, 0), min(at + part, whole))
            for at, (whole, part) in zip(corner, sizes, strict=True)
        )
        here = zip(there, corner, strict=True)
        inside = drawn[tuple(slice(side.start - at, side.stop - at) for side, at in here)]
        if apart and (taken[there] & inside).any():
            continue
        area[there] |= inside
        return


def learnt_from(
    memory: PermanentMemory, network: UNet, areas: DreamAreas, plan: DreamPlan, seed: int, at: int
) -> tuple[PermanentMemory, float]:
    """A memory that goes on from ``network`` with dreams of ``areas``, and its last loss.

    memory : the permanent one, whose card it keeps; it is left as it is
    at     : after how many measurements; every update has dreams of its own
    """
    learner = deepcopy(network).requires_grad_(True)
    emphasis = float(max(1, len(areas.layers)))  # as when a memory of cells is trained
    trainer = Trainer(learner, areas, plan.training(_address(seed, at), emphasis))
    trainer.run()
    return PermanentMemory(trainer.averaged, memory.card), trainer.loss


def _address(seed: int, at: int) -> int:
    """One number for (seed, measurements), from which all dreams of an update are drawn."""
    return int(numpy_generator(seed, "dream", at).integers(2**31))
