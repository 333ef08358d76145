"""Looking: status, peek, explanations, the log, beliefs as numbers and pictures, exports, news."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from engram.campaign import Campaign, in_words
from engram.campaign.export import line_of
from engram.errors import InputError, NotFoundError
from engram.server.access import TheVisit, Visit, needs
from engram.server.context import Context, IfNoneMatch, TheContext, not_modified
from engram.server.desk import Moment
from engram.server.long_answers import long_answer
from engram.server.pictures import TILE, coloured, tile
from engram.server.problems import ProblemError
from engram.server.routes.campaigns import At
from engram.server.routing import router
from engram.server.schemas import answers, standing

views = router("/campaigns/{name}", ["views"])

PAGE = 500
"""Events in one answer, at most 5,000."""
FORMS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
    "gpkg": "application/geopackage+sqlite3",
    "geojson": "application/geo+json",
    "kml": "application/vnd.google-earth.kml+xml",
    "gpx": "application/gpx+xml",
    "tif": "image/tiff",
}
"""Exports and their types; those of maps need a campaign with a place."""
DECIDED = {"probability", "doubt", "total"}
"""Layers for which nothing has to be imagined."""
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
Limit = Annotated[float | None, Query(ge=-1e18, le=1e18)]


@views.get(
    "/status",
    response_model=standing.Status,
    response_model_exclude_unset=True,
    **needs("viewer"),
)
async def status(
    visit: TheVisit,
    context: TheContext,
    response: Response,
    level: Annotated[float, Query(gt=0, lt=1)] = 0.8,
    ahead: Annotated[int, Query(ge=1, le=100_000, alias="next")] = 10,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Counts, what is left, whether the prior helps, and whether to stop."""
    moment = await context.desk.moment(visit.row.name)
    if same := not_modified(if_none_match, moment.etag):
        return same
    facts, _ = await context.computed(visit, moment, "status", level=level, ahead=ahead)
    response.headers["ETag"] = _etag(facts["head"], moment)
    return facts["status"]


def _etag(head: str, moment: Moment) -> str:
    return moment.etag if head == moment.hash else f'"{head}"'


@views.get("/peek", response_model=answers.Suggestions, **needs("viewer"))
async def peek(
    visit: TheVisit,
    context: TheContext,
    response: Response,
    n: Annotated[int, Query(ge=1, le=10_000)] = 10,
    by: Annotated[str | None, Query(max_length=200)] = None,
    rank: Literal["score", "per-cost"] | None = None,
    start: Annotated[str | None, Query(pattern=r"^\d{1,9},\d{1,9}$")] = None,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """The cells that would be handed out; nothing is reserved."""
    moment = await context.desk.moment(visit.row.name)
    if same := not_modified(if_none_match, moment.etag):
        return same
    place = None if start is None else tuple(int(part) for part in start.split(","))
    facts, _ = await context.computed(
        visit, moment, "peek", n=n, by=by or "", rank=rank, start=place
    )
    response.headers["ETag"] = _etag(facts["head"], moment)
    return facts


@views.get("/queries/{query}", response_model=answers.Explanation, **needs("viewer"))
async def explain(visit: TheVisit, context: TheContext, query: Number) -> Any:
    """Why a cell was suggested, as it was kept then, with small maps around it."""

    def look(campaign: Campaign) -> dict[str, Any]:
        kept = campaign.explain(query)
        return {**kept.to_dict(), "words": in_words(kept)}

    return await context.desk.at(visit.row.name, look)


@views.get(
    "/queries/{query}/picture.png",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The maps as a picture."}},
    **needs("viewer"),
)
async def picture(visit: TheVisit, context: TheContext, query: Number) -> Response:
    """The maps around a suggested cell, and samples of it, as a picture."""
    _, png = await context.computed(visit, f"query {query}", "picture", slow=True, query=query)
    return Response(png, media_type="image/png")


@views.get("/history", response_model=answers.History, **needs("viewer"))
async def history(
    visit: TheVisit,
    context: TheContext,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = PAGE,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The events of the log behind a number."""
    moment = await context.desk.moment(visit.row.name)
    etag = f'"{moment.hash}"'
    if same := not_modified(if_none_match, etag):
        return same

    def look() -> dict[str, Any]:
        page = context.desk.storage.page(visit.row, after, limit)
        lines = [{"via": "", **line_of(event).to_dict()} for event in page]
        more = bool(lines) and lines[-1]["seq"] < moment.seq
        return {"events": lines, "more": more, "head": moment.hash}

    return await long_answer(context.desk, look, etag)


@views.get(
    "/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events: log, hello, reset."}
    },
    **needs("viewer"),
)
async def events(
    request: Request,
    visit: TheVisit,
    context: TheContext,
    after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    """What is new, as it happens; Last-Event-ID (or ``after``) goes on where you were."""
    place = after
    if last_event_id:
        if not last_event_id.isdigit():
            raise InputError(f"Last-Event-ID {last_event_id!r}: give the number of an event")
        place = int(last_event_id)

    async def allowed() -> bool:
        try:
            caller = await context.identities.caller(request)
        except ProblemError:
            return False
        return caller.account.role(visit.row.uid) is not None

    return StreamingResponse(
        context.live.listen(visit.row, place, allowed),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@views.post("/verify", response_model=answers.Verification, **needs("viewer"))
async def verify(visit: TheVisit, context: TheContext) -> Any:
    """Replay the whole log: does every suggestion come out again?"""
    moment = await context.desk.moment(visit.row.name)
    facts, _ = await context.computed(visit, moment, "verify")
    return facts


@views.get("/curves", response_model=answers.Curves, **needs("viewer"))
async def curves(
    visit: TheVisit,
    context: TheContext,
    response: Response,
    level: Annotated[float, Query(gt=0, lt=1)] = 0.8,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Finds over the measurements, and what was left to find at some moments."""
    moment = await context.desk.moment(visit.row.name)
    etag = f'"{moment.hash}"'
    if same := not_modified(if_none_match, etag):
        return same
    facts, _ = await context.computed(visit, f"head {moment.hash}", "curves", level=level)
    response.headers["ETag"] = f'"{facts["head"]}"'
    return facts


async def _beliefs(
    context: Context, visit: Visit, at: int | None, imagined: bool
) -> tuple[dict[str, Any], np.ndarray[Any, np.dtype[np.float32]]]:
    moment = await context.desk.moment(visit.row.name)
    if at is None or at == moment.seq:
        facts, raw = await context.computed(
            visit, f"head {moment.hash}", "beliefs", at=None, imagined=imagined
        )
    else:
        if at > moment.seq:
            raise NotFoundError(f"there is no event {at}; the log has {moment.seq}")
        past = await context.desk.run(context.desk.storage.event, visit.row, at)
        mark = f"head {at if past is None else past.hash}"
        facts, raw = await context.computed(
            visit, mark, "beliefs", slow=True, at=at, imagined=imagined
        )
    shape = (len(facts["layers"]), *facts["shape"])
    return facts, np.frombuffer(raw, "<f4").reshape(shape)


@views.get("/beliefs", response_model=answers.Layers, **needs("viewer"))
async def beliefs(
    visit: TheVisit,
    context: TheContext,
    at: At = None,
    layers: Annotated[
        str | None, Query(max_length=500, description="Names with commas; default: all.")
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Maps of all cells: chance of target, doubt, expected content, the terms of the score."""
    names = None if layers is None else layers.split(",")
    facts, tables = await _beliefs(context, visit, at, names is None or not set(names) <= DECIDED)
    etag = f'"{facts["hash"]}"'
    if same := not_modified(if_none_match, etag):
        return same
    wanted = facts["layers"] if names is None else [_known(facts, name) for name in names]

    def rows() -> dict[str, Any]:
        found = {name: tables[facts["layers"].index(name)] for name in wanted}
        return {
            "seq": facts["seq"],
            "head": facts["hash"],
            "rows": facts["shape"][0],
            "cols": facts["shape"][1],
            "rule": facts["rule"],
            "alpha": facts["alpha"],
            "layers": {name: _numbers(table) for name, table in found.items()},
        }

    return await long_answer(context.desk, rows, etag)


def _known(facts: dict[str, Any], layer: str) -> str:
    if layer not in facts["layers"]:
        raise NotFoundError(f"there is no layer {layer!r}; there are {', '.join(facts['layers'])}")
    return layer


async def _believed(
    context: Context, visit: Visit, at: int | None, layer: str
) -> tuple[dict[str, Any], str, np.ndarray[Any, np.dtype[np.float32]]]:
    """What is known of a moment, its ETag, and one layer of it."""
    facts, tables = await _beliefs(context, visit, at, layer not in DECIDED)
    return facts, f'"{facts["hash"]}"', tables[facts["layers"].index(_known(facts, layer))]


def _numbers(table: Any) -> list[list[float | None]]:
    rows = table.astype(np.float64).round(7)
    whole = bool(np.isfinite(rows).all())
    found = (row.tolist() for row in rows)  # a row at a time: others want their turn as well
    return [row if whole else [v if isfinite(v) else None for v in row] for row in found]


PNG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}}, "description": "A picture."}
}


@views.get("/beliefs/{layer}.png", response_class=Response, responses=PNG, **needs("viewer"))
async def belief_map(
    visit: TheVisit,
    context: TheContext,
    layer: Annotated[str, Path(max_length=50)],
    at: At = None,
    low: Limit = None,
    high: Limit = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A map, one pixel per cell, coloured from ``low`` to ``high``."""
    _, etag, table = await _believed(context, visit, at, layer)
    if same := not_modified(if_none_match, etag):
        return same
    png, limits = await context.desk.run(coloured, table, low, high)
    scale = {"X-Engram-Low": f"{limits[0]:.9g}", "X-Engram-High": f"{limits[1]:.9g}"}
    return Response(png, media_type="image/png", headers={"ETag": etag, **scale})


@views.get(
    "/beliefs/{layer}/{zoom}/{x}/{y}.png", response_class=Response, responses=PNG, **needs("viewer")
)
async def belief_tile(
    visit: TheVisit,
    context: TheContext,
    layer: Annotated[str, Path(max_length=50)],
    zoom: Annotated[int, Path(ge=0, le=8, description="A cell is 2^zoom pixels wide.")],
    x: Annotated[int, Path(ge=0, le=2**31 - 1)],
    y: Annotated[int, Path(ge=0, le=2**31 - 1)],
    at: At = None,
    low: Limit = None,
    high: Limit = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A tile of 256 pixels of a map; outside the area it is transparent."""
    facts, etag, table = await _believed(context, visit, at, layer)
    if same := not_modified(if_none_match, etag):
        return same
    if x * TILE > facts["shape"][1] << zoom or y * TILE > facts["shape"][0] << zoom:
        raise NotFoundError(f"tile {x}, {y} lies outside the area at zoom {zoom}")
    png = await context.desk.run(tile, table, zoom, x, y, low, high)
    return Response(png, media_type="image/png", headers={"ETag": etag})


@views.get(
    "/export.{form}",
    response_class=Response,
    responses={200: {"content": {kind: {} for kind in FORMS.values()}, "description": "A file."}},
    **needs("viewer"),
)
async def export(
    visit: TheVisit,
    context: TheContext,
    form: Literal["json", "csv", "npz", "gpkg", "geojson", "kml", "gpx", "tif"],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The whole log (json), the measurements in force (csv, npz), or files for maps."""
    moment = await context.desk.moment(visit.row.name)
    if same := not_modified(if_none_match, moment.etag):
        return same
    _, data = await context.computed(visit, moment, "export", form=form)
    headers = {
        "ETag": moment.etag,
        "Content-Disposition": f'attachment; filename="campaign.{form}"',
    }
    return Response(data, media_type=FORMS[form], headers=headers)
