"""Reading the options and printing the answers of ``engram campaign``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli._common import whole_number, windows_at
from engram.cli._printing import acknowledges, say, say_json, show_table
from engram.cli._remote import OverHttp, client_of, is_server
from engram.errors import InputError, UnavailableError, shown

if TYPE_CHECKING:
    from engram.campaign import Campaign, Explanation, LogLine

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31557600.0}
LONGEST = 36525 * 86400.0
"""Seconds of the longest time that an option takes."""
_TERMS = ("rank", "total", "probability", "doubt", "exploration", "exploitation", "alpha")
_LABELS = {"probability": "chance", "exploration": "explore", "exploitation": "exploit"}


Name = Annotated[str, typer.Argument(help="Name of the campaign.", show_default=False)]
Db = Annotated[
    str | None,
    typer.Option("--db", help="Database: a SQLite file or a URL.", envvar="ENGRAM_DB"),
]
DbOrServer = Annotated[
    str | None,
    typer.Option(
        "--db",
        "--server",
        help="Database: a SQLite file or a URL; or a server (engram serve), with ENGRAM_TOKEN.",
        envvar="ENGRAM_DB",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
By = Annotated[str, typer.Option("--by", help="Who asks or tells.")]
Key = Annotated[
    str | None, typer.Option("--key", help="Repeating a request with its key is harmless.")
]
CellOption = Annotated[str, typer.Option("--cell", help="Row and column, from 0: R,C.")]
Cells = Annotated[
    list[str], typer.Option("--cell", help="Row and column: R,C; may be given several times.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the log.")]
Lease = Annotated[
    str | None,
    typer.Option(help="Time after which an unanswered cell is given back: 90m, 12h, 3d."),
]
Rank = Annotated[str | None, typer.Option(help="Rank by 'score' or 'per-cost'.")]
From = Annotated[str | None, typer.Option("--from", help="Where the crew starts: R,C.")]
FalseAlarm = Annotated[
    float | None,
    typer.Option(help="Chance that a visit reports a target that is not there, 0 to below 1."),
]


def needs_database() -> None:
    """Say what to install when the database library is not there."""
    from importlib.util import find_spec

    if find_spec("sqlalchemy") is None:
        raise UnavailableError("campaigns need SQLAlchemy: pip install 'engram[campaign]'")


def windows_of(
    campaign: Campaign | OverHttp, executor: str, address: str | None
) -> AbstractContextManager[None]:
    """Windows of a large campaign are computed by this executor while this lasts."""
    if isinstance(campaign, OverHttp) and (executor, address) != ("local", None):
        raise InputError(
            f"--executor {executor}: a server computes by itself; leave it out, or give the "
            "database with --db"
        )
    return windows_at(executor, address)


def opened(name: str, db: str | None) -> Campaign | OverHttp:
    """The campaign a command is about: of a database, or of a server, which answers alike."""
    needs_database()
    if is_server(db):
        return OverHttp(client_of(db).campaign(name))
    from engram._threads import default_threads, set_threads
    from engram.campaign import open_campaign

    set_threads(default_threads(1))
    return open_campaign(name, db=db)


def crew_note(campaign: Campaign | OverHttp, by: str) -> str:
    """That a report came from nobody the campaign knows, as anybody may report."""
    if isinstance(campaign, OverHttp) or not campaign.unknown_crew(by):
        return ""
    return f" (by {by!r}, who is none of the crews {', '.join(campaign.state.spec.crews)})"


def numbers(text: str, option: str, count: int | None = None) -> list[float]:
    """'1,2.5' -> [1.0, 2.5]."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"{option} {shown(text)} is not a list of numbers, like 0.2,0.4"
        ) from error
    if count is not None and len(found) != count:
        raise InputError(f"{option} {shown(text)} has {len(found)} number(s); give {count}")
    return found


def cell_of(text: str, option: str) -> tuple[int, int]:
    """A cell as R,C, counted from 0: '12,7' -> (12, 7)."""
    try:
        row, col = (whole_number(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} {shown(text)}: give row and column, like 12,7") from None
    return row, col


def duration(text: str | None, option: str) -> float | None:
    """'0', '90s', '15m', '12h', '3d', '1w', '2y' -> seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdwy]?)\s*", text)
    if match is None or (not match[2] and float(match[1])):
        raise InputError(
            f"{option} {shown(text)}: give a time with its unit, like 90s, 15m, 12h, 3d"
        )
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > LONGEST:
        raise InputError(f"{option} {shown(text)}: give at most a hundred years ({LONGEST:g}s)")
    return seconds


def emit(facts: Any, as_json: bool, text: str) -> None:
    """JSON, or one line of text, of something that is done already, and its note if it has one."""
    with acknowledges(text):
        if as_json:
            say_json(facts)
        else:
            say(text)
            say_note(facts.get("note", ""))


def say_note(note: str) -> None:
    """What is odd about a request that was met."""
    if note:
        say(f"note: {note}")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and len(value) == 2:
        return f"{value[0]},{value[1]}"
    return "" if value is None else str(value)


def show_rows(
    rows: Sequence[dict[str, Any]], as_json: bool, columns: Sequence[str], title: str
) -> None:
    """A table of these columns, or everything as JSON."""
    if as_json:
        say_json(list(rows))
        return
    head = [_LABELS.get(name, name) for name in columns]
    show_table((head, [[_text(row.get(name)) for name in columns] for row in rows]), title)


def show_queries(rows: Sequence[dict[str, Any]], as_json: bool, title: str) -> None:
    """Cells with the terms of their scores."""
    lead = ["query", "cell"] if rows and "query" in rows[0] else ["cell"]
    show_rows(rows, as_json, [*lead, *_TERMS], title)


def show_history(lines: Sequence[LogLine], as_json: bool) -> None:
    """One line per event."""
    if as_json:
        say_json([line.to_dict() for line in lines])
        return
    for line in lines:
        say(f"{line.seq:>4}  {line.at}  {line.kind:<8} {line.by:<10} {line.text}")


def show_status(facts: dict[str, Any], as_json: bool) -> None:
    """The status as a table of words."""
    if as_json:
        say_json(facts)
        return
    left, rest, ahead = facts["remaining"], facts["prospect"], facts["next"]
    targets = facts.get("targets")
    unit = " cells" if targets else ""
    say(f"{facts['name']}: policy {facts['policy']}")
    rows = [
        ["measured", f"{facts['told']} ({facts['found']} with target)"],
        ["out", f"{facts['asked']} (failed {facts['failed']}, expired {facts['expired']})"],
        ["budget left", f"{facts['budget_left']:g} of {facts['budget']:g} {facts['budget_kind']}"],
        [
            "still to find",
            f"about {left['expected']:.1f}{unit} ({left['low']:g} to {left['high']:g} at "
            f"{left['level']:.0%}); chance of any: {facts['chance_remaining']:.0%}",
        ],
        [
            "budget brings",
            f"about {rest['expected']:.1f}{unit} ({rest['low']:g} to {rest['high']:g} at "
            f"{rest['level']:.0%}) in {rest['measurements']} measurements",
        ],
        [f"next {ahead['measurements']:g}", f"{ahead['expected_finds']:.1f} finds expected"],
        ["advice", facts["advice"]["words"]],
        ["prior", facts["prior_fitness"]["words"]],
        *(["layer", effect["words"]] for effect in facts.get("layers", ())),
        *([["visits", facts["detection"]["words"]]] if facts.get("detection") else []),
        *([["targets", targets["words"]]] if targets else []),
    ]
    for label, text in rows:
        say(f"{label:<14}{text}")


def show_explanation(why: Explanation, as_json: bool, png: Path | None) -> None:
    """The kept explanation in words, or whole as JSON."""
    from engram.campaign import in_words

    if as_json:
        say_json(why.to_dict())
        return
    for line in in_words(why).split("\n"):
        say(line)
    if png is not None:
        say(f"Drawn to {png}.")
