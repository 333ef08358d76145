"""Is this prior any good here? The policy's forecasts against two plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from engram.observation import Observation
from engram.policies.base import log_likelihood

ENOUGH = 5
"""Measurements before a verdict is given."""

CLEAR = 2.0
"""Standard errors by which a difference must stand out to be called clear."""


@dataclass(frozen=True)
class Fitness:
    """Mean log-likelihood per measurement of the policy, a spatial model and the base rate, without
    those that were told together at the beginning; the verdict ('good', 'even', 'bad' or
    'unknown') and its words."""

    measurements: int
    policy: float | None
    spatial: float | None
    base_rate: float | None
    verdict: str
    words: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def base_rate_evidence(groups: Sequence[Sequence[Observation]]) -> list[float]:
    """Log-likelihood of every outcome given the share of finds before it; measurements of a group
    were told together, and none of them is known when the others are forecast."""
    evidence: list[float] = []
    hits = 0
    for group in groups:
        rate = (hits + 1) / (len(evidence) + 2)
        evidence += [log_likelihood(item.outcome, rate) for item in group]
        hits += sum(item.outcome > 0 for item in group)
    return evidence


def prior_fitness(
    policy: str,
    evidence: Sequence[float],
    spatial: Sequence[float] | None,
    base: Sequence[float],
    first: int = 1,
) -> Fitness:
    """The policy's forecasts of the outcomes beside two plain ones.

    The forecasts are prequential: each was made before the cell was measured. The ``first`` that
    were told together were forecast by nothing but what everybody begins with: where they are
    several they say nothing of the prior, and are left out.
    """
    n, early = len(evidence), first if first > 1 else 0
    evidence, base = evidence[early:], base[early:]
    spatial = None if spatial is None else spatial[early:]

    def mean(values: Sequence[float] | None) -> float | None:
        return round(float(np.mean(values)), 4) if values is not None and len(values) else None

    means = (n, mean(evidence), mean(spatial), mean(base))
    if n - early < ENOUGH:
        told = f", {early} of them told together at the beginning" if early else ""
        words = f"Too early to say: {n - early} of {ENOUGH} measurements{told}."
        return Fitness(*means, "unknown", words)
    versus_base = _compare(evidence, base)
    versus_spatial = versus_base if spatial is None else _compare(evidence, spatial)
    parts = [_phrase(policy, versus_base, "the base rate")]
    if spatial is not None:
        parts.append(_phrase("it", versus_spatial, "a plain spatial model"))
    worst = min(versus_base, versus_spatial)
    verdict = "good" if worst > CLEAR else "bad" if worst < -CLEAR else "even"
    return Fitness(*means, verdict, "; ".join(parts) + ".")


def _compare(mine: Sequence[float], other: Sequence[float]) -> float:
    """Mean difference in standard errors (of at least 0.02 nats per measurement)."""
    difference = np.asarray(mine) - np.asarray(other)
    error = max(float(difference.std(ddof=1)) / np.sqrt(len(difference)), 0.02)
    return float(difference.mean() / error)


def _phrase(who: str, score: float, whom: str) -> str:
    if score > CLEAR:
        return f"{who} predicts the measurements clearly better than {whom}"
    if score < -CLEAR:
        return f"{who} predicts the measurements clearly worse than {whom}"
    return f"{who} predicts the measurements about as well as {whom}"
