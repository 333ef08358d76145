"""A task: a known truth to search in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.errors import InputError
from engram.grid import Cell, Grid
from engram.layers import Layer, Layers
from engram.observation import Observation


@dataclass(frozen=True, eq=False)
class Task:
    """Content and target of a whole area.

    content : (C, H, W) float32 in the grid's range
    target  : (H, W) bool, pixels that are target
    layers  : what is known of every cell beforehand, or None
    """

    name: str
    grid: Grid
    content: NDArray[np.float32]
    target: NDArray[np.bool_]
    noise: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    layers: Layers | None = None

    def __post_init__(self) -> None:
        grid = self.grid
        object.__setattr__(self, "content", np.asarray(self.content, np.float32))
        object.__setattr__(self, "target", np.asarray(self.target, bool))
        if self.content.shape != (grid.channels, grid.height, grid.width):
            raise InputError(
                f"task {self.name}: content has shape {self.content.shape}, the grid is "
                f"{grid.channels}x{grid.height}x{grid.width}"
            )
        if self.target.shape != (grid.height, grid.width):
            raise InputError(
                f"task {self.name}: target mask has shape {self.target.shape}, the area is "
                f"{grid.height}x{grid.width}"
            )
        if self.layers is not None:
            self.layers.fits(grid)
        if not np.isfinite(self.content).all():
            raise InputError(f"task {self.name}: content has NaN or infinite values")
        if not (self.outcomes[grid.open_cells] > 0).any():
            raise InputError(f"task {self.name}: no open cell contains any target")
        values = self.content[:, grid.pixels(~grid.closed)]
        low, high = float(values.min()), float(values.max())
        slack = 1e-6 * (grid.range[1] - grid.range[0])
        if low < grid.range[0] - slack or high > grid.range[1] + slack:
            raise InputError(
                f"task {self.name}: content runs from {low:g} to {high:g}, outside the grid's "
                f"range [{grid.range[0]:g}, {grid.range[1]:g}]; rescale it or change the range"
            )

    @cached_property
    def outcomes(self) -> NDArray[np.float64]:
        """(rows * cols,) share of target pixels of every cell.

        ``facts["outcomes"]`` are the exact ones where cells are kept with less than all pixels.
        """
        given = self.facts.get("outcomes")
        if given is not None:
            return np.asarray(given, np.float64)
        shares = self.grid.cells_of(self.target.astype(np.float32)).mean(axis=(1, 2))
        return np.asarray(shares, np.float64)

    @property
    def targets(self) -> int:
        """U: open cells that contain target (y > 0)."""
        return int((self.outcomes[self.grid.open_cells] > 0).sum())

    @cached_property
    def objects(self) -> NDArray[np.int32]:
        """(H, W) label of each separate target, 0 for background."""
        from scipy.ndimage import label

        given = self.facts.get("objects")
        if given is not None:
            return np.asarray(given, np.int32)
        labels, _ = label(self.target)
        return np.asarray(labels, np.int32)

    def told(self, more: Iterable[Layer] = (), belief: ArrayLike | None = None) -> Task:
        """The same task with more layers, or with a belief map."""
        before = self.layers or Layers(self.grid)
        known = belief if belief is not None else before.belief
        return replace(self, layers=Layers(self.grid, (*before, *more), known))

    def measure(self, cell: Cell) -> Observation:
        """What a measurement of the cell brings back."""
        index = self.grid.index(cell)
        return Observation.checked(
            self.grid,
            cell,
            self.grid.content_of(self.content, cell),
            float(self.outcomes[index]),
            self.noise,
        )
