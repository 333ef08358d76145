"""From files of real places to grids."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import shapely
from places import LAT, LON, box, geotiff, polygon, ring

from engram.errors import InputError
from engram.geo.area import AreaPlan, read_area
from engram.geo.coverage import shares
from engram.geo.picture import area_title, draw_area
from engram.geo.place import Place


def test_shares_are_those_of_every_cell_by_itself() -> None:
    star = shapely.Point(9, 7).buffer(6).difference(shapely.box(8, 6, 9.3, 20))
    found = shares(star, (0, 15), 1.5, 9, 11)
    for row in range(9):
        for col in range(11):
            cell = shapely.box(col * 1.5, 15 - row * 1.5 - 1.5, col * 1.5 + 1.5, 15 - row * 1.5)
            assert found[row, col] == pytest.approx(star.intersection(cell).area / 2.25, abs=1e-8)


def test_a_park_becomes_a_grid(tmp_path: Path) -> None:
    park = polygon(tmp_path / "park.geojson", ring())
    zone = polygon(tmp_path / "zone.geojson", box(LON, LAT, LON + 0.01, LAT + 0.005))
    area = read_area(AreaPlan(park, 250.0, no_go=(zone,)))
    grid, place = area.grid, Place(area.grid)
    assert grid.crs == "EPSG:32633"
    assert grid.transform is not None
    assert [v % 250 for v in grid.transform[2::3]] == [0, 0]
    assert place.sides == (250, 250)
    assert area.words(30) == (
        f"{grid.n_cells:,} cells of 250 m in EPSG:32633, {len(grid.open_cells)} open, "
        f"{grid.n_cells * 0.0625:.3g} km2; 30 visits see {30 / len(grid.open_cells):.1%}"
    ).replace("%", " %")
    outline = shapely.geometry.shape(area.facts["outline"])
    barred = shapely.geometry.shape(area.facts["no_go"])
    for index, cell in enumerate(place.outlines()):
        share = cell.intersection(outline).difference(barred).area / cell.area
        if share < 0.499 or barred.contains(cell.centroid):
            assert grid.closed.flat[index]
        if share > 0.501 and not barred.covers(cell.centroid):
            assert not grid.closed.flat[index]
    assert len(area.facts["blocked"]) > 5
    assert [f["name"] for f in area.facts["files"]] == ["park.geojson", "zone.geojson"]
    assert draw_area(grid, area.facts, area_title("park", grid)).startswith(b"\x89PNG")


def test_all_formats_of_one_place_give_one_grid(tmp_path: Path) -> None:
    import geopandas

    points = ring()
    park = polygon(tmp_path / "park.geojson", points)
    shape = geopandas.GeoDataFrame(geometry=[shapely.Polygon(points)], crs=4326)
    shape.to_file(tmp_path / "park.gpkg", driver="GPKG")
    shape.to_crs(25833).to_file(tmp_path / "there.gpkg", driver="GPKG", layer="a b")
    shape.to_file(tmp_path / "park.shp")
    shape.to_crs(25833).to_file(tmp_path / "utm.shp")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for part in ("shp", "shx", "dbf", "prj"):
            archive.write(tmp_path / f"park.{part}", f"in/park.{part}")
    corners = " ".join(f"{x},{y},12" for x, y in points)
    (tmp_path / "park.kml").write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><Polygon><outerBoundaryIs>'
        f"<LinearRing><coordinates>{corners}</coordinates></LinearRing></outerBoundaryIs></Polygon>"
        "</Placemark></Document></kml>"
    )
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25833"}}
    moved = [list(p) for p in shape.to_crs(25833).geometry[0].exterior.coords]
    polygon(tmp_path / "old.json", moved, crs=crs)
    wanted = read_area(AreaPlan(park, 200.0, "EPSG:32633")).grid
    names = ("park.gpkg", "park.shp", "utm.shp", "packed.zip", "park.kml", "old.json",
             "there.gpkg", "there.gpkg|layername=a b")  # fmt: skip
    for name in names:
        found = read_area(AreaPlan(tmp_path / name, 200.0, "EPSG:32633")).grid
        assert found == wanted, name
    kept = read_area(AreaPlan(tmp_path / "utm.shp", 200.0)).grid
    assert kept.crs == "EPSG:25833"


def test_a_raster_is_open_where_it_has_data(tmp_path: Path) -> None:
    values = np.ones((40, 60), np.float32)
    values[:, :30] = -9
    path = geotiff(tmp_path / "a.tif", values, (380_000, 5_820_000), 50, nodata=-9)
    grid = read_area(AreaPlan(path, 250.0)).grid
    assert (grid.rows, grid.cols) == (8, 12)
    assert grid.closed[:, :6].all()
    assert not grid.closed[:, 6:].any()


def test_cost_in_minutes_and_by_slope(tmp_path: Path) -> None:
    park = polygon(tmp_path / "park.geojson", ring())
    minutes = np.full((300, 300), 4.0, np.float32)
    minutes[:, 150:] = 8
    minutes[:, 100:110] = -1
    path = geotiff(tmp_path / "c.tif", minutes, (374_000, 5_823_000), 50, nodata=-1)
    area = read_area(AreaPlan(park, 250.0, cost=path))
    x, _ = Place(area.grid).centres()
    x = x.reshape(area.grid.rows, area.grid.cols)
    assert (area.grid.cost[x < 378_900] == 4).all()
    assert (area.grid.cost[x > 381_600] == 8).all()
    river = (x > 379_000) & (x < 379_500)
    assert area.grid.closed[river].all()
    assert set(area.facts["blocked"]) == set(np.flatnonzero(river))
    slope = read_area(AreaPlan(park, 250.0, cost=path, cost_is="slope")).grid
    steep = 250 / 1000 / (6 * np.exp(-3.5 * np.tan(np.radians(4)))) * 60
    assert slope.cost[x < 378_900] == pytest.approx(steep)
    with pytest.raises(InputError, match=r"--cost-is 'hours'"):
        read_area(AreaPlan(park, 250.0, cost=path, cost_is="hours"))
    far = geotiff(tmp_path / "far.tif", minutes, (500_000, 5_000_000), 50)
    with pytest.raises(InputError, match="does not cover the area"):
        read_area(AreaPlan(park, 250.0, cost=far))
    zero = geotiff(tmp_path / "zero.tif", minutes * 0, (374_000, 5_823_000), 50)
    with pytest.raises(InputError, match="0 minutes for a cell"):
        read_area(AreaPlan(park, 250.0, cost=zero))


def test_a_self_crossing_polygon_is_repaired_and_said(tmp_path: Path) -> None:
    bow = [[13.2, 52.4], [13.3, 52.5], [13.3, 52.4], [13.2, 52.5], [13.2, 52.4]]
    area = read_area(AreaPlan(polygon(tmp_path / "bow.geojson", bow), 500.0))
    assert area.notes == ["bow.geojson: 1 self-crossing polygon(s) repaired"]
    assert 0.2 < area.grid.closed.mean() < 0.6


BAD = {
    "date line": (box(179, 0, -179, 1), {}, "date line or a pole"),
    "pole": (box(10, 80, 20, 89.9), {}, "date line or a pole"),
    "metres": (box(380000, 5810000, 390000, 5820000), {}, "no degrees; name the coordinate"),
    "infinite": (box(13, 52, 14, float("inf")), {}, "beyond any map"),
    "unknown crs": (box(13, 52, 14, 53), {"crs": {"properties": {"name": "EPSG:999999"}}}, "known"),
    "linked crs": (box(13, 52, 14, 53), {"crs": {"type": "link"}}, "links are not followed"),
    "a line": (box(13, 52, 13, 53), {}, "no area"),
    "too fine": (box(13, 52, 14, 53), {}, "more than 10,000,000"),
    "too small": (box(13, 52, 13.00001, 52.00001), {}, "larger than the area"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_areas_are_named(tmp_path: Path, name: str) -> None:
    points, members, words = BAD[name]
    path = polygon(tmp_path / "a.geojson", points, **members)
    with pytest.raises(InputError, match=words):
        read_area(AreaPlan(path, 10.0))


def test_other_bad_files(tmp_path: Path) -> None:
    park = polygon(tmp_path / "park.geojson", ring())
    far = polygon(tmp_path / "far.geojson", box(0, 0, 1, 1))
    with pytest.raises(InputError, match="do not touch the area"):
        read_area(AreaPlan(park, 250.0, no_go=(far,)))
    with pytest.raises(InputError, match="no cell of 250 m lies mostly on open ground"):
        read_area(AreaPlan(park, 250.0, no_go=(park,)))
    (tmp_path / "points.geojson").write_text(json.dumps({"type": "Point", "coordinates": [1, 2]}))
    with pytest.raises(InputError, match="holds no polygon"):
        read_area(AreaPlan(tmp_path / "points.geojson", 250.0))
    plain = geotiff(tmp_path / "plain.tif", np.ones((4, 4), np.uint8), (5, 5), 2, crs="")
    with pytest.raises(InputError, match="does not say where it lies"):
        read_area(AreaPlan(plain, 250.0))
    with pytest.raises(InputError, match=r"give shapes as .geojson"):
        read_area(AreaPlan(tmp_path / "a.doc", 250.0))
