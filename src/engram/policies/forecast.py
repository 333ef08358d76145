"""From measurements to beliefs: what every forecaster offers.

A forecaster turns the measurements of a search into a belief about every cell, and changes
nothing in doing so that anybody else reads: asked twice, it answers the same. What it learns, it
learns when it is told what came of a belief (``learn``), and only that has to be kept (``state``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.observation import Observation, Observations

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Belief:
    """What is believed of every cell, given some measurements.

    probability : (n_cells,) that a cell holds target, in [0, 1]
    doubt       : (n_cells,) standard deviation of the outcome that is expected of a cell
    content     : (C, H, W) expected content in the grid's range, or None
    """

    probability: Array
    doubt: Array
    content: NDArray[np.float32] | None = None


B = TypeVar("B", bound=Belief)


class Forecaster(Protocol[B]):
    """Predicts every cell from the measurements of a search."""

    def belief(self, observations: Observations) -> B:
        """What these measurements say of every cell."""

    def learn(
        self, before: B, new: Sequence[Observation], observations: Observations
    ) -> dict[str, Any] | None:
        """Take in what came of the belief ``before``: the ``new`` of all ``observations``.

        Gives a record for the log where this changed how it predicts.
        """

    def state(self) -> dict[str, Tensor]:
        """What cannot be had from the measurements alone."""

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Go on from these measurements and the ``state`` saved after them."""
