"""Pictures are calculated with strip by strip, and nothing of it shows."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram import _files
from engram.tasks import strips as strips_module
from engram.tasks.raster import Raster, raster_task
from engram.tasks.strips import strips


def picture(path: Path, height: int, width: int, mode: str) -> Path:
    rows, cols = np.mgrid[:height, :width]
    grey = (127 + 60 * np.sin(rows / 9) + 60 * np.cos(cols / 7)).astype(np.uint8)
    pixels = grey if mode == "L" else np.stack([grey, grey // 2, 255 - grey], -1)
    Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("size", [(10, 7), (1, 5), (97, 30), (40, 8)])
@pytest.mark.parametrize("step", [1, 3, 8])
def test_strips_are_all_rows_once_in_whole_steps(
    size: tuple[int, int], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strips_module, "AT_ONCE", 60)
    parts = list(strips(size, step))
    assert [row for part in parts for row in range(part.start, part.stop)] == [*range(size[0])]
    assert all(part.start % step == 0 for part in parts)
    assert all(part.stop - part.start >= min(step, size[0]) for part in parts)


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize(
    ("cell", "size"), [((12, 9), None), ((3, 5), None), ((1, 1), None), ((2, 2), (40, 50))]
)
def test_a_picture_is_the_same_in_one_strip_and_in_many(
    mode: str,
    cell: tuple[int, int],
    size: tuple[int, int] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = picture(tmp_path / "p.png", 130, 101, mode)

    def read() -> Raster:
        return raster_task(path, above=120.0, cell=cell, channels=1, size=size)

    whole = read()
    monkeypatch.setattr(strips_module, "AT_ONCE", 1000)
    monkeypatch.setattr(_files, "STRIP", 500)
    parts = read()
    assert parts.notes == whole.notes
    assert (parts.task.target == whole.task.target).all()
    assert (parts.task.outcomes == whole.task.outcomes).all()
    assert np.allclose(parts.task.content, whole.task.content, atol=1e-6)


def test_no_copy_of_a_large_picture_is_made_but_the_stored_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = picture(tmp_path / "p.png", 1500, 2000, "RGB")
    monkeypatch.setattr(strips_module, "AT_ONCE", 100_000)
    monkeypatch.setattr(_files, "STRIP", 100_000)
    tracemalloc.start()
    raster_task(path, above=120.0, cell=(50, 50), channels=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    stored = 3 * 1500 * 2000  # bytes; a float copy of one channel alone would be 12 MB more
    assert peak < stored + 1500 * 2000 + 6e6
