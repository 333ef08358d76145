"""A Gaussian process on the outcomes: what most people would try first, done well.

One forecaster (``process``) and a rule that ranks by what it believes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.detection import PERFECT, Detection
from engram.errors import InputError
from engram.grid import Grid
from engram.layer_effects import Explained
from engram.layers import Layers
from engram.policies.base import Answer, Policy, flat_scores
from engram.policies.local import is_large
from engram.policies.local.lookahead import LocalLookAhead
from engram.policies.local.process import STRIDE, LocalProcess
from engram.policies.local.ties import FieldTies
from engram.policies.process import LookAhead, ProcessBelief, ProcessForecaster, SpreadTies, Ties
from engram.policies.ranking import LEAST_RATE, Foraging, Offer, Progress, Ranker, Ranking
from engram.policies.separate import Separate, checked_extent, checked_goal
from engram.policies.spread import spread_blocks
from engram.scores import Scores

if TYPE_CHECKING:
    from torch import Tensor

    from engram.observation import Observations

ACQUISITIONS = ("lookahead", "ucb", "probability", "foraging")


class GaussianProcess(Policy):
    """Gaussian process with look-ahead, upper-confidence or plain probability acquisition.

    total of ``lookahead``   : finds to be expected within the remaining budget, those after
                               the next measurement counting ``discount`` each
    total of ``ucb``         : mean + ``bonus`` x standard deviation
    total of ``probability`` : mean
    total of ``foraging``    : the search rule of EM-PTDM (``ranking.Foraging``)

    With ``goal='objects'`` cells are ranked by the chance of a target that nobody has touched or by
    gaps (``separate``), whatever the acquisition; ``extent`` is the size of a target in cells, 0 =
    learnt from the finds.

    Areas larger than ``local.LARGEST`` cells a side are computed by patches unless ``windows`` is
    off or there are layers.
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
        layers: Layers | None = None,
        detection: Detection = PERFECT,
        windows: bool = True,
        goal: str = "cells",
        extent: float = 0.0,
        least_rate: float = LEAST_RATE,
    ) -> None:
        super().__init__(grid, budget, seed, detection)
        if acquisition not in ACQUISITIONS:
            raise InputError(
                f"acquisition={acquisition!r}: choose one of {', '.join(ACQUISITIONS)}"
            )
        by_patches = windows and is_large(grid) and not layers
        ties: Ties
        look_ahead: Ranker[Any]
        if by_patches:
            layout = spread_blocks(grid, STRIDE, self.seed)
            self.process: ProcessForecaster | LocalProcess = LocalProcess(grid, layout, nu)
            ties, look_ahead = FieldTies(), LocalLookAhead(discount)
        else:
            self.process = ProcessForecaster(grid, nu, layers)
            ties = SpreadTies(grid, self.seed)
            look_ahead = LookAhead(ties, discount)
        rankers: dict[str, Ranker[Any]] = {
            "lookahead": look_ahead,
            "ucb": UpperBound(ties, bonus),
            "probability": UpperBound(ties, 0.0),
            "foraging": _Spread(ties, Foraging(least_rate=least_rate)),
        }
        self.ranker = rankers[acquisition]
        checked_extent(extent)
        self.separate = (
            Separate(grid, self.seed, extent) if checked_goal(goal) == "objects" else None
        )

    def scores(self) -> Scores:
        return self.current_scores()

    def layered(self) -> Explained | None:
        self.process.belief(self.observations)
        return self.process.layered

    def prepare(self) -> None:
        if isinstance(self.process, LocalProcess):
            self.process.belief(self.observations)

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), **self.process.state()}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        self.process.restore(observations, state)

    def answer(self, offer: Offer) -> Answer:
        belief = self.process.belief(self.observations)
        progress = Progress.of(self.observations, self.budget, offer.out)
        rule = self.separate.rule(self.observations) if self.separate else self.ranker
        ranking = rule.order(belief, offer.available, progress)
        scores = flat_scores(self.grid, belief.probability, ranking.total, belief.doubt)
        return Answer(scores, ranking.why)


@dataclass(frozen=True)
class UpperBound:
    """Ranks by mean + ``bonus`` x standard deviation."""

    ties: Ties
    bonus: float

    def order(
        self, belief: ProcessBelief, available: NDArray[np.bool_], progress: Progress
    ) -> Ranking:
        total = belief.mean + self.bonus * belief.doubt
        return Ranking(self.ties.broken(total), "bound" if self.bonus else "likely")


@dataclass(frozen=True)
class _Spread:
    """The foraging rule, with cells that are equal in the order of the spread design."""

    ties: Ties
    rule: Foraging

    def order(
        self, belief: ProcessBelief, available: NDArray[np.bool_], progress: Progress
    ) -> Ranking:
        ranking = self.rule.order(belief, available, progress)
        return replace(ranking, total=self.ties.broken(ranking.total))
