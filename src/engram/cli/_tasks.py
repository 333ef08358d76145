"""Options that say which tasks a suite makes from data files; shared by several commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli._common import parse_pair
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.bench.choices import Value

_DATA, _SPECIES = "Tasks from data files", "Species"

SuiteName = Annotated[
    str,
    typer.Argument(help="The family of tasks: balls, shapes, species, overhead, tumour or digits."),
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="Data file or folder; may be given several times.", rich_help_panel=_DATA
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting of the tasks: balls=5, kind=star, digit=8, seed=1."),
]
Target = Annotated[
    str | None,
    typer.Option(help="overhead: vehicle, plane, ship or all.", rich_help_panel=_DATA),
]
Size = Annotated[str | None, typer.Option(help="Pixels per side of a task.", rich_help_panel=_DATA)]
Species = Annotated[
    list[str] | None,
    typer.Option(
        "--species",
        help="Scientific or common name, or a genus; several are pooled.",
        rich_help_panel=_SPECIES,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="FIELD=NAME of a column that is not recognised, like latitude=Y.",
        rich_help_panel=_SPECIES,
    ),
]
Years = Annotated[
    str | None, typer.Option(help="First and last, like 2008-2016.", rich_help_panel=_SPECIES)
]
MaxUncertainty = Annotated[
    float | None,
    typer.Option(help="Of coordinates, in metres.", rich_help_panel=_SPECIES),
]
Degrees = Annotated[
    float | None, typer.Option(help="Side of a region (default: 5).", rich_help_panel=_SPECIES)
]
BoxOption = Annotated[
    str | None,
    typer.Option(
        "--box",
        help="Where centres may lie: south,north,west,east (default: the paper's).",
        rich_help_panel=_SPECIES,
    ),
]
MinRecords = Annotated[
    int | None,
    typer.Option(help="Records a region must hold (default: 60).", rich_help_panel=_SPECIES),
]
MaxShare = Annotated[
    float | None,
    typer.Option(help="Largest share of target in a task.", rich_help_panel=_DATA),
]
Period = Annotated[
    str | None,
    typer.Option(help="Time one map covers: auto, all, year, month.", rich_help_panel=_SPECIES),
]


def settings_of(
    given: Sequence[str] | None,
    *,
    size: str | None = None,
    species: Sequence[str] | None = None,
    column: Sequence[str] | None = None,
    **others: Value | None,
) -> dict[str, Value]:
    """The settings of a suite: those of ``--set`` and those with an option of their own."""
    from engram.bench.choices import parse_options

    settings = parse_options(",".join(given), "--set") if given else {}
    own: dict[str, Value | None] = {
        "species": ";".join(species) if species else None,
        "column": ";".join(column) if column else None,
        "size": None if size is None else _side(size),
        **others,
    }
    for name, value in own.items():
        if value is None:
            continue
        if name in settings:
            raise InputError(f"{name} is given twice, as an option and with --set")
        settings[name] = value
    return settings


def _side(text: str) -> int:
    """``64`` or ``64,64`` -> 64."""
    if text.isdigit() and int(text) > 0:
        return int(text)
    height, width = parse_pair(text, "size")
    if height != width:
        raise InputError(f"size={text!r}: these tasks are square; give one number")
    return height
