"""``engram campaign merge``: two copies that were used apart become one log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engram.cli._campaign import By, Db, Json, Name, cell_of, needs_database, show_rows
from engram.cli._printing import acknowledges, say, say_json
from engram.errors import InputError

Take = Annotated[
    list[str] | None,
    typer.Option(help="Decide a cell by hand: R,C=here or R,C=there; repeatable."),
]


def merge(
    other: Annotated[Path, typer.Argument(help="Database of the other copy.", show_default=False)],
    name: Name,
    rule: Annotated[
        str, typer.Option(help="Who is right in conflicts: here, there, first or last.")
    ] = "",
    take: Take = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="Show what would come in; write nothing.")
    ] = False,
    by: By = "",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Take over what another copy of a campaign recorded; conflicts are listed and decided."""
    needs_database()
    if not other.is_file():
        raise InputError(f"no file at {other}; give the database of the other copy")
    from engram.campaign import open_campaign
    from engram.campaign.merging import merge as merged

    by_hand = dict(_decision(text) for text in take or ())
    campaign = open_campaign(name, db=db)
    done = merged(campaign, other, rule=rule, by_hand=by_hand, by=by, only_list=only_list)
    did = f"recorded as event {done.seq}" if done.written else "nothing was written"
    words = (
        f"{name}: {done.events} new events of {other}: {done.told} measurement(s) taken over, "
        f"{done.withdrawn} withdrawn, {done.queries} queries renumbered; {did}"
    )
    with acknowledges(words):
        if as_json:
            say_json(done.to_dict())
            return
        if done.conflicts:
            show_rows(done.conflicts, False, ["cell", "here", "there", "take"], "conflicts")
        say(words)


def _decision(text: str) -> tuple[tuple[int, int], str]:
    cell, mark, side = text.partition("=")
    if not mark or side not in ("here", "there"):
        raise InputError(f"--take {text!r}: give R,C=here or R,C=there")
    return cell_of(cell, "--take"), side
