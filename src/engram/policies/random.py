"""Random search: unexplored cells in a random order, fixed by the seed."""

from __future__ import annotations

import numpy as np

from engram.grid import Grid
from engram.policies.base import Policy, flat_scores
from engram.scores import Scores
from engram.seeding import numpy_generator


class RandomSearch(Policy):
    """Every cell gets a random number once; the largest is measured next."""

    name = "random"

    def __init__(self, grid: Grid, budget: int, seed: int = 0) -> None:
        super().__init__(grid, budget, seed)
        self._order = numpy_generator(seed, "policy").random(grid.n_cells)

    def scores(self) -> Scores:
        outcomes = self.observations.outcomes
        rate = ((outcomes > 0).sum() + 1) / (len(outcomes) + 2)
        return flat_scores(self.grid, np.full(self.grid.n_cells, rate), self._order)
