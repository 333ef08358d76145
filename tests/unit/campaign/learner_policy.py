"""A policy whose suggestions depend on the whole order of its measurements."""

from __future__ import annotations

import numpy as np
import torch

from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import Policy, View, flat_scores
from engram.scores import Scores
from engram.seeding import numpy_generator


class Learner(Policy):
    """Keeps a running field that every measurement changes in a way that does not commute."""

    name = "learner"
    observed = 0

    def __init__(self, grid: Grid, budget: int, seed: int = 0) -> None:
        super().__init__(grid, budget, seed)
        start = numpy_generator(seed, "policy").random(grid.n_cells)
        self.field = torch.from_numpy(start.astype(np.float32))

    def learn(self, new: list[Observation]) -> None:
        type(self).observed += len(new)
        for item in new:
            index = self.grid.index(item.cell)
            self.field = torch.roll(self.field * 0.9 + 0.1 * item.outcome, index % 5 + 1)

    def scores(self) -> Scores:
        chance = self.field.double().numpy().clip(0.01, 0.99)
        return flat_scores(self.grid, chance, chance)

    def view(self) -> View:
        shape = (1, self.grid.height, self.grid.width)
        image = self.grid.pixels(self.field.numpy()).reshape(shape)
        return View(self.current_scores(), image, np.stack([image, 0.5 * image, 0.8 * image]))

    def state(self) -> dict[str, torch.Tensor]:
        return {"field": self.field}

    def restore(self, observations: Observations, state: dict[str, torch.Tensor]) -> None:
        super().restore(observations, state)
        self.field = state["field"]
