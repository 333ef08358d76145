"""What a memory expects of a large area: windows of its own size, blended.

Windows of the memory's size begin every half of it and fade into each other (``engram.tiling``). A
window is computed again when something inside it was measured; those without a measurement are all
the same and computed once. Every window is one evaluation of its own, so it does not matter how
many are computed together, by whom, or in which order (``Computing``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engram.detection import noise_of
from engram.grid import Grid
from engram.layout import Blocks
from engram.memory.denoiser import Denoiser
from engram.observation import Observations
from engram.policies.forecast import Array
from engram.policies.local.blending import Blending
from engram.policies.local.told import Told
from engram.policies.views import expected_image
from engram.posterior import Measured
from engram.tiling import Tiling

Image = NDArray[np.float32]

VIEWS = 4
"""Views averaged in a window, the four turns, at most: every cell has several windows as well."""


@dataclass(frozen=True, eq=False)
class Sight:
    """What was measured in a window, in model units: values (C, H, W), mask and noise (H, W); and
    which cells' reports left doubt, (cells,)."""

    values: Image
    mask: Image
    noise: Image
    unsure: NDArray[np.bool_]

    @property
    def measured(self) -> Measured:
        values, mask, noise = (torch.from_numpy(a) for a in (self.values, self.mask, self.noise))
        return Measured((values * mask)[None], mask[None, None], noise[None, None])


@dataclass(frozen=True, eq=False)
class Seeing:
    """Sight -> what the memory expects of the window, (C, H, W) in model units."""

    denoiser: Denoiser
    grid: Grid
    views: int

    def __call__(self, sight: Sight) -> Image:
        found = expected_image(self.denoiser, sight.measured, sight.unsure, self.grid, self.views)
        return np.asarray(found[0].numpy(), np.float32)


Computing = Callable[[Seeing, Sequence[Sight]], list[Image]]
"""Where windows are computed: all that changed at once, the results in the same order."""


def in_turn(see: Seeing, sights: Sequence[Sight]) -> list[Image]:
    """One after the other, here."""
    return [see(sight) for sight in sights]


_PLACE: ContextVar[Computing] = ContextVar("engram-windows", default=in_turn)


@contextmanager
def computed_by(compute: Computing) -> Iterator[None]:
    """Windows are computed there while this lasts, in this thread; what they say is the same."""
    before = _PLACE.set(compute)
    try:
        yield
    finally:
        _PLACE.reset(before)


def compute(see: Seeing, sights: Sequence[Sight]) -> list[Image]:
    """Here, or wherever :func:`computed_by` says."""
    return _PLACE.get()(see, sights)


class WindowMeans:
    """The expected content of an area by windows.

    size : (height, width) of the memory's window, in cells of one pixel each
    """

    def __init__(
        self, grid: Grid, layout: Blocks, denoiser: Denoiser, size: tuple[int, int], views: int
    ) -> None:
        self.grid, self.layout = grid, layout
        self.tiling = tiling_for(grid, size)
        self.blending = Blending(layout, self.tiling)
        shape = (self.tiling.rows.size, self.tiling.cols.size)
        self.window = Grid(*shape, grid.channels, range=grid.range)
        self.see = Seeing(denoiser, self.window, min(views or VIEWS, VIEWS))
        self.means: dict[int, Array] = {}
        self._blank: Array | None = None
        self.ready: dict[int, Array] = {}
        self.label, self._examples = self.blending.kinds()
        self._kinds: list[Array] | None = None

    @property
    def blank(self) -> Array:
        """(C, H, W) what is expected of a window of which nothing is known."""
        if self._blank is None:
            shape = (self.window.height, self.window.width)
            none = np.zeros(shape, np.float32)
            values = np.zeros((self.grid.channels, *shape), np.float32)
            unsure = np.zeros(self.window.n_cells, bool)
            found = compute(self.see, [Sight(values, none, none, unsure)])
            self._blank = found[0].astype(np.float64)
        return self._blank

    def forget(self) -> None:
        """All windows; what is ready is kept until the next update."""
        self.means = {}

    def update(self, told: Told, new: Iterable[int], observations: Observations) -> set[int]:
        """Compute the windows of new measurements (positions); the blocks that changed."""
        dirty = {
            number for i in new for number in self.tiling.near(self.grid.at(int(told.index[i])))
        }
        missing = sorted(dirty - self.ready.keys())
        sights = [self.sight(number, told, observations) for number in missing]
        found = dict(zip(missing, compute(self.see, sights), strict=True)) if missing else {}
        for number in dirty:
            mean = self.ready[number] if number in self.ready else found[number]
            self.means[number] = np.asarray(mean, np.float64)
        self.ready = {}
        return self.blending.blocks(dirty)

    def sight(self, number: int, told: Told, observations: Observations) -> Sight:
        """What was measured in a window."""
        rows, cols = self.tiling.box(number)
        low, high = self.grid.range
        images = observations.images
        noise, mask = images.noise[rows, cols].copy(), images.mask[rows, cols].copy()
        unsure = np.zeros(mask.shape, bool)
        if told.odds:
            for row, col in zip(*np.nonzero(mask), strict=True):
                at = (int(row) + rows.start) * self.grid.cols + int(col) + cols.start
                if at in told.odds:
                    unsure[row, col] = True
                    more = float(noise_of(told.odds[at])) * (high - low) ** 2
                    noise[row, col] = np.sqrt(noise[row, col] ** 2 + more)
        values = self.grid.to_model(images.values[:, rows, cols])
        return Sight(values, mask, noise * np.float32(2 / (high - low)), unsure.ravel())

    def content(self, block: int) -> Array:
        """(C, rows, cols) blended on a block."""
        rows, cols = self.layout.box(block)
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        return self.blending.blended(block, self.means, shape, self.blank)

    def kinds(self) -> list[Array]:
        """The content of blocks of each label while nothing is known around them."""
        if self._kinds is None:
            known, self.means = self.means, {}
            self._kinds = [self.content(block) for block in self._examples]
            self.means = known
        return self._kinds


def tiling_for(grid: Grid, size: tuple[int, int]) -> Tiling:
    """Windows of a memory over an area."""
    side = min(size)
    return Tiling.of(grid.rows, grid.cols, side, side // 2)
