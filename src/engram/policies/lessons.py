r"""What the paper's h learns from: the pairs :math:`(X_0, Y)` of Eq. 7, read in several ways.

``posterior``   samples of the area given the measurements, with these measurements (Algorithm 2)
``measured``    the same, the loss at measured pixels alone, where the samples are true
``joint``       the same samples, each measured anew in cells chosen at random
``prior``       draws of the permanent memory itself, each measured in the cells that the search has
                measured: joint draws of the prior, whose optimum is the h-transform of these
                measurements under that memory (Lemma 1)
``prequential`` h is told the first measurements, a random number of them, and the loss is at the
                later ones: it learns from the truth and never sees what it predicts
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engram.grid import Grid
from engram.memory.consolidation import dream
from engram.memory.denoiser import Denoiser, Known, Memory
from engram.memory.transient import Examples
from engram.observation import Observations
from engram.policies.imagination import measurements_of
from engram.posterior import pinned

LESSONS = ("posterior", "measured", "joint", "prior", "prequential")
DREAMS = 64
"""Draws of the permanent memory that lessons of kind ``prior`` use."""

Anew = Callable[[Tensor, torch.Generator], tuple[Known, Tensor]]


class Lessons:
    """Makes the examples of one update; draws of the memory alone are made once a search."""

    def __init__(self, kind: str, memory: Memory, frozen: Denoiser, seed: int) -> None:
        self.kind, self.memory, self.frozen, self.seed = kind, memory, frozen, seed
        self._dreams: Tensor | None = None

    def examples(self, samples: Tensor, observations: Observations) -> Examples:
        """Pairs for samples (P, C, H, W) of the area given these observations."""
        measured = measurements_of(observations)
        x0 = self.dreams(observations.grid) if self.kind == "prior" else pinned(samples, measured)
        weight = measured.mask if self.kind == "measured" else torch.ones_like(measured.mask)
        anew = _ANEW.get(self.kind)
        return Examples(x0, measured.known, weight, None if anew is None else anew(observations))

    def dreams(self, grid: Grid) -> Tensor:
        """Unprompted draws (DREAMS, C, H, W) of the permanent memory."""
        if self._dreams is None:
            size = (grid.height, grid.width)
            self._dreams = dream(
                self.memory, DREAMS, seed=self.seed, steps=12, size=size, through=self.frozen
            )
        return self._dreams


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
    mask = measurements_of(observations).known.weight

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
    "prior": _measured_there,
    "prequential": _told_the_first,
}
