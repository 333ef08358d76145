"""Where a campaign stands: counts, what is left, whether the prior helps, whether to stop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign.campaign import Campaign
from engram.campaign.companion import spatial_evidence
from engram.campaign.correction import corrected
from engram.campaign.decide import SLACK, ranked
from engram.campaign.fitness import base_rate_evidence, prior_fitness
from engram.campaign.remaining import Evidence, Remaining, remaining
from engram.campaign.state import State
from engram.policies.base import Policy

NEXT = 10
SPATIAL = "gp"
"""The policy whose forecasts stand for a plain spatial model."""


def hits_of(state: State) -> NDArray[np.float64]:
    """(n,) 1 where target was found, in the order of the log."""
    return np.array([float(o.outcome > 0) for o in state.observations])


def what_is_left(state: State, policy: Policy, level: float) -> Remaining:
    """The number of target cells not yet found."""
    seen = Evidence(
        state.grid,
        state.searchable(),
        np.array(list(state.measurements), np.intp),
        hits_of(state),
        np.array(policy.log.forecast),
        policy.current_scores().probability,
    )
    return remaining(seen, level=level)


def status(campaign: Campaign, *, level: float = 0.8, ahead: int = NEXT) -> dict[str, Any]:
    """Everything ``engram campaign status`` shows, as JSON."""
    state, at = campaign.refresh(), campaign.now()
    policy = campaign.policy()
    left = what_is_left(state, policy, level)
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
    chances = corrected(
        policy.current_scores().probability, np.array(policy.log.forecast), hits_of(state)
    )
    out["remaining_by_policy"] = round(float(chances[state.searchable()].sum()), 2)
    order = _affordable(state, ranked(state, policy, campaign.wish(1), at), ahead, at)
    out["next"] = {
        "measurements": len(order),
        "expected_finds": round(float(chances[order].sum()), 3),
    }
    out["advice"] = _advice(state, out)
    out["prior_fitness"] = _fitness(campaign, state, policy)
    if state.spec.budget_kind == "measurements":
        out["budget"], out["budget_left"] = int(out["budget"]), round(out["budget_left"])
    return out


def _affordable(state: State, order: list[int], count: int, at: float) -> list[int]:
    """The first ``count`` of these cells that the budget left pays for; dearer ones are passed
    over, as when cells are handed out."""
    left = state.budget_left(at) + SLACK
    taken: list[int] = []
    for index in order:
        if len(taken) == count:
            break
        if (price := state.spec.cost_of(index)) <= left:
            taken.append(index)
            left -= price
    return taken


def _advice(state: State, facts: dict[str, Any]) -> dict[str, Any]:
    count, finds = facts["next"]["measurements"], facts["next"]["expected_finds"]
    rate, limit = finds / count if count else 0.0, state.spec.stop_yield
    if facts["budget_left"] <= 0:
        words = "The budget is spent."
        if facts["asked"]:
            words = f"Nothing more to hand out: the {facts['asked']} cell(s) out take the rest."
    elif count == 0:
        words = "No cell is left to hand out."
    elif rate < limit:
        words = (
            f"Stop: the next {count} measurements would bring {rate:.3f} finds each, below the "
            f"yield of {limit:g} that was set."
        )
    else:
        words = f"Go on: the next {count} measurements should bring about {finds:.1f} finds."
    return {"stop": not words.startswith("Go on"), "yield": round(rate, 4), "words": words}


def _fitness(campaign: Campaign, state: State, policy: Policy) -> dict[str, Any]:
    spatial = None
    if state.spec.policy != SPATIAL and state.measurements:
        spatial = spatial_evidence(state, campaign.folder)
    return prior_fitness(
        state.spec.policy, policy.log.evidence, spatial, base_rate_evidence(state.observations)
    )
