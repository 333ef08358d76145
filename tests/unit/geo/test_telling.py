"""Measurements told by place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from places import polygon, ring

from engram.campaign import Campaign, create_campaign, history
from engram.campaign.telling import tell_at
from engram.errors import ConflictError, InputError
from engram.geo.area import AreaPlan, read_area
from engram.geo.place import Place

GPX = '<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="x">{}</gpx>'


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], Campaign]:
    """A campaign in a park near Berlin."""

    def made() -> Campaign:
        area = read_area(AreaPlan(polygon(tmp_path / "park.geojson", ring()), 250.0))
        return create_campaign(
            "park", area.grid, 40, db=str(tmp_path / "c.db"), policy="random", area=area.facts
        )

    return made


def spots(campaign: Campaign, count: int) -> list[tuple[tuple[int, int], float, float]]:
    """Some open cells with the latitude and longitude of their centres."""
    cells = [campaign.grid.at(i) for i in campaign.grid.open_cells[:: 150 // count][:count]]
    return [(cell, *Place(campaign.grid).latlon(cell)) for cell in cells]


def test_one_place(make: Callable[[], Campaign]) -> None:
    campaign = make()
    (cell, lat, lon), (other, *_), (third, *_) = spots(campaign, 3)
    assert tell_at(campaign, f"{lat},{lon}", 1.0).cells == [list(cell)]
    east, north = (float(v[0]) for v in Place(campaign.grid).centres([campaign.grid.index(other)]))
    assert tell_at(campaign, f"{east},{north}", 0.0, crs="EPSG:32633").cells == [list(other)]
    facts = history(campaign)[-1].payload["items"][0]["facts"]
    there = Place(campaign.grid).latlon(other)
    assert (facts["latitude"], facts["longitude"]) == pytest.approx(there, abs=1e-6)
    lat, lon = Place(campaign.grid).latlon(third)
    assert tell_at(campaign, f"{lat},{lon}", 1.0, crs="EPSG:4258").cells == [list(third)]
    assert campaign.state.spec.area["outline"]["type"] == "Polygon"


def test_places_that_are_refused(make: Callable[[], Campaign]) -> None:
    campaign = make()
    cell, lat, lon = spots(campaign, 3)[1]
    campaign.close([cell])
    closed = r"lies in cell \(\d+, \d+\), which is closed, 1\d\d m from the nearest open cell"
    for text, words in {
        f"{lat},{lon}": closed,
        f"{lon},{lat}": "lies outside the area, [\\d,]+ km from the nearest open cell",
        "0,0": "lies outside the area, [\\d,]+ km from",
        "95,13": "lies outside the area, far from it",
        "x": "give latitude and longitude, like",
        "1,2,3": "give latitude and longitude, like",
    }.items():
        with pytest.raises(InputError, match=words):
            tell_at(campaign, text, 1.0)
    _, lat, lon = spots(campaign, 3)[0]
    with pytest.raises(
        InputError, match=r"latitude and longitude seem to be swapped; turned round"
    ):
        tell_at(campaign, f"{lon},{lat}", 1.0)
    with pytest.raises(InputError, match="no coordinate system"):
        tell_at(campaign, f"{lat},{lon}", 1.0, crs="nonsense")


def test_tables_with_coordinates(make: Callable[[], Campaign], tmp_path: Path) -> None:
    campaign = make()
    (a, lat, lon), (b, lat2, lon2), (c, lat3, lon3) = spots(campaign, 3)
    path = tmp_path / "crew.csv"
    path.write_text(
        f"Latitude,LON,count,observer\n{lat},{lon},0,anna\n{lat + 1e-4},{lon},4,ben\n"
        f"{lat2},{lon2},0,\n{lon3},{lat3},2,swapped\n52.2,13.2,1,outside\n"
    )
    with pytest.raises(InputError, match=r"crew.csv, line 5: .*swapped.*, or --fix"):
        campaign.tell_file(path)
    assert not campaign.state.measurements
    told = campaign.tell_file(path, fix=True)
    assert (len(told.cells), told.left_out) == (3, 1)
    assert re.search("line 5: .* swapped; turned round it lies in cell", told.note)
    assert re.search("line 6: .* lies outside the area, .* km from .*; left out", told.note)
    assert "1 cell(s) with several points: 1 if any found target (--combine)" in told.note
    outcomes = {
        m.observation.cell: m.observation.outcome for m in campaign.state.measurements.values()
    }
    assert outcomes == {a: 1.0, b: 0.0, c: 1.0}
    points = history(campaign)[-1].payload["items"][0]["facts"]["points"]
    assert [p["by"] for p in points] == ["anna", "ben"]
    assert campaign.tell_file(path, fix=True).skipped == 3
    with pytest.raises(ConflictError, match="measured already"):
        campaign.tell_file(path, fix=True, combine="share")


@pytest.mark.parametrize(("rule", "outcome"), [("any", 1.0), ("share", 2 / 3), ("mean", 0.5)])
def test_rules_of_many_points(
    make: Callable[[], Campaign], tmp_path: Path, rule: str, outcome: float
) -> None:
    campaign = make()
    _, lat, lon = spots(campaign, 1)[0]
    path = tmp_path / "crew.csv"
    path.write_text("lat;lon;outcome\n" + "".join(f"{lat};{lon};{y}\n" for y in (0, "0,5", 1)))
    campaign.tell_file(path, combine=rule)
    assert campaign.state.observations[0].outcome == pytest.approx(outcome)
    with pytest.raises(InputError, match="--combine 'median'"):
        campaign.tell_file(path, combine="median")


def test_columns_of_a_map_need_its_name(make: Callable[[], Campaign], tmp_path: Path) -> None:
    campaign = make()
    cell = spots(campaign, 1)[0][0]
    x, y = (float(v[0]) for v in Place(campaign.grid).centres([campaign.grid.index(cell)]))
    path = tmp_path / "crew.csv"
    path.write_text(f"Easting,Northing,outcome\n{x},{y},1\n")
    with pytest.raises(InputError, match=r"need the system they are in: --crs NAME .*EPSG:32633"):
        campaign.tell_file(path)
    assert campaign.tell_file(path, crs="EPSG:32633").cells == [list(cell)]


def test_waypoints(make: Callable[[], Campaign], tmp_path: Path) -> None:
    campaign = make()
    places = spots(campaign, 5)
    names = ["Q1 yes", "Q2", "nest count=3", "car park", "0.5"]
    said = ["", "<desc>No, only tracks</desc><time>2026-05-01T08:00:00Z</time>", "", "", ""]
    body = "".join(
        f'<wpt lat="{lat}" lon="{lon}"><name>{name}</name>{more}</wpt>'
        for (_, lat, lon), name, more in zip(places, names, said, strict=True)
    )
    path = tmp_path / "back.gpx"
    path.write_text(GPX.format(body))
    told = campaign.tell_file(path)
    assert [o.outcome for o in campaign.state.observations] == [1.0, 0.0, 1.0, 0.5]
    assert told.note == "back.gpx: 1 waypoint(s) without an outcome passed over"
    facts = history(campaign)[-1].payload["items"][1]["facts"]
    assert (facts["waypoint"], facts["note"], facts["date"]) == (
        "Q2", "No, only tracks", "2026-05-01T08:00:00Z",
    )  # fmt: skip
    path.write_text(GPX.format('<wpt lat="1" lon="2"><name>car park</name></wpt>'))
    with pytest.raises(InputError, match="no waypoint with an outcome"):
        campaign.tell_file(path)


def test_points_of_geojson(make: Callable[[], Campaign], tmp_path: Path) -> None:
    campaign = make()
    places = spots(campaign, 2)
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, lat]},
         "properties": {"Found": found, "Note": "x"}}
        for (_, lat, lon), found in zip(places, (True, 0), strict=True)
    ]  # fmt: skip
    path = tmp_path / "back.json"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    told = campaign.tell_file(path)
    assert told.cells == [list(cell) for cell, *_ in places]
    assert np.allclose([o.outcome for o in campaign.state.observations], [1, 0])
