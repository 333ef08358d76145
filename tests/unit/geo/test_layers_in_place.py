"""Layers of GeoTIFFs on an area that has a place."""

from pathlib import Path

import numpy as np
import pytest
from places import geotiff

from engram.errors import InputError
from engram.grid import Grid
from engram.layer_files import read_belief, read_layer

pytest.importorskip("rasterio")

WEST, NORTH, SIDE = 500_000.0, 5_400_000.0, 100.0
CORNER = (WEST - SIDE, NORTH + SIDE / 2)
GRID = Grid(3, 4, transform=(SIDE, 0.0, WEST, 0.0, -SIDE, NORTH), crs="EPSG:32633")


def test_a_raster_is_looked_up_where_the_cells_lie(tmp_path: Path) -> None:
    """The raster starts two pixels west and one north of the area, in pixels of half a cell."""
    pixels = np.arange(10 * 12, dtype=np.float32).reshape(10, 12)
    path = geotiff(tmp_path / "dem.tif", pixels, CORNER, SIDE / 2)
    layer = read_layer("dem", path, GRID)
    part = pixels[1:7, 2:10].reshape(3, 2, 4, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(layer.values, part.ravel())
    kinds = (pixels % 3).astype(np.uint8)
    kinds[1:3, 2:4] = [[2, 2], [2, 1]]
    path = geotiff(tmp_path / "kinds.tif", kinds, CORNER, SIDE / 2)
    cover = read_layer("cover", path, GRID, "kinds")
    assert cover.categories == ("0", "1", "2")
    assert cover.values[0] == 2


def test_a_raster_of_another_place_is_refused(tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).uniform(size=(6, 8)).astype(np.float32)
    path = geotiff(tmp_path / "far.tif", pixels, (WEST + 50_000, NORTH), SIDE / 2)
    with pytest.raises(InputError, match="does not cover the area"):
        read_layer("dem", path, GRID)
    with pytest.raises(InputError, match="does not cover the area"):
        read_belief(path, GRID)
