"""Asking, telling and everything else that is written to a campaign's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import File, Form, Response, UploadFile

from engram.campaign import Campaign
from engram.campaign.files import content_from_values, default_content
from engram.errors import InputError, shown
from engram.observation import Observation
from engram.server.access import TheVisit, Visit, needs
from engram.server.context import (
    Context,
    IfMatch,
    KeyHeader,
    TheContext,
    expected_head,
    head_of,
    one_key,
)
from engram.server.routing import router
from engram.server.schemas import answers, requests

FILES = (".csv", ".tsv", ".txt", ".json", ".npz", ".gpx", ".geojson")

work = router("/campaigns/{name}", ["work"])


async def record(
    context: Context,
    visit: Visit,
    condition: str | None,
    request: Callable[[Campaign], Any],
    response: Response,
) -> dict[str, Any]:
    """Have a request written to the log; its receipt, with the log's new head."""
    expected = expected_head(condition)

    def write(campaign: Campaign) -> dict[str, Any]:
        with campaign.requested(via=visit.account.name, head=expected):
            receipt = request(campaign)
        return {**receipt.to_dict(), "head": head_of(campaign)}

    answer = await context.desk.at(visit.row.name, write, fresh=False)
    context.written(visit)
    response.headers["ETag"] = f'"{answer["head"]}"'
    return answer


@work.post("/ask", response_model=answers.Queries, **needs("crew"))
async def ask(
    visit: TheVisit,
    context: TheContext,
    body: requests.Ask,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Hand out cells to measure next and reserve their budget."""
    facts, _ = await context.workers.do(
        "ask",
        visit.row.name,
        visit.row.uid,
        n=body.n,
        by=visit.name_for(body.by),
        lease=body.lease,
        rank=body.rank,
        start=body.start,
        outing=None if body.outing is None else body.outing.model_dump(),
        key=one_key(body.key, key),
        via=visit.account.name,
        head=expected_head(if_match),
    )
    context.written(visit)
    response.headers["ETag"] = f'"{facts["head"]}"'
    return facts


@work.post("/tell", response_model=answers.Receipt, **needs("crew"))
async def tell(
    visit: TheVisit,
    context: TheContext,
    body: requests.Tell,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Record one measurement, whether the cell was asked for or not."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    await check_photos(context, visit, [body])

    def request(campaign: Campaign) -> Any:
        observation = _observation(campaign, body, "")
        return campaign.tell_many([observation], by=by, key=given, facts=[_beside(body)])

    return await record(context, visit, if_match, request, response)


@work.post("/tell-many", response_model=answers.Receipt, **needs("crew"))
async def tell_many(
    visit: TheVisit,
    context: TheContext,
    body: requests.TellMany,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Record several measurements, all of them or none."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    await check_photos(context, visit, body.items)

    def request(campaign: Campaign) -> Any:
        labels = [f"item {i}: " for i in range(1, len(body.items) + 1)]
        items = [_observation(campaign, o, at) for o, at in zip(body.items, labels, strict=True)]
        facts = [_beside(item) for item in body.items]
        return campaign.tell_many(items, by=by, key=given, labels=labels, facts=facts)

    return await record(context, visit, if_match, request, response)


@work.post("/tell-file", response_model=answers.Receipt, **needs("crew"))
async def tell_file(
    visit: TheVisit,
    context: TheContext,
    response: Response,
    file: Annotated[UploadFile, File(description="CSV, JSON, NPZ, GPX or GeoJSON.")],
    by: Annotated[str | None, Form(max_length=200)] = None,
    key: Annotated[str | None, Form(min_length=1, max_length=200)] = None,
    crs: Annotated[str, Form(max_length=200)] = "",
    combine: Annotated[Literal["any", "share", "mean"], Form()] = "any",
    fix: Annotated[bool, Form()] = False,
    detection: Annotated[
        float | None, Form(gt=0, le=1, description="Of visits that do not say so themselves.")
    ] = None,
    false_alarm: Annotated[float | None, Form(ge=0, lt=1)] = None,
    half_life: Annotated[
        float | None, Form(gt=0, le=3.2e10, description="Seconds; dated measurements lose half.")
    ] = None,
    if_match: IfMatch = None,
    key_header: KeyHeader = None,
) -> Any:
    """Record the measurements of a file, all of them or none."""
    facts, _ = await context.workers.do(
        "tell_file",
        visit.row.name,
        visit.row.uid,
        blob=await file.read(),
        suffix=suffix_of(file.filename or "", FILES, "of measurements"),
        by=visit.name_for(by),
        key=one_key(key, key_header),
        crs=crs,
        combine=combine,
        fix=fix,
        detection=detection,
        false_alarm=false_alarm,
        half_life=half_life,
        via=visit.account.name,
        head=expected_head(if_match),
    )
    context.written(visit)
    response.headers["ETag"] = f'"{facts["head"]}"'
    return facts


def suffix_of(name: str, known: tuple[str, ...], what: str) -> str:
    """The ending of an upload's name; nothing else of that name is used."""
    suffix = PurePath(name.replace("\\", "/")).suffix.lower()
    if suffix not in known:
        raise InputError(f"file {shown(name)}: give a file {what} ({', '.join(known)})")
    return suffix


def _beside(item: requests.Measurement) -> dict[str, str]:
    """What is kept in the log with a measurement."""
    facts = {"note": item.note, "photo": item.photo or ""}
    return {name: text for name, text in facts.items() if text}


async def check_photos(
    context: Context, visit: Visit, items: Sequence[requests.Measurement]
) -> None:
    """A photo that a measurement names has to be there."""
    for photo in {item.photo for item in items if item.photo}:
        await context.desk.run(context.photos.get, visit.row.uid, photo)


def _observation(campaign: Campaign, item: requests.Measurement, label: str) -> Observation:
    grid = campaign.grid
    try:
        if item.value is None:
            content = default_content(grid, item.outcome)
        else:
            content = content_from_values(grid, item.value)
        row, col = item.cell
        seen = campaign.seen_by(item.detection, item.false_alarm)
        return Observation.checked(grid, (row, col), content, item.outcome, item.noise, seen)
    except InputError as error:
        raise InputError(f"{label}{error}") from error


@work.post("/fail", response_model=answers.Receipt, **needs("crew"))
async def fail(
    visit: TheVisit,
    context: TheContext,
    body: requests.Fail,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Report a cell that could not be measured: try again later, or never."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    cell = None if body.cell is None else (body.cell[0], body.cell[1])

    def request(campaign: Campaign) -> Any:
        return campaign.fail(
            query=body.query, cell=cell, retry=body.retry, reason=body.reason, by=by, key=given
        )

    return await record(context, visit, if_match, request, response)


@work.post("/correct", response_model=answers.Receipt, **needs("planner"))
async def correct(
    visit: TheVisit,
    context: TheContext,
    body: requests.Correct,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Replace values of a measurement; the old ones stay in the log."""
    by, given = visit.name_for(body.by), one_key(body.key, key)

    def request(campaign: Campaign) -> Any:
        content = None if body.value is None else content_from_values(campaign.grid, body.value)
        return campaign.correct(
            (body.cell[0], body.cell[1]),
            outcome=body.outcome,
            content=content,
            noise=body.noise,
            reason=body.reason,
            by=by,
            key=given,
        )

    return await record(context, visit, if_match, request, response)


@work.post("/retract", response_model=answers.Receipt, **needs("planner"))
async def retract(
    visit: TheVisit,
    context: TheContext,
    body: requests.Retract,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Withdraw a measurement; it stays in the log."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    cell = body.cell[0], body.cell[1]

    def request(campaign: Campaign) -> Any:
        return campaign.retract(cell, reason=body.reason, by=by, key=given)

    return await record(context, visit, if_match, request, response)


@work.post("/close", response_model=answers.Receipt, **needs("planner"))
async def close(
    visit: TheVisit,
    context: TheContext,
    body: requests.CellsBody,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Close cells: nobody may measure there."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    cells = [(r, c) for r, c in body.cells]

    def request(campaign: Campaign) -> Any:
        return campaign.close(cells, reason=body.reason, by=by, key=given)

    return await record(context, visit, if_match, request, response)


@work.post("/open", response_model=answers.Receipt, **needs("planner"))
async def open_(
    visit: TheVisit,
    context: TheContext,
    body: requests.CellsBody,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Open cells (again)."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    cells = [(r, c) for r, c in body.cells]

    def request(campaign: Campaign) -> Any:
        return campaign.open(cells, reason=body.reason, by=by, key=given)

    return await record(context, visit, if_match, request, response)


@work.post("/extend", response_model=answers.Receipt, **needs("planner"))
async def extend(
    visit: TheVisit,
    context: TheContext,
    body: requests.Extend,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Any:
    """Add to the budget."""
    by, given = visit.name_for(body.by), one_key(body.key, key)
    answer = await record(
        context, visit, if_match, lambda c: c.extend(body.amount, by=by, key=given), response
    )
    budget = await context.desk.at(visit.row.name, lambda campaign: campaign.state.budget)
    return {**answer, "budget": budget}
