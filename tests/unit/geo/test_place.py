"""Place -> cell -> centre -> cell, in thirty coordinate systems and anywhere on the globe."""

from __future__ import annotations

import io
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyproj import CRS

from engram.errors import InputError
from engram.geo.crs import (
    GEOD,
    TRUE_AREA,
    Bounds,
    chosen_crs,
    crs_name,
    crs_words,
    equal_area_crs,
    file_crs,
    local_crs,
    moved,
    named_crs,
)
from engram.geo.place import Place
from engram.geo.rasters import geotiff_of, on_cells
from engram.grid import Grid

CODES = (
    3035, 32633, 32601, 32660, 32755, 32719, 25832, 25833, 27700, 2154, 3006, 2180, 5514, 31370,
    28992, 21781, 2056, 3067, 3413, 3031, 3577, 5070, 3979, 2193, 6933, 3857, 2326, 3347, 8857,
    4326,
)  # fmt: skip
"""Zones of UTM, national maps, polar ones, those of continents, of the world, and degrees."""

unit = st.floats(0, 1)


def spot(crs: CRS, u: float, v: float) -> tuple[float, float]:
    """A place in the middle of where a system is used."""
    use = crs.area_of_use
    assert use is not None
    east = use.east if use.east > use.west else use.east + 360
    lon = use.west + (0.25 + 0.5 * u) * (east - use.west)
    lat = use.south + (0.2 + 0.6 * v) * (use.north - use.south)
    return (lon + 180) % 360 - 180, lat


def turned(x: float, y: float, side: float, angle: float, cell: tuple[int, int]) -> Grid:
    """A grid of 12 x 9 cells with a corner at x, y, turned by an angle."""
    c, s = math.cos(angle), math.sin(angle)
    h, w = cell
    transform = (side / w * c, side / h * s, x, side / w * s, -side / h * c, y)
    return Grid(12 * h, 9 * w, cell=cell, transform=transform, crs="EPSG:4326")


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=6)
@given(u=unit, v=unit, r=unit, c=unit, angle=st.floats(0, 6.28), side=st.floats(5, 5000))
def test_a_place_is_in_the_cell_whose_centre_is_nearest(
    code: int, u: float, v: float, r: float, c: float, angle: float, side: float
) -> None:
    crs = CRS.from_epsg(code)
    lon, lat = spot(crs, u, v)
    x, y = (float(a) for a in moved(CRS.from_epsg(4326), crs, lon, lat))
    if crs.is_geographic:
        side /= 111_000
    grid = turned(x, y, side, angle, (2, 3))
    place = Place(Grid(grid.height, grid.width, cell=grid.cell, transform=grid.transform,
                       crs=f"EPSG:{code}"))  # fmt: skip
    assert place.sides == pytest.approx((side, side))
    row, col = r * 11.998 + 0.001, c * 8.998 + 0.001
    here = tuple(float(a) for a in place.xy(row, col))
    back = tuple(float(a) for a in place.on_map(*place.degrees(*here)))
    assert np.hypot(here[0] - back[0], here[1] - back[1]) < 1e-3 * side
    cell = place.cell_at(*back)
    assert cell in {(int(row + d), int(col + e)) for d in (-1e-3, 1e-3) for e in (-1e-3, 1e-3)}
    assert cell is not None
    assert place.cell_at(*place.on_map(*place.latlon(cell))) == cell  # type: ignore[arg-type]
    centre = [float(a[0]) for a in place.centres([place.grid.index(cell)])]
    assert np.hypot(centre[0] - here[0], centre[1] - here[1]) <= side * 0.7072


@settings(max_examples=40)
@given(lon=st.floats(-172, 172), lat=st.floats(-80, 80), size=st.floats(0.01, 4))
@example(lon=0.0, lat=0.0, size=4.0)
@example(lon=6.0, lat=1.0, size=2.0)
def test_cells_have_the_area_they_claim(lon: float, lat: float, size: float) -> None:
    wide = min(size / math.cos(math.radians(lat)), 7.0)
    bounds = Bounds(lon - wide, lat - size, lon + wide, lat + size)
    crs = local_crs(bounds, None)
    for at in ((bounds.west, bounds.south), (bounds.east, bounds.north), bounds.middle):
        x, y = (float(v) for v in moved(CRS.from_epsg(4326), crs, *at))
        grid = Grid(1, 1, transform=(100.0, 0.0, x, 0.0, -100.0, y), crs=crs_name(crs))
        corners = Place(grid).degrees(*Place(grid).xy([0, 0, 1, 1], [0, 1, 1, 0]))
        area = abs(GEOD.polygon_area_perimeter(corners[1], corners[0])[0])
        assert abs(area / 1e4 - 1) <= TRUE_AREA + 2e-5, crs_name(crs)


@settings(max_examples=12)
@given(
    code=st.sampled_from(CODES),
    u=unit,
    v=unit,
    angle=st.sampled_from((0.0, 0.0, 0.3, 2.0)),
    seed=st.integers(0, 99),
)
def test_written_rasters_are_read_back_equal(
    code: int, u: float, v: float, angle: float, seed: int
) -> None:
    crs = CRS.from_epsg(code)
    x, y = (float(a) for a in moved(CRS.from_epsg(4326), crs, *spot(crs, u, v)))
    grid = turned(x, y, 0.01 if crs.is_geographic else 500.0, angle, (1, 1))
    place = Place(replace(grid, crs=f"EPSG:{code}"))
    values = np.random.default_rng(seed).normal(size=grid.n_cells).astype(np.float32)
    values[seed % grid.n_cells] = np.nan
    data = geotiff_of(place, {"one": values.astype(float), "two": -values.astype(float)})
    read = tifffile.imread(io.BytesIO(data))
    assert np.array_equal(read[..., 0].ravel(), values, equal_nan=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tif"
        path.write_bytes(data)
        back = on_cells(path, place, "two")
    assert np.allclose(back.values, -values, equal_nan=True)


def test_edges_nearest_cells_and_other_ends_of_the_world() -> None:
    closed = np.zeros((4, 4), bool)
    closed[0] = True
    grid = Grid(4, 4, closed=closed, transform=(100, 0, 380_000, 0, -100, 5_820_000),
                crs="EPSG:32633")  # fmt: skip
    place = Place(grid)
    assert place.cell_at(380_400, 5_819_600) == (3, 3)
    assert place.cell_at(380_400.1, 5_819_600) is None
    assert place.cell_at(float("inf"), 0) is None
    assert place.nearest(380_450, 5_819_650, ~closed.ravel()) == ((3, 3), 50.0)
    assert place.nearest(380_050, 5_819_950, ~closed.ravel()) == ((1, 0), 50.0)
    assert place.nearest(0, 0, np.zeros(16, bool)) is None
    with pytest.raises(InputError, match="no place on Earth"):
        Place(Grid(2, 2))


def test_systems_are_named_refused_and_rid_of_files() -> None:
    assert crs_name(named_crs(" epsg:25833 ", "--crs")) == "EPSG:25833"
    laea = crs_name(equal_area_crs(13.4, 52.5))
    assert crs_words(laea) == "an equal-area map around 52.50, 13.40"
    assert "52.5" in file_crs(laea, "x").to_wkt()
    for text in ("", "EPSG:999999", "nonsense", "+proj=longlat +nadgrids=/etc/passwd +type=crs x="):
        with pytest.raises(InputError, match="--crs"):
            named_crs(text, "--crs")
    with pytest.raises(InputError, match="x: its coordinate system"):
        file_crs("+proj=longlat +ellps=bessel +nadgrids=/etc/passwd +type=crs", "x")
    berlin = Bounds(13, 52, 14, 53)
    with pytest.raises(InputError, match="not a map in metres"):
        chosen_crs("EPSG:4326", berlin)
    with pytest.raises(InputError, match=r"errs by \d+\.\d% in areas"):
        chosen_crs("EPSG:3857", berlin)
    assert "err by 0.1" in chosen_crs("EPSG:32632", Bounds(13, 52, 13.1, 52.1))[1]
