"""Areas before they are campaigns, where cells lie, one cell's story, photos, curves, settings."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import File, Form, Path, Response, UploadFile
from pydantic import ValidationError

from engram.campaign import Campaign
from engram.campaign.export import cells_of, line_of
from engram.campaign.model import Measurement
from engram.campaign.state import State
from engram.errors import InputError, shown
from engram.grid import Cell
from engram.server.access import TheCaller, TheVisit, needs
from engram.server.context import IfNoneMatch, TheContext, not_modified
from engram.server.problems import ProblemError
from engram.server.routes.campaigns import made_of
from engram.server.routes.work import suffix_of
from engram.server.routing import router
from engram.server.schemas import answers, requests
from engram.server.strict_json import parse

AREAS = (".geojson", ".json", ".gpkg", ".kml", ".zip", ".tif", ".tiff")
MASKS = (".png", ".tif", ".tiff", ".npy", ".npz", ".csv", ".txt", ".json")

areas = router("/areas", ["areas"])
CellSize = Annotated[
    str, Form(max_length=30, description="Of a real place, with its unit; none for a mask.")
]


def _area(name: str, cell_size: str, crs: str) -> dict[str, Any]:
    suffix = suffix_of(name, AREAS if cell_size else MASKS, "of an area")
    return {"suffix": suffix, "cell_size": cell_size, "crs": crs}


@areas.post("/preview", response_model=answers.Preview, **needs("server planner"))
async def preview(
    context: TheContext,
    file: Annotated[UploadFile, File(description="Polygons, a raster, or a mask of pixels.")],
    cell_size: CellSize = "",
    crs: Annotated[str, Form(max_length=200)] = "",
    cell: Annotated[str, Form(pattern=r"^\d{1,6},\d{1,6}$", description="Pixels: h,w.")] = "1,1",
) -> Any:
    """What an uploaded area would be cut into."""
    h, w = (int(part) for part in cell.split(","))
    args = {"area": _area(file.filename or "", cell_size, crs), "terms": {"cell": [h, w]}}
    facts, _ = await context.workers.apart("preview", args, await file.read())
    return facts


@areas.post("/drawn", response_model=answers.Preview, **needs("server planner"))
async def drawn(context: TheContext, body: requests.Drawn) -> Any:
    """What a drawn area would be cut into."""
    area = {"suffix": ".geojson", "cell_size": body.cell_size, "crs": body.crs}
    raw = json.dumps(body.geojson).encode()
    facts, _ = await context.workers.apart("preview", {"area": area}, raw)
    return facts


@areas.post(
    "/campaigns",
    response_model=answers.CampaignFacts,
    status_code=201,
    **needs("server planner"),
)
async def create_of_file(
    caller: TheCaller,
    context: TheContext,
    response: Response,
    file: Annotated[UploadFile, File(description="Polygons, a raster, or a mask of pixels.")],
    terms: Annotated[
        str, Form(max_length=100_000, description="As for a campaign, without size and area: JSON.")
    ],
    cell_size: CellSize = "",
    crs: Annotated[str, Form(max_length=200)] = "",
) -> Any:
    """Create a campaign of an uploaded area; you own it."""
    try:
        body = requests.Create.model_validate(parse(terms.encode()))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"terms: field {field} {shown(first['input'])}: {first['msg']}") from error
    if body.size is not None or body.area is not None:
        raise InputError("terms: the file is the area; leave size and area out")
    area = _area(file.filename or "", cell_size, crs)
    return await made_of(context, caller, body, area, await file.read(), response)


# -- in a campaign ---------------------------------------------------------------------------

places = router("/campaigns/{name}", ["places"])
Index = Annotated[int, Path(ge=0, le=2**31 - 1)]


@places.get("/place", response_model=answers.PlaceFacts, **needs("viewer"))
async def place(visit: TheVisit, context: TheContext) -> Any:
    """Where the cells lie on Earth."""
    facts, _ = await context.computed(visit, "place", "place")
    return facts


@places.get("/tours", response_model=answers.Tours, **needs("viewer"))
async def tours(visit: TheVisit, context: TheContext) -> Any:
    """Tours of crews with a cell that is still out."""
    moment = await context.desk.moment(visit.row.name)
    facts, _ = await context.computed(visit, moment, "tours")
    return facts


@places.get("/cells/{row}/{col}", response_model=answers.CellHistory, **needs("viewer"))
async def one_cell(visit: TheVisit, context: TheContext, row: Index, col: Index) -> Any:
    """The story of one cell: every event about it, with notes and photos, and its queries."""
    cell = (row, col)

    def look(campaign: Campaign) -> dict[str, Any]:
        state, at = campaign.state, campaign.now()
        state.grid.index(cell)
        return {
            "cell": list(cell),
            "state": _state_of(state, cell, at),
            "visits": [_visit_of(told) for told in state.visits_of(state.grid.index(cell))],
            "queries": [query.to_dict(at) for query in state.queries_of(cell)],
            "head": state.hash,
        }

    found = await context.desk.at(visit.row.name, look)

    def events() -> list[dict[str, Any]]:
        lines, after = [], 0
        while page := context.desk.storage.page(visit.row, after, 1000):
            after = page[-1].seq
            for event in page:
                if list(cell) in cells_of(event):
                    items = event.payload.get("items", ())
                    mine = [i for i in items if i.get("cell") == list(cell)]
                    facts: dict[str, Any] = next((i["facts"] for i in mine if "facts" in i), {})
                    lines.append({**line_of(event).to_dict(), "facts": facts})
        return lines

    return {**found, "events": await context.desk.run(events)}


def _state_of(state: State, cell: Cell, at: float) -> str:
    index = state.grid.index(cell)
    if state.is_settled(index):
        return "measured"
    if state.is_closed(index):
        return "closed"
    if cell in state.pending(at):
        return "out"
    if index in state.waits(at):
        return "waiting"
    return "visited" if index in state.measurements else "open"


def _visit_of(told: Measurement) -> dict[str, Any]:
    seen = told.observation.detection
    return {
        "outcome": told.observation.outcome,
        "by": told.who,
        "at": told.at,
        "seq": told.seq,
        "query": told.query,
        "detection": None if seen is None else seen.chance,
        "false_alarm": None if seen is None else seen.false_alarm,
    }


@places.post("/photos", response_model=answers.Photo, status_code=201, **needs("crew"))
async def add_photo(
    visit: TheVisit,
    context: TheContext,
    file: Annotated[UploadFile, File(description="A photo: JPEG, PNG, WebP.")],
) -> Any:
    """Keep a photo, made smaller and drawn anew; name it in the tell it belongs to."""
    data, uid = await file.read(), visit.row.uid
    return await context.desk.run(context.photos.add, uid, visit.account.name, data)


@places.get(
    "/photos/{photo}.jpg",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}, "description": "A photo."}},
    **needs("viewer"),
)
async def photo(
    visit: TheVisit,
    context: TheContext,
    photo: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A photo that was kept."""
    if same := not_modified(if_none_match, f'"{photo}"'):
        return same
    data = await context.desk.run(context.photos.get, visit.row.uid, photo)
    headers = {"ETag": f'"{photo}"', "Cache-Control": "private, max-age=31536000, immutable"}
    return Response(data, media_type="image/jpeg", headers=headers)


@places.get("/page", response_model=answers.PageSettings, **needs("viewer"))
async def page_settings(visit: TheVisit, context: TheContext) -> Any:
    """What the page of the campaign shows beside it."""
    return await context.desk.run(context.page_settings.get, visit.row.uid)


@places.put("/page", response_model=answers.PageSettings, **needs("owner"))
async def set_page(visit: TheVisit, context: TheContext, body: answers.PageSettings) -> Any:
    """Say what the page of the campaign shows beside it."""
    if body.tiles:
        parts = urlsplit(body.tiles)
        named = all(mark in body.tiles for mark in ("{z}", "{x}", "{y}"))
        if (
            parts.scheme != "https"
            or not parts.hostname
            or not named
            or set(body.tiles) & set("\"' ;,")
        ):
            raise ProblemError(422, "tiles: give an https URL with {z}, {x} and {y} in it")
    if body.picture:
        await context.desk.run(context.photos.get, visit.row.uid, body.picture)
    await context.desk.run(context.page_settings.set, visit.row.uid, body.model_dump())
    return body
