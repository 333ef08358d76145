"""Field files, each opened by a reader that did not write it."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyogrio
import pyogrio.raw
import pytest
import shapely
import tifffile
from places import LAT, LON, box, polygon, ring

from engram.campaign import Campaign, create_campaign, export
from engram.errors import InputError
from engram.geo.area import AreaPlan, read_area
from engram.geo.crews import Crews
from engram.geo.geopackage import read_layer
from engram.geo.place import Place
from engram.grid import Grid


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A park with two measurements, two crews out, and a name that XML does not like."""
    folder = tmp_path_factory.mktemp("field")
    park = polygon(folder / "park.geojson", ring())
    zone = polygon(folder / "zone.geojson", box(LON, LAT, LON + 0.008, LAT + 0.004))
    area = read_area(AreaPlan(park, 300.0, no_go=(zone,)))
    made = create_campaign(
        "a <park> & more", area.grid, 40, db=str(folder / "c.db"), policy="gp", area=area.facts
    )
    cells = [made.grid.at(i) for i in made.grid.open_cells[[3, 40]]]
    made.tell(cells[0], 1.0, by="anna")
    made.tell(cells[1], 0.0, by="ben & <co>")
    made.ask(6, by="base", outing=Crews(2, 6, (LAT, LON - 0.01), 6.0, 0.8, 10.0))
    return made


def _vector(
    path: Path, layer: str | None = None
) -> tuple[list[str], np.ndarray, dict[str, np.ndarray]]:
    """Names, shapes and columns of a layer, as GDAL reads it."""
    meta, _, shapes, columns = pyogrio.raw.read(path, layer=layer)
    names = list(meta["fields"])
    return names, shapely.from_wkb(shapes), dict(zip(names, columns, strict=True))


def test_geopackage(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "out.gpkg"
    assert export(campaign, path).count == 2
    assert export(campaign, path).count == 2  # a map may be replaced, a database not
    grid, place = campaign.grid, Place(campaign.grid)
    crs, blobs, rows = read_layer(path, "cells")
    assert crs == "EPSG:32633"
    assert len(blobs) == grid.n_cells
    shapes = shapely.from_wkb(blobs)
    assert shapely.area(shapes) == pytest.approx(90_000)
    assert all(s.equals_exact(o, 1e-6) for s, o in zip(shapes, place.outlines(), strict=True))
    scores = campaign.policy().current_scores()
    for index, row in enumerate(rows):
        assert (row["row"], row["col"]) == grid.at(index)
        if row["status"] == "closed":
            assert row["total"] is row["probability"] is None
        else:
            assert row["total"] == pytest.approx(scores.total[index])
        if row["status"] not in ("measured", "closed"):
            assert row["probability"] == pytest.approx(scores.probability[index])
            assert row["doubt"] == pytest.approx(scores.doubt[index])
    assert {"open", "closed", "measured", "out"} == {row["status"] for row in rows}
    told = read_layer(path, "measurements")[2]
    assert [(r["outcome"], r["by"]) for r in told] == [(1.0, "anna"), (0.0, "ben & <co>")]
    queries = read_layer(path, "queries")[2]
    assert [r["query"] for r in queries] == list(campaign.state.queries)
    assert all("chance of target" in r["why"] for r in queries)
    zones = read_layer(path, "area")[2]
    assert [r["zone"] for r in zones] == ["outline", "no_go"]
    assert sum(r["stops"] for r in read_layer(path, "tours")[2]) == 6
    assert set(np.array(pyogrio.list_layers(path))[:, 0]) == {
        "area", "cells", "queries", "measurements", "tours", "layer_styles",
    }  # fmt: skip


def test_styles_are_where_qgis_looks_for_them(campaign: Campaign, tmp_path: Path) -> None:
    export(campaign, tmp_path / "out.gpkg")
    base = sqlite3.connect(tmp_path / "out.gpkg")
    found = base.execute("SELECT f_table_name, styleQML, useAsDefault FROM layer_styles").fetchall()
    base.close()
    assert {name for name, _, _ in found} == {"area", "cells", "queries", "measurements", "tours"}
    assert all(default for _, _, default in found)
    for text in [(tmp_path / "out.qml").read_text(), *(text for _, text, _ in found)]:
        root = ElementTree.fromstring(text)
        renderer = root.find("renderer-v2")
        assert renderer is not None
        used = {e.get("symbol") for e in renderer.iter() if e.get("symbol")}
        assert used <= {s.get("name") for s in renderer.iter("symbol")}
    ranges = ElementTree.fromstring((tmp_path / "out.qml").read_text()).findall(".//range")
    uppers = [float(r.get("upper", "nan")) for r in ranges]
    assert uppers == sorted(uppers)
    assert uppers[-1] == pytest.approx(1.0)  # a find was made


def test_geojson(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "out.geojson"
    export(campaign, path)
    _, shapes, columns = _vector(path)
    layers = columns["layer"]
    points = shapes[layers == "measurements"]
    expected = [Place(campaign.grid).latlon(o.cell) for o in campaign.state.observations]
    assert [(p.y, p.x) for p in points] == [pytest.approx(e, abs=1e-6) for e in expected]
    assert (layers == "cells").sum() == len(campaign.grid.open_cells)
    lines = [shape for shape in shapes if shape.geom_type == "LineString"]
    assert (layers == "tours").sum() == len(lines) > 0
    told = campaign.tell_file(path)
    assert (told.cells, told.skipped) == ([], 2)


def test_kml(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "out.kml"
    export(campaign, path)
    layers = [name for name, _ in pyogrio.list_layers(path)]
    assert layers[:3] == ["area", "queries", "measurements"]
    _, shapes, columns = _vector(path, "measurements")
    expected = [Place(campaign.grid).latlon(o.cell) for o in campaign.state.observations]
    assert [(p.y, p.x) for p in shapes] == [pytest.approx(e, abs=1e-6) for e in expected]
    assert list(columns["Name"]) == ["1", "0"]
    area = read_area(AreaPlan(path, 300.0))  # its area can be read again
    assert area.grid.crs == campaign.grid.crs


def test_gpx(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "out.gpx"
    export(campaign, path)
    _, shapes, columns = _vector(path, "waypoints")
    queries = list(campaign.state.queries.values())
    assert list(columns["name"]) == [f"Q{q.query}" for q in queries]
    expected = [Place(campaign.grid).latlon(q.cell) for q in queries]
    assert [(p.y, p.x) for p in shapes] == [pytest.approx(e, abs=1e-6) for e in expected]
    assert all(text.startswith("chance of target") for text in columns["desc"])
    _, routes, about = _vector(path, "routes")
    assert list(about["name"]) == [f"crew {i + 1}" for i in range(len(routes))]
    assert sum(len(r.coords) - 2 for r in routes) == 6
    assert "finds expected" in about["desc"][0]


def test_geotiff_is_cloud_optimised(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "out.tif"
    export(campaign, path)
    assert b"LAYOUT=IFDS_BEFORE_DATA" in path.read_bytes()[:400]
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        pixels = page.asarray()
        scale, corner = page.tags["ModelPixelScaleTag"].value, page.tags["ModelTiepointTag"].value
        nodata = page.tags["GDAL_NODATA"].value
        metadata = page.tags["GDAL_METADATA"].value
        assert page.is_tiled
    assert (scale[:2], corner[3:5]) == ((300, 300), campaign.grid.transform[2::3])  # type: ignore[index]
    assert nodata.strip("\0") == "nan"
    for name in ("probability", "doubt", "expected_0", "visits"):
        assert f">{name}<" in metadata
    grid = campaign.grid
    assert pixels.shape == (grid.rows, grid.cols, 4)
    assert (np.isnan(pixels[..., 0]) == grid.closed).all()
    visits = np.zeros(grid.n_cells)
    visits[list(campaign.state.measurements)] = 1
    assert np.nansum(pixels[..., 3]) == visits.sum()
    chance = campaign.policy().current_scores().probability.reshape(grid.rows, grid.cols)
    free = ~grid.closed & (visits.reshape(grid.rows, grid.cols) == 0)
    assert pixels[free][:, 0] == pytest.approx(chance[free], rel=1e-6)
    assert pixels[visits.reshape(grid.rows, grid.cols) > 0][:, :2].tolist() == [[1, 0], [0, 0]]


def test_csv_json_and_npz(campaign: Campaign, tmp_path: Path) -> None:
    for suffix in (".csv", ".json", ".npz"):
        export(campaign, tmp_path / f"out{suffix}")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = [Place(campaign.grid).latlon(o.cell) for o in campaign.state.observations]
    found = [(float(r["latitude"]), float(r["longitude"])) for r in rows]
    assert found == [pytest.approx(e, abs=1e-6) for e in expected]
    assert campaign.tell_file(tmp_path / "out.csv").skipped == 2
    log = json.loads((tmp_path / "out.json").read_text())
    assert log["events"][0]["payload"]["grid"]["crs"] == "EPSG:32633"
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["outcomes"].tolist() == [1.0, 0.0]


def test_a_campaign_without_a_place_has_no_map(tmp_path: Path) -> None:
    plain = create_campaign("p", Grid(4, 4), 4, db=str(tmp_path / "c.db"), policy="random")
    for suffix in (".gpkg", ".geojson", ".kml", ".gpx", ".tif"):
        with pytest.raises(InputError, match="no place on Earth"):
            export(plain, tmp_path / f"x{suffix}")
    with pytest.raises(InputError, match=r"or a map: \.gpkg"):
        export(plain, tmp_path / "x.doc")
    assert not list(tmp_path.glob("x.*"))
