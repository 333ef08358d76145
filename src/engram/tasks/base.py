"""A task: a known truth to search in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.detection import PERFECT, Detection
from engram.errors import InputError
from engram.grid import Cell, Grid
from engram.layers import Layer, Layers
from engram.observation import Observation
from engram.seeding import numpy_generator


@dataclass(frozen=True, eq=False)
class Task:
    """Content and target of a whole area.

    content : (C, H, W) float32 in the grid's range
    target  : (H, W) bool, pixels that are target
    layers  : what is known of every cell beforehand, or None
    detection : what a visit of it may miss
    """

    name: str
    grid: Grid
    content: NDArray[np.float32]
    target: NDArray[np.bool_]
    noise: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    layers: Layers | None = None
    detection: Detection = PERFECT

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

    def measure(self, cell: Cell, visit: int = 0) -> Observation:
        """What the visit of a cell (its first: 0) brings back.

        A missed target shows the content of a blank, the mean of all cells without target, and a
        false alarm that of a target, the mean of all cells with one; luck depends on task, cell and
        number of the visit alone, so that all policies have the same.
        """
        index = self.grid.index(cell)
        outcome, content = float(self.outcomes[index]), self.grid.content_of(self.content, cell)
        found = self._reports(index, visit)
        if found != (outcome > 0):
            outcome, content = self._usual[found]
        return Observation.checked(self.grid, cell, content, outcome, self.noise)

    def _reports(self, index: int, visit: int) -> bool:
        """Whether a visit reports target."""
        there, seen = bool(self.outcomes[index] > 0), self.detection
        if seen.perfect:
            return there
        chance = seen.chance if there else seen.false_alarm
        seed = int.from_bytes(sha256(self.name.encode()).digest()[:8])
        return bool(numpy_generator(seed, "task", index, visit).random() < chance)

    @cached_property
    def _usual(self) -> dict[bool, tuple[float, NDArray[np.float32]]]:
        """Outcome and content of a cell without target and of one with, on average."""
        cells = np.moveaxis(self.grid.cells_of(self.content), 0, 1)  # (n, C, h, w)
        opened = self.grid.open_cells
        usual = {}
        for found in (False, True):
            some = opened[(self.outcomes[opened] > 0) == found]
            content = cells[some].mean(axis=0) if len(some) else np.zeros(self.grid.content_shape)
            outcome = float(self.outcomes[some].mean()) if found else 0.0
            clipped = np.clip(content, *self.grid.range)
            usual[found] = outcome, np.asarray(clipped, np.float32)
        return usual
