"""Campaigns: all of them at a glance, a new one, and what one is made of."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Response

from engram.campaign import Campaign
from engram.campaign.beliefs import state_at
from engram.campaign.model import iso
from engram.campaign.status import overview_line
from engram.errors import EngramError, InputError
from engram.server.access import TheCaller, TheVisit, needs
from engram.server.context import Context, IfNoneMatch, TheContext, not_modified
from engram.server.desk import Moment, moment_of
from engram.server.long_answers import long_answer
from engram.server.people import Caller
from engram.server.roles import EVERYWHERE
from engram.server.routing import router
from engram.server.schemas import answers, requests

campaigns = router("/campaigns", ["campaigns"])


@campaigns.get("", response_model=answers.Campaigns, **needs("anybody"))
async def list_campaigns(caller: TheCaller, context: TheContext) -> Any:
    """The campaigns you have a part in."""
    lines = []
    for row in await context.desk.rows():
        role = caller.account.role(row.uid)
        if role is not None:
            try:
                line = (await context.desk.at(row.name, overview_line)).to_dict()
            except EngramError as error:  # damaged, or of a later version: the others are shown
                line = {"name": row.name, "created": iso(row.created), "problem": str(error)}
            lines.append({**line, "uid": row.uid, "role": role})
    return {"campaigns": lines}


@campaigns.post(
    "", response_model=answers.CampaignFacts, status_code=201, **needs("server planner")
)
async def create(
    caller: TheCaller, context: TheContext, body: requests.Create, response: Response
) -> Any:
    """Create a campaign; you own it."""
    if (body.size is None) == (body.area is None):
        raise InputError("give the area: either size, or area")
    blob, area = b"", None
    if body.area is not None:
        blob = json.dumps(body.area.geojson).encode()
        area = {"suffix": ".geojson", "cell_size": body.area.cell_size, "crs": body.area.crs}
    return await made_of(context, caller, body, area, blob, response)


async def made_of(
    context: Context,
    caller: Caller,
    body: requests.Create,
    area: dict[str, Any] | None,
    blob: bytes,
    response: Response,
) -> dict[str, Any]:
    """Have a campaign created of its terms, and of a file (``area``, ``blob``) if there is one."""
    terms = body.model_dump(exclude={"size", "area"})
    height, width = body.size or (1, 1)
    grid: dict[str, Any] = {"height": height, "width": width}
    for name in ("cell", "channels", "range", "closed", "cost", "sides", "transform", "crs"):
        grid[name] = terms.pop(name)
    made, _ = await context.workers.apart(
        "create", {"grid": grid, "area": area, "by": caller.account.name, **terms}, blob
    )
    if caller.account.role(EVERYWHERE) != "owner":
        await context.desk.run(context.people.grant, caller.account.name, made["uid"], "owner")
        context.identities.forget()
    answer = await context.desk.at(
        body.name, lambda campaign: _facts(campaign, "owner", caller.account.name)
    )
    response.headers["Location"] = f"/api/v1/campaigns/{address_of(body.name, made['uid'])}"
    return answer


def address_of(name: str, uid: str) -> str:
    """What stands for a campaign in a path: its name, or its uid where a path cannot hold that."""
    return uid if "/" in name or name in (".", "..") else quote(name)


one = router("/campaigns/{name}", ["campaigns"])


@one.get("", response_model=answers.CampaignFacts, **needs("viewer"))
async def facts(
    visit: TheVisit, context: TheContext, response: Response, if_none_match: IfNoneMatch = None
) -> Any:
    """What a campaign was created with, and what you may do in it."""
    found = await context.desk.at(
        visit.row.name,
        lambda campaign: _facts(campaign, visit.role, visit.account.crew(visit.row.uid)),
    )
    etag = f'"{found["head"]}"'
    response.headers["ETag"] = etag
    return not_modified(if_none_match, etag) or found


def _facts(campaign: Campaign, role: str, crew: str) -> dict[str, Any]:
    state, row = campaign.state, campaign.row
    spec, grid = state.spec, state.grid
    area = {
        "height": grid.height,
        "width": grid.width,
        "channels": grid.channels,
        "cell": list(grid.cell),
        "rows": grid.rows,
        "cols": grid.cols,
        "range": list(grid.range),
        "sides": None if grid.sides is None else list(grid.sides),
        "transform": None if grid.transform is None else list(grid.transform),
        "crs": grid.crs,
    }
    names = ("budget_kind", "policy", "options", "preset", "prior", "seed", "lease", "rank")
    return {
        "name": row.name,
        "uid": row.uid,
        "created": iso(row.created),
        "area": area,
        "budget": state.budget,
        **{name: getattr(spec, name) for name in (*names, "travel", "stop_yield")},
        "crews": {who: list(start) for who, start in spec.crews.items()},
        "detection": spec.detection.to_dict(),
        "layers": [] if spec.layers is None else list(spec.layers.names),
        "belief": spec.layers is not None and spec.layers.belief is not None,
        "role": role,
        "crew": crew,
        "seq": state.seq,
        "head": state.hash,
    }


At = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="After which event; default: the last.")
]


@one.get("/cells", response_model=answers.CellsInForce, **needs("viewer"))
async def cells(
    visit: TheVisit,
    context: TheContext,
    at: At = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """What is in force: measurements, what is out and with whom, what waits, what is closed."""

    def look(campaign: Campaign) -> tuple[Moment, dict[str, Any]]:
        return moment_of(campaign), _cells(campaign, at)

    moment, found = await context.desk.at(visit.row.name, look)
    etag = moment.etag if at is None else f'"{found["head"]}"'
    if same := not_modified(if_none_match, etag):
        return same
    return await long_answer(context.desk, lambda: found, etag)


def _cells(campaign: Campaign, seq: int | None) -> dict[str, Any]:
    state = state_at(campaign, seq)
    at = campaign.now() if seq is None else state.at
    grid = state.grid
    closed = state.base_closed.copy()
    closed[list(state.closed)] = True
    return {
        "seq": state.seq,
        "head": state.hash,
        "at": at,
        "rows": grid.rows,
        "cols": grid.cols,
        "budget": state.budget,
        "budget_left": state.budget_left(at),
        "measured": [
            {
                "cell": list(m.observation.cell),
                "outcome": m.observation.outcome,
                "by": m.who,
                "at": m.at,
                "seq": m.seq,
                "query": m.query,
                "visits": len(state.visits_of(index)),
                "settled": state.is_settled(index),
            }
            for index, m in state.measurements.items()
        ],
        "out": [q.to_dict(at) for q in state.out(at)],
        "waiting": [
            {"cell": list(grid.at(i)), "until": state.waiting[i].until} for i in state.waits(at)
        ],
        "closed": [int(i) for i in closed.nonzero()[0]],
    }
