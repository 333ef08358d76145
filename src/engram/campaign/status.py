"""Where a campaign stands: counts, what is left, whether the prior helps, whether to stop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign.advice import advise, looked_at
from engram.campaign.campaign import Campaign
from engram.campaign.companion import spatial_evidence
from engram.campaign.correction import corrected
from engram.campaign.decide import SLACK, ranked
from engram.campaign.fitness import base_rate_evidence, prior_fitness
from engram.campaign.prospect import Prospect, prospect
from engram.campaign.remaining import Evidence, distribution, summary
from engram.campaign.state import State
from engram.policies.base import Policy

NEXT = 10
SPATIAL = "gp"
"""The policy whose forecasts stand for a plain spatial model."""


def hits_of(state: State) -> NDArray[np.float64]:
    """(n,) 1 where target was found, in the order of the log."""
    return np.array([float(o.outcome > 0) for o in state.observations])


def evidence(state: State, policy: Policy) -> Evidence:
    """What was measured and what the policy believes."""
    return Evidence(
        state.grid,
        state.searchable(),
        np.array(list(state.measurements), np.intp),
        hits_of(state),
        np.array(policy.log.forecast),
        policy.current_scores().probability,
    )


def status(campaign: Campaign, *, level: float = 0.8, ahead: int = NEXT) -> dict[str, Any]:
    """Everything ``engram campaign status`` shows, as JSON."""
    state, at = campaign.refresh(), campaign.now()
    policy = campaign.policy()
    seen = evidence(state, policy)
    masses = distribution(seen)
    left = summary(masses, level)
    states = [query.state_at(at) for query in state.queries.values()]
    out: dict[str, Any] = {
        "name": campaign.name,
        "policy": state.spec.policy,
        "prior": state.spec.prior,
        "told": len(state.measurements),
        "asked": len(state.pending(at)),
        "failed": states.count("failed"),
        "expired": states.count("expired"),
        "queries": len(states),
        "budget": state.budget,
        "budget_kind": state.spec.budget_kind,
        "budget_left": state.budget_left(at),
        "found": int(hits_of(state).sum()),
        "closed": int(state.grid.n_cells - len(state.measurements) - state.searchable().sum()),
        "remaining": {k: v for k, v in left.to_dict().items() if k != "chance"},
        "chance_remaining": left.chance,
        "events": state.seq,
    }
    chances = corrected(seen.probability, seen.forecast, seen.hits)
    out["remaining_by_policy"] = round(float(chances[seen.searchable].sum()), 2)
    count = _affordable(state, ranked(state, policy, campaign.wish(1), at), at)
    rest, soon = (prospect(seen, masses, n, level=level) for n in (count, min(count, ahead)))
    out["prospect"] = rest.to_dict()
    out["next"] = {"measurements": soon.measurements, "expected_finds": round(soon.expected, 3)}
    out["advice"] = _advice(state, out, seen, rest, soon)
    out["prior_fitness"] = _fitness(campaign, state, policy)
    if state.spec.budget_kind == "measurements":
        out["budget"], out["budget_left"] = int(out["budget"]), round(out["budget_left"])
    return out


def _affordable(state: State, order: list[int], at: float) -> int:
    """How many of these cells the budget left pays for; dearer ones are passed over, as when
    cells are handed out."""
    left, count = state.budget_left(at) + SLACK, 0
    for index in order:
        if (price := state.spec.cost_of(index)) <= left:
            count += 1
            left -= price
    return count


def _advice(
    state: State, facts: dict[str, Any], seen: Evidence, rest: Prospect, soon: Prospect
) -> dict[str, Any]:
    if facts["budget_left"] <= 0:
        words = "The budget is spent."
        if facts["asked"]:
            words = f"Nothing more to hand out: the {facts['asked']} cell(s) out take the rest."
    elif rest.measurements == 0:
        words = "No cell is left to hand out."
    else:
        share = looked_at(state.grid, seen.cells, seen.searchable)
        found = advise(rest, soon, state.spec.stop_yield, share)
        return {**found.to_dict(), "yield": round(soon.expected / max(soon.measurements, 1), 4)}
    return {"stop": True, "words": words}


def _fitness(campaign: Campaign, state: State, policy: Policy) -> dict[str, Any]:
    spatial = None
    if state.spec.policy != SPATIAL and state.measurements:
        spatial = spatial_evidence(state, campaign.folder)
    return prior_fitness(
        state.spec.policy, policy.log.evidence, spatial, base_rate_evidence(state.observations)
    )
