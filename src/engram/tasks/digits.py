"""Digit tasks (appendix Q): uncover the strokes of a handwritten digit."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._files import as_unit, read_bytes
from engram.errors import InputError
from engram.tasks.pictures import Picture, Pixels, picture_tasks
from engram.tasks.sets import TaskSet

BRIGHT = 128
"""Grey level from which a pixel of a digit counts as stroke."""
FITS = ("pad", "scale")
LABEL_MAGIC = struct.pack(">I", 2049)


def digit_tasks(
    images: str | Path,
    labels: str | Path | None = None,
    *,
    digit: int | None = None,
    seed: int = 0,
    size: int = 28,
    fit: str = "pad",
    cell: int = 1,
) -> TaskSet:
    """Digits of idx files (MNIST's format), plain or gzipped.

    Content is the digit in [0, 1], target its bright pixels. ``digit`` keeps one class and
    needs labels, which are looked for beside the images when not given. A ``size`` above that
    of the images pads them with background, or scales them up with ``fit='scale'``.
    """
    from engram.memory.sources import fitted, load_idx

    path = Path(images)
    if not path.is_file():
        raise InputError(f"no idx file of images at {path}")
    if fit not in FITS:
        raise InputError(f"fit {fit!r}: choose one of {', '.join(FITS)}")
    stack = load_idx(path)
    files = [path]
    keep = np.flatnonzero((stack >= BRIGHT).reshape(len(stack), -1).any(axis=1))
    if digit is not None:
        label_path = Path(labels) if labels is not None else _labels_beside(path)
        files.append(label_path)
        classes = load_labels(label_path)
        if len(classes) != len(stack):
            raise InputError(f"{label_path} has {len(classes)} labels, {path} {len(stack)} images")
        keep = keep[classes[keep] == digit]
        if not len(keep):
            present = ", ".join(str(c) for c in np.unique(classes))
            raise InputError(f"no digit {digit} in {path}; there are {present}")
    if not len(keep):
        raise InputError(f"no image of {path} has a pixel of grey level {BRIGHT} or more")

    def reader(i: int) -> Callable[[], Pixels]:
        def read() -> Pixels:
            if fit == "pad":
                image = fitted(stack[i : i + 1], (size, size))[0]
            else:
                image = _scaled(stack[i], size)
            return as_unit(image, str(path))[..., None], image >= BRIGHT

        return read

    pictures = [
        Picture(f"{path}, digit {i}", reader(int(i)), {"file": path.name, "index": int(i)})
        for i in keep
    ]
    return picture_tasks(
        "digits",
        pictures,
        origin=[path],
        files=files,
        shape=(size, size, 1),
        cell=cell,
        seed=seed,
        label="" if digit is None else str(digit),
        options={"digit": digit, "fit": fit},
    )


def is_label_file(path: Path) -> bool:
    """Whether a file begins like an idx file of labels."""
    return path.is_file() and read_bytes(path)[:4] == LABEL_MAGIC


def load_labels(path: Path) -> NDArray[np.uint8]:
    """Labels of an idx file, plain or gzipped: (n,) uint8."""
    raw = read_bytes(path)
    if len(raw) < 8 or raw[:4] != LABEL_MAGIC:
        raise InputError(f"{path} is not an idx file of labels (its magic number is not 2049)")
    (count,) = struct.unpack(">I", raw[4:8])
    if len(raw) != 8 + count:
        raise InputError(f"{path} is cut short: {len(raw)} bytes, {8 + count} expected")
    return np.frombuffer(raw, np.uint8, offset=8)


def _labels_beside(path: Path) -> Path:
    """The label file that belongs to an image file by MNIST's naming."""
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    if beside == path or not beside.is_file():
        raise InputError(
            f"choosing a digit needs labels; no {beside.name} beside {path}: give "
            "the file of labels too (--data)"
        )
    return beside


def _scaled(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    from PIL import Image

    resized = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(resized, np.uint8)
