"""Files that are damaged, lie about their size or unfold to far more than they are."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engram import _arrays
from engram._arrays import read_array, read_arrays
from engram._files import open_image, read_bytes, read_image, read_json
from engram.campaign.files import read_raster
from engram.campaign.masks import read_mask
from engram.campaign.reports import read_reports
from engram.errors import InputError
from engram.grid import Grid

GRID = Grid(4, 4)


def told(path: Path) -> None:
    """Read measurements of a file up to what is recorded of them."""
    for report in read_reports(path):
        assert report.cell is not None
        report.observation(GRID, report.cell)


def npy(array: Any) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, np.asarray(array), allow_pickle=True)
    return data.getvalue()


def npz(**arrays: Any) -> bytes:
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    return data.getvalue()


def lying(shape: str, kind: str = "<f8") -> bytes:
    """A header of this shape before eight bytes."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(8)


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cells.npy", data)
    return out.getvalue()


def flipped(data: bytes) -> bytes:
    return data[:60] + bytes(b ^ 0x55 for b in data[60:90]) + data[90:]


RECORDS = np.zeros(3, [("a", "f4"), ("b", "i4")])
CELLS, OUTCOMES = np.array([[0, 0], [1, 1]]), np.array([0.0, 1.0])

TELLS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "cannot read"),
    "text": (b"nothing of the kind", "cannot read"),
    "NPY": (npy(OUTCOMES), "holds a single array"),
    "no arrays": (npz(), "no array 'cells'"),
    "cut": (npz(cells=CELLS, outcomes=OUTCOMES)[:200], "cannot read"),
    "flipped": (flipped(npz(cells=CELLS, outcomes=OUTCOMES)), "cannot read|damaged|cut short"),
    "0-d": (npz(cells=CELLS, outcomes=np.float64(1)), "'cells' has shape|'outcomes' has shape"),
    "2-d": (npz(cells=CELLS, outcomes=np.zeros((2, 1))), r"'outcomes' has shape \(2, 1\)"),
    "flat cells": (npz(cells=np.zeros(2), outcomes=OUTCOMES), r"'cells' has shape \(2,\)"),
    "records": (npz(cells=CELLS, outcomes=RECORDS), "not plain numbers"),
    "objects": (npz(cells=CELLS, outcomes=np.array([{}, 1], object)), "holds object"),
    "texts": (npz(cells=CELLS, outcomes=np.array(["0.5", "1"])), "not numbers"),
    "complex": (npz(cells=CELLS, outcomes=OUTCOMES + 1j), "not numbers"),
    "noise 2-d": (npz(cells=CELLS, outcomes=OUTCOMES, noise=np.zeros((2, 2))), "'noise' has"),
    "none": (npz(cells=np.zeros((0, 2)), outcomes=np.zeros(0)), "no measurement"),
    "lying": (zipped(lying("(99999999999,)")), "its header says 799,999,999,992 bytes"),
    "negative": (zipped(lying("(-1,)")), "not below 0"),
    "no size": (zipped(lying("(999999999999,)", "<U0")), "not plain numbers"),
    "bad header": (zipped(b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((("), "its header is damaged"),
}


@pytest.mark.parametrize("name", TELLS)
def test_npz_files_of_measurements_that_are_none(tmp_path: Path, name: str) -> None:
    data, words = TELLS[name]
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(InputError, match=words):
        told(tmp_path / "a.npz")


def test_arrays_come_back_as_they_were_saved(tmp_path: Path) -> None:
    turned = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.savez_compressed(tmp_path / "a.npz", turned=turned, names=np.array(["a", "bcd"]))
    arrays = read_arrays(tmp_path / "a.npz", ("turned",))
    np.testing.assert_array_equal(arrays["turned"], turned)
    assert arrays["names"].tolist() == ["a", "bcd"]
    assert arrays["turned"].flags.writeable
    np.save(tmp_path / "b.npy", turned)
    np.testing.assert_array_equal(read_array(tmp_path / "b.npy"), turned)
    os.mkfifo(tmp_path / "c.npy")  # would wait for ever
    with pytest.raises(InputError, match="no file"):
        read_array(tmp_path / "c.npy")


def test_what_unfolds_to_far_more_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_arrays, "LEAST_ROOM", 100_000)
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, a=np.zeros(1_000_000, np.uint8))
    picture = tmp_path / "bomb.png"
    Image.new("L", (1000, 1000)).save(picture)
    packed = tmp_path / "bomb.csv.gz"
    packed.write_bytes(gzip.compress(bytes(1_000_000)))
    reads: list[Callable[[], object]] = [
        lambda: read_array(bomb),
        lambda: read_image(picture, "bomb.png", "L"),
        lambda: read_mask(picture, (1, 1)),
        lambda: read_bytes(packed),
    ]
    for read in reads:
        with pytest.raises(InputError, match=r"bomb\.\S+ unfolds to 1 MB|unfolds to 0 MB"):
            read()
    honest = tmp_path / "honest.npz"
    np.savez_compressed(honest, a=np.random.RandomState(0).bytes(200_000))
    assert read_array(honest).nbytes == 200_000


def test_pictures_beyond_all_bounds_and_programs_in_disguise(tmp_path: Path) -> None:
    huge = bytearray(_png(1))
    huge[16:24] = (20_000).to_bytes(4, "big") * 2  # width and height
    crc = zlib.crc32(huge[12:29])
    huge[29:33] = crc.to_bytes(4, "big")
    (tmp_path / "huge.png").write_bytes(huge)
    (tmp_path / "script.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    for name, words in (("huge.png", "exceeds limit"), ("script.png", "cannot identify")):
        with (
            pytest.raises(InputError, match=f"cannot read image .*{words}"),
            open_image(tmp_path / name, name) as image,
        ):
            image.load()


def _png(side: int) -> bytes:
    data = io.BytesIO()
    Image.new("L", (side, side)).save(data, "png")
    return data.getvalue()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1}', "not rows of numbers"),
        ("[" + "9" * 400 + "]", "range of 64 bits"),
        ("[" + "9" * 5000 + "]", "not valid JSON"),
        ('["1", "2"]', "lists of numbers"),
        ("[[1, 2], [3]]", "equal lengths"),
        ("[]", "is empty"),
        ("\xff", "not valid JSON"),
    ],
)
def test_json_rasters_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words):
        read_raster(path)


def test_json_files_too_deep_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"[" * 999: '"' + "[" * 999}))
    assert len(read_json(tmp_path / "a.json")) == 1
    (tmp_path / "a.json").write_text('{"a":' * 50_000)
    with pytest.raises(InputError, match=r"a\.json is nested too deeply"):
        read_json(tmp_path / "a.json")
    with pytest.raises(InputError, match="no file at"):
        read_json(tmp_path / "none.json")


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("a,b\n", "not a table")])
def test_csv_rasters_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_raster(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "row,col,outcome\n0,0," + "1" * 140_000, "line 2: field larger than"),
        ("a.csv", "row,col,outcome\n0,0," + "1" * 400, "is not a number in"),
        ("a.csv", "row,col,outcome,content\n0,0,1,5", "field content"),
        ("a.csv", "row,col,outcome,cell\n0,0,1,5", "give the cell once"),
        ("a.csv", "row,col,outcome,value,value_0\n0,0,1,1,0", "'value' stands beside 'value_0'"),
        ("a.csv", "row,col,outcome\n0,0,\0", "line 2|not a number"),
        ("a.csv", "row," * 50_000 + "col,outcome\n", "there twice"),
        ("a.json", '[{"cell": [0, 0], "row": 1, "col": 1, "outcome": 1}]', "give the cell once"),
        ("a.json", '[{"cell": [0, 0], "outcome": 1, "value": 1, "content": 0}]', "either content"),
        ("a.json", '[{"cell": [0, 0], "outcome": ' + "9" * 400 + "}]", "is not a number"),
        ("a.json", '[{"cell": [' + "9" * 400 + ', 0], "outcome": 1}]', "is not a number"),
        ("a.json", '[{"cell": [0, 0], "outcome": 1, "content": {"a": 1}}]', "lists of numbers"),
        ("a.json", '[{"cell": [0, 0], "outcome": 1, "content": "0.5"}]', "lists of numbers"),
        ("a.json", '[{"cell": [0, 0], "outcome": 1, "value": [[1], []]}]', "equal lengths"),
        ("a.json", '[{"cell": {"a": 1}, "outcome": 1}]', "is not .row, col."),
        ("a.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_measurements_that_contradict_or_overflow(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        told(tmp_path / name)
    assert len(str(caught.value)) < 600
