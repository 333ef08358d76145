"""Measurements told by place: which cell each lies in, and what many in one cell come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign.reports import FOUND, Report, field_of, report_of
from engram.errors import InputError, shown
from engram.geo.crs import WGS84, crs_name, moved, named_crs
from engram.geo.markup import child_text, read_xml, under
from engram.geo.place import Place
from engram.geo.units import shown_length
from engram.geo.vectors import read_shapes
from engram.grid import Cell

COMBINE = ("any", "share", "mean")
"""Many points in a cell: 1 if any has target; the share that have; the mean of their outcomes."""


@dataclass(frozen=True)
class Finder:
    """Finds cells of places on a grid.

    open : (n_cells,) True where a measurement can be told
    crs  : name of the system of x and y (and of degrees that are not WGS 84), or nothing
    fix  : turn round what is swapped and leave out what is outside, instead of refusing
    """

    place: Place
    open: NDArray[np.bool_]
    crs: str = ""
    fix: bool = False

    def on_map(self, kind: str, first: float, second: float) -> tuple[float, float]:
        """Coordinates on the grid's map of a place: latitude and longitude, or x and y."""
        if kind == "degrees" and not self.crs:
            x, y = self.place.on_map(first, second)
            return float(x), float(y)
        if not self.crs:
            raise InputError(
                f"coordinates {first:.10g}, {second:.10g} need the system they are in: --crs NAME "
                f"(the grid's own is {self.place.grid.crs})"
            )
        system = named_crs(self.crs, "--crs")
        east, north = (second, first) if system.is_geographic else (first, second)
        x, y = moved(system, self.place.crs, east, north)
        return float(x), float(y)

    def find(self, report: Report) -> tuple[Cell | None, str]:
        """The cell of a report and what was done to it; None when it is left out."""
        assert report.place is not None
        kind, first, second = report.place
        spot = self.on_map(kind, first, second)
        cell = self.place.cell_at(*spot)
        if cell is not None and self.open[self.place.grid.index(cell)]:
            return cell, ""
        turned = self.place.cell_at(*self.on_map(kind, second, first))
        if cell is None and turned is not None and self.open[self.place.grid.index(turned)]:
            words = (
                f"{report.label}{_shown(report.place)}: {_axes(kind)} seem to be swapped; turned "
                f"round it lies in cell ({turned[0]}, {turned[1]})"
            )
            if not self.fix:
                raise InputError(f"{words}: give them as {_axes(kind)}, or --fix")
            return turned, words
        words = self._outside(report, spot, cell)
        if not self.fix:
            raise InputError(f"{words}; correct it, or leave it out")
        return None, f"{words}; left out"

    def _outside(self, report: Report, spot: tuple[float, float], cell: Cell | None) -> str:
        assert report.place is not None
        where = (
            "lies outside the area"
            if cell is None
            else f"lies in cell ({cell[0]}, {cell[1]}), which is closed"
        )
        near = self.place.nearest(*spot, self.open)
        if near is None or not np.isfinite(spot).all():
            return f"{report.label}{_shown(report.place)} {where}, far from it"
        (row, col), metres = near
        return (
            f"{report.label}{_shown(report.place)} {where}, {shown_length(metres)} from the "
            f"nearest open cell ({row}, {col})"
        )

    def degrees(self, report: Report) -> tuple[float, float]:
        """Latitude and longitude of where a report was made, as it was given."""
        assert report.place is not None
        lat, lon = self.place.degrees(*self.on_map(*report.place))
        return round(float(lat), 7), round(float(lon), 7)


def _shown(place: tuple[str, float, float]) -> str:
    return f"place {place[1]:.9g}, {place[2]:.9g}"


def _axes(kind: str) -> str:
    return "latitude and longitude" if kind == "degrees" else "east and north"


@dataclass
class Placed:
    """Reports with their cells, one per cell, and what was done to get there."""

    reports: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0


def placed(reports: Sequence[Report], finder: Finder, combine: str = "any") -> Placed:
    """Every report in its cell; those that share one are combined by a rule."""
    if combine not in COMBINE:
        raise InputError(f"--combine {combine!r}: choose one of {', '.join(COMBINE)}")
    out = Placed()
    by_cell: dict[Cell, list[Report]] = {}
    for report in reports:
        if report.place is None:
            out.reports.append(report)
            continue
        cell, note = finder.find(report)
        out.notes += [note] if note else []
        if cell is None:
            out.left_out += 1
            continue
        lat, lon = finder.degrees(report)
        facts = {**report.facts, "latitude": lat, "longitude": lon}
        by_cell.setdefault(cell, []).append(replace(report, cell=cell, facts=facts))
    for group in by_cell.values():
        if any(report.detection is not None for report in group):
            out.reports += group  # visits that can be trusted so far each are visits of their own
            continue
        out.reports.append(group[0] if len(group) == 1 else _combined(group, combine))
    shared = sum(len(group) > 1 for group in by_cell.values())
    if shared:
        rule = {"any": "1 if any found target", "share": "share that found", "mean": "mean"}
        out.notes.append(f"{shared} cell(s) with several points: {rule[combine]} (--combine)")
    return out


def _combined(group: Sequence[Report], combine: str) -> Report:
    """One report of several in the same cell; what each said is kept."""
    if any(report.content is not None for report in group):
        raise InputError(f"{group[1].label}content of one cell is given twice; give it once")
    outcomes = np.array([report.outcome for report in group])
    if not ((outcomes >= 0) & (outcomes <= 1)).all():
        raise InputError(f"{group[0].label}an outcome in the same cell is not a number in [0, 1]")
    outcome = {
        "any": float((outcomes > 0).any()),
        "share": float((outcomes > 0).mean()),
        "mean": float(outcomes.mean()),
    }[combine]
    values = [report.value for report in group if report.value is not None]
    value = np.mean(np.array(values, float), axis=0).tolist() if len(values) == len(group) else None
    points = [{"outcome": report.outcome, **report.facts} for report in group]
    return Report(
        group[0].label,
        outcome,
        group[0].cell,
        None,
        value,
        noise=float(np.mean([report.noise for report in group])),
        facts={"points": points, "combine": combine},
    )


# -- files of places -------------------------------------------------------------------------------


def read_places(path: Path) -> tuple[list[Report], list[str], str]:
    """Reports of a .gpx or GeoJSON file, what was passed over, and its coordinate system."""
    if path.suffix.lower() == ".gpx":
        return (*_gpx(path), "")
    return _geojson(path)


def _gpx(path: Path) -> tuple[list[Report], list[str]]:
    """Waypoints with an outcome: the last word of the name, or the first of the description.

    Words are yes, no, 1, 0, 0.5, found, none and the like; ``count=3`` is one as well. Waypoints
    without such a word (a car park) are passed over and counted.
    """
    root = read_xml(path, "gpx")
    found, passed = [], 0
    for number, point in enumerate(under(root, "wpt"), 1):
        label = f"{path.name}, waypoint {number}: "
        name, words = child_text(point, "name"), child_text(point, "desc")
        comment = child_text(point, "cmt")
        told = _told(name.split()[-1:]) or _told(words.split()[:1]) or _told(comment.split()[:1])
        if not told:
            passed += 1
            continue
        row: dict[str, Any] = {
            "latitude": point.get("lat"),
            "longitude": point.get("lon"),
            **told,
            "waypoint": name,
            "note": words or comment,
            "date": child_text(point, "time"),
        }
        found.append(report_of(row, label))
    if not found:
        raise InputError(
            f"{path} has no waypoint with an outcome ({passed} without); end its name with yes, no "
            "or a number, like 'Q12 yes', or begin its description so"
        )
    notes = [f"{path.name}: {passed} waypoint(s) without an outcome passed over"] if passed else []
    return found, notes


def _told(words: Sequence[str]) -> dict[str, Any]:
    """The outcome or count that a word gives, or nothing."""
    for word in words:
        name, mark, value = word.strip(".,;:!").lower().rpartition("=")
        known = field_of(name) if mark else "outcome"
        if known not in ("outcome", "count"):
            continue
        try:
            float(value)
        except ValueError:
            if value not in FOUND:
                continue
        return {known: value}
    return {}


def _geojson(path: Path) -> tuple[list[Report], list[str], str]:
    """Points of a GeoJSON file; their properties are the columns of a table."""
    found = read_shapes(path)
    reports, passed = [], 0
    degrees = found.crs == WGS84
    for number, (shape, properties) in enumerate(
        zip(found.shapes, found.attributes, strict=True), 1
    ):
        row = {field_of(str(name)): value for name, value in properties.items()}
        if shape.geom_type != "Point" or not {"outcome", "count"} & row.keys():
            passed += 1
            continue
        names = ("longitude", "latitude") if degrees else ("x", "y")
        row.pop("row", None), row.pop("col", None), row.pop("cell", None)
        value = row.pop("value", None)
        if value is not None:
            row["value"] = value if isinstance(value, list) else [value]
        row |= {names[0]: shape.x, names[1]: shape.y}
        reports.append(report_of(row, f"{path.name}, feature {number}: "))
    if not reports:
        raise InputError(f"{path} has no point with an outcome or a count")
    notes = [f"{path.name}: {passed} feature(s) without an outcome passed over"] if passed else []
    return reports, notes, "" if degrees else crs_name(found.crs)


def place_at(text: str, crs: str, option: str) -> tuple[str, float, float]:
    """'52.5163,13.3777' -> latitude and longitude; with a map's name, east and north."""
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{option} {shown(text)}: give latitude and longitude, like 52.5163,13.3777, or east "
            "and north with --crs"
        ) from None
    on_map = bool(crs) and not named_crs(crs, "--crs").is_geographic
    return ("map" if on_map else "degrees"), first, second
