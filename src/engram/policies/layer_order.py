"""Cells in the order of one layer: what somebody would do who trusts a map and learns nothing."""

from __future__ import annotations

import numpy as np

from engram.errors import InputError
from engram.grid import Grid
from engram.layers import BELIEF, Layers
from engram.policies.base import Answer, Policy, flat_scores
from engram.policies.process import SpreadTies
from engram.policies.ranking import Offer
from engram.scores import Scores


class LayerOrder(Policy):
    """The cell with the highest value of a layer comes next, the lowest where less is expected.

    layer : name of a layer or 'belief'; empty = the only one there is
    Equal cells come in the order of the spread design, cells without a value last.
    """

    name = "layer-order"

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int = 0,
        *,
        layers: Layers | None = None,
        layer: str = "",
    ) -> None:
        super().__init__(grid, budget, seed)
        values = _values(layers or Layers(grid), layer)
        known = np.sort(values[~np.isnan(values)])
        places = np.searchsorted(known, values) / len(known)  # NaN is sorted behind all
        ranks = np.where(np.isnan(values), -1.0, places)
        self._order = SpreadTies(grid, self.seed).broken(ranks)

    def scores(self) -> Scores:
        return self.current_scores()

    def answer(self, offer: Offer) -> Answer:
        outcomes = self.observations.outcomes
        rate = ((outcomes > 0).sum() + 1) / (len(outcomes) + 2)
        chance = np.full(self.grid.n_cells, rate)
        return Answer(flat_scores(self.grid, chance, self._order), "layer")


def _values(layers: Layers, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """(n_cells,) what cells are ordered by, high first."""
    there = [*layers.names, *([BELIEF] if layers.belief is not None else [])]
    if not there:
        raise InputError("policy 'layer-order' needs a layer; give --layer NAME=FILE or --belief")
    if not name and len(there) > 1:
        raise InputError(
            f"policy 'layer-order': there are the layers {', '.join(there)}; choose one, like "
            f"layer-order[layer={there[0]}]"
        )
    chosen = name or there[0]
    if chosen == BELIEF and layers.belief is not None:
        return layers.belief
    layer = layers.get(chosen)
    if layer.categories:
        raise InputError(f"layer {chosen!r} has categories, which have no order; choose numbers")
    return -layer.values if layer.expected == "less" else layer.values
