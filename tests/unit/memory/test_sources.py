from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from engram import InputError
from engram.memory.sources import (
    ArraySource,
    SceneSource,
    fitted,
    load_folder,
    load_idx,
    load_npz,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def idx(images: np.ndarray) -> bytes:
    return struct.pack(">IIII", 2051, *images.shape) + images.tobytes()


STACK = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_idx_files(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(pack(idx(STACK)))
    np.testing.assert_array_equal(load_idx(path), STACK)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not an idx file"),
        (b"\x00" * 40, "magic number is not 2051"),
        (struct.pack(">II", 2049, 3) + bytes(20), "magic number is not 2051"),
        (idx(STACK)[:-1], "cut short"),
        (gzip.compress(idx(STACK), mtime=0)[:-20], "cannot read"),
        (b"\x1f\x8b" + b"nonsense", "cannot read"),
        (None, "no file at"),
    ],
)
def test_wrong_idx_files_are_refused(tmp_path: Path, raw: bytes | None, words: str) -> None:
    path = tmp_path / "images"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(InputError, match=words):
        load_idx(path)


def test_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, images=STACK, labels=np.arange(3))
    np.testing.assert_array_equal(load_npz(path), STACK)
    assert load_npz(path).dtype == np.uint8
    np.testing.assert_array_equal(load_npz(path, "labels"), np.arange(3) / 2)
    np.savez_compressed(path, depths=np.linspace(-50, 150, 60).reshape(3, 4, 5))
    depths = load_npz(path)
    assert depths.dtype == np.float32
    assert (depths.min(), depths.max()) == (0.0, 1.0)
    np.savez(path, shares=np.full((3, 4, 5), 0.25))
    assert (load_npz(path) == 0.25).all()  # already in [0, 1]: as it is
    np.savez(path, flat=np.full((3, 4, 5), 7.0))
    assert not load_npz(path).any()


@pytest.mark.parametrize(
    ("arrays", "key", "words"),
    [
        ({"images": STACK}, "pictures", "no array 'pictures'; it has images"),
        ({"a": STACK, "b": STACK}, None, "no array 'images'; it has a, b"),
        ({}, None, "it has none at all"),
        ({"images": np.array(["a", "b"])}, None, "not numbers"),
        ({"images": np.array([{}, None], object)}, None, "holds object"),
        ({"images": np.zeros((0, 4, 4))}, None, "is empty"),
    ],
)
def test_wrong_npz_files_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], key: str | None, words: str
) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=words):
        load_npz(path, key)


@pytest.mark.parametrize("raw", [b"", b"PK\x03\x04 not a zip", b"text", None])
def test_files_that_are_no_npz_are_refused(tmp_path: Path, raw: bytes | None) -> None:
    path = tmp_path / "data.npz"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(InputError, match=r"data\.npz"):
        load_npz(path)


def test_a_single_array_file_is_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, STACK)
    with pytest.raises(InputError, match=r"holds a single array .*give an \.npz file"):
        load_npz(path)


def test_folders_of_images(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    Image.new("L", (20, 10), 255).save(tmp_path / "a.png")
    Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "deep" / "b.jpg")
    (tmp_path / "notes.txt").write_text("not an image")
    grey = load_folder(tmp_path, (6, 4), 1)
    assert grey.shape == (2, 6, 4, 1)
    assert (grey[0] == 255).all()
    assert load_folder(tmp_path, (6, 4), 3).shape == (2, 6, 4, 3)


def test_wrong_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images"):
        load_folder(tmp_path, (4, 4), 1)
    with pytest.raises(InputError, match="no images"):
        load_folder(tmp_path / "nowhere", (4, 4), 1)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    with pytest.raises(InputError, match=r"cannot read image .*broken\.png"):
        load_folder(tmp_path, (4, 4), 1)
    with pytest.raises(InputError, match="channels=2"):
        load_folder(tmp_path, (4, 4), 2)


def test_images_are_padded_never_stretched() -> None:
    out = fitted(STACK, (7, 5))
    assert out.shape == (3, 7, 5)
    np.testing.assert_array_equal(out[:, 1:5], STACK)
    assert out.sum() == STACK.sum()
    assert fitted(STACK, (4, 5)) is STACK
    assert fitted(STACK[..., None], (6, 6)).shape == (3, 6, 6, 1)
    with pytest.raises(InputError, match="4x5 do not fit into 4x4"):
        fitted(STACK, (4, 4))


def test_drawn_images_are_in_the_models_range() -> None:
    source = ArraySource(np.stack([np.zeros((4, 4)), np.full((4, 4), 255)]).astype(np.uint8)
                         .repeat(20, axis=0), description="two tones")  # fmt: skip
    batch = source.draw(64, generator())
    assert source.shape == (1, 4, 4)
    assert batch.shape == (64, 1, 4, 4)
    assert set(batch.unique().tolist()) == {-1.0, 1.0}
    assert torch.equal(batch, source.draw(64, generator()))


def test_held_out_images_are_never_trained_on() -> None:
    images = (np.arange(100, dtype=np.float32) / 100)[:, None, None] * np.ones((1, 2, 2), "f4")
    source = ArraySource(images, description="ramp", held_out=0.2)
    trained = set(source.draw(2000, generator()).flatten().tolist())
    kept = set(source.draw(500, generator(), held_out=True).flatten().tolist())
    assert len(trained) == 80
    assert len(kept) == 20
    assert not trained & kept


def test_moved_images_stay_in_range() -> None:
    images = np.zeros((10, 16, 16), np.uint8)
    images[:, 6:10, 6:10] = 255
    source = ArraySource(images, description="squares", affine=1.0)
    batch = source.draw(50, generator())
    assert float(batch.min()) >= -1 - 1e-6
    assert float(batch.max()) <= 1 + 1e-6
    assert len({row.numpy().tobytes() for row in batch}) > 10


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((5, 4), np.uint8), "have shape"),
        (np.zeros((5, 4, 4, 2), np.uint8), "have shape"),
        (np.zeros((1, 4, 4), np.uint8), "at least 2"),
        (np.full((5, 4, 4), np.nan, np.float32), "NaN or infinite"),
        (np.full((5, 4, 4), 255.0, np.float32), r"rescale floats to \[0, 1\]"),
        (np.zeros((5, 4, 4), np.int64), "of type int64"),
    ],
)
def test_wrong_training_images_are_refused(images: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ArraySource(images, description="wrong")


def test_an_alpha_channel_is_dropped() -> None:
    source = ArraySource(np.zeros((5, 4, 4, 4), np.uint8), description="rgba")
    assert source.shape == (3, 4, 4)


def test_scenes_as_a_source() -> None:
    source = SceneSource(16, 20)
    batch = source.draw(6, generator())
    assert source.shape == (1, 16, 20)
    assert batch.shape == (6, 1, 16, 20)
    assert batch.dtype == torch.float32
    assert float(batch.min()) >= -1
    assert float(batch.max()) <= 1
    assert torch.equal(batch, source.draw(6, generator()))
    assert not torch.equal(batch, source.draw(6, generator(), held_out=True))
