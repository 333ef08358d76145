"""The commands of ``engram campaign`` that only look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from engram.cli._campaign import (
    DbOrServer,
    Json,
    Name,
    emit,
    needs_database,
    opened,
    show_explanation,
    show_history,
    show_rows,
    show_status,
    windows_of,
)
from engram.cli._common import AddressOption, WindowsOption
from engram.cli._remote import OverHttp, client_of, is_server
from engram.errors import InputError


def status(
    name: Name,
    level: Annotated[float, typer.Option(help="Level of the interval of what is left.")] = 0.8,
    ahead: Annotated[int, typer.Option("--next", help="Measurements to look ahead.")] = 10,
    executor: WindowsOption = "local",
    address: AddressOption = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Show counts, what is left, whether the prior helps, and whether to stop."""
    if not 0 < level < 1:
        raise InputError(f"--level {level}: give a number between 0 and 1")
    if ahead < 1:
        raise InputError(f"--next {ahead}: look at least one measurement ahead")
    campaign = opened(name, db)
    from engram.campaign import status as facts_of

    with windows_of(campaign, executor, address):
        if isinstance(campaign, OverHttp):
            facts = campaign.remote.status(level=level, ahead=ahead)
        else:
            facts = facts_of(campaign, level=level, ahead=ahead).to_dict()
    show_status(facts, as_json)


def explain(
    name: Name,
    query: Annotated[int, typer.Option(help="Number of the query.")],
    png: Annotated[Path | None, typer.Option(help="Draw the neighbourhood to this file.")] = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Show why a cell was suggested, as it was kept then."""
    explanation = opened(name, db).explain(query)
    if png is not None:
        from engram.campaign import draw

        draw(explanation, png)
    show_explanation(explanation, as_json, png)


def history(name: Name, db: DbOrServer = None, as_json: Json = False) -> None:
    """Show every event of the log."""
    campaign = opened(name, db)
    from engram.campaign import history as lines_of

    lines = campaign.history() if isinstance(campaign, OverHttp) else lines_of(campaign)
    show_history(lines, as_json)


def verify(
    name: Name,
    executor: WindowsOption = "local",
    address: AddressOption = None,
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Replay the log; exit 0 only when every suggestion comes out again."""
    campaign = opened(name, db)
    from engram.campaign import verify as replay

    with windows_of(campaign, executor, address):
        report = campaign.verify() if isinstance(campaign, OverHttp) else replay(campaign)
    counts = f"{report.events} events, {report.asks} asks, {report.suggestions} suggestions"
    if report.older:
        counts += f" ({report.older} more by an engine of before, which were not made again)"
    faults = "; ".join(report.faults)
    emit(
        report.to_dict(),
        as_json,
        f"{name}: {counts}: the replay {'agrees' if report.ok else f'disagrees: {faults}'}",
    )
    if not report.ok:
        raise typer.Exit(1)


def export(
    name: Name,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write; its ending is the format.")
    ],
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Write the log (.json), measurements (.csv, .npz) or a map (.gpkg, .geojson, .kml, ...)."""
    campaign = opened(name, db)
    from engram.campaign import export as write

    done = campaign.export(out) if isinstance(campaign, OverHttp) else write(campaign, out)
    emit(done.to_dict(), as_json, f"{name}: {done.count} entries in {done.file}")


def list_(db: DbOrServer = None, as_json: Json = False) -> None:
    """Show the campaigns of a database, or those of a server that you have a part in."""
    needs_database()
    from engram.campaign import overview

    columns = ["name", "policy", "told", "found", "asked", "budget_left", "events", "created"]
    if is_server(db):
        lines = client_of(db).campaigns()
    else:
        lines = [line.to_dict() for line in overview(db)]
    show_rows(lines, as_json, columns, "campaigns")


COMMANDS: dict[str, Callable[..., Any]] = {
    "status": status,
    "explain": explain,
    "history": history,
    "verify": verify,
    "export": export,
    "list": list_,
}
