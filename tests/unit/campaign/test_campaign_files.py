"""Measurements, contents and masks from files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from engram.campaign import export
from engram.campaign.files import (
    content_from_values,
    default_content,
    read_content,
)
from engram.campaign.masks import GDAL_NODATA, read_mask
from engram.campaign.reports import read_reports
from engram.errors import InputError
from engram.grid import Grid

GRID = Grid(6, 6, range=(0.0, 10.0))


def read_tells(path, grid):
    """Labels and observations of a file whose reports name their cells."""
    reports = read_reports(path)
    return [r.label for r in reports], [r.observation(grid, r.cell) for r in reports]


def _write(path, text):
    path.write_text(text)
    return path


def test_csv(tmp_path):
    path = _write(tmp_path / "a.csv", "row,col,outcome,value,noise\n0,1,1,8,0.5\n2, 3 ,0.5,,\n")
    labels, told = read_tells(path, GRID)
    assert labels == ["a.csv, line 2: ", "a.csv, line 3: "]
    assert [o.cell for o in told] == [(0, 1), (2, 3)]
    assert [o.content.item() for o in told] == [8.0, 5.0]  # the outcome stands for the content
    assert [o.noise for o in told] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,col\n1,1\n", r"line 1: column 'outcome' is missing"),
        ("row,col,outcome\n1,1,1\n1,2,perhaps\n", r"line 3: field outcome: 'perhaps' is not a"),
        ("row,col,outcome\n1,1,1\n1,x,1\n", r"line 3: field col: 'x' is not a number"),
        ("row,col,outcome\n1,1.5,1\n", r"line 2: field col: '1.5' is not a whole number"),
        ("row,col,outcome\n1,nan,1\n", r"line 2: field col"),
        ("row,col,outcome\n9,1,1\n", r"line 2: cell \(9, 1\) is outside"),
        ("row,col,outcome\n1,1,2\n", r"line 2: cell \(1, 1\): outcome=2.0 is not a number in"),
        ("row,col,outcome\n1,1\n", r"line 2: it does not have 3 fields"),
        ("row,col,outcome\n1,1,\n", r"line 2: field outcome is missing"),
        ("row,col,outcome,value\n1,1,1,99\n", r"line 2: .*outside the grid's range"),
        ("row,col,outcome\n", r"holds no measurement"),
        ("", r"column 'row' is missing"),
        ("row|col|outcome\n1|1|1\n", r"'row' is missing; .*the line reads 'row|col|outcome'"),
        ("row,col,row,outcome\n1,1,2,1\n", r"line 1: column 'row' is there twice"),
        ("row,col,outcome,value_1\n1,1,1,2\n", r"line 1: column 'value_0' is missing"),
        ("row,col,outcome\n1,1,nan\n", r"line 2: cell \(1, 1\): outcome=nan"),
    ],
)
def test_csv_faults_name_line_and_field(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_tells(_write(tmp_path / "a.csv", text), GRID)


def test_json_and_npz(tmp_path):
    grid = Grid(8, 8, channels=2, cell=(2, 2))
    content = np.arange(8).reshape(2, 2, 2) / 8
    items = [
        {"cell": [1, 2], "outcome": 1, "content": content.tolist()},
        {"cell": [0, 0], "outcome": 0, "value": [0.1, 0.9]},
    ]
    _, told = read_tells(_write(tmp_path / "a.json", json.dumps(items)), grid)
    assert np.allclose(told[0].content, content)
    assert np.allclose(told[1].content[1], 0.9)
    np.savez(tmp_path / "b.npz", cells=[[1, 2]], outcomes=[1.0], contents=content[None])
    _, again = read_tells(tmp_path / "b.npz", grid)
    assert np.array_equal(again[0].content, told[0].content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "give a list"),
        ('{"engram": "campaign-log-1", "events": []}', "export it as .csv or .npz"),
        ("[", "not valid JSON"),
        ("[3]", "item 1: it is not an object"),
        ('[{"cell": [0, 0], "outcome": 1, "oops": 2}]', "field 'oops' is unknown"),
        ('[{"cell": 4, "outcome": 1}]', "item 1: field cell"),
        ('[{"cell": [0, 0], "outcome": 1, "value": [1, 2]}]', "item 1: 2 value"),
    ],
)
def test_json_faults(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_tells(_write(tmp_path / "a.json", text), GRID)


def test_npz_faults(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, cells=[[0, 0]])
    with pytest.raises(InputError, match="no array 'outcomes'; it has cells"):
        read_tells(path, GRID)
    np.savez(path, cells=[[0, 0]], outcomes=[1.0, 0.0])
    with pytest.raises(InputError, match=r"'cells' has shape \(1, 2\)"):
        read_tells(path, GRID)
    path.write_bytes(b"no zip at all")
    with pytest.raises(InputError, match="cannot read"):
        read_tells(path, GRID)
    with pytest.raises(InputError, match=r"give a \.csv"):
        read_tells(tmp_path / "a.xml", GRID)
    with pytest.raises(InputError, match="cannot read"):
        read_tells(tmp_path / "absent.csv", GRID)


def test_a_bad_file_changes_nothing(create, tmp_path):
    campaign = create()
    campaign.tell((1, 1), 1.0)
    path = _write(tmp_path / "a.csv", "row,col,outcome\n0,0,1\n1,1,0\n")
    with pytest.raises(InputError, match=r"a.csv, line 3: cell \(1, 1\) was measured already"):
        campaign.tell_file(path)
    assert len(campaign.state.measurements) == 1


def test_contents(tmp_path):
    assert default_content(GRID, 0.5).item() == 5.0
    colour = Grid(4, 4, channels=3, cell=(2, 2))
    assert content_from_values(colour, [0.1, 0.2, 0.3]).shape == (3, 2, 2)
    assert content_from_values(colour, list(range(12))).shape == (3, 2, 2)
    with pytest.raises(InputError, match=r"3 \(one per channel\) or 12"):
        content_from_values(colour, [1, 2])
    Image.fromarray(np.full((2, 2, 3), 255, np.uint8)).save(tmp_path / "c.png")
    assert read_content(tmp_path / "c.png", colour).max() == 1.0
    np.save(tmp_path / "c.npy", np.zeros((3, 2, 2)))
    assert read_content(tmp_path / "c.npy", colour).shape == (3, 2, 2)


def test_mask(tmp_path):
    pixels = np.ones((6, 4))
    pixels[:2] = np.nan
    pixels[2, :] = 0
    np.save(tmp_path / "mask.npy", pixels)
    closed = read_mask(tmp_path / "mask.npy", (2, 2)).closed
    assert closed.tolist() == [[True, True], [False, False], [False, False]]
    with pytest.raises(InputError, match="cannot be cut"):
        read_mask(tmp_path / "mask.npy", (4, 4))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1"])
def test_black_is_outside_whatever_the_image(tmp_path, mode):
    inside = np.zeros((6, 6), np.uint8)
    inside[2:4, 2:4] = 255
    image = Image.fromarray(inside)
    if mode == "P":  # number 0 is white, number 1 is black
        image = Image.fromarray((inside == 0).astype(np.uint8))
        image.putpalette([255, 255, 255, 0, 0, 0])
    else:
        image = image.convert(mode)
    image.save(tmp_path / "mask.png")
    closed = read_mask(tmp_path / "mask.png", (2, 2)).closed
    assert (~closed).tolist() == [[False] * 3, [False, True, False], [False] * 3]


def test_transparent_is_outside(tmp_path):
    pixels = np.full((4, 4, 4), 255, np.uint8)
    pixels[:2, :, 3] = 0
    Image.fromarray(pixels).save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png", (2, 2)).closed.tolist() == [
        [True, True],
        [False, False],
    ]


def geotiff(path, pixels, nodata):
    image = Image.fromarray(pixels)
    tags = ImageFileDirectory_v2()
    tags[GDAL_NODATA] = nodata
    tags.tagtype[GDAL_NODATA] = 2  # ASCII
    image.save(path, tiffinfo=tags)


@pytest.mark.parametrize(
    ("kind", "nodata", "outside"),
    [
        (np.float32, "-9999", -9999),
        (np.float32, "-3.4028234663852886e+38 ", np.finfo(np.float32).min),
        (np.float32, "9999", 9999),
        (np.float32, "nan", np.nan),
        (np.int32, "-9999", -9999),
        (np.uint8, "255", 255),
    ],
)
def test_nodata_of_a_geotiff_is_outside(tmp_path, kind, nodata, outside):
    pixels = np.ones((4, 6), kind)
    pixels[:2] = outside
    geotiff(tmp_path / "area.tif", pixels, nodata)
    mask = read_mask(tmp_path / "area.tif", (2, 2))
    assert mask.closed.tolist() == [[True] * 3, [False] * 3]
    assert mask.words.startswith("area.tif: 3 of 6 cells are open; pixels outside: 12 ")


def test_nodata_of_a_palette_is_the_number_of_a_colour(tmp_path):
    image = Image.fromarray(np.array([[7, 7, 1, 1]], np.uint8))
    image.putpalette([255, 255, 255] * 8)
    tags = ImageFileDirectory_v2()
    tags[GDAL_NODATA] = "7"
    image.save(tmp_path / "area.tif", tiffinfo=tags)
    assert read_mask(tmp_path / "area.tif", (1, 1)).closed.tolist() == [[True, True, False, False]]


def test_negative_and_unknown_values_are_outside_and_said(tmp_path):
    np.save(tmp_path / "area.npy", np.array([[1.0, 0.2, 0.0], [-9999.0, np.nan, np.inf]]))
    mask = read_mask(tmp_path / "area.npy", (1, 1))
    assert mask.closed.tolist() == [[False, False, True], [True] * 3]
    assert mask.words == "area.npy: 2 of 6 cells are open; pixels outside: 1 negative, 2 not finite"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"type": "FeatureCollection", "features": []}', "an object of type 'FeatureCollection'"),
        ("[[1, {}]]", "give lists of numbers"),
        ("[[1, 2], [3]]", "not of equal lengths"),
    ],
)
def test_json_that_is_no_raster_is_named(tmp_path, text, complaint):
    (tmp_path / "area.json").write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_mask(tmp_path / "area.json", (1, 1))


def test_channels_are_taken_by_number(tmp_path):
    path = _write(tmp_path / "a.csv", "value_2,value_1,row,col,outcome,value_0\n3,2,0,1,1,1\n")
    _, told = read_tells(path, Grid(4, 4, channels=3, range=(0, 10)))
    assert told[0].content.ravel().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_exported_measurements_can_be_told_again(create, tmp_path, suffix):
    grid = Grid(8, 8, channels=2, cell=(2, 2))
    one, two = create("one", grid, 8), create("two", grid, 8)
    rng = np.random.default_rng(1)
    for i in range(4):
        one.tell((i, 3 - i), i / 4, rng.random((2, 2, 2)), noise=0.1 * i)
    path = tmp_path / f"out{suffix}"
    assert export(one, path).count == 4
    two.tell_file(path)
    for a, b in zip(one.state.observations, two.state.observations, strict=True):
        assert (a.cell, a.outcome, a.noise) == (b.cell, b.outcome, b.noise)
        assert np.array_equal(a.content, b.content)


def test_exported_log_is_whole(create, tmp_path):
    campaign = create()
    campaign.ask(2)
    campaign.tell((0, 0), 1.0)
    assert export(campaign, tmp_path / "log.json").count == 3
    log = json.loads((tmp_path / "log.json").read_text())
    assert [e["kind"] for e in log["events"]] == ["create", "ask", "tell"]
    assert len(log["events"][1]["explanations"]) == 2
    with pytest.raises(InputError, match=r"give a \.json"):
        export(campaign, tmp_path / "log.txt")
