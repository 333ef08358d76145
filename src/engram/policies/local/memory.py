"""Permanent and transient memory of a large area as a forecaster.

The memory is seen by windows (``windows``), the process by patches (``process``), and what h sees
of a cell is kept by blocks: after a measurement only the blocks around it are computed again. What
concerns all cells at once, the reward and h, changes at few moments: h at its updates, the reward
when the process learns its terms. Then all blocks are computed again of which something is known,
from contents that are kept, and where h alone has changed from what it saw; blocks of which nothing
is known share their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.blocks import Field, Stored, as_array, field_of
from engram.detection import updated, weight_of
from engram.layout import Blocks
from engram.memory.denoiser import Memory
from engram.observation import Observations
from engram.policies.forecast import Array
from engram.policies.imagination import Imagination
from engram.policies.local.process import LocalProcess, due
from engram.policies.local.rings import Rings
from engram.policies.local.told import NOTHING, Told
from engram.policies.local.windows import WindowMeans
from engram.policies.remembering import MemoryBelief, MemoryForecaster, Remembering

AT_ONCE = 64
"""Blocks that are computed together."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What h saw of every cell, looked up cell by cell."""

    layout: Blocks
    values: list[Array]

    def __getitem__(self, index: int) -> Array:
        block, position = self.layout.find(index)
        row: Array = self.values[block][position]
        return row


@dataclass(frozen=True, eq=False)
class Odds:
    """What its own reports add to a cell's log-odds where they left doubt."""

    told: Told

    def __getitem__(self, index: int) -> float:
        return self.told.odds.get(int(index), 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalMemoryBelief(MemoryBelief):
    """What both memories believe of a large area, as fields.

    blocks : (C, rows, cols) expected content of every block, in model units
    told   : the measurements this rests on
    """

    blocks: list[Array]
    told: Told

    @property
    def tilt(self) -> Array:
        probability, own = field_of(self.probability), field_of(self.own)
        both = (*probability.parts, *own.parts)
        return as_array(Field(own.layout, both, lambda p, q: p - q))  # looked up, never ranked

    def image(self) -> NDArray[np.float32]:
        """(C, H, W) expected content, in model units."""
        layout = field_of(self.own).layout
        out = np.empty((self.blocks[0].shape[0], layout.rows, layout.cols), np.float32)
        for block, content in enumerate(self.blocks):
            out[(slice(None), *layout.box(block))] = content
        return out


class LocalMemory(MemoryForecaster):
    """Memory, reward and h of a large area."""

    def __init__(
        self,
        memory: Memory,
        imagination: Imagination,
        spatial: LocalProcess,
        plan: Remembering,
        layout: Blocks,
    ) -> None:
        super().__init__(memory, imagination, spatial, plan)  # type: ignore[arg-type]
        self.process, self.layout = spatial, layout
        size = (memory.card.height, memory.card.width)
        views = plan.views or plan.window_views
        learnt = None if views else self.symmetric
        self.windows = WindowMeans(
            self.grid, layout, self.frozen, size, views, learnt, wide=plan.wide
        )
        self.rings = Rings(layout, self.transient.kernels)
        self._begin()

    def _begin(self) -> None:
        """As before any measurement."""
        self._told = NOTHING
        self.windows.forget()
        self.rings.forget()
        self._touched: set[int] = set()
        self._seen: Stored | None = None
        self._global: tuple[bytes, ...] = ()
        self._content: list[Array] = []

    # -- belief ----------------------------------------------------------------------------

    def belief(self, observations: Observations) -> LocalMemoryBelief:
        spatial = self.process.belief(observations)
        told = Told.of(observations)
        if not told.continues(self._told):
            self._begin()
        new = range(len(self._told), len(told))
        shown = self.windows.update(told, new, observations)
        dirty = shown | self._tell_rings(told, new)
        p, sd = (field_of(one).parts[0] for one in spatial.others)
        dirty |= {block for block in sd.changed(self._seen) if sd.label[block] < 0}
        self._told, self._seen = told, sd
        self._touched |= dirty
        before, self._global = self._global, self._globals()
        free = observations.available
        if self._global[1:] != before[1:]:
            dirty = set(self._touched)
            self._blank()
        elif self._global != before:
            self._tilt(sorted(self._touched - dirty), free)
        self._compute(sorted(dirty), shown, (p, sd), free)
        return LocalMemoryBelief(
            probability=as_array(Field(self.layout, (self._probability_of,))),
            doubt=spatial.doubt,
            own=as_array(Field(self.layout, (self._own,))),
            features=cast(Array, Rows(self.layout, self._rows.copy())),
            odds=cast(Array, Odds(told)),
            spatial=spatial,
            blocks=self._content.copy(),
            told=told,
        )

    def _tell_rings(self, told: Told, new: range) -> set[int]:
        cells = dict.fromkeys(told.index[new.start : new.stop].tolist()) if new else {}
        if not told.doubted:
            signs = np.where(told.values[new.start : new.stop] > 0, 1.0, -1.0).tolist()
            return self.rings.tell(dict(zip(cells, signs, strict=True)))
        worth: dict[int, float] = {}
        for cell in cells:
            odds = float(told.factors[told.index == cell].sum())
            worth[cell] = float(weight_of(odds)) * (1.0 if odds > 0 else -1.0)
        return self.rings.tell(worth)

    def _globals(self) -> tuple[bytes, ...]:
        """All that concerns every cell: h, reward, and the process where nothing is known."""
        reward, h = self.reward, self.transient.weights
        blank = (self.process.terms.level, self.process.blank_chance)
        parts = (h, np.append(reward.weights, reward.bias), np.array(blank))
        return tuple(part.tobytes() for part in parts)

    def _blank(self) -> None:
        """Everything where nothing is known."""
        level = float(np.sqrt(self.process.terms.level))
        chance = float(self.process.blank_chance)
        contents, owns, rows = self.windows.kinds(), [], []
        for content in contents:
            own = self._target(content)
            sizes = len(own)
            flat = (np.full(sizes, chance), np.full(sizes, level))
            none = [np.zeros(sizes)] * (2 * len(self.transient.kernels))
            rows.append(self.transient.columns(own, flat, none))
            owns.append(own)
        label = self.windows.label
        self._own = Stored.shared(label, owns)
        self._alike = list(zip(owns, rows, strict=True))
        self._probability_of = self._tilted_blank()
        self._rows = [rows[k] for k in label]
        self._content = self._content or [contents[k] for k in label]

    def _tilted_blank(self) -> Stored:
        """Probability of target where nothing is known."""
        kinds = [self._probability(own, rows) for own, rows in self._alike]
        return Stored.shared(self.windows.label, kinds)

    def _tilt(self, blocks: list[int], free: NDArray[np.bool_]) -> None:
        """Probability everywhere, where h is another: ``blocks`` from what it saw of them."""
        found: dict[int, Array] = {}
        for block in blocks:
            tilted = self._probability(self._own.values[block], self._rows[block])
            odds = self._told.odds_in(self.layout, block, len(tilted))
            found[block] = updated(tilted, odds) if self._told.doubted else tilted
        open_to = {block: self.layout.taken(block, free) for block in blocks}
        self._probability_of = self._tilted_blank().replaced(found, open_to)

    def _target(self, *contents: Array) -> Array:
        """(cells,) probability of target of blocks whose expected contents are (C, rows, cols),
        one block after the other."""
        cells = np.concatenate([one.reshape(len(one), -1) for one in contents], axis=1)
        return self.reward.predict(cells.T.astype(np.float32)[:, :, None, None])

    def _compute(
        self,
        blocks: list[int],
        shown: set[int],
        spatial: tuple[Stored, Stored],
        free: NDArray[np.bool_],
    ) -> None:
        """Own, h and probability of some blocks; the content of those where it changed."""
        owns: dict[int, Array] = {}
        found: dict[int, Array] = {}
        for begin in range(0, len(blocks), AT_ONCE):
            part = blocks[begin : begin + AT_ONCE]
            for block in part:
                if block in shown:
                    self._content[block] = self.windows.content(block)
            own = self._target(*(self._content[block] for block in part))
            p, sd = (np.concatenate([one.values[b] for b in part]) for one in spatial)
            rings = np.concatenate([self.rings.of(block) for block in part], axis=1)
            rows = self.transient.columns(own, (p, sd), [*rings])
            probability = self._probability(own, rows)
            begin = 0
            for block in part:
                here = slice(begin, begin + len(spatial[0].values[block]))
                begin = here.stop
                self._rows[block] = rows[here].copy()
                pair = (probability[here].copy(), own[here].copy())
                if self._told.doubted:
                    odds = self._told.odds_in(self.layout, block, len(pair[0]))
                    pair = (updated(pair[0], odds), updated(pair[1], odds))
                found[block], owns[block] = pair
        open_to = {block: self.layout.taken(block, free) for block in blocks}
        self._own = self._own.replaced(owns, open_to)
        self._probability_of = self._probability_of.replaced(found, open_to)

    # -- learning --------------------------------------------------------------------------

    def _learn_reward(self, observations: Observations) -> None:
        """From the measurements up to the last number at which terms are learnt."""
        first = due(len(observations))
        if first == self._reward_at:
            return
        self._reward_at = first
        items = observations.items[:first]
        contents = np.stack([item.content for item in items])
        outcomes = np.array([item.outcome > 0 for item in items], np.float64)
        self.reward.update(self.grid.to_model(contents), outcomes)

    _reward_at = 0

    # -- keeping state ---------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """h, the windows as far as they are computed, and what the process computed."""
        means, beyond = self.windows.means, self.windows.beyond
        renewed = [[number, beyond[number][0]] for number in sorted(beyond)]
        return {
            **super().state(),
            **self.process.state(),
            "windows/number": torch.tensor(sorted(means), dtype=torch.int64),
            "windows/mean": self._stacked([means[number] for number in sorted(means)]),
            "windows/renewed": torch.tensor(renewed, dtype=torch.int64).reshape(-1, 2),
            "windows/beyond": self._stacked([beyond[number][1] for number in sorted(beyond)]),
            "windows/told": torch.tensor(len(self._told)),
        }

    def _stacked(self, images: Sequence[NDArray[np.floating]]) -> Tensor:
        """(n, C, H, W) of windows."""
        window = self.windows.window
        out = np.zeros((len(images), window.channels, window.height, window.width), np.float32)
        for i, image in enumerate(images):
            out[i] = image
        return torch.from_numpy(out)

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        self._reward_at = 0
        super().restore(observations, state)
        self.process.restore(observations, state)
        self._begin()
        known = int(state["windows/told"])
        late = {
            number
            for item in observations.items[known:]
            for number in self.windows.tiling.near(item.cell)
        }
        kept = zip(state["windows/number"].tolist(), state["windows/mean"].numpy(), strict=True)
        self.windows.ready = {int(n): np.array(mean) for n, mean in kept if n not in late}
        if "windows/renewed" in state:
            renewed = zip(
                state["windows/renewed"].tolist(), state["windows/beyond"].numpy(), strict=True
            )
            self.windows.beyond = {n: (count, np.array(image)) for (n, count), image in renewed}
