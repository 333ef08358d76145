"""Telling what a file or a place says: found on the grid, known ones skipped, the rest recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engram._files import read_json, sha256_of
from engram.campaign.answers import Told
from engram.campaign.model import canonical, digest
from engram.campaign.reports import Report, read_reports
from engram.campaign.state import State
from engram.errors import InputError, shown
from engram.grid import Cell
from engram.observation import Observation

if TYPE_CHECKING:
    from engram.campaign.campaign import Campaign

EXPECTED = {"by", "date", "note", "count", "latitude", "longitude", "waypoint", "query"}
"""What crews write beside a measurement; anything else is kept as well, and said."""


def tell_file(
    campaign: Campaign,
    path: Path,
    *,
    by: str = "",
    key: str | None = None,
    crs: str = "",
    combine: str = "any",
    fix: bool = False,
    detection: float | None = None,
    false_alarm: float | None = None,
    half_life: float | None = None,
) -> Told:
    """Record the measurements of a file: a table, JSON, NPZ, GPX or GeoJSON.

    Those that are known exactly so are skipped and counted.

    detection, false_alarm : how far visits can be trusted that do not say so themselves
    half_life : seconds in which a measurement loses half of its worth; its age is counted from its
        date to the day the campaign was created

    crs     : system of the file's x and y (or of degrees that are not WGS 84)
    combine : what many points in a cell come to: 'any', 'share' or 'mean'
    fix     : turn round swapped coordinates and leave out places outside, instead of refusing
    """
    reports, notes, own = _read(path)
    trust = [detection, false_alarm, half_life]
    said = [crs, combine, fix, *(trust if any(v is not None for v in trust) else [])]
    reports = [_trusted(campaign, one, detection, false_alarm, half_life) for one in reports]
    source = digest(sha256_of([path]), canonical(said))
    return _tell(campaign, reports, notes, by, key, source, (crs or own, combine, fix))


def _trusted(
    campaign: Campaign,
    report: Report,
    detection: float | None,
    false_alarm: float | None,
    half_life: float | None,
) -> Report:
    """A report that says itself how far it can be trusted, where anything was said of that."""
    if half_life is not None and not half_life > 0:
        raise InputError(f"half-life={half_life}: give a time above 0, like 2y")
    usual = campaign.seen_by(detection, false_alarm)
    own = report.seen_by(usual or campaign.state.spec.detection.at_first) or usual
    if half_life is not None:
        age = max(campaign.row.created - _date_of(report), 0.0)
        known = own or campaign.state.spec.detection.at_first
        own = known.aged(0.5 ** (age / half_life)) if age else known
    if own is None or (own.perfect and campaign.state.spec.detection.perfect):
        return replace(report, detection=None, false_alarm=None)
    campaign.seen_by(own.chance, own.false_alarm)  # refuses what the policy has no use for
    return replace(report, detection=own.chance, false_alarm=own.false_alarm)


def _date_of(report: Report) -> float:
    """When a report was made: a date, a date with a time, or a year (its middle)."""
    text = str(report.facts.get("date", "")).strip()
    try:
        if len(text) == 4 and text.isdigit():
            text += "-07-01"
        day = datetime.fromisoformat(text)
        return (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            f"{report.label}field date: {shown(text)} is not a date; with a half-life every "
            "measurement needs one, like 2021-05-30 or 2021"
        ) from None


def tell_at(
    campaign: Campaign,
    at: str,
    outcome: float,
    value: list[float] | None = None,
    *,
    noise: float = 0.0,
    detection: float | None = None,
    false_alarm: float | None = None,
    by: str = "",
    key: str | None = None,
    crs: str = "",
) -> Told:
    """Record one measurement at latitude,longitude, or at east,north of a map."""
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.telling import place_at

    report = Report(
        "", outcome, place=place_at(at, crs, "--at"), value=value, noise=noise, facts={}
    )
    report = _trusted(campaign, report, detection, false_alarm, None)
    trust = [v for v in (detection, false_alarm) if v is not None]
    source = digest(at, crs, canonical([outcome, value, noise, *trust]))
    return _tell(campaign, [report], [], by, key, source, (crs, "any", False))


def _read(path: Path) -> tuple[list[Report], list[str], str]:
    """Reports of a file, what was passed over, and the coordinate system it names."""
    suffix = path.suffix.lower()
    if suffix not in (".gpx", ".geojson") and not (suffix == ".json" and _is_geojson(path)):
        return read_reports(path), [], ""
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.telling import read_places

    return read_places(path)


def _is_geojson(path: Path) -> bool:
    data = read_json(path) if path.is_file() else None
    return isinstance(data, dict) and data.get("type") in ("FeatureCollection", "Feature")


def _tell(
    campaign: Campaign,
    reports: Sequence[Report],
    notes: list[str],
    by: str,
    key: str | None,
    source: str,
    how: tuple[str, str, bool],
) -> Told:
    state = campaign.refresh()
    left_out = 0
    strange = sorted({name for report in reports for name in report.facts} - EXPECTED)
    if strange:
        notes = [*notes, f"kept in the log as they are: {', '.join(strange)}"]
    if any(report.place is not None for report in reports):
        reports, said, left_out = _on_grid(state, reports, how)
        notes = [*notes, *said]
    fresh, skipped = _fresh(state, reports)
    known = key is not None and campaign.storage.find(campaign.row, key) is not None
    if not reports:
        raise InputError(f"nothing is left to tell: {'; '.join(notes)}")
    if not fresh and not known:
        told = Told(state.seq, "tell", campaign.now(), [])
    else:
        told = campaign.tell_many(
            [observation for _, observation in fresh] or [_measured(state, reports[0])],
            by=by,
            key=key,
            labels=[report.label for report, _ in fresh] or None,
            facts=[report.facts for report, _ in fresh] or None,
            source=source,
        )
    words = "; ".join([*([told.note] if told.note else []), *notes])
    return replace(told, note=words, skipped=skipped, left_out=left_out)


def _on_grid(
    state: State, reports: Sequence[Report], how: tuple[str, str, bool]
) -> tuple[list[Report], list[str], int]:
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.place import Place
    from engram.geo.telling import Finder, placed

    crs, combine, fix = how
    opened = ~state.base_closed
    opened[list(state.closed)] = False
    opened[list(state.measurements)] = True
    found = placed(reports, Finder(Place(state.grid), opened, crs, fix), combine)
    return found.reports, found.notes, found.left_out


def _fresh(state: State, reports: Sequence[Report]) -> tuple[list[tuple[Report, Observation]], int]:
    """Reports that are not in force exactly so, each once, and how many were."""
    fresh: list[tuple[Report, Observation]] = []
    known: dict[Cell, list[Observation]] = {}
    for observation in state.observations:
        known.setdefault(observation.cell, []).append(observation)
    skipped = 0
    for report in reports:
        observation = _measured(state, report)
        visits = known.setdefault(observation.cell, [])
        same = next((i for i, one in enumerate(visits) if _same(observation, one)), None)
        doubted = np.isfinite(state.worth_of_report(observation))
        if same is not None:
            skipped += 1
            if doubted:  # a second row that says the same is a second visit
                visits.pop(same)
            continue
        if not doubted:
            visits.append(observation)
        fresh.append((report, observation))
    return fresh, skipped


def _measured(state: State, report: Report) -> Observation:
    assert report.cell is not None
    return report.observation(state.grid, report.cell)


def _same(one: Observation, other: Observation) -> bool:
    return (
        one.outcome == other.outcome
        and one.noise == other.noise
        and one.detection == other.detection
        and bool(np.array_equal(one.content, other.content))
    )
