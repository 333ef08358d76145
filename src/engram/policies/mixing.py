r"""Predictors mixed by how well they have predicted so far.

Each predictor k gives every cell a probability of target; its weight is

.. math::  w_k \propto \exp\Bigl(\sum_i \lambda^{t - i} \log p_k(y_i)\Bigr) ,

the discounted prequential evidence (each outcome predicted before it was seen). A useless
memory loses its weight after a few surprises; one that starts badly can win it back.

One of them, the leader, starts f nats ahead. Where that is a forecaster of layers, and these matter
with the chance r alone, the weights :math:`\pi_k` that all start from are

.. math::  \pi_k = r\, \frac{e^{f [k = l]}}{\sum_j e^{f [j = l]}}
           + (1 - r)\, \frac{[k \ne l]\, e^{f [k = 1]}}{\sum_{j \ne l} e^{f [j = 1]}} :

as far as layers do not matter, the first leads and they are not heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engram.blocks import as_array, as_field, total_of
from engram.grid import Grid
from engram.observation import Observation
from engram.policies.base import log_likelihood
from engram.policies.forecast import Array, Belief

DISCOUNT = 0.98


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedBelief(Belief):
    """Several beliefs as one: the probability is mixed, doubt and content are the first's.

    parts : the beliefs;  weights : (len(parts),) what each counts
    """

    parts: tuple[Belief, ...]
    weights: Array


def _mixed(weights: Array, probabilities: Sequence[Array]) -> Array:
    """(n_cells,) or, of fields, a field."""
    fields = [as_field(p) for p in probabilities]
    known = [one for one in fields if one is not None]
    if known:
        return as_array(total_of(known, weights.tolist()).mapped(_held))
    return _held(weights @ np.stack(probabilities))


def _held(mixed: Array) -> Array:
    return np.asarray(np.clip(mixed, 0.0, 1.0), np.float64)


class EvidenceMixture:
    """Mixes ``count`` predictors; the ``leader`` starts ``favour`` nats ahead of the others."""

    def __init__(self, grid: Grid, count: int = 2, favour: float = 2.0, leader: int = 0) -> None:
        self.grid, self.count, self.favour, self.leader = grid, count, favour, leader
        self._log: list[Array] = []

    def weights(self, relevance: float = 1.0) -> Array:
        """(count,) weights; ``relevance``, the chance r that the leader is to be heard."""
        log = self.history()
        age = np.arange(len(log))[::-1]
        total = (log * DISCOUNT ** age[:, None]).sum(axis=0)
        total += self._start(relevance)
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def _start(self, relevance: float) -> Array:
        """(count,) logarithms of the weights that all start from, but for a constant."""
        led = np.zeros(self.count)
        led[self.leader] = self.favour
        if relevance == 1 or self.leader == 0:
            return led
        without = np.zeros(self.count)
        without[0], without[self.leader] = self.favour, -np.inf
        heard, unheard = (np.exp(one) / np.exp(one).sum() for one in (led, without))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(relevance * heard + (1 - relevance) * unheard))

    def mixed(self, *parts: Belief, relevance: float = 1.0) -> MixedBelief:
        """One belief of all."""
        weights = self.weights(relevance)
        return MixedBelief(
            probability=_mixed(weights, [part.probability for part in parts]),
            doubt=parts[0].doubt,
            content=parts[0].content,
            parts=parts,
            weights=weights,
        )

    def learn(self, before: MixedBelief, new: Sequence[Observation]) -> None:
        """Score the predictions that were made before these reports."""
        for item in new:
            hit, cell = float(item.outcome > 0), self.grid.index(item.cell)
            told = [item.reported(float(part.probability[cell])) for part in before.parts]
            self._log.append(np.array([log_likelihood(hit, p, floor=0.02) for p in told]))

    def history(self) -> Array:
        """(n, count) log-likelihoods so far."""
        return np.asarray(self._log, np.float64).reshape(-1, self.count)

    def restore(self, history: Array) -> None:
        """Go on from a saved history."""
        self._log = list(np.array(history, np.float64).reshape(-1, self.count))
