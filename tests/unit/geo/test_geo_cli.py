"""Real places on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import LAT, LON, polygon, ring

from engram.campaign import open_campaign
from engram.cli.main import main


@pytest.fixture
def park(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGRAM_DB", str(tmp_path / "c.db"))
    return polygon(tmp_path / "park.geojson", ring())


def run(line: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(line.split()) == code
    shown = capsys.readouterr()
    if code:
        assert shown.err.count("\n") == 1
        assert shown.out == ""
    return shown.err if code else shown.out


def test_the_fixed_forms(park: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = run(
        "campaign create p --area park.geojson --cell-size 250m --budget 20 --policy random --json",
        capsys,
    )
    facts = json.loads(made)
    assert facts["crs"] == "EPSG:32633"
    assert "cells of 250 m in EPSG:32633" in facts["place"]
    run("campaign ask p -n 3 --gpx out.gpx", capsys)
    assert Path("out.gpx").read_text().count("<wpt ") == 3
    assert "1 measurement(s)" in run(f"campaign tell p --at {LAT},{LON} --outcome 1", capsys)
    for suffix in ("gpkg", "geojson", "kml", "gpx", "tif", "csv", "json", "npz"):
        run(f"campaign export p -o map.{suffix}", capsys)
        assert Path(f"map.{suffix}").stat().st_size > 100
    near = run(f"campaign peek p -n 1 --from {LAT},{LON} --rank per-cost --json", capsys)
    assert json.loads(near)[0]["cell"]


def test_crews_on_the_command_line(park: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("campaign create p --area park.geojson --cell-size 500m --budget 9 --policy random", capsys)
    line = f"campaign ask p -n 5 --crews 2 --from {LAT},{LON} --hours 5 --geojson t.geojson --json"
    answer = json.loads(run(line, capsys))
    assert len(answer["queries"]) == 5
    assert sum(len(tour["queries"]) for tour in answer["tours"]) == 5
    kinds = {f["geometry"]["type"] for f in json.loads(Path("t.geojson").read_text())["features"]}
    assert kinds == {"Point", "LineString"}
    said = run(f"campaign ask p -n 2 --crews 1 --from {LAT},{LON} --hours 5", capsys)
    assert "crew 1: Q6 Q7; 2 visits" in said


REFUSED = {
    "campaign create q --area park.geojson --budget 9": "--area needs --cell-size",
    "campaign create q --area park.geojson --cell-size 250 --budget 9": "has no unit",
    "campaign create q --size 4,4 --cell-size 250m --budget 9": "--cell-size needs --area",
    "campaign create q --size 4,4 --area park.geojson --cell-size 250m --budget 9": "give the area",
    "campaign create q --area park.geojson --cell-size 9km --budget 9": "larger than the area",
    "campaign create q --area no.geojson --cell-size 9km --budget 9": "no file at",
    "campaign create q --area park.geojson --cell-size 250m --budget 9 --crs EPSG:1": "no coord",
    "campaign create q --area park.geojson --cell-size 250m --budget 9 --preview x.jpg": "PNG",
    "area show park.geojson --cell-size 250m --cost no.tif": "no file at",
    "campaign ask p -n 2 --crews 2": "--crews needs --from LAT,LON",
    "campaign ask p -n 2 --hours 2": "--hours needs --crews",
    "campaign ask p -n 2 --crews 2 --from 1 --hours 2": "give latitude and longitude",
    "campaign ask p -n 2 --crews 2 --from 52.4,13.2 --hours 2 --speed 3": "has no unit",
    "campaign ask p -n 2 --gpx out.txt": "ends in .gpx",
    "campaign ask plain -n 2 --gpx out.gpx": "no place on Earth",
    "campaign tell plain --at 52,13 --outcome 1": "no place on Earth",
    "campaign tell p --at 52.48,13.25 --cell 1,1 --outcome 1": "give --cell R,C (or --at LAT,LON)",
    "area layers park.geojson --records no.csv --out l.tif": "give --cell-size",
}


def test_refusals_write_nothing(park: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("campaign create p --area park.geojson --cell-size 500m --budget 9 --policy random", capsys)
    run("campaign create plain --size 4,4 --budget 9 --policy random", capsys)
    before = sorted(path.name for path in Path().iterdir())
    for line, words in REFUSED.items():
        assert words in run(line, capsys, code=2), line
    assert sorted(path.name for path in Path().iterdir()) == before
    assert open_campaign("p").refresh().seq == 1


def test_what_was_reserved_is_said_when_the_file_cannot_be_written(
    park: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("campaign create p --area park.geojson --cell-size 500m --budget 9 --policy random", capsys)
    Path("out.gpx").mkdir()
    assert "reserved: query 1 at" in run("campaign ask p --gpx out.gpx", capsys, code=2)
    run("campaign export p -o again.gpx", capsys)
    assert "<name>Q1</name>" in Path("again.gpx").read_text()
