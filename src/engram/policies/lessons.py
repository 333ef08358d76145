r"""What the paper's h learns from: the pairs :math:`(X_0, Y)` of Eq. 7, read in several ways.

``posterior``   samples of the area given the measurements, with these measurements (Algorithm 2)
``measured``    the same, the loss at measured pixels alone, where the samples are true
``joint``       the same samples, each measured anew in cells chosen at random
``prior``       draws of the permanent memory itself, each measured in the cells that the search has
                measured: joint draws of the prior, whose optimum is the h-transform of these
                measurements under that memory (Lemma 1)
``prequential`` h is told the first measurements, a random number of them, and the loss is at the
                later ones: it learns from the truth and never sees what it predicts
``hindsight``   the same, under a random symmetry of a square area, and unmeasured pixels count a
                little (``imagined``), as the samples have them

Only what was measured says anything that the memories did not know. Samples teach h what it
believes already: with these measurements alone (one Y) the best prior is any that has made up its
mind about the rest, so ``posterior`` makes samples alike. A lesson from the truth alone is free
where nothing was measured, and what a search measures is richer in target than the rest.
Imagined pixels with a small weight hold h where it has learnt nothing.
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
from engram.symmetry import TURNS, turned

LESSONS = ("posterior", "measured", "joint", "prior", "hindsight", "prequential")
DREAMS = 64
"""Draws of the permanent memory that lessons of kind ``prior`` use."""

Anew = Callable[[Tensor, torch.Generator], tuple[Tensor, Known, Tensor]]


class Lessons:
    """Makes the examples of one update; draws of the memory alone are made once a search.

    ``imagined`` is what an unmeasured pixel counts in a lesson of kind ``hindsight``, a measured
    one counting 1.
    """

    def __init__(
        self, kind: str, memory: Memory, frozen: Denoiser, seed: int, imagined: float
    ) -> None:
        self.kind, self.memory, self.frozen, self.seed = kind, memory, frozen, seed
        self.imagined = imagined
        self._dreams: Tensor | None = None

    def examples(self, samples: Tensor, observations: Observations) -> Examples:
        """Pairs for samples (P, C, H, W) of the area given these observations."""
        measured = measurements_of(observations)
        x0 = self.dreams(observations.grid) if self.kind == "prior" else pinned(samples, measured)
        weight = measured.mask if self.kind == "measured" else torch.ones_like(measured.mask)
        return Examples(x0, measured.known, weight, self._anew(observations))

    def _anew(self, observations: Observations) -> Anew | None:
        """How Y is made anew at every step, if it is."""
        match self.kind:
            case "joint":
                return _measured_anew(observations)
            case "prior":
                return _measured_there(observations)
            case "prequential":
                return _told_the_first(observations)
            case "hindsight":
                return _in_hindsight(observations, self.imagined)
        return None

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

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        order = torch.rand(len(draws), grid.n_cells, generator=generator).argsort(dim=1)
        counts = torch.randint(1, most + 1, (len(draws), 1), generator=generator)
        mask = _pixel_masks(grid, order < counts)
        return draws, Known(draws * mask, mask), torch.ones_like(mask)

    return anew


def _measured_there(observations: Observations) -> Anew:
    """Draws measured in the very cells that were measured."""
    mask = measurements_of(observations).known.weight

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        there = mask.expand(len(draws), -1, -1, -1)
        return draws, Known(draws * there, there), torch.ones_like(there)

    return anew


def _in_hindsight(observations: Observations, imagined: float) -> Anew:
    """The first measurements, a random number of them, to predict all that is known by now."""
    grid, count, place = observations.grid, len(observations), _order(observations)
    measured = _pixel_masks(grid, place < count)
    weight = measured + imagined * (1 - measured)

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        told = torch.randint(0, count + 1, (len(draws), 1), generator=generator)
        mask, counts = _pixel_masks(grid, place < told), weight.expand(len(draws), -1, -1, -1)
        if grid.height == grid.width:
            turns = torch.randint(0, TURNS, (len(draws),), generator=generator).tolist()
            draws, mask, counts = (_each_turned(images, turns) for images in (draws, mask, counts))
        return draws, Known(draws * mask, mask), counts

    return anew


def _each_turned(images: Tensor, turns: list[int]) -> Tensor:
    """Images (B, ., H, W), each under its own symmetry."""
    return torch.stack([turned(x, k) for x, k in zip(images, turns, strict=True)])


def _order(observations: Observations) -> Tensor:
    """(1, n_cells): when a cell was measured, 0 the first; their number where it was not."""
    place = torch.full((1, observations.grid.n_cells), len(observations))
    for position, item in enumerate(observations):
        place[0, observations.grid.index(item.cell)] = position
    return place


def _told_the_first(observations: Observations) -> Anew:
    """The first measurements, a random number of them, to predict the later ones."""
    grid, count, place = observations.grid, len(observations), _order(observations)

    def anew(draws: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        told = torch.randint(0, count, (len(draws), 1), generator=generator)
        mask = _pixel_masks(grid, place < told)
        later = _pixel_masks(grid, (place >= told) & (place < count))
        return draws, Known(draws * mask, mask), later

    return anew


def _pixel_masks(grid: Grid, cells: Tensor) -> Tensor:
    """(B, n_cells) -> (B, 1, H, W), 1 at the pixels of chosen cells."""
    rows = cells.float().numpy()
    return torch.from_numpy(np.stack([grid.pixels(row) for row in rows]))[:, None]
