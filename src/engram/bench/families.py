"""Makers of task sets from data files and flat settings; loaders are imported when used.

The keyword arguments of a maker are the settings of its suite: one word, number or switch
each, as they are written on the command line and in result files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engram.errors import InputError
from engram.tasks.sets import TaskSet, ball_tasks

Files = Sequence[Path]


def balls(files: Files, *, balls: int | None = None) -> TaskSet:
    """``balls`` fixes their number."""
    return ball_tasks(balls)


def shapes(files: Files, *, kind: str | None = None, copies: int | None = None) -> TaskSet:
    """``kind`` and ``copies`` fix the shape and how many there are."""
    from engram.tasks.shapes import shape_tasks

    return shape_tasks(kind, copies)


def species(
    files: Files,
    *,
    species: str | None = None,
    column: str = "",
    years: str | None = None,
    max_uncertainty: float | None = None,
    box: str | None = None,
    degrees: float = 5.0,
    size: int = 64,
    block: int = 2,
    min_records: int = 60,
    max_share: float | None = None,
    outcome: str = "presence",
    period: str = "auto",
    layout: str = "auto",
    cap: float | None = None,
    seed: int = 0,
) -> TaskSet:
    """See :class:`engram.tasks.species.SpeciesPlan`.

    species : one name, or several with ``;`` between them
    column  : FIELD=NAME of columns that are not recognised, with ``;`` between them
    years   : ``2008-2016``, both included; ``2008-``, ``-2016`` or ``2016`` alone
    box     : ``south,north,west,east`` in degrees, where centres of regions may lie
    """
    from engram.tasks.species import PAPER_BOX, SpeciesPlan, species_tasks

    plan = SpeciesPlan(
        box=PAPER_BOX if box is None else _box(box),
        degrees=degrees,
        size=size,
        block=block,
        min_records=min_records,
        max_share=max_share,
        outcome=outcome,
        period=period,
        layout=layout,
        cap=cap,
    )
    return species_tasks(
        files,
        None if species is None else [name.strip() for name in species.split(";")],
        seed=seed,
        columns=_columns(column),
        years=None if years is None else _years(years),
        max_uncertainty=max_uncertainty,
        plan=plan,
    )


def overhead(
    files: Files,
    *,
    target: str = "all",
    size: int = 128,
    cell: int = 4,
    tile: int = 512,
    min_share: float = 0.02,
    max_share: float = 0.30,
    difficult: bool = True,
    seed: int = 0,
) -> TaskSet:
    """The settings from ``tile`` on are for DOTA folders."""
    from engram.tasks.dota import TilePlan
    from engram.tasks.overhead import overhead_tasks

    tiles = TilePlan(tile, (min_share, max_share), difficult)
    return overhead_tasks(files, target, seed=seed, size=size, cell=cell, tiles=tiles)


def tumour(files: Files, *, size: int = 128, cell: int = 4, seed: int = 0) -> TaskSet:
    """Slices of one or several files."""
    from engram.tasks.tumour import tumour_tasks

    return tumour_tasks(files, seed=seed, size=size, cell=cell)


def digits(
    files: Files,
    *,
    digit: int | None = None,
    size: int = 28,
    fit: str = "pad",
    cell: int = 1,
    seed: int = 0,
) -> TaskSet:
    """One file of images; ``digit`` keeps one class by the labels given or found beside it."""
    from engram.tasks.digits import digit_tasks, is_label_file

    labels = [path for path in files if len(files) > 1 and is_label_file(path)]
    images = [path for path in files if path not in labels]
    if len(images) != 1 or len(labels) > 1:
        raise InputError(
            f"{len(files)} data files given ({', '.join(path.name for path in files)}); digits "
            "come from one idx file of images and at most one of labels"
        )
    return digit_tasks(images[0], *labels, digit=digit, seed=seed, size=size, fit=fit, cell=cell)


def _box(text: str) -> tuple[float, float, float, float]:
    try:
        south, north, west, east = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"box={text!r}: give south,north,west,east in degrees, like 25.6,55,-123.1,-75"
        ) from None
    return south, north, west, east


def _years(text: str) -> tuple[int | None, int | None]:
    first, dash, last = (part.strip() for part in text.partition("-"))
    try:
        low = int(first) if first else None
        high = (int(last) if last else None) if dash else low
    except ValueError:
        low = high = None
    if low is None and high is None:
        raise InputError(f"years={text!r}: give first-last, like 2008-2016, or one year")
    return low, high


def _columns(text: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        field, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not field or not name:
            raise InputError(f"column {part.strip()!r} is not of the form FIELD=NAME")
        columns[field] = name
    return columns
