from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from engram import InputError
from engram.tasks.digits import digit_tasks, load_labels
from engram.tasks.tumour import tumour_tasks

LABELS = [8, 0, 8, 1, 8]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Five images of 28x28 (the second is black) and their labels, as in MNIST."""
    stack = np.zeros((5, 28, 28), np.uint8)
    for i in (0, 2, 3, 4):
        stack[i, 10 + i, 5:20] = 255
        stack[i, 11 + i, 5:20] = 100
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(struct.pack(">IIII", 2051, 5, 28, 28) + stack.tobytes()))
    labels = struct.pack(">II", 2049, 5) + bytes(LABELS)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return path


def test_digits(images: Path) -> None:
    tasks = digit_tasks(images)
    assert len(tasks) == 4  # a black image has nothing to find
    task = tasks.task(0)
    assert task.grid.n_cells == 784
    assert task.targets == 15
    np.testing.assert_array_equal(task.target, task.content[0] >= 0.5)


def test_digits_of_one_class(images: Path) -> None:
    tasks = digit_tasks(images, digit=8)
    assert {tasks.task(k).facts["index"] for k in tasks.numbers()} == {0, 2, 4}
    assert len(tasks.files) == 2
    with pytest.raises(InputError, match=r"no digit 7 in .*; there are 0, 1, 8"):
        digit_tasks(images, digit=7)
    with pytest.raises(InputError, match="no train-labels-idx1-ubyte beside"):
        digit_tasks(images.rename(images.with_name("train-images-idx3-ubyte")), digit=8)


def test_padded_and_scaled_digits(images: Path) -> None:
    padded = digit_tasks(images, size=32).task(0)
    assert padded.content.shape == (1, 32, 32)
    assert padded.targets == 15
    np.testing.assert_array_equal(
        padded.content[0, 2:30, 2:30], digit_tasks(images).task(0).content[0]
    )
    scaled = digit_tasks(images, size=128, fit="scale", cell=4).task(0)
    assert scaled.content.shape == (1, 128, 128)
    assert scaled.grid.n_cells == 1024
    with pytest.raises(InputError, match="do not fit into 20x20"):
        digit_tasks(images, size=20)
    with pytest.raises(InputError, match="fit 'crop'"):
        digit_tasks(images, fit="crop")


def test_faulty_label_files(images: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(struct.pack(">II", 2051, 5) + bytes(5))
    with pytest.raises(InputError, match="not an idx file of labels"):
        load_labels(path)
    path.write_bytes(struct.pack(">II", 2049, 9) + bytes(5))
    with pytest.raises(InputError, match="cut short: 13 bytes, 17 expected"):
        load_labels(path)
    path.write_bytes(struct.pack(">II", 2049, 3) + bytes(3))
    with pytest.raises(InputError, match=r"has 3 labels, .* 5 images"):
        digit_tasks(images, path, digit=0)
    with pytest.raises(InputError, match="no idx file of images"):
        digit_tasks(tmp_path / "none")


def test_tumour_slices(tmp_path: Path) -> None:
    slices = np.random.RandomState(2).randint(0, 256, (4, 128, 128)).astype(np.uint8)
    masks = np.zeros((4, 128, 128), np.uint8)
    masks[:, 40:50, 60:70] = 1
    path = tmp_path / "slices.npz"
    np.savez_compressed(path, images=slices, masks=masks)
    tasks = tumour_tasks(path)
    assert len(tasks) == 4
    task = tasks.task(1)
    np.testing.assert_allclose(task.content[0], slices[task.facts["index"]] / 255, atol=1e-6)
    assert task.grid.n_cells == 1024
    assert task.targets == 9
    assert task.outcomes.sum() * 16 == 100
    with pytest.raises(InputError, match="give --size"):
        tumour_tasks(path, size=64)
