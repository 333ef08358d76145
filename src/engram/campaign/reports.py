"""What crews report in files, as the files are: tables of any dialect, JSON, NPZ.

A report names its cell, or a place that has to be found on the grid (``geo.telling``). What is
written beside the measurement (who, when, a note, columns nobody knows) is kept in the log.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram._files import read_text
from engram.campaign.files import (
    content_from_values,
    default_content,
    json_rows,
    npz_rows,
    plain_array,
)
from engram.detection import PERFECT, Detection
from engram.errors import InputError, shown
from engram.grid import Cell, Grid
from engram.observation import Observation
from engram.tasks.tables import WORDS

NAMES: dict[str, tuple[str, ...]] = {
    "row": ("row",),
    "col": ("col", "column"),
    "latitude": ("latitude", "lat", "decimallatitude"),
    "longitude": ("longitude", "lon", "lng", "long", "decimallongitude"),
    "x": ("x", "e", "east", "easting"),
    "y": ("y", "n", "north", "northing"),
    "outcome": ("outcome", "found", "result", "present", "presence", "target", "seen", "detected"),
    "count": ("count", "individualcount", "number", "individuals", "howmany"),
    "value": ("value",),
    "noise": ("noise",),
    "detection": ("detection", "detectionchance", "detectability"),
    "false_alarm": ("falsealarm",),
    "by": ("by", "crew", "observer", "who", "recordedby"),
    "date": ("date", "time", "datetime", "when", "observedon", "eventdate"),
    "note": ("note", "notes", "comment", "comments", "remark", "remarks", "desc", "description"),
}
"""Field -> names of columns that mean it, in lower case without punctuation."""
FOUND = {**WORDS, "found": True, "none": False, "nothing": False, "not found": False}
"""Words for an outcome."""
TRUST = ("detection", "false_alarm")
TABLES = (".csv", ".tsv", ".txt")
LONGEST_NOTE = 2000
"""Characters of what is kept beside a measurement."""


@dataclass(frozen=True)
class Report:
    """One measurement as it was reported.

    label : where it stands, to begin a complaint with
    cell  : its cell; None where a place is given instead
    place : ('degrees', latitude, longitude) or ('map', x, y)
    value : values of the content, or None; ``content`` the whole of it
    detection, false_alarm : how far this visit can be trusted, or None
    facts : what else was written, for the log
    """

    label: str
    outcome: float
    cell: Cell | None = None
    place: tuple[str, float, float] | None = None
    value: Any = None
    content: Any = None
    noise: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    detection: float | None = None
    false_alarm: float | None = None

    def seen_by(self, usual: Detection) -> Detection | None:
        """How far it can be trusted, where it says so itself; ``usual`` fills what is left out."""
        if self.detection is None and self.false_alarm is None:
            return None
        try:
            return Detection.read(
                usual.chance if self.detection is None else self.detection,
                usual.false_alarm if self.false_alarm is None else self.false_alarm,
            )
        except InputError as error:
            raise InputError(f"{self.label}{error}") from error

    def observation(self, grid: Grid, cell: Cell) -> Observation:
        """The measurement of a cell."""
        try:
            if self.content is not None:
                content = plain_array(self.content, "field content")
            elif self.value is not None:
                content = content_from_values(grid, self.value)
            else:
                content = default_content(grid, self.outcome)
            seen = self.seen_by(PERFECT)
            return Observation.checked(grid, cell, content, self.outcome, self.noise, seen)
        except InputError as error:
            raise InputError(f"{self.label}{error}") from error


def read_reports(path: Path) -> list[Report]:
    """The measurements of a table (.csv, .tsv, .txt), a .json or an .npz file.

    Tables : columns in any order and case, with commas, semicolons or tabs between them: row and
        col, or latitude and longitude, or x and y; outcome (0 to 1, or yes and no) or count;
        optionally value, or value_0, value_1, ...; noise; detection, false_alarm; by, date, note
    JSON   : a list of objects with cell [row, col], outcome; optionally content or value; noise
    NPZ    : arrays cells (n, 2), outcomes (n,); optionally contents (n, C, h, w), noise (n,)
    """
    suffix = path.suffix.lower()
    readers = {**dict.fromkeys(TABLES, _table_rows), ".json": json_rows, ".npz": npz_rows}
    reader = readers.get(suffix)
    if reader is None:
        raise InputError(
            f"{path}: give a .csv, .json or .npz file of measurements, or places in a .gpx or "
            ".geojson"
        )
    if not path.is_file():
        raise InputError(f"cannot read {path}: there is no such file")
    found = [report_of(row, f"{path.name}, {where}: ") for where, row in reader(path)]
    if not found:
        raise InputError(f"{path} holds no measurement")
    return found


def report_of(row: Mapping[str, Any], label: str) -> Report:
    """A report from the fields of a row, which are those of ``NAMES``, cell and content."""
    if "cell" in row and ("row" in row or "col" in row):
        raise InputError(f"{label}give the cell once: either cell, or row and col")
    if "content" in row and "value" in row:
        raise InputError(f"{label}give either content or value")
    cell, place = _cell_of(row, label), None
    if cell is None:
        place = _place_of(row, label)
    facts = {name: str(row[name])[:LONGEST_NOTE] for name in _kept(row)}
    return Report(
        label,
        outcome_of(row, label),
        cell,
        place,
        row.get("value"),
        row.get("content"),
        _number(row.get("noise", 0.0), "noise", label),
        facts,
        *(_given(row.get(name), name, label) for name in ("detection", "false_alarm")),
    )


def _given(value: Any, name: str, label: str) -> float | None:
    return None if value in (None, "") else _number(value, name, label)


def _kept(row: Mapping[str, Any]) -> list[str]:
    """Names of what is kept beside the measurement."""
    used = {"row", "col", "cell", "x", "y", "outcome", "value", "content", "noise"}
    used |= {"detection", "false_alarm"}
    return [n for n, v in row.items() if n not in used and v not in (None, "")]


def _cell_of(row: Mapping[str, Any], label: str) -> Cell | None:
    places = ("latitude", "longitude", "x", "y")
    if not {"cell", "row", "col"} & row.keys() and any(row.get(n) is not None for n in places):
        return None
    cell = row["cell"] if "cell" in row else (row.get("row"), row.get("col"))
    if not isinstance(cell, list | tuple) or len(cell) != 2:
        raise InputError(f"{label}field cell: {shown(cell)} is not [row, col]")
    numbers = [_whole(v, name, label) for name, v in zip(("row", "col"), cell, strict=True)]
    return numbers[0], numbers[1]


def _place_of(row: Mapping[str, Any], label: str) -> tuple[str, float, float]:
    kind, first, second = "degrees", "latitude", "longitude"
    if row.get("latitude") is None and row.get("longitude") is None:
        kind, first, second = "map", "x", "y"
    return kind, _number(row.get(first), first, label), _number(row.get(second), second, label)


def outcome_of(row: Mapping[str, Any], label: str) -> float:
    """A share of target from 0 to 1, a word such as yes, or whether a count is above 0."""
    given = row.get("outcome")
    if given in (None, "") and row.get("count") not in (None, ""):
        count = _number(row["count"], "count", label)
        if not count >= 0:
            raise InputError(f"{label}field count: {shown(row['count'])} is below 0")
        return float(count > 0)
    if isinstance(given, str) and given.strip().lower() in FOUND:
        return float(FOUND[given.strip().lower()])
    return _number(given, "outcome", label)


def _number(value: Any, name: str, label: str) -> float:
    if value is None or value == "":
        raise InputError(f"{label}field {name} is missing")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{label}field {name}: {shown(value)} is not a number") from error


def _whole(value: Any, name: str, label: str) -> int:
    number = _number(value, name, label)
    if not (abs(number) < 1e15 and number == int(number)):
        raise InputError(f"{label}field {name}: {shown(value)} is not a whole number")
    return int(number)


# -- tables --------------------------------------------------------------------------------------


def _table_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = read_text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    mark = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        head = [name.strip() for name in next(reader, [])]
        names = [field_of(name) for name in head]
        values = [f"value_{i}" for i in range(sum(n.startswith("value_") for n in names))]
        fault = _header_fault(names, values)
        if fault:
            raise InputError(
                f"{path.name}, line 1: {fault}; give row and col (or latitude and longitude, or x "
                "and y), and outcome (or count); optionally value (or value_0, value_1, ...), "
                f"noise, detection, false_alarm, by, date, note; the line reads {shown(first)}"
            )
        for raw in reader:
            where = f"line {reader.line_num}"
            if not any(item.strip() for item in raw):
                continue
            if len(raw) != len(names):
                raise InputError(f"{path.name}, {where}: it does not have {len(names)} fields")
            row: dict[str, Any] = {
                name: _plain(item.strip(), name, mark)
                for name, item in zip(names, raw, strict=True)
                if item.strip()
            }
            label = f"{path.name}, {where}: "
            if values:
                row["value"] = [_number(row.pop(n, None), n, label) for n in values]
            elif "value" in row:
                row["value"] = [_number(row["value"], "value", label)]
            yield where, row
    except csv.Error as error:
        raise InputError(f"{path.name}, line {reader.line_num}: {error}") from error


def field_of(name: str) -> str:
    """The field that a column of this name holds, or the name itself."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    numbered = re.fullmatch(r"value(\d+)", plain)
    if numbered and "_" in name:
        return f"value_{numbered[1]}"
    return next((known for known, names in NAMES.items() if plain in names), name)


def _plain(text: str, name: str, mark: str) -> str:
    """A value; in tables without commas between columns, one in a number is a decimal point."""
    numeric = name in ("latitude", "longitude", "x", "y", "outcome", "noise", "count", *TRUST) or (
        name.startswith("value")
    )
    return text.replace(",", ".") if mark != "," and numeric and text.count(",") == 1 else text


def _header_fault(names: Sequence[str], values: Sequence[str]) -> str:
    """What is wrong with the columns of a table, or nothing."""
    counts = Counter(names)
    pairs = (("row", "col"), ("latitude", "longitude"), ("x", "y"))
    pair = next((p for p in pairs if p[0] in counts or p[1] in counts), pairs[0])
    wanted = [*pair, *([] if "count" in counts else ["outcome"]), *values]
    faults = (
        *(f"column {n!r} is missing" for n in wanted if n not in counts),
        *(f"column {shown(n)} is there twice" for n, count in counts.items() if count > 1),
        *(["'value' stands beside 'value_0'"] if values and "value" in counts else []),
    )
    return next(iter(faults), "")
