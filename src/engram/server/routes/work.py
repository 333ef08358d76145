"""Asking, telling and everything else that is written to a campaign's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import Depends, File, Form, Response, UploadFile

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


@dataclass(frozen=True)
class Writing:
    """Somebody's request that is to be written to a campaign's log."""

    visit: Visit
    context: Context
    response: Response
    if_match: str | None
    key: str | None

    def signed(self, by: str | None, key: str | None) -> dict[str, str | None]:
        """In whose name, and under which key."""
        return {"by": self.visit.name_for(by), "key": one_key(key, self.key)}

    async def record(
        self,
        body: requests.Signed,
        request: Callable[..., Any],
        items: Sequence[requests.Measurement] = (),
    ) -> dict[str, Any]:
        """Have ``request(campaign, by=, key=)`` written; its receipt, with the log's new head."""
        signed, expected = self.signed(body.by, body.key), expected_head(self.if_match)
        await check_photos(self.context, self.visit, items)

        def write(campaign: Campaign) -> dict[str, Any]:
            with campaign.requested(via=self.visit.account.name, head=expected):
                receipt = request(campaign, **signed)
            return {**receipt.to_dict(), "head": head_of(campaign)}

        return self._done(await self.context.desk.at(self.visit.row.name, write, fresh=False))

    async def compute(self, job: str, signed: dict[str, Any], **given: Any) -> dict[str, Any]:
        """Have a process that computes do a job that ends in the log."""
        row, given = self.visit.row, {**given, **signed, "via": self.visit.account.name}
        given["head"] = expected_head(self.if_match)
        facts, _ = await self.context.workers.do(job, row.name, row.uid, **given)
        return self._done(facts)

    def _done(self, answer: dict[str, Any]) -> dict[str, Any]:
        self.context.written(self.visit)
        self.response.headers["ETag"] = f'"{answer["head"]}"'
        return answer


def _writing(
    visit: TheVisit,
    context: TheContext,
    response: Response,
    if_match: IfMatch = None,
    key: KeyHeader = None,
) -> Writing:
    return Writing(visit, context, response, if_match, key)


TheWriting = Annotated[Writing, Depends(_writing)]


@work.post("/ask", response_model=answers.Queries, **needs("crew"))
async def ask(writing: TheWriting, body: requests.Ask) -> Any:
    """Hand out cells to measure next and reserve their budget."""
    return await writing.compute(
        "ask",
        writing.signed(body.by, body.key),
        n=body.n,
        lease=body.lease,
        rank=body.rank,
        start=body.start,
        outing=None if body.outing is None else body.outing.model_dump(),
    )


@work.post("/tell", response_model=answers.Receipt, **needs("crew"))
async def tell(writing: TheWriting, body: requests.Tell) -> Any:
    """Record one measurement, whether the cell was asked for or not."""

    def request(campaign: Campaign, **signed: Any) -> Any:
        observation = _observation(campaign, body, "")
        return campaign.tell_many([observation], facts=[_beside(body)], **signed)

    return await writing.record(body, request, [body])


@work.post("/tell-many", response_model=answers.Receipt, **needs("crew"))
async def tell_many(writing: TheWriting, body: requests.TellMany) -> Any:
    """Record several measurements, all of them or none."""

    def request(campaign: Campaign, **signed: Any) -> Any:
        labels = [f"item {i}: " for i in range(1, len(body.items) + 1)]
        items = [_observation(campaign, o, at) for o, at in zip(body.items, labels, strict=True)]
        facts = [_beside(item) for item in body.items]
        return campaign.tell_many(items, labels=labels, facts=facts, **signed)

    return await writing.record(body, request, body.items)


@work.post("/tell-file", response_model=answers.Receipt, **needs("crew"))
async def tell_file(
    writing: TheWriting,
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
) -> Any:
    """Record the measurements of a file, all of them or none."""
    return await writing.compute(
        "tell_file",
        writing.signed(by, key),
        blob=await file.read(),
        suffix=suffix_of(file.filename or "", FILES, "of measurements"),
        crs=crs,
        combine=combine,
        fix=fix,
        detection=detection,
        false_alarm=false_alarm,
        half_life=half_life,
    )


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
async def fail(writing: TheWriting, body: requests.Fail) -> Any:
    """Report a cell that could not be measured: try again later, or never."""
    cell = None if body.cell is None else (body.cell[0], body.cell[1])
    terms = {"query": body.query, "cell": cell, "retry": body.retry, "reason": body.reason}
    return await writing.record(body, lambda campaign, **by: campaign.fail(**terms, **by))


@work.post("/correct", response_model=answers.Receipt, **needs("planner"))
async def correct(writing: TheWriting, body: requests.Correct) -> Any:
    """Replace values of a measurement; the old ones stay in the log."""

    def request(campaign: Campaign, **signed: Any) -> Any:
        return campaign.correct(
            (body.cell[0], body.cell[1]),
            outcome=body.outcome,
            content=None if body.value is None else content_from_values(campaign.grid, body.value),
            noise=body.noise,
            reason=body.reason,
            **signed,
        )

    return await writing.record(body, request)


@work.post("/retract", response_model=answers.Receipt, **needs("planner"))
async def retract(writing: TheWriting, body: requests.Retract) -> Any:
    """Withdraw a measurement; it stays in the log."""
    cell = body.cell[0], body.cell[1]
    return await writing.record(body, lambda c, **by: c.retract(cell, reason=body.reason, **by))


@work.post("/close", response_model=answers.Receipt, **needs("planner"))
async def close(writing: TheWriting, body: requests.CellsBody) -> Any:
    """Close cells: nobody may measure there."""
    cells = [(r, c) for r, c in body.cells]
    return await writing.record(body, lambda c, **by: c.close(cells, reason=body.reason, **by))


@work.post("/open", response_model=answers.Receipt, **needs("planner"))
async def open_(writing: TheWriting, body: requests.CellsBody) -> Any:
    """Open cells (again)."""
    cells = [(r, c) for r, c in body.cells]
    return await writing.record(body, lambda c, **by: c.open(cells, reason=body.reason, **by))


@work.post("/extend", response_model=answers.Receipt, **needs("planner"))
async def extend(writing: TheWriting, body: requests.Extend) -> Any:
    """Add to the budget."""
    answer = await writing.record(body, lambda campaign, **by: campaign.extend(body.amount, **by))
    budget = await writing.context.desk.at(writing.visit.row.name, lambda c: c.state.budget)
    return {**answer, "budget": budget}
