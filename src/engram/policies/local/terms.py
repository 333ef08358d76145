"""Eqs. 9 to 11 of what the memories imagine of a large area, window by window.

They explain a suggestion and decide nothing: particles are drawn for the window of the cell that
somebody looks at, from noise whose address is (seed, measurements, window), so that it does not
matter who looked where before. These windows have at most ``LOOKED`` cells a side, whatever the
memory sees at once: a batch for fifty crews looks at nearly as many of them, and one of 64 x 64
costs four times as much as one of 32 x 32.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from engram.blocks import Array, field_of
from engram.grid import Grid
from engram.memory.denoiser import Denoiser
from engram.observation import Observations
from engram.policies.imagination import measurements_of
from engram.policies.local.memory import LocalMemory, LocalMemoryBelief
from engram.policies.local.windows import half_tiling
from engram.policies.remembering import MemoryBelief
from engram.scores import OfCells, Terms, paper_scores
from engram.tiling import Tiling

if TYPE_CHECKING:
    from torch import Tensor


LOOKED = 32
"""Cells a side of the windows that particles are drawn for, at most."""


class WindowImagined:
    """Particles of a moment and their terms, by window, drawn when they are asked for."""

    def __init__(
        self,
        memory: LocalMemory,
        belief: LocalMemoryBelief,
        observations: Observations,
        tiling: Tiling,
        seed: int,
        sigma: float,
    ) -> None:
        self.memory, self.belief, self.seed, self.sigma = memory, belief, seed, sigma
        self.tiling = tiling
        self.at, self.detection = len(observations), observations.detection
        self._items = belief.told.items
        self._terms: dict[int, Terms] = {}

    def terms(self) -> Terms:
        names = [one.name for one in fields(Terms)]
        return Terms(*(cast(Array, WindowTerm(self, name)) for name in names))

    def particles(self, number: int) -> Tensor:
        """(P, C, H, W) of a window, in model units."""
        imagination, grid = self.memory.imagination, self.memory.grid
        rows, cols = self.tiling.box(number)
        shape = (self.tiling.rows.size, self.tiling.cols.size)
        inside = [
            replace(item, cell=(item.cell[0] - rows.start, item.cell[1] - cols.start))
            for item in self._items
            if rows.start <= item.cell[0] < rows.stop and cols.start <= item.cell[1] < cols.stop
        ]
        seen = Observations(Grid(*shape, grid.channels, range=grid.range), inside, self.detection)
        return imagination.sampler.draw(
            self._denoiser(rows, cols),
            measurements_of(seen),
            imagination.plan.particles,
            seed=self.seed,
            path=(self.at, number),
        )

    def _denoiser(self, rows: slice, cols: slice) -> Denoiser:
        """Both memories as one, in a window (``MemoryForecaster.composite``)."""
        return self.memory.shifted(field_of(self.belief.tilt).region(rows, cols))

    def of(self, number: int) -> Terms:
        """The terms of a window's cells."""
        if number not in self._terms:
            images = self.particles(number).numpy()
            count, channels = images.shape[:2]
            cells = np.moveaxis(images.reshape(count, channels, -1), 1, 2)
            flat = cells.reshape(-1, channels, 1, 1)
            rewards = self.memory.reward.predict(flat).reshape(count, -1)
            self._terms[number] = paper_scores(cells, rewards, 0.0, self.sigma).imagined
        return self._terms[number]


@dataclass(frozen=True, eq=False)
class WindowTerm(OfCells):
    """One of the terms, (n_cells,): of a cell by the window that counts most there."""

    imagined: WindowImagined
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.imagined.memory.grid.n_cells,)

    def __len__(self) -> int:
        return self.imagined.memory.grid.n_cells

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, int | np.integer):
            return self.dense[key]
        grid, tiling = self.imagined.memory.grid, self.imagined.tiling
        row, col = grid.at(int(key))
        number = tiling.home((row, col))
        rows, cols = tiling.box(number)
        position = (row - rows.start) * (cols.stop - cols.start) + col - cols.start
        return getattr(self.imagined.of(number), self.name)[position]

    @property
    def dense(self) -> Array:
        """Of every cell: 0 but in windows of which something is known, for which particles are
        drawn."""
        memory = self.imagined.memory
        out = np.zeros((memory.grid.rows, memory.grid.cols))
        tiling = self.imagined.tiling
        for number in sorted({n for item in self.imagined._items for n in tiling.near(item.cell)}):
            box = tiling.box(number)
            own = tiling.number_at(box) == number
            out[box][own] = getattr(self.imagined.of(number), self.name).reshape(own.shape)[own]
        return out.ravel()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.dense, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dense, name)


class WindowTerms:
    """What is imagined at the present measurements of a large area; nothing of it is kept."""

    def __init__(self, memory: LocalMemory, seed: int, sigma: float) -> None:
        self.memory, self.seed, self.sigma = memory, seed, sigma
        side = min(LOOKED, memory.windows.tiling.rows.size)
        self.tiling = half_tiling(memory.grid, side)

    def of(self, belief: MemoryBelief, observations: Observations) -> WindowImagined:
        assert isinstance(belief, LocalMemoryBelief)
        return WindowImagined(self.memory, belief, observations, self.tiling, self.seed, self.sigma)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Nothing was kept."""
