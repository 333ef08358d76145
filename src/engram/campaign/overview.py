"""All campaigns of a database at a glance."""

from __future__ import annotations

from typing import Any

from engram.campaign.campaign import Campaign
from engram.campaign.model import iso
from engram.campaign.storage import Storage
from engram.errors import EngramError


def overview(db: str | None = None) -> list[dict[str, Any]]:
    """One line per campaign, without building any policy."""
    storage = Storage(db)
    lines: list[dict[str, Any]] = []
    for row in storage.campaigns():
        try:
            lines.append(_line(Campaign(storage, row)))
        except EngramError as error:  # damaged, or written by a later version: the others are shown
            lines.append({"name": row.name, "created": iso(row.created), "problem": str(error)})
    return lines


def _line(campaign: Campaign) -> dict[str, Any]:
    state, at = campaign.state, campaign.now()
    return {
        "name": campaign.name,
        "policy": state.spec.policy,
        "told": len(state.measurements),
        "found": sum(o.outcome > 0 for o in state.observations),
        "asked": len(state.pending(at)),
        "budget_left": state.budget_left(at),
        "events": state.seq,
        "created": iso(campaign.row.created),
    }
