"""The Gaussian process of a large area as a forecaster: patches, blended, kept by blocks.

Patches of ``SIZE`` cells begin every ``STRIDE`` cells; each is conditioned on the measurements of
its own cells and of ``MARGIN`` around it (of more than ``NEAREST`` the nearest), and where patches
overlap they are blended (``engram.tiling``). Terms are learnt after 5, 10, ... measurements, then a
fifth of their number apart, from the latest ``LEARNT`` before such a number. So a measurement costs
a row in each of the few patches around it, and nothing of the size (measurements x cells) is kept.
The belief is a function of the ordered measurements.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engram.blocks import Field, Stored, as_array, field_of
from engram.detection import updated
from engram.errors import InputError
from engram.grid import Grid
from engram.layout import Blocks
from engram.observation import Observation, Observations
from engram.policies.forecast import Array
from engram.policies.local.blending import Blending
from engram.policies.local.patches import Patch, Terms
from engram.policies.local.ready import Ready
from engram.policies.local.told import NOTHING, Told
from engram.policies.process import ProcessBelief
from engram.spatial import MEAN, Sites, SpatialModel, last_refit, without_own
from engram.tiling import Tiling

if TYPE_CHECKING:
    from torch import Tensor

SIZE, STRIDE, MARGIN = 56, 32, 8
RADIUS = 12
"""Cells around a cell in which a measurement of it is followed: as many as its patch holds."""
NEAREST = 600
"""Measurements that a patch is conditioned on, beside those made since terms were learnt."""
LEARNT = 128
"""Measurements from which terms are learnt."""
EXTENT = 64.0
"""Longest length that is learnt, in cells."""
ROOM = 600_000_000
"""Bytes of factors that are kept; patches that were not needed for long make theirs again."""
BINS = 256
"""Steps of the probability in which cells are counted for the look-ahead."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalProcessBelief(ProcessBelief):
    """What the process believes of a large area, as fields.

    counts : (BINS,) cells that can be visited, by what is expected of them
    """

    counts: NDArray[np.intp]
    response: Nearby


@dataclass(eq=False)
class Kept:
    """A patch, and how many measurements of the search it has been told."""

    patch: Patch
    told: int


class LocalProcess:
    """Probability and doubt of every cell of a large area; all it knows is measured."""

    layered = None

    def __init__(self, grid: Grid, layout: Blocks, nu: float = 1.5) -> None:
        if not 0 < nu <= 100:
            raise InputError(f"nu={nu}: give a number above 0, up to 100")
        self.grid, self.layout = grid, layout
        self.model = SpatialModel(grid, nu=nu, extent=min(grid.geometry.extent, EXTENT))
        self.tiling = Tiling.of(grid.rows, grid.cols, SIZE, STRIDE)
        self.blending = Blending(layout, self.tiling)
        self._free = _free_cells(grid, layout)
        self._sizes = np.array([len(layout.cells(b)) for b in range(layout.count)])
        self._begin()

    def _begin(self) -> None:
        """As before any measurement."""
        self._told, self._anchor, self._share = NOTHING, 0, 1.0
        self.model.hyperparameters = self.model.start
        self._members: dict[int, list[int]] = {}
        self._patches: OrderedDict[int, Kept] = OrderedDict()
        self._said: dict[int, Array] = {}
        self._ready: Ready | None = None
        self._use_terms()

    def _use_terms(self) -> None:
        """Blank everywhere, under the present terms."""
        shape = (self.tiling.rows.size, self.tiling.cols.size)
        self.terms = Terms.of(self.model, shape, MARGIN)
        none = np.zeros(0, np.intp)
        self._blank = Patch(self.terms, none, none, np.zeros(0))
        self._patches.clear()
        self._said.clear()
        self._taken = 0
        sd, chance = float(np.sqrt(self.terms.level)), self.blank_chance
        sizes, label = np.unique(self._sizes, return_inverse=True)
        kinds = [[np.full(n, value) for n in sizes] for value in (MEAN, sd, chance)]
        mean, doubt, target = (Stored.shared(label, kind) for kind in kinds)
        self._stored = [mean, doubt, target, target, doubt]
        self._counts = np.zeros((self.layout.count, BINS), np.int32)
        self._counts[:, _bins(np.array(MEAN))] = self._free
        self._total = self._counts.sum(axis=0, dtype=np.intp)

    @property
    def blank_chance(self) -> float:
        """Probability of target where nothing is known."""
        return float(self._chance(np.array(MEAN)))

    def _chance(self, mean: Array) -> Array:
        """Probability of target for an expected outcome (``SpatialModel.chance_of``)."""
        return np.asarray(np.clip(mean / self._share, 0.0, 1.0))

    # -- belief ----------------------------------------------------------------------------

    def belief(self, observations: Observations) -> LocalProcessBelief:
        told = Told.of(observations)
        if not told.continues(self._told):
            self._begin()
        dirty = self._placed(told, range(len(self._told), len(told)))
        self._told = told
        if self._learn(told):
            self._use_terms()
            dirty = set(self._members)
        ready, self._ready = self._ready, None
        if ready is not None and due(ready.told) == self._anchor and not told.doubted:
            self._take(ready, observations.available)
            dirty = {n for n, members in self._members.items() if members[-1] >= ready.told}
        for number in sorted(dirty):
            self._said[number] = self._computed(number)
        if dirty:
            self._refresh(self.blending.blocks(dirty), observations.available)
        mean, doubt, probability, others, beside = (
            as_array(Field(self.layout, (stored,))) for stored in self._stored
        )
        return LocalProcessBelief(
            probability=probability,
            doubt=doubt,
            mean=mean,
            response=Nearby(self, told),
            others=(others, beside),
            counts=self._total.copy(),
        )

    def _placed(self, told: Told, new: Iterable[int]) -> set[int]:
        """Patches around new measurements, which are noted with them."""
        dirty: set[int] = set()
        for i in new:
            for number in self.tiling.near(self.grid.at(int(told.index[i])), MARGIN):
                self._members.setdefault(number, []).append(i)
                dirty.add(number)
        return dirty

    def _take(self, ready: Ready, free: NDArray[np.bool_]) -> None:
        """Go on from what was computed before; what patches say is asked where it is needed."""
        each = ready.each(self.layout)
        self._store({block: (m, sd, self._chance(m)) for block, m, sd in each}, free)

    def _learn(self, told: Told) -> bool:
        """Learn the terms where that is due; whether they are others now."""
        anchor = due(len(told))
        if anchor == self._anchor:
            return False
        self._anchor = anchor
        part = slice(max(0, anchor - LEARNT), anchor)
        first, factors = told.values[:anchor], told.factors[part]
        self._share = float((first.sum() + 1) / ((first > 0).sum() + 1))
        if told.doubted:
            sites = Sites.of(told.index[part], told.values[part], factors)
            found = self.model.learnt(sites.index, sites.values, sites.noise)
        else:
            found = self.model.learnt(told.index[part], told.values[part])
        self.model.hyperparameters = found
        return True

    def _refresh(self, blocks: set[int], free: NDArray[np.bool_]) -> None:
        """Blend what patches say anew on these blocks."""
        around = {number for block in blocks for number, _, _ in self.blending.windows(block)}
        for number in sorted(around & self._members.keys() - self._said.keys()):
            self._said[number] = self._computed(number)
        self._store({block: self._blended(block) for block in sorted(blocks)}, free)

    def _store(self, said: dict[int, tuple[Array, ...]], free: NDArray[np.bool_]) -> None:
        """Mean, doubt, probability and, where reports left doubt, those without a cell's own."""
        new: list[dict[int, Array]] = [{} for _ in self._stored]
        open_to: dict[int, NDArray[np.bool_]] = {}
        for block, arrays in said.items():
            for kept, array in zip(new, arrays, strict=False):
                kept[block] = array
            open_to[block] = self.layout.taken(block, free)
            expected = np.bincount(_bins(new[0][block][open_to[block]]), minlength=BINS)
            self._total += expected - self._counts[block]
            self._counts[block] = expected
        mean, doubt, probability = (
            stored.replaced(arrays, open_to)
            for stored, arrays in zip(self._stored[:3], new[:3], strict=True)
        )
        others, beside = probability, doubt  # the same where no report left doubt
        if self._told.doubted:
            others, beside = (
                stored.replaced(arrays, open_to)
                for stored, arrays in zip(self._stored[3:], new[3:], strict=True)
            )
        self._stored = [mean, doubt, probability, others, beside]

    def _blended(self, block: int) -> tuple[Array, Array, Array, Array, Array]:
        """Mean, doubt, probability, and probability and doubt without a cell's own reports."""
        rows, cols = self.layout.box(block)
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        said = self.blending.blended(block, self._said, shape).reshape(-1, shape[0] * shape[1])
        mean, doubt = MEAN + said[0], np.sqrt(np.maximum(self.terms.level + said[1], 0.0))
        if not self._told.doubted:
            chance = self._chance(mean)
            return mean, doubt, chance, chance, doubt
        others = self._chance(MEAN + said[2])
        beside = np.sqrt(np.maximum(self.terms.level + said[3], 0.0))
        odds = self._told.odds_in(self.layout, block, len(mean))
        probability = updated(others, odds)
        mean = np.where(odds != 0, probability, mean)
        return mean, doubt, probability, others, beside

    # -- patches ---------------------------------------------------------------------------

    def _computed(self, number: int) -> Array:
        """(2 or 4, rows, cols) what a patch says beyond the prior: mean and variance, and those
        without a cell's own reports where some left doubt."""
        patch, level = self.patch(number), self.terms.level
        said = [patch.mean - MEAN, patch.var - level]
        if self._told.doubted:
            mean, var = patch.mean.copy(), np.maximum(patch.var, 0.0)
            sites, rows, cols = self._sites(number)
            inside = [self.terms.inside(r, c) for r, c in zip(rows, cols, strict=True)]
            held = [i for i, p in enumerate(inside) if p is not None and np.isfinite(sites.odds[i])]
            at = np.array([inside[i] for i in held], np.intp)
            noise = sites.noise[held] + self.terms.noise
            mean[at], var[at] = without_own(mean[at], var[at], sites.values[held], noise)
            said += [mean - MEAN, var - level]
        return np.stack(said).reshape(-1, *self.terms.shape)

    def patch(self, number: int) -> Patch:
        """A patch as of the present measurements; its factor is made anew if it was forgotten."""
        told, members = self._told, self._members.get(number)
        if members is None:
            return self._blank
        kept = self._patches.pop(number, None)
        self._taken -= 0 if kept is None else kept.patch.size
        if told.doubted:
            if kept is None or kept.told < len(told):
                sites, rows, cols = self._sites(number)
                kept = Kept(Patch(self.terms, rows, cols, sites.values, sites.noise), len(told))
        else:
            if kept is None:
                first = self._nearest(number, [i for i in members if i < self._anchor])
                rows, cols = self.places(number, told.index[first])
                kept = Kept(Patch(self.terms, rows, cols, told.values[first]), self._anchor)
            for i in members:
                if i >= kept.told:
                    rows, cols = self.places(number, told.index[i : i + 1])
                    kept.patch.append(int(rows[0]), int(cols[0]), float(told.values[i]))
            kept.told = len(told)
        self._keep(number, kept)
        return kept.patch

    def _keep(self, number: int, kept: Kept) -> None:
        """Keep a patch, and let go of those that were not needed for long."""
        self._patches[number] = kept
        self._taken += kept.patch.size
        while self._taken > ROOM and len(self._patches) > 1:
            _, oldest = self._patches.popitem(last=False)
            self._taken -= oldest.patch.size

    def corner(self, number: int) -> tuple[int, int]:
        """Row and column where the margin of a patch begins."""
        rows, cols = self.tiling.box(number)
        return rows.start - MARGIN, cols.start - MARGIN

    def places(
        self, number: int, index: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of cells from the corner of a patch's margin."""
        rows, cols = np.divmod(index, self.grid.cols)
        top, left = self.corner(number)
        return rows - top, cols - left

    def _nearest(self, number: int, members: list[int]) -> list[int]:
        """Those of the measurements nearest to a patch, all of its own cells among them."""
        if len(members) <= NEAREST:
            return members
        rows, cols = self.places(number, self._told.index[members])
        away = [
            np.maximum(np.maximum(MARGIN - at, at - MARGIN - size + 1), 0)
            for at, size in zip((rows, cols), self.terms.shape, strict=True)
        ]
        apart = np.hypot(*away)
        count = max(NEAREST, int((apart == 0).sum()))
        return sorted(members[i] for i in np.argsort(apart, kind="stable")[:count])

    def _sites(self, number: int) -> tuple[Sites, NDArray[np.intp], NDArray[np.intp]]:
        """Visits of a patch and its margin, put together by cell, and where they lie."""
        told, members = self._told, self._nearest(number, self._members.get(number, []))
        sites = Sites.of(told.index[members], told.values[members], told.factors[members])
        return sites, *self.places(number, sites.index)

    # -- learning --------------------------------------------------------------------------

    def learn(
        self, before: ProcessBelief, new: Sequence[Observation], observations: Observations
    ) -> None:
        """Nothing: its belief follows from the measurements."""

    def state(self) -> dict[str, Tensor]:
        """What was computed, which saves work; none of it is new."""
        if self._told.doubted or not (self._stored[0].label < 0).any():
            return {}
        return Ready.of(len(self._told), *self._stored[:2]).state()

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        self._begin()
        self._ready = Ready.read(state)


@dataclass(frozen=True, eq=False)
class Nearby:
    """What a measurement of a cell does to the mean around it, given the measurements ``told``."""

    process: LocalProcess
    told: Told

    def home(self, index: int) -> int:
        """The patch that counts most at a cell."""
        return self.process.tiling.home(self.process.grid.at(index))

    def blank_at(
        self, index: int, belief: ProcessBelief, available: NDArray[np.bool_]
    ) -> tuple[int, ...] | None:
        """How far the area goes on around a cell around which nothing is known and everything can
        be visited, in cells up to ``RADIUS``; None for any other cell."""
        layout, (row, col) = self.process.layout, self.process.grid.at(index)
        sides = (row, layout.rows - 1 - row, col, layout.cols - 1 - col)
        up, down, left, right = (min(RADIUS, n) for n in sides)
        rows, cols = (row - up, row + down + 1), (col - left, col + right + 1)
        known = field_of(belief.mean).parts[0].label
        if any(known[block] < 0 for block in layout.between(rows, cols)):
            return None
        free = available.reshape(layout.rows, layout.cols)[slice(*rows), slice(*cols)]
        return (up, down, left, right) if free.all() else None

    def around(
        self, number: int, cells: NDArray[np.intp], more: float = 0.0
    ) -> tuple[tuple[slice, slice], Array]:
        """Rows and columns of a patch around k of its cells, and the response (k, rows, cols) to a
        measurement of each, up to ``RADIUS`` away from it. ``more`` is further noise."""
        process, sizes = self.process, self.process.terms.shape
        rows, cols = process.places(number, cells)
        parts = [
            slice(max(at.min() - MARGIN - RADIUS, 0), min(at.max() - MARGIN + RADIUS + 1, size))
            for at, size in zip((rows, cols), sizes, strict=True)
        ]
        out = process.patch(number).responses(rows, cols, (parts[0], parts[1]), more)
        down, right = (
            np.abs(np.arange(part.start, part.stop) - (at - MARGIN)[:, None]) <= RADIUS
            for at, part in zip((rows, cols), parts, strict=True)
        )
        out *= down[:, :, None] & right[:, None, :]
        first = [held.start for held in process.tiling.box(number)]
        box = [slice(a + part.start, a + part.stop) for a, part in zip(first, parts, strict=True)]
        return (box[0], box[1]), out

    def __call__(self, cells: NDArray[np.intp], more: float = 0.0) -> Array:
        """(len(cells), n_cells), 0 beyond what is around each."""
        out = np.zeros((len(cells), self.process.grid.rows, self.process.grid.cols))
        for i, cell in enumerate(cells):
            box, response = self.around(self.home(int(cell)), cells[i : i + 1], more)
            out[(i, *box)] = response[0]
        return out.reshape(len(cells), -1)


def due(n: int) -> int:
    """The largest number of measurements, up to n, at which a large area's terms are learnt."""
    return last_refit(n, 5)


def _bins(mean: Array) -> NDArray[np.intp]:
    """Step of each probability."""
    return np.asarray(np.clip(mean, 0.0, 1.0) * (BINS - 1), np.intp)


def _free_cells(grid: Grid, layout: Blocks) -> NDArray[np.intp]:
    """(count,) open cells of every block."""
    down, across = layout.shape
    padded = np.zeros((down * layout.side, across * layout.side), np.intp)
    padded[: grid.rows, : grid.cols] = ~grid.closed
    tiles = padded.reshape(down, layout.side, across, layout.side)
    return np.asarray(tiles.sum(axis=(1, 3)).ravel(), np.intp)
