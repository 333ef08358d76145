r"""What a memory expects of a large area: overlapping windows, blended.

Windows of the memory's size, or of ``LEAST`` cells a side if that is more, fade into each other
over ``FADE`` cells (``engram.tiling``): what lies farther away than the memory was trained to see
still tells it what is alike elsewhere. A window is computed again when something inside it was
measured; those without a measurement are all the same and computed once. Every window is computed
on its own, so it does not matter how many are computed together, by whom, or in which order
(``Computing``).

A window is the mean over symmetries of a square. Where the memory has learnt the average of all
eight (``memory.distilling``) it is what that says, :math:`l`, and what all eight say beyond it
after the first k of the n cells measured in the window, k the last multiple of ``PERIOD``:

.. math::  m_n = l_n + \Bigl(\tfrac18 \sum_{g \le 8} m^g_k - l_k\Bigr) .

Otherwise, and where reports left doubt, it is the mean of the four turns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from engram.detection import noise_of
from engram.grid import Grid
from engram.layout import Blocks
from engram.memory.denoiser import Denoiser
from engram.observation import Observations
from engram.policies.forecast import Array
from engram.policies.imagination import mean_of
from engram.policies.local.blending import Blending
from engram.policies.local.told import Told
from engram.policies.views import PERIOD, expected_image
from engram.posterior import Measured
from engram.symmetry import TURNS
from engram.tiling import Tiling

Image = NDArray[np.float32]

LEAST = 64
"""Cells a side of a window, at least."""
FADE = 16
"""Cells over which windows fade into each other."""
VIEWS = 4
"""Views averaged in a window where their average is not learnt, the four turns, at most: every cell
has several windows as well."""


@dataclass(frozen=True, eq=False)
class Sight:
    """What was measured in a window, in model units: values (C, H, W), mask and noise (H, W);
    which cells' reports left doubt, (cells,).

    first  : (H, W) the mask of the first k cells, after which all views are asked
    beyond : (C, H, W) what they said then beyond the learnt average; None = to be computed
    """

    values: Image
    mask: Image
    noise: Image
    unsure: NDArray[np.bool_]
    first: Image
    beyond: Image | None = None

    @property
    def measured(self) -> Measured:
        return self._under(self.mask)

    @property
    def measured_first(self) -> Measured:
        return self._under(self.first)

    def _under(self, given: Image) -> Measured:
        values, mask, noise = (torch.from_numpy(a) for a in (self.values, given, self.noise))
        return Measured((values * mask)[None], mask[None, None], noise[None, None])

    @classmethod
    def of_nothing(cls, window: Grid) -> Sight:
        """A window in which nothing was measured."""
        none = np.zeros((window.height, window.width), np.float32)
        values = np.zeros((window.channels, *none.shape), np.float32)
        return cls(values, none, none, np.zeros(window.n_cells, bool), none)


@dataclass(frozen=True, eq=False)
class Seen:
    """(C, H, W) in model units: what the memory expects of a window, and what all views said beyond
    the learnt average; None where that was not asked."""

    mean: Image
    beyond: Image | None = None


@dataclass(frozen=True, eq=False)
class Seeing:
    """Sight -> what the memory expects of the window.

    views  : symmetries that are averaged where their average is not learnt
    learnt : says the average of all of them in one evaluation
    """

    denoiser: Denoiser
    grid: Grid
    views: int
    learnt: Denoiser | None = None

    def __call__(self, sight: Sight) -> Seen:
        if self.learnt is None or sight.unsure.any():
            return Seen(self._averaged(sight.measured, sight.unsure, self.views))
        cheap = _image(mean_of(self.learnt, sight.measured))
        if self.grid.height != self.grid.width:
            return Seen(cheap)
        beyond = sight.beyond
        if beyond is None:
            whole = self._averaged(sight.measured_first, sight.unsure, TURNS)
            same = np.array_equal(sight.first, sight.mask)
            then = cheap if same else _image(mean_of(self.learnt, sight.measured_first))
            beyond = whole - then
        return Seen(cheap + beyond * (sight.mask == 0), beyond)

    def _averaged(self, measured: Measured, unsure: NDArray[np.bool_], views: int) -> Image:
        return _image(expected_image(self.denoiser, measured, unsure, self.grid, views))


def _image(found: torch.Tensor) -> Image:
    """(1, C, H, W) -> (C, H, W)."""
    return np.asarray(found[0].numpy(), np.float32)


Computing = Callable[[Seeing, Sequence[Sight]], list[Seen]]
"""Where windows are computed: all that changed at once, the results in the same order."""


def in_turn(see: Seeing, sights: Sequence[Sight]) -> list[Seen]:
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


def compute(see: Seeing, sights: Sequence[Sight]) -> list[Seen]:
    """Here, or wherever :func:`computed_by` says."""
    return _PLACE.get()(see, sights)


class WindowMeans:
    """The expected content of an area by windows.

    size   : (height, width) of the areas the memory was trained on, in cells of one pixel each
    learnt : what says the average of all symmetries, or None (``Seeing``)
    wide   : windows are as this module says, otherwise of ``size``, one every half of it
    """

    def __init__(
        self,
        grid: Grid,
        layout: Blocks,
        denoiser: Denoiser,
        size: tuple[int, int],
        views: int,
        learnt: Denoiser | None = None,
        *,
        wide: bool = True,
    ) -> None:
        self.grid, self.layout = grid, layout
        self.tiling = wide_tiling(grid, size) if wide else half_tiling(grid, min(size))
        self.blending = Blending(layout, self.tiling)
        shape = (self.tiling.rows.size, self.tiling.cols.size)
        self.window = Grid(*shape, grid.channels, range=grid.range)
        self.see = Seeing(denoiser, self.window, min(views or VIEWS, VIEWS), learnt)
        self.ready: dict[int, Array] = {}
        self.label, self._examples = self.blending.kinds()
        self._kinds: list[Array] | None = None
        self.forget()

    @cached_property
    def blank(self) -> Array:
        """(C, H, W) what is expected of a window of which nothing is known."""
        return self._nothing.mean.astype(np.float64)

    @cached_property
    def _nothing(self) -> Seen:
        return compute(self.see, [Sight.of_nothing(self.window)])[0]

    def forget(self) -> None:
        """All windows; what is ready is kept until the next update.

        means  : what is expected of each
        cells  : the cells measured in each, in the order in which they were first told
        beyond : of each the number of cells after which all views were asked, and what they said
        """
        self.means: dict[int, Array] = {}
        self.cells: dict[int, dict[int, None]] = {}
        self.beyond: dict[int, tuple[int, Image]] = {}

    def update(self, told: Told, new: Iterable[int], observations: Observations) -> set[int]:
        """Compute the windows of new measurements (positions); the blocks that changed."""
        dirty = self._list(told, new)
        missing = sorted(dirty - self.ready.keys())
        sights = [self.sight(number, told, observations) for number in missing]
        for number, seen in zip(missing, compute(self.see, sights) if missing else (), strict=True):
            self.means[number] = seen.mean.astype(np.float64)
            if seen.beyond is not None:
                self.beyond[number] = (_renewed(self.cells[number]), seen.beyond)
        for number in dirty & self.ready.keys():
            self.means[number] = np.asarray(self.ready[number], np.float64)
        self.ready = {}
        return self.blending.blocks(dirty)

    def _list(self, told: Told, new: Iterable[int]) -> set[int]:
        """Add new measurements to the windows they are in; the numbers of these.

        A cell that is visited again was in doubt, and then all views were not asked: what they
        said is of cells that no longer change.
        """
        dirty = set()
        for i in new:
            index = int(told.index[i])
            for number in self.tiling.near(self.grid.at(index)):
                dirty.add(number)
                self.cells.setdefault(number, {})[index] = None
        return dirty

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
        noise = noise * np.float32(2 / (high - low))
        first, beyond = self._first(number, mask)
        return Sight(values, mask, noise, unsure.ravel(), first, beyond)

    def _first(self, number: int, mask: Image) -> tuple[Image, Image | None]:
        """(H, W) mask of the cells after which all views are asked, and what they said then."""
        cells = self.cells.get(number, {})
        count, (rows, cols) = _renewed(cells), self.tiling.box(number)
        if count == len(cells):
            return mask, self._known(number, count)
        first = np.zeros_like(mask)
        for index in islice(cells, count):
            row, col = self.grid.at(index)
            first[row - rows.start, col - cols.start] = 1
        return first * mask, self._known(number, count)

    def _known(self, number: int, count: int) -> Image | None:
        """What all views said of a window after so many cells, if they were asked."""
        if count == 0:
            return self._nothing.beyond
        at, beyond = self.beyond.get(number, (0, None))
        return beyond if at == count else None

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


def _renewed(cells: Collection[int]) -> int:
    """The number of cells after which all views were last asked."""
    return len(cells) // PERIOD * PERIOD


def wide_tiling(grid: Grid, size: tuple[int, int]) -> Tiling:
    """Windows of a memory over an area."""
    side = max(min(size), LEAST)
    return Tiling.of(grid.rows, grid.cols, side, side - FADE)


def half_tiling(grid: Grid, side: int) -> Tiling:
    """Windows of so many cells a side, one every half of it."""
    return Tiling.of(grid.rows, grid.cols, side, side // 2)
