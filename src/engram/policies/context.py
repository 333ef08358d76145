r"""The area that a memory expects where it is told only of what lies near a cell: an ablation.

A memory that is told every measurement may say of a cell what it has seen far from it: the shape of
a target found elsewhere, the sizes and the number of targets. Here it cannot. Windows of N cells a
side, one every N // 2, cover the area (``engram.tiling``). The memory looks at the whole area once
for each window i, told the measurements :math:`D_i` inside of it and no others, and what it says
then counts inside that window alone, with weights that sum to 1 at every cell x,

.. math::  m(x) = \sum_{i \ni x} w_i(x)\, m_{D_i}(x) ,

:math:`m_D` being the mean over symmetries that it has otherwise (``views``). Nothing but the
measurements is kept from it: size, border and the place of the window are those of the area.

Reach: what is said of a cell depends on measurements up to N - 1 cells away, down or across, and on
no others, neither on their values nor on their number. Each of those up to N - N // 2 cells away is
known to one or other of its windows, of those between some are.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engram.detection import Detection
from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import Denoiser
from engram.observation import Observation, Observations
from engram.policies.views import SymmetricMean
from engram.tiling import Tiling

WHOLE = 0
"""The memory is told of the whole area."""
LEAST = 8
"""Cells a side of a neighbourhood, at least."""


def checked_context(context: int) -> int:
    """The option, if there can be such neighbourhoods in some area."""
    if context != WHOLE and context < LEAST:
        raise InputError(
            f"context={context}: give the cells a side of a neighbourhood, at least {LEAST}, or "
            f"{WHOLE} for the whole area"
        )
    return context


def check_fits(context: int, grid: Grid, by_windows: bool) -> None:
    """Refuse neighbourhoods that are the area, and areas that are computed by windows anyway."""
    if context == WHOLE:
        return
    if context >= max(grid.rows, grid.cols):
        raise InputError(
            f"context={context}: the area of {grid.rows} x {grid.cols} cells is not larger; give "
            f"fewer cells a side, or {WHOLE} for the whole area"
        )
    if by_windows:
        raise InputError(
            f"context={context}: the memory sees an area of {grid.rows} x {grid.cols} cells by "
            "windows; give windows=off as well, or leave context out"
        )


@dataclass(frozen=True, eq=False)
class _Said:
    """(1, C, H, W) what was expected when this was told of a window."""

    told: Observations
    mean: Tensor

    def is_of(self, items: list[Observation], detection: Detection) -> bool:
        """Whether these visits were told; they are the same if they are the same objects."""
        return self.told.items == items and self.told.detection == detection


class NearbyMean:
    """The mean of an area of which only the measurements near a cell count (module docstring).

    context : N, cells a side of a window
    whole   : how the mean of the area is made of all that is told; it is made so for every window

    It is a function of the measurements: what windows said is kept to save time alone.
    """

    def __init__(self, grid: Grid, context: int, whole: SymmetricMean) -> None:
        self.grid, self.whole = grid, whole
        self.tiling = Tiling.of(grid.rows, grid.cols, context, context // 2)
        self._weights = [self._weight(number) for number in range(self.tiling.count)]
        self._denoiser: Denoiser | None = None

    def _weight(self, number: int) -> Tensor:
        """(H, W) what a window counts, 0 outside of it."""
        i, j = divmod(number, len(self.tiling.cols.starts))
        weight = np.zeros((self.grid.rows, self.grid.cols), np.float32)
        down, across = self.tiling.rows.weights[i], self.tiling.cols.weights[j]
        weight[self.tiling.box(number)] = down[:, None] * across
        return torch.from_numpy(self.grid.pixels(weight))

    def __call__(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        """(1, C, H, W) what is expected after these measurements."""
        if denoiser is not self._denoiser:
            self._begin(denoiser)
        blended = torch.zeros(1, self.grid.channels, self.grid.height, self.grid.width)
        for number, inside in enumerate(self._inside(observations)):
            mean = self._mean(number, denoiser, observations, inside) if inside else self._nothing
            blended += self._weights[number] * mean
        return blended

    def _begin(self, denoiser: Denoiser) -> None:
        """Ask what is expected where nothing was measured, which all windows have in common."""
        self._denoiser = denoiser
        self._nothing = self.whole(denoiser, Observations(self.grid))
        self._means: dict[int, SymmetricMean] = {}
        self._said: dict[int, _Said] = {}

    def _inside(self, observations: Observations) -> Iterator[list[int]]:
        """Positions of the measurements in every window, in the order of measurement."""
        row, col = np.divmod(observations.indices, self.grid.cols)
        for number in range(self.tiling.count):
            rows, cols = self.tiling.box(number)
            down = (row >= rows.start) & (row < rows.stop)
            across = (col >= cols.start) & (col < cols.stop)
            yield np.flatnonzero(down & across).tolist()

    def _mean(
        self, number: int, denoiser: Denoiser, observations: Observations, inside: list[int]
    ) -> Tensor:
        """(1, C, H, W) by the measurements of a window; asked again when these are others."""
        said = self._said.get(number)
        items = [observations.items[i] for i in inside]
        if said is None or not said.is_of(items, observations.detection):
            told = observations.subset(inside)
            mean = self._means.setdefault(number, copy(self.whole))
            said = self._said[number] = _Said(told, mean(denoiser, told))
        return said.mean
