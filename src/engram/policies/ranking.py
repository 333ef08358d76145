r"""From beliefs to an order of the cells: the search rules, each under its name.

``paper``       Eq. 12 of the particles' terms (Eq. 11 alone for Greedy-Adaptive)
``probability`` the most likely cell
``foraging``    the most likely cell while it promises more than the search finds on average,
                otherwise probability plus a bonus for doubt: how foragers leave a patch (the
                marginal value theorem); the last measurements are not spent on doubt

A rule needs nothing of the policy that uses it, so rivals can be given the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.blocks import largest
from engram.detection import PERFECT, Detection
from engram.errors import InputError
from engram.observation import Observations
from engram.policies.forecast import Array, Belief

RULES = ("paper", "probability", "foraging")

WEIGHED = ("eq12", "eq12-normalised")
"""Rules whose total weighs exploration and exploitation by alpha."""

LAST = 7
"""Measurements at the end of the budget that are not spent on doubt."""
LEAST_RATE, MOST_RATE = 0.05, 0.85
"""Bounds of the rate of finds that decides whether a cell is likely enough."""


def checked_rule(rule: str) -> str:
    """The name of a rule, refused when there is none of that name."""
    if rule not in RULES:
        raise InputError(f"rule={rule!r}: choose one of {', '.join(RULES)}")
    return rule


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    finds : cells in which target was found;  t : measurements taken;  budget : all of them
    out   : measurements that are promised to cells already
    detection : how far a visit can be trusted
    """

    finds: int
    t: int
    budget: int
    out: int = 0
    detection: Detection = PERFECT

    @classmethod
    def of(cls, observations: Observations, budget: int, out: int = 0) -> Progress:
        found, taken = observations.found, len(observations)
        return cls(found, taken, budget, out, observations.detection)

    @property
    def left(self) -> int:
        """Measurements that can still be decided on."""
        return self.budget - self.t - self.out

    @property
    def rate(self) -> float:
        """Finds a measurement, drawn to 1/2 while there are few, ``MOST_RATE`` at the most."""
        return min((self.finds + 5) / (self.t + 10), MOST_RATE)

    @property
    def last(self) -> bool:
        return 0 < self.left <= LAST


@dataclass(frozen=True, eq=False)
class Offer:
    """What can be decided on now.

    available : (n_cells,) cells that can be visited: open, unmeasured, with nobody on the way,
        and within the budget
    out       : cells that somebody is on the way to
    """

    available: NDArray[np.bool_]
    out: int = 0

    def same(self, other: Offer) -> bool:
        return self.out == other.out and np.array_equal(self.available, other.available)


@dataclass(frozen=True, eq=False)
class Ranking:
    """What cells are ranked by, (n_cells,), and which part of the rule made it.

    why : ``likely``, ``frontier``, ``room``, ``last``, ``bound``, ``look-ahead``, ``new-target``,
        ``gap``, ``eq11``, ``eq12`` or ``eq12-normalised``
    """

    total: Array
    why: str


B_contra = TypeVar("B_contra", bound=Belief, contravariant=True)


class Ranker(Protocol[B_contra]):
    """A rule: what is believed, which cells can be visited and how far the search is -> an order.

    available : (n_cells,)
    """

    def order(
        self, belief: B_contra, available: NDArray[np.bool_], progress: Progress
    ) -> Ranking: ...


@dataclass(frozen=True)
class Likely:
    """The most likely cell."""

    def order(self, belief: Belief, available: NDArray[np.bool_], progress: Progress) -> Ranking:
        return Ranking(belief.probability, "likely")


@dataclass(frozen=True)
class Foraging:
    """The foraging rule. What a cell promises is the probability that a visit finds target there.

    frontier : probability above which a cell is followed; by default the rate of finds so far
    explore  : how much doubt counts elsewhere, in rates of finds: where a find leads to many,
        looking around pays
    least_rate : what the rate of finds is taken for at the least. Where targets are rare a cell
        next to a find promises little and yet many times what a look elsewhere does, so that a
        rate that is taken for too high never lets a search follow what it has found
    """

    explore: float = 2.5
    frontier: float | None = None
    least_rate: float = LEAST_RATE

    def __post_init__(self) -> None:
        if not 0 <= self.explore < np.inf:
            raise InputError(f"explore={self.explore}: give 0 or more")
        if not 0 <= self.least_rate <= MOST_RATE:
            raise InputError(f"least_rate={self.least_rate}: give a rate from 0 to {MOST_RATE}")
        if self.frontier is not None and not 0 <= self.frontier <= 1:
            raise InputError(f"frontier={self.frontier}: give a probability, 0 to 1")

    def order(self, belief: Belief, available: NDArray[np.bool_], progress: Progress) -> Ranking:
        p, doubt = belief.probability, belief.doubt
        if progress.last or not available.any():
            return Ranking(p, "last")
        rate = max(progress.rate, self.least_rate)
        frontier = rate if self.frontier is None else self.frontier
        promise = progress.detection.chance * p
        if largest(promise, available) >= frontier:
            return Ranking(p, "likely")
        return Ranking(promise + self.explore * rate * doubt, "frontier")
