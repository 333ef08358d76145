"""All campaigns of a database at a glance."""

from __future__ import annotations

from typing import Any

from engram.campaign.campaign import Campaign
from engram.campaign.export import iso
from engram.campaign.storage import Storage
from engram.errors import InputError


def overview(db: str | None = None) -> list[dict[str, Any]]:
    """One line per campaign, without building any policy."""
    storage = Storage(db)
    lines: list[dict[str, Any]] = []
    for row in storage.campaigns():
        try:
            campaign = Campaign(storage, row)
        except InputError as error:  # written by a later version: the others are still shown
            lines.append({"name": row.name, "created": iso(row.created), "problem": str(error)})
            continue
        state, at = campaign.state, campaign.now()
        lines.append(
            {
                "name": row.name,
                "policy": state.spec.policy,
                "told": len(state.measurements),
                "found": sum(o.outcome > 0 for o in state.observations),
                "asked": len(state.pending(at)),
                "budget_left": state.budget_left(at),
                "events": state.seq,
                "created": iso(row.created),
            }
        )
    return lines
