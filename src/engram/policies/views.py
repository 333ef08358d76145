r"""The area that a memory expects, averaged over the symmetries of a square.

A network is not symmetric: turned and mirrored, the same measurements give other means
:math:`m^g_t`, g = 1 ... 8, and their average is better than any of them. It need not be computed
after every measurement. A memory may have a network that has learnt it (``memory.distilling``),
whose one evaluation says nearly the average; what is missing changes slowly. After measurement t,
with k the last multiple of a period before it and :math:`l_t` what has learnt the average,

.. math::  m_t = l_t + \Bigl(\tfrac18 \sum_{g \le 8} m^g_k - l_k\Bigr) ,

what that says, and what all eight views said beyond it when they were last asked. Without such a
network the four quarter turns may stand in its place. It is a function of the measurements and
their order: nothing else is remembered but to save time.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.detection import doubtful
from engram.grid import Grid
from engram.memory.denoiser import Denoiser
from engram.observation import Observation, Observations
from engram.policies.imagination import mean_of, measurements_of
from engram.posterior import Measured
from engram.symmetry import TURNS, views_back, views_of

QUARTERS = 4
"""Symmetries that are turns alone; they come first."""
LEARNT = 0
"""All symmetries, by one evaluation where the memory has learnt their average."""
VIEWS = (LEARNT, 1, QUARTERS, TURNS)
"""How many symmetries can be averaged: all, as the memory can, none, the quarter turns, all."""
PERIOD = 8
"""Every how many measurements all views are computed where their average is learnt."""
FOLDS = 4
"""Parts into which cells with doubtful reports are put, each left out of as many of the views."""


def expected_image(
    denoiser: Denoiser, measured: Measured, unsure: NDArray[np.bool_], grid: Grid, views: int
) -> Tensor:
    """(1, C, H, W) the area that a memory expects, by one evaluation, averaged over symmetries.

    Cells whose reports left doubt, ``unsure`` (n_cells,), are told with noise, and each is left out
    of some of the views: its mean is what those expect, who know of everything but its own visits.
    """
    square = views > 1 and grid.height == grid.width
    told = _told(grid, unsure, views if square else FOLDS)
    if told is None:
        means = _means(denoiser, measured, views) if square else mean_of(denoiser, measured)
        return means.mean(dim=0, keepdim=True)
    parts = (measured.values * told, measured.mask * told, measured.sigma.expand_as(told))
    means = (
        _means(denoiser, Measured(*parts), views) if square else mean_of(denoiser, Measured(*parts))
    )
    counts = torch.where((told == 0).any(dim=0, keepdim=True), 1 - told, told)
    return (means * counts).sum(dim=0, keepdim=True) / counts.sum(dim=0, keepdim=True)


def _means(denoiser: Denoiser, measured: Measured, views: int) -> Tensor:
    """(views, C, H, W) what is expected under each symmetry, turned back."""
    turns = tuple(range(views))
    images = views_of(torch.cat([measured.values, measured.mask, measured.sigma], dim=1), turns)
    seen = Measured(images[:, :-2], images[:, -2:-1], images[:, -1:])
    return views_back(mean_of(denoiser, seen), turns)


def _told(grid: Grid, unsure: NDArray[np.bool_], views: int) -> Tensor | None:
    """(views, 1, H, W) 0 where a view is not told of a cell; None where all are told of all."""
    if not unsure.any():
        return None
    part = np.full(grid.n_cells, -1)
    part[unsure] = np.arange(unsure.sum()) % FOLDS
    pixels = torch.from_numpy(grid.pixels(part))
    return torch.stack([(pixels != k % FOLDS).float() for k in range(views)])[:, None]


@dataclass(frozen=True, eq=False)
class _Renewed:
    """What all views said beyond the one that is cheap (1, C, H, W), after these measurements."""

    denoiser: Denoiser
    items: list[Observation]
    beyond: Tensor

    def is_of(self, denoiser: Denoiser, items: list[Observation]) -> bool:
        alike = denoiser is self.denoiser and len(items) == len(self.items)
        return alike and all(map(is_, items, self.items))


class SymmetricMean:
    """The mean of an area over ``views`` symmetries, all eight of them computed when the number of
    measurements is a multiple of ``period`` (module docstring).

    learnt : what says that of all of them in one evaluation; it does while ``views`` is ``LEARNT``
    period : 0 = the usual one, ``PERIOD`` where the average is learnt and 1 otherwise
    """

    def __init__(
        self, grid: Grid, views: int, period: int = 0, learnt: Denoiser | None = None
    ) -> None:
        self.grid, self.views = grid, views or TURNS
        self.learnt = None if views else learnt
        self.period = period or (1 if self.learnt is None else PERIOD)
        self._last: _Renewed | None = None

    def __call__(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        """(1, C, H, W) what is expected after these measurements; where reports left doubt, all
        views are computed, so that each such cell is left out of two."""
        unsure, views = doubtful(observations.log_odds), self.views
        square, all_told = self.grid.height == self.grid.width, not unsure.any()
        if all_told and square and views == TURNS and self.period > 1:
            return self._by_turns(denoiser, observations)
        if all_told and self.learnt is not None and not square:
            return mean_of(self.learnt, measurements_of(observations))
        views = views if all_told or views == 1 else TURNS
        return expected_image(denoiser, measurements_of(observations), unsure, self.grid, views)

    def _by_turns(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        since = len(observations) % self.period
        if not since:
            return self._renew(denoiser, observations)
        measured = measurements_of(observations)
        first = observations.items[: len(observations) - since]
        if self._last is None or not self._last.is_of(denoiser, first):
            self._renew(denoiser, observations.subset(range(len(first))))
        assert self._last is not None
        if self.learnt is not None:
            cheap = mean_of(self.learnt, measured)
        else:
            cheap = _means(denoiser, measured, QUARTERS).mean(dim=0, keepdim=True)
        return cheap + self._last.beyond * (measured.mask == 0)

    def _renew(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        """The mean of all views; what they say beyond the cheap one is kept."""
        measured = measurements_of(observations)
        means = _means(denoiser, measured, TURNS)
        cheap = means[:QUARTERS].mean(dim=0, keepdim=True)
        if self.learnt is not None:
            cheap = mean_of(self.learnt, measured)
        whole = means.mean(dim=0, keepdim=True)
        self._last = _Renewed(denoiser, list(observations.items), whole - cheap)
        return whole
