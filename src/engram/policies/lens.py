"""How a memory looks at an area that is not made of its own pixels.

A memory of pixels imagines an area as it is. Through a lens a memory sees one pixel per cell:
a memory of cells its layers (``memory.layers``), any other memory of one channel the map of
what was found. Cells keep their numbers, so a policy works on the lens's grid as on any other;
measurements are translated on the way in, pictures on the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid
from engram.memory.layers import PRESENCE, LayerSet
from engram.observation import Observation, Observations
from engram.policies.base import Answer, Policy, PolicyLog, View
from engram.policies.ranking import Offer
from engram.scores import Scores

if TYPE_CHECKING:
    from torch import Tensor

    from engram.layer_effects import Explained
    from engram.memory.card import Card


@dataclass(frozen=True)
class Lens:
    """An area as a memory with these layers sees it."""

    area: Grid
    layers: LayerSet

    @property
    def grid(self) -> Grid:
        """One pixel per cell, one channel per layer; the same cells, open at the same cost."""
        area = self.area
        return Grid(
            area.rows,
            area.cols,
            len(self.layers),
            closed=area.closed,
            cost=area.cost,
            sides=area.sides or area.cell,
        )

    def seen(self, item: Observation) -> Observation:
        """A measurement as the memory sees it: the outcome is presence, 0 or 1.

        The noise of the content is left out: a summary averages it over the cell's pixels, and
        presence is exact. How much of the cell is target stays known (``share``).
        """
        low, high = self.area.range
        content = ((item.content - low) / (high - low))[None].astype(np.float32)
        values = self.layers.seen(content, np.array([item.outcome], np.float32))
        shown, found = values.reshape(-1, 1, 1), float(item.outcome > 0)
        return Observation(item.cell, shown, found, detection=item.detection, share=item.outcome)

    def all_seen(self, observations: Observations) -> Observations:
        seen = (self.seen(item) for item in observations)
        return Observations(self.grid, seen, observations.detection)

    def shown(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """(..., layers, rows, cols) in [0, 1] -> (..., C, H, W) in the area's range."""
        low, high = self.area.range
        (h, w), channels = self.area.cell, self.area.channels
        picked = self.layers.picture(image)
        if picked.shape[-3] != channels:
            picked = np.repeat(picked.mean(axis=-3, keepdims=True), channels, axis=-3)
        large = np.repeat(np.repeat(picked, h, axis=-2), w, axis=-1)
        return np.asarray(low + np.clip(large, 0, 1) * (high - low), np.float32)


def lens_for(card: Card, grid: Grid) -> Lens | None:
    """The lens a memory needs to search an area; None when it knows the area's own pixels."""
    if card.layers:
        return Lens(grid, card.layers)
    own_pixels = grid.cell == (1, 1) or (card.height, card.width) == (grid.height, grid.width)
    if card.channels != 1 or (grid.channels == 1 and own_pixels):
        return None
    return Lens(grid, PRESENCE)


class Lensed(Policy):
    """A policy that works on what a lens shows of the area."""

    def __init__(self, inner: Policy, lens: Lens) -> None:
        self.inner, self.lens = inner, lens
        super().__init__(lens.area, inner.budget, inner.seed, inner.observations.detection)
        self.name = inner.name

    @property
    def log(self) -> PolicyLog:
        """Notes are kept by the policy inside."""
        return self.inner.log

    @log.setter
    def log(self, value: PolicyLog) -> None:
        self.inner.log = value

    def answer(self, offer: Offer) -> Answer:
        return self.inner.current(offer)

    def scores(self) -> Scores:
        return self.current_scores()

    def take(self, items: list[Observation]) -> None:
        self.inner.observe([self.lens.seen(item) for item in items])
        for item in items:
            self.observations.add(item)
        self._answers = []

    def layered(self) -> Explained | None:
        return self.inner.layered()

    def learn_detection(self) -> None:
        """What it is, the policy inside has learnt."""
        self.observations.detection = self.inner.observations.detection

    def view(self) -> View:
        inside = self.inner.view()
        return replace(
            inside,
            mean=None if inside.mean is None else self.lens.shown(inside.mean),
            particles=None if inside.particles is None else self.lens.shown(inside.particles),
            shows=self.lens.layers.shows,
        )

    def prepare(self) -> None:
        self.inner.prepare()

    def state(self) -> dict[str, Tensor]:
        return self.inner.state()

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self.inner.restore(self.lens.all_seen(observations), state)
        self.learn_detection()
