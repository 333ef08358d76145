"""Files that lie, are damaged, or are something else than their name says."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

Made = tuple[str, bytes]
"""Name and bytes of a file."""

NUMBERS: tuple[Any, ...] = (0, 1, 0.5, -1, 2, 1e39, 1e-320, 10**400, True, None, "x", "1", [], {})
KINDS = ("f8", "f4", "f2", "i8", "u1", "b1", "c16", "U3", "S2", "M8[s]", "O", "f4,i4")
SHAPES = ((), (0,), (3,), (3, 2), (6, 6), (2, 3, 4), (36, 1), (1, 1, 1), (3, 0))


def array(rng: Random) -> np.ndarray[Any, Any]:
    """An array of any kind and shape."""
    kind, shape = rng.choice(KINDS), rng.choice(SHAPES)
    numbers = np.random.default_rng(rng.randrange(2**32)).uniform(-1, 2, shape)
    with np.errstate(invalid="ignore", over="ignore"):
        if kind == "f4,i4":
            return np.zeros(shape, kind)
        if kind == "M8[s]":
            return numbers.astype("i8").astype(kind)
        made = np.asarray(numbers).astype(kind)
        if kind.startswith("f") and made.size and rng.random() < 0.2:
            made.flat[0] = rng.choice((np.nan, np.inf, 1e30))
    return made


def npy(rng: Random) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array(rng), allow_pickle=True)
    return data.getvalue()


def npz(rng: Random) -> bytes:
    """Arrays of the names that readers look for, good and bad ones mixed."""
    count, wild = rng.choice((1, 2, 3)), rng.random() < 0.6
    arrays: dict[str, Any] = {
        "cells": np.array([[rng.randrange(6), rng.randrange(6)] for _ in range(count)]),
        "outcomes": np.array([rng.choice((0.0, 0.5, 1.0)) for _ in range(count)]),
    }
    for name in ("cells", "outcomes", "noise", "contents", "images", "masks", "target", "image"):
        if wild and rng.random() < 0.1:
            arrays[name] = array(rng)
        elif wild and rng.random() < 0.04:
            arrays.pop(name, None)
    data = io.BytesIO()
    write = rng.choice((np.savez, np.savez_compressed))
    write(data, **arrays)
    return data.getvalue()


def lying_npz(rng: Random) -> bytes:
    """A header that says more than is there."""
    shape = rng.choice(("(99999999999,)", "(-1,)", "(2,)", "(10**9,)", "(3, 0)", "'x'", "(1e3,)"))
    kind = rng.choice(("<f8", "<U0", "|O", "<V9", "nonsense"))
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(16)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("cells", "outcomes"):
            archive.writestr(f"{name}.npy", raw)
    return data.getvalue()


def bomb(rng: Random) -> bytes:
    """A small archive that says, and partly is, large."""
    data = io.BytesIO()
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("cells.npy", "w") as file,
    ):
        for _ in range(rng.choice((2, 40))):
            file.write(bytes(2**20))
    raw = bytearray(data.getvalue())
    if rng.random() < 0.7:  # the directory claims three gigabytes
        at = raw.rfind(b"PK\x01\x02")
        raw[at + 24 : at + 28] = struct.pack("<I", 3 * 2**30)
    return bytes(raw)


def table(rng: Random) -> bytes:
    """A CSV of measurements, with columns and fields that may not fit."""
    columns, wild = ["row", "col", "outcome"], rng.random() < 0.6
    for name in ("value", "value_0", "value_1", "noise", "content", "cell", "row", "", "x" * 999):
        if wild and rng.random() < 0.06:
            columns.insert(rng.randrange(len(columns) + 1), name)
    lines = [",".join(columns)]
    for _ in range(rng.choice((0, 1, 1, 1))):
        fields = [str(rng.randrange(2 if name == "outcome" else 6)) for name in columns]
        if wild and rng.random() < 0.4:
            bad = ("nan", "1e400", "x" * 140_000, '"', "", "9" * 5000, "1,1", "\0", "1j", "-1")
            fields[rng.randrange(len(fields))] = rng.choice(bad)
        lines.append(",".join(fields))
    end = rng.choice(("\n", "\r\n", "\r"))
    return end.join(lines).encode("utf-16" if wild and rng.random() < 0.2 else "utf-8-sig")


def numbers_table(rng: Random) -> bytes:
    """A CSV of numbers, as masks and costs are."""
    side = rng.choice((1, 4, 6))
    words = [[str(rng.choice((0, 1, 1, 2.5))) for _ in range(side)] for _ in range(side)]
    if rng.random() < 0.3:
        bad = ("nan", "inf", "1e400", "1e-320", "x", "", "1j", "#", "-1", "1e300")
        words[rng.randrange(side)][rng.randrange(side)] = rng.choice(bad)
    if rng.random() < 0.1:
        words[0].append("1")
    return "\n".join(",".join(line) for line in words).encode()


def _value(rng: Random, depth: int = 0) -> Any:
    if depth < 3 and rng.random() < 0.3:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice(NUMBERS)


def measurements_json(rng: Random) -> bytes:
    """A JSON list of measurements, with fields that contradict or are no numbers."""
    chance = rng.random()
    if chance < 0.05:
        return b"[" * 100_000
    if chance < 0.1:
        return json.dumps(_value(rng)).encode()
    items, wild = [], rng.random() < 0.6
    for _ in range(rng.choice((0, 1, 2))):
        item: dict[str, Any] = {"cell": [rng.randrange(6), rng.randrange(6)], "outcome": 1}
        for name in ("cell", "row", "col", "outcome", "content", "value", "noise", "x"):
            if wild and rng.random() < 0.1:
                item[name] = _value(rng)
        items.append(item)
    return json.dumps(items).encode()


def picture(rng: Random) -> bytes:
    """A small picture of any mode and format, or one that says it is huge."""
    from PIL import Image

    mode = rng.choice(("L", "RGB", "RGBA", "P", "1", "LA", "I", "F", "CMYK"))
    side = rng.choice((1, 6, 12))
    image = Image.new(mode, (side, side), 1)
    if mode in ("L", "RGB") and side > 1:
        image.paste(Image.new(mode, (side // 2, side // 2), 200 if mode == "L" else "white"))
    kind = "TIFF" if mode in ("F", "I", "LA", "CMYK") else rng.choice(("PNG", "TIFF"))
    data = io.BytesIO()
    image.save(data, kind)
    raw = bytearray(data.getvalue())
    if kind == "PNG" and rng.random() < 0.2:
        raw[16:24] = struct.pack(">II", *(rng.choice((0, 6, 20_000, 2**31)) for _ in range(2)))
        raw[29:33] = struct.pack(">I", zlib.crc32(raw[12:29]))
    return bytes(raw)


def noise(rng: Random) -> bytes:
    return rng.choice((b"", b"\0" * 99, b"%!PS\n", b"PK\x03\x04", rng.randbytes(200), b"\x1f\x8b"))


MAKERS: dict[str, tuple[Callable[[Random], bytes], ...]] = {
    "npz": (npz, npz, npz, npz, npz, lying_npz, bomb, npy),
    "npy": (npy, npy, npz),
    "csv": (table, table, table, numbers_table),
    "json": (measurements_json,),
    "png": (picture,),
    "tif": (picture,),
    "txt": (numbers_table,),
}


def file_of(rng: Random, *kinds: str) -> Made:
    """A file of one of these kinds (its ending); one in five is damaged."""
    kind = rng.choice(kinds)
    data = noise(rng) if rng.random() < 0.06 else rng.choice(MAKERS[kind])(rng)
    if rng.random() < 0.2:
        data = damaged(rng, data)
    return f"given.{kind}", data


def damaged(rng: Random, data: bytes) -> bytes:
    """Bytes flipped, cut off, repeated, inserted or set to zero."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not raw:
            return bytes(raw)
        at = rng.randrange(len(raw))
        match rng.randrange(5):
            case 0:
                raw[at] ^= 1 << rng.randrange(8)
            case 1:
                del raw[at:]
            case 2:
                raw[at:at] = raw[at : at + 64]
            case 3:
                raw[at:at] = rng.randbytes(4)
            case 4:
                raw[at : at + 16] = bytes(min(16, len(raw) - at))
    return bytes(raw)
