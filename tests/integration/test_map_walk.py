"""The walk of the page about maps, as it is printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyogrio.raw
import rasterio
import shapely

from engram.campaign import open_campaign
from engram.geo.place import Place
from engram.geo.tours import tours_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_walk_on_the_map(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    section = page.split("## A walk")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    assert len(blocks) == 5
    said = re.findall(r"\n```\n(\d.*?)\n```", section)
    for file in (ROOT / "examples" / "park").iterdir():
        shutil.copy(file, tmp_path)
    script = "\n".join(["set -e", f'engram() {{ "{sys.executable}" -m engram "$@"; }}', *blocks])
    environment = {**os.environ, "ENGRAM_HOME": str(tmp_path / "home")}
    environment.pop("ENGRAM_DB", None)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    out = " ".join(done.stdout.split())
    assert said == [done.stdout.splitlines()[0]]
    assert "4 measurement(s) recorded" in out
    assert "refused" in out
    assert re.search(r"south.csv, line 4: .* seem to be swapped; turned round", done.stderr)
    assert "2 measurement(s) recorded as event 4, 1 known already, 1 left out" in out
    assert re.search(r"line 5: place 52.41, 13.1 lies outside the area, [\d.]+ km from", out)
    assert "12 suggestions: the replay agrees" in out
    _look_at_the_campaign(tmp_path)
    _look_at_the_maps(tmp_path)


def _look_at_the_campaign(folder: Path) -> None:
    campaign = open_campaign("park", db=str(folder / "home" / "campaigns.db"))
    place, state = Place(campaign.grid), campaign.state
    assert len(state.measurements) == 7
    assert sum(o.outcome > 0 for o in state.observations) == 2
    tours = tours_of(campaign, all_of_them=True)
    assert len(tours) == 3
    assert max(tour.minutes for tour in tours) <= 360
    zones = shapely.union_all(place.outlines(state.spec.area["blocked"])).buffer(-1)
    for tour in tours:
        assert not shapely.LineString(tour.line).intersects(zones)
    for name in ("park.png", "today.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def _look_at_the_maps(folder: Path) -> None:
    meta, _, shapes, columns = pyogrio.raw.read(folder / "park.gpkg", layer="measurements")
    told = dict(zip(meta["fields"], columns, strict=True))
    assert sorted(told["outcome"]) == [0, 0, 0, 0, 0, 1, 1]
    with rasterio.open(folder / "park.tif") as raster:
        assert raster.descriptions == ("probability", "doubt", "expected_0", "visits")
        assert raster.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        visits = raster.read(4)
        assert np.nansum(visits) == 7
        for shape, outcome in zip(shapely.from_wkb(shapes), told["outcome"], strict=True):
            row, col = raster.index(shape.x, shape.y)
            assert visits[row, col] == 1
            assert raster.read(1)[row, col] == outcome
