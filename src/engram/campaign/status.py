"""Where a campaign stands: counts, what is left, whether the prior helps, whether to stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.campaign.advice import TARGETS, Advice, advise, looked_at
from engram.campaign.answers import CampaignLine, Outline, Status, Targets, Trust
from engram.campaign.campaign import Campaign
from engram.campaign.companion import spatial_evidence
from engram.campaign.correction import corrected
from engram.campaign.decide import SLACK, Standing, standing
from engram.campaign.fitness import Fitness, base_rate_evidence, prior_fitness
from engram.campaign.model import iso
from engram.campaign.prospect import Prospect, prospect
from engram.campaign.remaining import SearchSoFar, distribution, summary
from engram.campaign.state import State
from engram.campaign.storage import Storage
from engram.campaign.store import LogStore
from engram.campaign.untouched import untouched
from engram.errors import EngramError
from engram.layer_effects import Effect
from engram.policies.base import Policy
from engram.policies.separate import extent_of, groups_of

NEXT = 10
SPATIAL = "gp"
"""The policy whose forecasts stand for a plain spatial model."""
WIDE = 0.95
"""Level of the wider interval of targets that nobody has touched."""


def so_far(state: State, policy: Policy) -> SearchSoFar:
    """What was measured and what the policy believes."""
    return SearchSoFar.of(
        policy.observations,
        state.searchable(),
        np.array(policy.log.forecast),
        policy.current_scores().probability,
    )


def status(campaign: Campaign, *, level: float = 0.8, ahead: int = NEXT) -> Status:
    """Everything ``engram campaign status`` shows."""
    state, at = campaign.refresh(), campaign.now()
    policy = campaign.policy()
    seen = so_far(state, policy)
    masses = distribution(seen)
    states = [query.state_at(at) for query in state.queries.values()]
    budget, left = state.budget, state.budget_left(at)
    if state.spec.budget_kind == "measurements":
        budget, left = int(budget), round(left)
    chances = corrected(seen.probability, seen.forecast, seen.hits)
    count = _affordable(state, standing(state, policy, campaign.wish(1), at), at)
    counts = (count, min(count, ahead))
    rest, soon = (prospect(seen, masses, n, level=level) for n in counts)
    targets = _targets(state, policy, masses, counts, level)
    return Status(
        name=campaign.name,
        policy=state.spec.policy,
        prior=state.spec.prior,
        told=len(state.visits),
        asked=len(state.pending(at)),
        failed=states.count("failed"),
        expired=states.count("expired"),
        queries=len(states),
        budget=budget,
        budget_kind=state.spec.budget_kind,
        budget_left=left,
        found=state.found,
        closed=_closed(state),
        remaining=summary(masses, level),
        events=state.seq,
        remaining_by_policy=round(float(chances[seen.searchable].sum()), 2),
        prospect=rest,
        next=soon,
        advice=_advice(state, at, seen, rest, soon, targets),
        prior_fitness=_fitness(campaign, state, policy),
        layers=effects_of(policy),
        detection=_trust(policy, seen),
        targets=targets,
    )


def _targets(
    state: State, policy: Policy, masses: NDArray[np.float64], counts: tuple[int, int], level: float
) -> Targets | None:
    """Separate targets, where the campaign is after these.

    masses : (m + 1,) probabilities of 0, ..., m target cells left
    counts : measurements left, and the next few
    """
    options = state.spec.options
    if options.get("goal", "cells") == "cells":
        return None
    seen, given = policy.observations, options.get("extent", 0.0)
    finds, shares = seen.indices[seen.outcomes > 0], seen.shares
    extent = given or (extent_of(shares[shares > 0]) if len(finds) else None)
    ways = untouched(seen, state.searchable(), given)
    left = ways.left(masses)
    rest, soon = (ways.prospect(left, n, level=level) for n in counts)
    return Targets(
        groups_of(state.grid, finds),
        None if extent is None else round(extent, 2),
        round(ways.apart, 2),
        summary(left, level),
        summary(left, WIDE),
        rest,
        soon,
    )


def _trust(policy: Policy, seen: SearchSoFar) -> Trust | None:
    """How far visits are trusted; nothing where all are certain."""
    detection, open_again = policy.observations.detection, seen.unsure
    if detection.perfect and not open_again.any():
        return None
    return Trust(detection, int(open_again.sum()), float(seen.probability[open_again].sum()))


def effects_of(policy: Policy) -> list[Effect]:
    """What the layers are believed to do; nothing without layers."""
    model = policy.layered()
    return [] if model is None else model.effects()


def _closed(state: State) -> int:
    """Cells that nobody may measure and nobody has."""
    closed = state.base_closed.copy()
    closed[list(state.closed)] = True
    closed[list(state.measurements)] = False
    return int(closed.sum())


def _affordable(state: State, stand: Standing, at: float) -> int:
    """How many of the cells the budget left pays for, the best first; dearer ones are passed over,
    as when cells are handed out."""
    left, count = state.budget_left(at) + SLACK, 0
    if state.spec.budget_kind == "measurements":
        return min(max(int(left), 0), int(stand.available.sum()))
    for index in stand.order():
        if (price := state.spec.cost_of(index)) <= left:
            count += 1
            left -= price
    return count


def _advice(
    state: State,
    at: float,
    seen: SearchSoFar,
    rest: Prospect,
    soon: Prospect,
    targets: Targets | None,
) -> Advice:
    if state.budget_left(at) <= 0:
        out = len(state.pending(at))
        spent = f"Nothing more to hand out: the {out} cell(s) out take the rest."
        return Advice(True, spent if out else "The budget is spent.")
    if rest.measurements == 0:
        return Advice(True, "No cell is left to hand out.")
    share = looked_at(state.grid, seen.cells, seen.searchable)
    if targets is not None:
        return advise(targets.prospect, targets.next, state.spec.stop_yield, share, TARGETS)
    return advise(rest, soon, state.spec.stop_yield, share)


def _fitness(campaign: Campaign, state: State, policy: Policy) -> Fitness:
    spatial = None
    if state.spec.policy != SPATIAL and state.measurements:
        spatial = spatial_evidence(state, campaign.folder)
    groups = state.groups()
    base, first = base_rate_evidence(groups), len(groups[0]) if groups else 0
    return prior_fitness(state.spec.policy, policy.log.evidence, spatial, base, first)


def outline(campaign: Campaign, mask: str | None = None, place: str | None = None) -> Outline:
    """What a campaign was created with."""
    spec, grid = campaign.state.spec, campaign.state.spec.grid
    return Outline(
        campaign.name,
        [grid.rows, grid.cols],
        len(grid.open_cells),
        mask,
        spec.budget,
        spec.budget_kind,
        spec.policy,
        spec.options,
        spec.prior,
        spec.seed,
        campaign.storage.place,
        grid.crs,
        place,
    )


def overview(db: str | LogStore | None = None) -> list[CampaignLine]:
    """All campaigns of a database at a glance, without building any policy."""
    storage = Storage(db)
    lines: list[CampaignLine] = []
    for row in storage.campaigns():
        created = iso(row.created)
        try:
            lines.append(overview_line(Campaign(storage, row)))
        except EngramError as error:  # damaged, or written by a later version: the others are shown
            lines.append(CampaignLine(row.name, created, problem=str(error)))
    return lines


def overview_line(campaign: Campaign) -> CampaignLine:
    """A campaign that is up to date, at a glance."""
    state, at = campaign.state, campaign.now()
    return CampaignLine(
        campaign.name,
        iso(campaign.row.created),
        state.spec.policy,
        told=len(state.visits),
        found=state.found,
        asked=len(state.pending(at)),
        budget_left=state.budget_left(at),
        events=state.seq,
    )
