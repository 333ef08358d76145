"""The Gaussian process as a forecaster, and the look-ahead that ranks by it.

The process is ``engram.spatial.SpatialModel`` on the outcomes: hyperparameters learnt online,
nothing tuned to the task; with layers it is a process over place and layers
(``engram.layered``). The look-ahead prefers the cell from which most finds can be expected
within the budget that is left (``engram.expected_finds``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engram.detection import doubtful, noise_of, updated
from engram.errors import InputError
from engram.expected_finds import expected_finds
from engram.grid import Grid
from engram.layered import LayeredModel
from engram.layers import Layers
from engram.observation import Observation, Observations
from engram.policies.forecast import Array, Belief
from engram.policies.ranking import Progress, Ranking
from engram.policies.spread import spread_order
from engram.spatial import SpatialModel

if TYPE_CHECKING:
    from torch import Tensor

CANDIDATES = 60
"""Cells whose look-ahead is computed: half by probability, half by uncertainty. Both halves
are needed: the most probable cells alone lie around what has been found already."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProcessBelief(Belief):
    """What a Gaussian process believes.

    mean     : (n_cells,) expected outcome, not held to [0, 1]
    response : what a measurement of some cells would do to the mean of all
        (``SpatialModel.response``), as of this belief, with further noise where that is given
    others   : probability and doubt (n_cells,) of each cell without its own reports where they left
        doubt (``SpatialModel.others``)
    """

    mean: Array
    response: Callable[..., Array]
    others: tuple[Array, Array]


class ProcessForecaster:
    """Probability and doubt of every cell by a Gaussian process; all it knows is measured.

    With layers it predicts whether a cell holds target, however much of it: a layer says little of
    shares, and shares of different kinds of cells are not alike.
    """

    def __init__(self, grid: Grid, nu: float = 1.5, layers: Layers | None = None) -> None:
        if not 0 < nu <= 100:
            raise InputError(f"nu={nu}: give a number above 0, up to 100")
        self.layered = LayeredModel(grid, layers, nu=nu) if layers else None
        self.model = self.layered or SpatialModel(grid, nu=nu)

    def belief(self, observations: Observations) -> ProcessBelief:
        cells = np.array(observations.cells).reshape(-1, 2)
        outcomes = observations.outcomes
        seen = (outcomes > 0).astype(float) if self.layered else outcomes
        self.model.fit(cells, seen, observations.factors)
        mean, sd = self.model.predict()
        expected, beside = self.model.others()
        others, odds = self.model.chance_of(expected), observations.log_odds
        probability = updated(others, odds)
        unsure = doubtful(odds)
        mean[unsure] = probability[unsure]
        return ProcessBelief(
            probability=probability,
            doubt=sd if self.layered is None else self.layered.doubt(),
            mean=mean,
            response=self.model.responses(),
            others=(others, beside),
        )

    def learn(
        self, before: ProcessBelief, new: Sequence[Observation], observations: Observations
    ) -> None:
        """Nothing: its belief follows from the measurements."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Nothing was kept."""


class Ties(Protocol):
    """An order of cells that are equal."""

    def broken(self, total: Array) -> Array:
        """A total (n_cells,) without ties."""


class SpreadTies:
    """Orders cells that are equal as the spread design would visit them.

    place : (n_cells,) position in the design; the number of cells where a cell is closed
    """

    def __init__(self, grid: Grid, seed: int) -> None:
        self.place = np.full(grid.n_cells, grid.n_cells)
        order = spread_order(grid, seed)
        self.place[order] = np.arange(len(order))

    def broken(self, total: Array) -> Array:
        """A total (n_cells,) without ties."""
        return np.asarray(total - 1e-9 * self.place)


def checked_discount(discount: float) -> float:
    """What a later find counts, from 0 to 1."""
    if not 0 <= discount <= 1:
        raise InputError(f"discount={discount}: give a number from 0 to 1")
    return discount


class LookAhead:
    """Ranks by the finds to be expected within the remaining budget.

    discount : what a find after the next measurement counts
    """

    def __init__(self, ties: SpreadTies, discount: float = 0.6) -> None:
        self.ties, self.discount = ties, checked_discount(discount)

    def order(
        self, belief: ProcessBelief, available: NDArray[np.bool_], progress: Progress
    ) -> Ranking:
        cells = np.flatnonzero(available)
        first = [
            cells[np.lexsort((self.ties.place[cells], -term[cells]))[: CANDIDATES // 2]]
            for term in (belief.mean, belief.doubt)
        ]
        candidates = np.unique(np.concatenate(first))
        response, seen = belief.response(candidates), progress.detection
        total = expected_finds(
            belief.mean,
            response,
            candidates,
            available,
            progress.left,
            self.discount,
            found=seen.chance,
            blank=None
            if seen.chance == 1
            else belief.response(candidates, float(noise_of(seen.log_odds(False)))),
        )
        return Ranking(self.ties.broken(total), "look-ahead")
