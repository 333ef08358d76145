"""Tiny data files, one for each suite that takes them."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest


def write_stack(path: Path, channels: int, n: int = 6, side: int = 16) -> Path:
    """Pictures with a target each, named vehicle, plane, ship in turn."""
    rng = np.random.RandomState(1)
    masks = np.zeros((n, side, side), np.uint8)
    for i in range(n):
        masks[i, i : i + 4, 4:10] = 1
    shape = (n, side, side, channels) if channels > 1 else (n, side, side)
    images = rng.randint(0, 256, shape).astype(np.uint8)
    names = np.array(["vehicle", "plane", "ship"] * (n // 3))
    np.savez_compressed(path, images=images, masks=masks, target=names)
    return path


@pytest.fixture
def data_files(tmp_path: Path) -> dict[str, Path]:
    """Suite -> a data file: 16x16 pictures, 28x28 digits, records in a box of ten degrees."""
    rng = np.random.RandomState(0)
    records = ["species,latitude,Y_EAST"]
    for name, count in (("Lynx rufus", 300), ("Puma concolor", 200)):
        hubs = rng.uniform([42, -98], [48, -92], (12, 2))
        places = hubs[rng.randint(12, size=count)] + rng.normal(0, 0.1, (count, 2))
        records += [f"{name},{lat:.5f},{lon:.5f}" for lat, lon in places]
    table = tmp_path / "records.csv"
    table.write_text("\n".join(records) + "\n")
    digits = np.zeros((5, 28, 28), np.uint8)
    digits[:, 10:12, 5:20] = 255
    images = tmp_path / "few-images-idx3-ubyte.gz"
    images.write_bytes(gzip.compress(struct.pack(">IIII", 2051, 5, 28, 28) + digits.tobytes()))
    labels = struct.pack(">II", 2049, 5) + bytes([8, 0, 8, 1, 8])
    (tmp_path / "few-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    rock = rng.uniform(size=(18, 22))
    np.savez(tmp_path / "area.npz", gold=rock > 0.8, rock=rock)
    return {
        "windows": tmp_path / "area.npz",
        "species": table,
        "overhead": write_stack(tmp_path / "tiles.npz", 3),
        "tumour": write_stack(tmp_path / "slices.npz", 1),
        "digits": images,
    }
