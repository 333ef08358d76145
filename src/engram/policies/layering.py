"""What layers say, as a forecaster beside the memories and the plain process.

The model is ``engram.logistic.LogisticModel``: log-odds of place and layers. All it knows is
measured; it keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engram.detection import updated
from engram.grid import Grid
from engram.layers import Layers
from engram.logistic import LogisticModel
from engram.observation import Observation, Observations
from engram.policies.forecast import Array, Belief

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerBelief(Belief):
    """What place and layers say.

    others : (n_cells,) probability of target of each cell without its own reports where they left
        doubt
    relevance : how far it is to be heard, the chance that layers matter
    """

    others: Array
    relevance: float


class LayerForecaster:
    """Probability and doubt of every cell by a logistic process over place and layers.

    judged : whether the visits say how far it is to be heard; otherwise it is in full
    """

    def __init__(self, grid: Grid, layers: Layers, *, judged: bool) -> None:
        self.model, self.judged = LogisticModel(grid, layers), judged

    def belief(self, observations: Observations) -> LayerBelief:
        found = (observations.outcomes > 0).astype(np.float64)
        model = self.model.fit(observations.indices, found, observations.factors)
        others = model.others()
        return LayerBelief(
            probability=updated(others, observations.log_odds),
            doubt=model.doubt(),
            others=others,
            relevance=model.relevance if self.judged else 1.0,
        )

    def learn(
        self, before: LayerBelief, new: Sequence[Observation], observations: Observations
    ) -> None:
        """Nothing: its belief follows from the measurements."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Nothing was kept."""
