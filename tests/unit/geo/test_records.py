"""Records of who was seen where on the cells of an area, and GeoTIFF in searches."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from places import LAT, LON, geotiff, polygon, ring

from engram._files import read_image
from engram.cli.main import main
from engram.errors import InputError
from engram.geo.rasters import read_bands
from engram.grid import Grid
from engram.layer_files import read_layers
from engram.tasks.raster import raster_task

HEAD = "gbifID\tspecies\tdecimalLatitude\tdecimalLongitude\tcoordinateUncertaintyInMeters\t"
ROWS = [
    ("Lullula arborea", LAT, LON, "30", "PRESENT"),
    ("Lullula arborea", LAT + 0.0002, LON, "", "PRESENT"),
    ('Parus "major', LAT + 0.01, LON, "100", "PRESENT"),
    ("Lullula arborea", LAT - 0.01, LON, "5000", "PRESENT"),
    ("Lullula arborea", LAT - 0.008, LON + 0.004, "", "ABSENT"),
    ("Lullula arborea", 40.0, 10.0, "", "PRESENT"),
    ("Lullula arborea", "", "", "", "PRESENT"),
]


def table(path: Path) -> Path:
    """Tab-separated Darwin Core as it is downloaded: a lone quote, gaps, an absence."""
    lines = ["\t".join(map(str, (i, *row))) for i, row in enumerate(ROWS)]
    path.write_text(HEAD + "occurrenceStatus\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_records_become_layers_and_surveys(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    park = polygon(tmp_path / "park.geojson", ring())
    db, out, surveys = tmp_path / "c.db", tmp_path / "layers.tif", tmp_path / "told.csv"
    line = f"area layers {park} --records {table(tmp_path / 'o.csv')} --cell-size 250m --out {out}"
    words = [*line.split(), "--species", "Lullula arborea", "--surveys", str(surveys)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "4 of 6 records used: 1 outside, 1 less certain than 250 m" in said
    assert "3 cells with records, 1 of them with Lullula arborea" in said
    pixels = tifffile.imread(out)
    assert np.expm1(pixels[..., 0]).sum() == pytest.approx(4)
    assert np.expm1(pixels[..., 1]).max() == pytest.approx(2)
    assert sorted(pixels[..., 2][np.isfinite(pixels[..., 2])]) == [0, 0, 1]
    with surveys.open(newline="") as file:
        assert sorted(float(r["outcome"]) for r in csv.DictReader(file)) == [0, 0, 1]
    create = f"campaign create c --area {park} --cell-size 250m --budget 9 --policy gp --db {db}"
    assert main([*create.split(), "--layer", f"effort={out}", "--json"]) == 0
    assert main(["campaign", "tell", "c", "--file", str(surveys), "--db", str(db)]) == 0
    again = f"area layers c --records {tmp_path / 'o.csv'} --db {db} --out {out} --json"
    capsys.readouterr()
    assert main(again.split()) == 0
    assert json.loads(capsys.readouterr().out)["bands"] == ["effort", "target", "presence"]
    assert main([*words, "--species", "Nobody"]) == 2
    assert "no record of species 'Nobody'" in capsys.readouterr().err


def test_a_layer_is_the_band_of_its_name(tmp_path: Path) -> None:
    ramp = np.tile(np.arange(8, dtype=np.float32), (8, 1))
    values = np.stack([ramp, 10 * ramp])
    path = geotiff(tmp_path / "l.tif", values, (379_000, 5_818_000), 100)
    import rasterio

    with rasterio.open(path, "r+") as file:
        file.descriptions = ("first", "effort")
    grid = Grid(4, 4, transform=(200, 0, 379_000, 0, -200, 5_818_000), crs="EPSG:32633")
    for name, most in (("effort", 65.0), ("other", 6.5)):
        found = read_layers(grid, [f"{name}={path}"])
        assert found is not None
        assert found.layers[0].values.max() == most


def test_a_search_reads_geotiff(tmp_path: Path) -> None:
    values = np.zeros((5, 24, 24), np.uint16)
    values[:3, 4:8, 4:8] = 4000
    values[:, :, 16:] = 65535
    path = geotiff(tmp_path / "a.tif", values, (379_000, 5_818_000), 10, nodata=65535)
    pixels, blank = read_bands(path)
    assert (pixels.shape, blank.sum()) == ((3, 24, 24), 24 * 8)
    made = raster_task(path, above=1000, cell=(4, 4))
    assert made.task.grid.closed.sum() == 12
    assert made.task.facts["outcomes"].sum() == 1
    assert any("33% of the pixels are nodata" in note for note in made.notes)
    with pytest.raises(InputError, match="every pixel is nodata"):
        raster_task(geotiff(path, values[:, :, 16:], (0, 0), 10, nodata=65535), above=1)


def test_a_benchmark_reads_geotiff_of_many_bands(tmp_path: Path) -> None:
    values = np.arange(5 * 16, dtype=np.uint8).reshape(5, 4, 4)
    path = geotiff(tmp_path / "a.tif", values, (379_000, 5_818_000), 10)
    assert (read_image(path, "a", "RGB") == values[:3].transpose(1, 2, 0)).all()
    assert read_image(path, "a", "L").shape == (4, 4)
