"""``engram campaign``: the real-world loop on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli import _campaign_views as views
from engram.cli._campaign import (
    By,
    CellOption,
    Cells,
    DbOrServer,
    FalseAlarm,
    From,
    Json,
    Key,
    Lease,
    Name,
    Rank,
    Reason,
    cell_of,
    crew_note,
    duration,
    emit,
    numbers,
    opened,
    say_note,
    show_queries,
    windows_of,
)
from engram.cli._common import AddressOption, WindowsOption
from engram.cli._printing import acknowledges
from engram.cli._remote import OverHttp
from engram.cli.creating import create
from engram.cli.geo import (
    At,
    Combine,
    CrewCount,
    FieldFiles,
    Fix,
    GeoJson,
    Gpx,
    Hours,
    Speed,
    TellCrs,
    TourPicture,
    VisitMinutes,
    outing_of,
    show_tours,
    start_cell,
    told_words,
    tours_with,
)
from engram.cli.merging import merge
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.campaign import Campaign

app = typer.Typer(
    no_args_is_help=True, help="Search in the real world: ask for cells, tell what was found."
)


app.command()(create)


@app.command()
def ask(
    name: Name,
    n: Annotated[int, typer.Option("-n", help="How many cells.")] = 1,
    by: By = "",
    lease: Lease = None,
    rank: Rank = None,
    start: From = None,
    crews: CrewCount = None,
    hours: Hours = None,
    speed: Speed = "3km/h",
    minutes_per_visit: VisitMinutes = 10.0,
    gpx: Gpx = None,
    geojson: GeoJson = None,
    preview: TourPicture = None,
    key: Key = None,
    executor: WindowsOption = "local",
    address: AddressOption = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Hand out cells to measure next and reserve their budget."""
    campaign = opened(name, db)
    files = FieldFiles(gpx, geojson, preview)
    files.check(campaign)
    outing = outing_of(campaign, n, crews, start, hours, speed, minutes_per_visit)
    place = None if start is None or outing is not None else start_cell(campaign, start)
    with windows_of(campaign, executor, address):
        queries = campaign.ask(
            n,
            by=by,
            lease=duration(lease, "--lease"),
            rank=rank,
            start=place,
            key=key,
            **({} if outing is None else {"outing": outing}),
        )
    from engram.campaign import NextCell

    rows = [NextCell.handed_out(query).to_dict() for query in queries]
    reserved = ", ".join(f"query {q.query} at {q.cell}" for q in queries)
    tours = tours_with(campaign, queries) if outing is not None else []
    files.write(campaign, queries, tours, f"{name}: reserved: {reserved}")
    with acknowledges(f"{name}: reserved: {reserved}"):
        if outing is not None:
            show_tours(rows, tours, as_json, f"{name}: cells to measure")
        else:
            show_queries(rows, as_json, f"{name}: cells to measure")
        if not as_json:
            say_note(campaign.note)


@app.command()
def peek(
    name: Name,
    n: Annotated[int, typer.Option("-n", help="How many cells.")] = 10,
    by: By = "",
    rank: Rank = None,
    start: From = None,
    executor: WindowsOption = "local",
    address: AddressOption = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Look at the cells that would be handed out; nothing is reserved."""
    campaign = opened(name, db)
    place = None if start is None else start_cell(campaign, start)
    with windows_of(campaign, executor, address):
        picks = campaign.peek(n, by=by, rank=rank, start=place)
    from engram.campaign import NextCell

    rows = [NextCell.looked_at(pick).to_dict() for pick in picks]
    show_queries(rows, as_json, f"{name}: next cells (not reserved)")


@app.command()
def tell(
    name: Name,
    cell: Annotated[str | None, typer.Option("--cell", help="Row and column: R,C.")] = None,
    outcome: Annotated[
        float | None, typer.Option(help="Share of target in the cell, 0 to 1.")
    ] = None,
    content: Annotated[Path | None, typer.Option(help="File with the cell's content.")] = None,
    value: Annotated[str | None, typer.Option(help="Content per channel: V[,V...].")] = None,
    noise: Annotated[float, typer.Option(help="Standard deviation of the content.")] = 0.0,
    detection: Annotated[
        float | None,
        typer.Option(help="Chance that this visit finds a target that is there, above 0 to 1."),
    ] = None,
    false_alarm: FalseAlarm = None,
    half_life: Annotated[
        str | None,
        typer.Option(help="With --file: time in which dated measurements lose half: 2y, 90d."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Many measurements: CSV (also ; or tab), JSON, NPZ, GPX or GeoJSON."),
    ] = None,
    at: At = None,
    crs: TellCrs = None,
    combine: Combine = "any",
    fix: Fix = False,
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Record a measurement, or a file of them (all or none)."""
    campaign = opened(name, db)
    from engram.campaign.telling import tell_at

    if file is not None:
        if any(v is not None for v in (cell, at, outcome, content, value)):
            raise InputError(
                "--file goes alone, without --cell, --at, --outcome, --content, --value"
            )
        receipt = campaign.tell_file(
            file,
            by=by,
            key=key,
            crs=crs or "",
            combine=combine,
            fix=fix,
            **_trust(detection, false_alarm, half_life=duration(half_life, "--half-life")),
        )
    elif half_life is not None:
        raise InputError(f"--half-life {half_life}: it is for dated measurements of a --file")
    elif (cell is None) == (at is None) or outcome is None:
        raise InputError("give --cell R,C (or --at LAT,LON) and --outcome Y, or --file FILE")
    elif at is not None:
        if isinstance(campaign, OverHttp):
            raise InputError("--at is told where the database is; give a server --cell R,C")
        if content is not None:
            raise InputError("--content FILE is told with --cell R,C; give --value V with --at")
        values = None if value is None else numbers(value, "--value")
        trust = _trust(detection, false_alarm)
        receipt = tell_at(
            campaign, at, outcome, values, noise=noise, by=by, key=key, crs=crs or "", **trust
        )
    else:
        receipt = campaign.tell(
            cell_of(cell or "", "--cell"),
            outcome,
            _content(campaign, content, value),
            noise=noise,
            by=by,
            key=key,
            **_trust(detection, false_alarm),
        )
    emit(
        receipt.to_dict(),
        as_json,
        f"{name}: {told_words(receipt)}{crew_note(campaign, by)}",
    )


def _trust(*seen: float | None, **more: Any) -> dict[str, Any]:
    """What is said of how far visits can be trusted; nothing where nothing is."""
    known = {**dict(zip(("detection", "false_alarm"), seen, strict=True)), **more}
    return {name: value for name, value in known.items() if value is not None}


def _content(campaign: Campaign | OverHttp, content: Path | None, value: str | None) -> Any:
    from engram.campaign.files import content_from_values, read_content

    if content is not None and value is not None:
        raise InputError("give either --content FILE or --value V[,V...]")
    if content is not None:
        return read_content(content, campaign.grid)
    if value is not None:
        return content_from_values(campaign.grid, numbers(value, "--value"))
    return None


@app.command()
def fail(
    name: Name,
    query: Annotated[int | None, typer.Option(help="Number of the query.")] = None,
    cell: Annotated[str | None, typer.Option("--cell", help="Row and column: R,C.")] = None,
    never: Annotated[bool, typer.Option("--never", help="Do not try this cell again.")] = False,
    retry_after: Annotated[
        str | None, typer.Option(help="Try again after: 0, 90m, 12h, 3d (default: 1d).")
    ] = None,
    reason: Reason = "",
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Report a cell that could not be measured: try again later, or never."""
    if never and retry_after is not None:
        raise InputError(f"--never and --retry-after {retry_after}: give one of them")
    campaign = opened(name, db)
    receipt = campaign.fail(
        query=query,
        cell=None if cell is None else cell_of(cell, "--cell"),
        retry=None if never else duration(retry_after or "1d", "--retry-after"),
        reason=reason,
        by=by,
        key=key,
    )
    text = f"{name}: failure recorded as event {receipt.seq}{crew_note(campaign, by)}"
    emit(receipt.to_dict(), as_json, text)


@app.command()
def correct(
    name: Name,
    cell: CellOption,
    outcome: Annotated[float | None, typer.Option(help="The right outcome, 0 to 1.")] = None,
    content: Annotated[Path | None, typer.Option(help="File with the right content.")] = None,
    value: Annotated[str | None, typer.Option(help="The right content: V[,V...].")] = None,
    noise: Annotated[float | None, typer.Option(help="The right standard deviation.")] = None,
    reason: Reason = "",
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Correct a measurement; the old value stays in the log."""
    campaign = opened(name, db)
    receipt = campaign.correct(
        cell_of(cell, "--cell"),
        outcome=outcome,
        content=_content(campaign, content, value),
        noise=noise,
        reason=reason,
        by=by,
        key=key,
    )
    emit(receipt.to_dict(), as_json, f"{name}: correction recorded as event {receipt.seq}")


@app.command()
def retract(
    name: Name,
    cell: CellOption,
    reason: Reason = "",
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Withdraw a measurement; it stays in the log."""
    receipt = opened(name, db).retract(cell_of(cell, "--cell"), reason=reason, by=by, key=key)
    emit(receipt.to_dict(), as_json, f"{name}: retraction recorded as event {receipt.seq}")


@app.command()
def close(
    name: Name,
    cells: Cells,
    reason: Reason = "",
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Close cells: nobody may measure there."""
    places = [cell_of(cell, "--cell") for cell in cells]
    receipt = opened(name, db).close(places, reason=reason, by=by, key=key)
    emit(receipt.to_dict(), as_json, f"{name}: {len(receipt.cells)} cell(s) closed")


@app.command("open")
def open_(
    name: Name,
    cells: Cells,
    reason: Reason = "",
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Open cells (again)."""
    places = [cell_of(cell, "--cell") for cell in cells]
    receipt = opened(name, db).open(places, reason=reason, by=by, key=key)
    emit(receipt.to_dict(), as_json, f"{name}: {len(receipt.cells)} cell(s) opened")


@app.command()
def extend(
    name: Name,
    amount: Annotated[float, typer.Option("--add", "-n", help="Measurements, or cost.")],
    by: By = "",
    key: Key = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Add to the budget."""
    receipt = opened(name, db).extend(amount, by=by, key=key)
    emit(receipt.to_dict(), as_json, f"{name}: the budget is {receipt.budget:g} now")


app.command("merge")(merge)
for name, command in views.COMMANDS.items():
    app.command(name)(command)
