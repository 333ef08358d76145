"""Random search: unexplored cells in a random order, fixed by the seed."""

from __future__ import annotations

from engram.detection import PERFECT, Detection
from engram.grid import Grid
from engram.policies.base import Policy, equal_chances, flat_scores
from engram.scores import Scores
from engram.seeding import numpy_generator


class RandomSearch(Policy):
    """Every cell gets a random number once; the largest is measured next.

    Where a visit may miss a target, all cells are visited once before any is visited again.
    """

    name = "random"

    def __init__(
        self, grid: Grid, budget: int, seed: int = 0, *, detection: Detection = PERFECT
    ) -> None:
        super().__init__(grid, budget, seed, detection)
        self._order = numpy_generator(seed, "policy").random(grid.n_cells)

    def scores(self) -> Scores:
        return flat_scores(self.grid, *equal_chances(self.observations, self._order))
