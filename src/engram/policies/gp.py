"""A Gaussian process on the outcomes: what most people would try first, done well.

The process is ``engram.spatial.SpatialModel`` on the outcomes: hyperparameters learnt online,
nothing tuned to the task. The next cell is the one from which most finds can be expected
within the budget that is left (``engram.spatial.expected_finds``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.grid import Grid
from engram.policies.base import Policy, flat_scores
from engram.policies.ranking import Foraging, Progress
from engram.policies.spread import spread_order
from engram.scores import Scores
from engram.spatial import SpatialModel, expected_finds

CANDIDATES = 60
"""Cells whose look-ahead is computed: half by probability, half by uncertainty. Both halves
are needed: the most probable cells alone lie around what has been found already."""
ACQUISITIONS = ("lookahead", "ucb", "probability", "foraging")


class GaussianProcess(Policy):
    """Gaussian process with look-ahead, upper-confidence or plain probability acquisition.

    total of ``lookahead``   : finds to be expected within the remaining budget, those after
                               the next measurement counting ``discount`` each
    total of ``ucb``         : mean + ``bonus`` x standard deviation
    total of ``probability`` : mean
    total of ``foraging``    : the search rule of EM-PTDM (``ranking.Foraging``)
    """

    name = "gp"

    def __init__(
        self,
        grid: Grid,
        budget: int,
        seed: int = 0,
        *,
        acquisition: str = "lookahead",
        discount: float = 0.6,
        bonus: float = 0.5,
        nu: float = 1.5,
    ) -> None:
        super().__init__(grid, budget, seed)
        if acquisition not in ACQUISITIONS:
            raise InputError(
                f"acquisition={acquisition!r}: choose one of {', '.join(ACQUISITIONS)}"
            )
        if not 0 <= discount <= 1:
            raise InputError(f"discount={discount}: give a number from 0 to 1")
        if not 0 < nu <= 100:
            raise InputError(f"nu={nu}: give a number above 0, up to 100")
        self.acquisition, self.discount, self.bonus = acquisition, discount, bonus
        self.model = SpatialModel(grid, nu=nu)
        self._place = np.full(grid.n_cells, grid.n_cells)
        order = spread_order(grid, self.seed)
        self._place[order] = np.arange(len(order))

    def scores(self) -> Scores:
        cells = np.array(self.observations.cells).reshape(-1, 2)
        self.model.fit(cells, self.observations.outcomes)
        mean, sd = self.model.predict()
        probability = self.model.probability()
        if self.acquisition == "lookahead":
            total = self._lookahead(mean, sd)
        elif self.acquisition == "foraging":
            progress = Progress(int((self.observations.outcomes > 0).sum()), self.t, self.budget)
            available = self.observations.available
            total = Foraging().rank(probability, sd, available, progress).total
        else:
            total = mean + (self.bonus * sd if self.acquisition == "ucb" else 0.0)
        total = total - 1e-9 * self._place  # equal cells: in the order of the spread design
        return replace(flat_scores(self.grid, probability, total), exploration=sd)

    def _lookahead(self, mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
        available = self.observations.available
        cells = np.flatnonzero(available)
        first = [
            cells[np.lexsort((self._place[cells], -term[cells]))[: CANDIDATES // 2]]
            for term in (mean, sd)
        ]
        candidates = np.unique(np.concatenate(first))
        response = self.model.response(candidates)
        left = self.budget - self.t
        return expected_finds(mean, response, candidates, available, left, self.discount)
