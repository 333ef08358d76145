"""A campaign as files for other programs, and its log as readable lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engram._writing import write_file
from engram.campaign.answers import Exported, LogLine
from engram.campaign.campaign import Campaign
from engram.campaign.events import (
    Ask,
    Correct,
    Create,
    Event,
    Extend,
    Fail,
    Merge,
    Retract,
    Tell,
)
from engram.campaign.model import iso
from engram.errors import DamagedError, InputError, NewerError
from engram.grid import Cell


def history(campaign: Campaign) -> list[LogLine]:
    """Every event: number, time, kind, who, a short text, and the payload."""
    campaign.refresh()
    return [line_of(event) for event in campaign.events]


def line_of(event: Event) -> LogLine:
    """An event as it is listed."""
    payload = event.payload
    via = str(payload.get("via", ""))
    words = _words_or_damage(event)
    return LogLine(event.seq, iso(event.at), event.kind, event.who, event.key, words, payload, via)


def cells_of(event: Event) -> list[list[int]]:
    """The cells an event is about; none of one that is damaged."""
    try:
        return [list(cell) for cell in event.body.places]
    except (DamagedError, NewerError):
        return []


def _words_or_damage(event: Event) -> str:
    """One event as a short text, also where somebody changed what is in it."""
    try:
        return in_words(event)
    except (ArithmeticError, AttributeError, DamagedError, LookupError, TypeError, ValueError):
        return "(what it holds is damaged; see verify)"


def in_words(event: Event) -> str:
    """One event as a short text."""
    body = event.body

    def at(cell: Cell) -> str:
        return f"({cell[0]}, {cell[1]})"

    match body:
        case Create():
            spec = body.spec
            seen = "" if spec.detection.perfect else f", {spec.detection}"
            words = f"{spec.policy}, budget {spec.budget:g} {spec.budget_kind}, seed {spec.seed}"
            return words + seen
        case Ask():
            return ", ".join(f"query {q.query} at {at(q.cell)}" for q in body.queries)
        case Tell():
            return ", ".join(f"{at(i.cell)} outcome {i.outcome:g}" for i in body.items)
        case Extend():
            return f"budget + {body.by:g}"
        case Merge():
            new = len(body.events) - body.known
            return f"{new} events of another copy, {len(body.told)} measurements taken over"
    words = ", ".join(map(at, body.places))
    match body:
        case Fail():
            words += " never again" if body.wait is None else f" again after {body.wait:g} s"
        case Correct():
            words += f" outcome {body.old.outcome:g} -> {body.new.outcome:g}"
        case Retract():
            words += f" outcome {body.old.outcome:g} withdrawn"
    return f"{words} ({body.reason})" if body.reason else words


ON_MAP = (".gpkg", ".geojson", ".kml", ".gpx", ".tif", ".tiff")
"""Formats of campaigns that have a place on Earth (``geo.fieldfiles``)."""


def export(campaign: Campaign, path: Path) -> Exported:
    """Write .json (the whole log), .csv or .npz (the measurements in force), or a map.

    The CSV and NPZ files can be told to another campaign. Maps are .gpkg, .geojson, .kml, .gpx
    and .tif.
    """
    if path.suffix.lower() in ON_MAP:
        from engram.geo import needs_geo

        needs_geo()
        from engram.geo.fieldfiles import export_map

        return Exported(str(path), export_map(campaign, path))
    forms: dict[str, Callable[[Campaign], bytes | str]] = {
        ".json": _as_json,
        ".csv": _as_csv,
        ".npz": _as_npz,
    }
    form = forms.get(path.suffix.lower())
    if form is None:
        raise InputError(
            f"{path}: give a .json, .csv or .npz file to write, or a map: {', '.join(ON_MAP)}"
        )
    campaign.refresh()
    count = len(campaign.events if form is _as_json else campaign.state.observations)
    write_file(path, form(campaign))
    return Exported(str(path), count)


def _as_json(campaign: Campaign) -> str:
    log = [
        {**line.to_dict(), **_beside(line, campaign.storage.detail(campaign.row, line.seq))}
        for line in history(campaign)
    ]
    queries = [q.to_dict(campaign.now()) for q in campaign.state.queries.values()]
    whole = {"engram": "campaign-log-1", "name": campaign.name, "queries": queries, "events": log}
    return json.dumps(whole, indent=1) + "\n"


def _beside(line: LogLine, detail: Any) -> dict[str, Any]:
    """What is kept beside an event: explanations, or the long lists of the terms."""
    return {"beside" if detail and line.kind == Create.kind else "explanations": detail}


def _as_csv(campaign: Campaign) -> str:
    size = int(np.prod(campaign.grid.content_shape))
    values = ["value"] if size == 1 else [f"value_{i}" for i in range(size)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    places = _coordinates(campaign)
    visits = campaign.state.observations
    said = ["detection", "false_alarm"] if any(o.detection for o in visits) else []
    writer.writerow(["row", "col", "outcome", "noise", *values, *said, *places])
    for i, o in enumerate(visits):
        own = [o.detection.chance, o.detection.false_alarm] if o.detection else ["", ""]
        where = [column[i] for column in places.values()]
        content = (str(v) for v in o.content.ravel())
        writer.writerow([*o.cell, o.outcome, o.noise, *content, *own[: len(said)], *where])
    return text.getvalue()


def _coordinates(campaign: Campaign) -> dict[str, list[float]]:
    """Column -> coordinates of the centres of the cells measured; none without a place."""
    grid = campaign.grid
    if grid.crs is None or grid.transform is None:
        return {}
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.place import Place

    x, y = Place(grid).centres([grid.index(o.cell) for o in campaign.state.observations])
    lat, lon = Place(grid).degrees(x, y)
    columns = {"latitude": (lat, 7), "longitude": (lon, 7), "x": (x, 2), "y": (y, 2)}
    return {name: [round(float(v), n) for v in found] for name, (found, n) in columns.items()}


def _as_npz(campaign: Campaign) -> bytes:
    observations, data = campaign.state.observations, io.BytesIO()
    np.savez_compressed(
        data,
        cells=np.array([o.cell for o in observations], np.int64).reshape(-1, 2),
        outcomes=np.array([o.outcome for o in observations], np.float64),
        contents=np.array([o.content for o in observations], np.float32).reshape(
            -1, *campaign.grid.content_shape
        ),
        noise=np.array([o.noise for o in observations], np.float64),
    )
    return data.getvalue()
