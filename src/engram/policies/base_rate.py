r"""The share of targets, whatever the place: the least that a forecast has to beat.

Each measurement holds target with the same chance :math:`\theta \sim \mathrm{Beta}(a, b)`, so
after k finds in n measurements every cell has

.. math::  p = \frac{a + k}{a + b + n} , \qquad
           \mathrm{sd} = \sqrt{\frac{p\,(1 - p)}{a + b + n + 1}} .

A search measures targets more often than they occur, so this is the rate of its finds rather than
that of the area; in a mixture it says whether the others know more than that rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engram.errors import InputError
from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.forecast import Belief

if TYPE_CHECKING:
    from torch import Tensor

PRIOR = (1.0, 4.0)
"""a and b: one find in five, held as firmly as five measurements."""


class BaseRate:
    """The same probability and doubt for every cell; all it knows is the number of finds."""

    def __init__(self, grid: Grid, prior: tuple[float, float] = PRIOR) -> None:
        if not min(prior) > 0:
            raise InputError(f"prior={prior}: give two numbers above 0")
        self.grid, self.prior = grid, prior

    def belief(self, observations: Observations) -> Belief:
        a, b = self.prior
        count = a + b + len(observations)
        p = (a + int((observations.outcomes > 0).sum())) / count
        doubt = float(np.sqrt(p * (1 - p) / (count + 1)))
        cells = self.grid.n_cells
        return Belief(probability=np.full(cells, p), doubt=np.full(cells, doubt))

    def learn(self, before: Belief, new: Sequence[Observation], observations: Observations) -> None:
        """Nothing: its belief follows from the measurements."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Nothing was kept."""
