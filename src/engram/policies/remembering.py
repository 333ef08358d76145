r"""Permanent and transient memory together, as a forecaster.

* E-step. The mask-conditioned permanent memory is told the measurements; its estimate at full
  noise is the posterior mean of the area in one evaluation, averaged over the symmetries of a
  square. An affine reward turns it into the probability of target of every cell.
* M-step. The transient memory tilts those probabilities and learns by maximising the evidence
  of the measurements (``outcome_h``). Updates that predict worse than none are rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.detection import doubtful, updated
from engram.grid import Grid
from engram.memory.denoiser import CountedDenoiser, Denoiser, Memory
from engram.memory.transient import ShiftedDenoiser
from engram.observation import Observation, Observations
from engram.policies.context import WHOLE, NearbyMean
from engram.policies.forecast import Array, Belief
from engram.policies.hyperprior import hyperprior_for
from engram.policies.imagination import Imagination
from engram.policies.layering import LayerBelief, LayerForecaster
from engram.policies.outcome_h import OutcomeTransform, tilted
from engram.policies.process import ProcessBelief, ProcessForecaster
from engram.policies.views import LEARNT, SymmetricMean
from engram.reward import AffineReward, presence_prior
from engram.spatial import Hyperparameters, Learnt


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryBelief(Belief):
    """What both memories believe; doubt is the spatial model's.

    own      : (n_cells,) probability of target as the permanent memory has it, before h
    features : (n_cells, k) what h saw of every cell
    odds     : (n_cells,) what its own reports add to each cell's log-odds, 0 where they are certain
    spatial, layered : the beliefs of the processes it rests on
    """

    own: Array
    features: Array
    odds: Array
    spatial: ProcessBelief
    layered: LayerBelief | None = None

    @property
    def tilt(self) -> Array:
        """(n_cells,) what h adds to the probability."""
        return self.probability - self.own


@dataclass(frozen=True)
class Remembering:
    """How both memories are used.

    h       : whether h tilts;  strength : how firmly it is held to its hyperprior
    updates : numbers of measurements after which it learns
    views, period : symmetries averaged in the mean, and every how many measurements all of them
        are computed (``views``)
    context : cells a side of the neighbourhood that counts in the mean, 0 = all (``context``)
    window_views, wide : symmetries averaged in the windows of a large area, and whether these reach
        beyond the size of the memory (``local.windows``)
    """

    h: bool
    strength: float
    updates: frozenset[int]
    views: int
    period: int
    context: int = WHOLE
    window_views: int = LEARNT
    wide: bool = True


class MemoryForecaster:
    """Memory, reward and h.

    spatial : the plain spatial model that h sees beside the memory
    layered : the one that knows the layers, or None without any; what it says beyond the plain one
        is added to the memory's log-odds as far as layers matter, with a weight that h learns
    """

    def __init__(
        self,
        memory: Memory,
        imagination: Imagination,
        spatial: ProcessForecaster,
        plan: Remembering,
        layered: LayerForecaster | None = None,
    ) -> None:
        self.grid: Grid = imagination.grid
        self.frozen = CountedDenoiser(memory)
        learnt = None if plan.views else memory.symmetric
        self.symmetric = None if learnt is None else CountedDenoiser(learnt)
        self.imagination, self.spatial, self.plan = imagination, spatial, plan
        self.layered = layered
        whole = SymmetricMean(self.grid, plan.views, plan.period, self.symmetric)
        self.posterior_mean: SymmetricMean | NearbyMean = (
            NearbyMean(self.grid, plan.context, whole) if plan.context else whole
        )
        layers = memory.card.layers
        self.reward = AffineReward(self.grid.channels, prior=presence_prior(layers))
        self.transient = OutcomeTransform(
            self.grid, plan.strength, hyperprior_for(layers), layered=layered is not None
        )

    def belief(self, observations: Observations) -> MemoryBelief:
        mean = self.posterior_mean(self.frozen, observations)
        return self.believed(mean, self.target(mean), observations)

    def target(self, mean: Tensor) -> Array:
        """(n_cells,) probability of target where the area is expected to be ``mean``."""
        return self.reward.predict(self.imagination.cells(mean)[0])

    def believed(self, mean: Tensor, own: Array, observations: Observations) -> MemoryBelief:
        """The belief of memories that expect ``mean`` (1, C, H, W) and targets by ``own``."""
        spatial = self.spatial.belief(observations)
        known = None if self.layered is None else self.layered.belief(observations)
        told = None if known is None else known.others
        features = self.transient.features(own, spatial.others, observations, told)
        doubt = spatial.doubt
        if known is not None:
            features[:, -1] *= known.relevance
            doubt = known.relevance * known.doubt + (1 - known.relevance) * doubt
        odds = observations.log_odds
        odds = np.where(doubtful(odds), odds, 0.0)
        return MemoryBelief(
            probability=updated(self._probability(own, features), odds),
            doubt=doubt,
            content=self.imagination.in_range(mean[0]),
            own=updated(own, odds),
            features=features,
            odds=odds,
            spatial=spatial,
            layered=known,
        )

    def _probability(self, own: Array, features: Array) -> Array:
        """(n_cells,) as h tilts it; without h what layers say counts with its usual weight."""
        if self.plan.h:
            return self.transient.apply(features)
        if self.layered is None:
            return own
        alone = np.zeros(features.shape[1])
        alone[-1] = self.transient.initial[-1]
        return tilted(features, alone)

    @property
    def evaluations(self) -> float:
        """Evaluations of the networks so far."""
        symmetric = 0.0 if self.symmetric is None else self.symmetric.evaluations
        return self.frozen.evaluations + symmetric

    @property
    def imagining(self) -> CountedDenoiser:
        """The memory that samples are drawn from."""
        return self.frozen

    # -- samples ---------------------------------------------------------------------------

    def composite(self, belief: MemoryBelief) -> Denoiser:
        """Both memories as one denoiser: h's change of the outcome, as a change of content."""
        tilt = belief.tilt
        return self.shifted(self.grid.pixels(tilt.astype(np.float32)))

    def shifted(self, tilt: NDArray[np.floating]) -> Denoiser:
        """The memory, and what h adds to the probability (H, W) as a change of content."""
        if not tilt.any():
            return self.imagining
        weights = self.reward.weights
        per_unit = weights / max(float(weights @ weights), 0.05)
        table = np.stack([tilt.astype(np.float32) * w for w in per_unit])
        shift = torch.from_numpy(np.clip(table, -2, 2).astype(np.float32))[None]
        return ShiftedDenoiser(self.imagining, shift)

    # -- learning --------------------------------------------------------------------------

    def learn(
        self, before: MemoryBelief, new: Sequence[Observation], observations: Observations
    ) -> dict[str, Any] | None:
        """The reward, and h where an update is due."""
        self._learn_reward(observations)
        self.transient.note(before.features, new, before.odds)
        t = len(observations)
        if not any(t - len(new) < due <= t for due in self.plan.updates):
            return None
        judged = self.transient.update(t)
        return None if judged is None else vars(judged)

    def _learn_reward(self, observations: Observations) -> None:
        contents = self.grid.to_model(observations.contents)
        self.reward.update(contents, (observations.outcomes > 0).astype(float))

    def state(self) -> dict[str, Tensor]:
        """h, and the terms of the process, which save learning them again; the reward follows
        from the measurements."""
        h = {f"h/{k}": torch.from_numpy(np.array(v)) for k, v in self.transient.state().items()}
        last = self.spatial.model.learnt_last
        if last is None:
            return h
        source = torch.tensor(list(last.source), dtype=torch.uint8)
        terms = torch.tensor(astuple(last.terms), dtype=torch.float64)
        return {**h, "terms/source": source, "terms/values": terms}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        arrays = {k[2:]: v.numpy() for k, v in state.items() if k.startswith("h/")}
        self.transient.restore(arrays)
        if "terms/source" in state:
            source = bytes(state["terms/source"].tolist())
            terms = Hyperparameters(*state["terms/values"].tolist())
            self.spatial.model.learnt_last = Learnt(source, terms)
        if len(observations):
            self._learn_reward(observations)
