"""Tasks from pictures with a target mask: what overhead, tumour and digit tasks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import read_arrays
from engram._files import as_mask, as_unit
from engram.errors import InputError
from engram.grid import Grid
from engram.layers import Layer
from engram.tasks.base import Task
from engram.tasks.sets import TaskSet, shuffled

Pixels = tuple[NDArray[np.float32], NDArray[np.bool_]]
"""Image (H, W, C) in [0, 1] and target mask (H, W)."""


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a file or folder; ``read`` brings its pixels when they are needed."""

    name: str
    read: Callable[[], Pixels] = field(repr=False)
    facts: dict[str, Any] = field(default_factory=dict)

    def task(self, name: str, shape: tuple[int, int, int], cell: int) -> Task:
        """The task of this picture; shape is the (H, W, C) it must have."""
        image, mask = self.pixels(shape)
        height, width, channels = shape
        content = np.ascontiguousarray(image.transpose(2, 0, 1))
        return Task(
            name, Grid(height, width, channels, (cell, cell)), content, mask, facts=self.facts
        )

    def pixels(self, shape: tuple[int, int, int]) -> Pixels:
        """Its pixels, of the shape (H, W, C) that they must have, with something to find."""
        image, mask = self.read()
        if image.shape != shape:
            raise InputError(
                f"{self.name} has {describe(image.shape)}; these tasks use {describe(shape)}: cut "
                "or resize it, or give --size"
            )
        if mask.shape != shape[:2]:
            raise InputError(
                f"{self.name}: the mask has {mask.shape[0]}x{mask.shape[1]} pixels, the image "
                f"{shape[0]}x{shape[1]}; they must be the same"
            )
        if not mask.any():
            raise InputError(f"{self.name}: the mask is empty, so there is nothing to find")
        return image, mask


def joined(tiles: Sequence[Picture], shape: tuple[int, int, int], across: int) -> Picture:
    """Pictures of one shape (H, W, C) side by side, ``across`` in a row, as one picture."""

    def read() -> Pixels:
        parts = [tile.pixels(shape) for tile in tiles]
        image, mask = (
            np.concatenate(
                [
                    np.concatenate(side[begin : begin + across], axis=1)
                    for begin in range(0, len(side), across)
                ]
            )
            for side in zip(*parts, strict=True)
        )
        return image, mask

    names = "; ".join(tile.name for tile in tiles)
    return Picture(names, read, {"tiles": len(tiles)})


def describe(shape: Sequence[int]) -> str:
    """'128x128 pixels of 3 channels'."""
    height, width, channels = shape
    return f"{height}x{width} pixels of {channels} channel{'s' if channels > 1 else ''}"


def picture_tasks(
    kind: str,
    pictures: Sequence[Picture],
    *,
    origin: Sequence[Path],
    files: Sequence[Path],
    shape: tuple[int, int, int],
    cell: int,
    seed: int,
    label: str = "",
    options: dict[str, Any] | None = None,
    coarse: bool = False,
    mosaic: int = 1,
) -> TaskSet:
    """Every picture is a task; the order is a shuffle that depends on the seed alone.

    origin : the paths the user gave; files : all files that decide what the tasks are
    coarse : whether the brightness of every cell is known beforehand, as a layer
    mosaic : pictures a side that make one area: the first task holds the first mosaic x mosaic
             pictures of the shuffle, the next those behind them, and what is left over is not used
    """
    each = mosaic**2
    if mosaic < 1 or each > len(pictures):
        most = math.isqrt(len(pictures))
        raise InputError(
            f"mosaic={mosaic}: give 1 to {most} pictures a side; there are {len(pictures)}"
        )
    order = shuffled(kind, seed, len(pictures))
    slug = f"{kind}-{label}" if label else kind

    def make(k: int) -> Task:
        tiles = [pictures[int(i)] for i in order[k * each : (k + 1) * each]]
        picture = tiles[0] if mosaic == 1 else joined(tiles, shape, mosaic)
        area = (mosaic * shape[0], mosaic * shape[1], shape[2])
        task = picture.task(f"{slug}-{k}", area, cell)
        return task.told([coarse_layer(task)]) if coarse else task

    make(0)  # pictures of a wrong size are refused here, not in the middle of a run
    names = " + ".join(path.name for path in origin)
    return TaskSet(
        name=f"{kind}:{label}" if label else kind,
        description=f"{len(pictures)} pictures of {names}, {describe(shape)}, "
        + (f"{mosaic}x{mosaic} of them side by side, " if mosaic > 1 else "")
        + f"queries of {cell}x{cell}",
        make=make,
        size=len(pictures) // each,
        files=tuple(files),
        options={
            "seed": seed,
            "cell": cell,
            "shape": list(shape),
            **({"coarse": True} if coarse else {}),
            **({"mosaic": mosaic} if mosaic > 1 else {}),
            **(options or {}),
        },
    )


def coarse_layer(task: Task) -> Layer:
    """The picture reduced to one grey pixel per cell."""
    cells = task.grid.cells_of(task.content).mean(axis=(-1, -2))
    grey = np.asarray(cells, np.float64).mean(axis=-2)
    return Layer("coarse", grey)


def stacked_pictures(
    path: Path, images: NDArray[Any], masks: NDArray[Any], keep: Sequence[int]
) -> list[Picture]:
    """Pictures of a stack: images (n, H, W) or (n, H, W, C), masks (n, H, W)."""

    def reader(i: int) -> Callable[[], Pixels]:
        where = f"{path}, picture {i}"
        return lambda: (as_unit(images[i], where), as_mask(masks[i], where))

    return [
        Picture(f"{path}, picture {i}", reader(i), {"file": path.name, "index": int(i)})
        for i in keep
    ]


def read_stack(path: Path) -> tuple[dict[str, NDArray[Any]], NDArray[Any], NDArray[Any]]:
    """All arrays of an .npz file, its images (n, H, W, C) and masks (n, H, W), fit together."""
    arrays = read_arrays(path, ("images", "masks"))
    images, masks = arrays["images"], arrays["masks"]
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or masks.shape != images.shape[:3] or not len(images):
        raise InputError(
            f"{path}: images {arrays['images'].shape} and masks {masks.shape} do not fit together; "
            "give images (n, H, W) or (n, H, W, C) and masks (n, H, W)"
        )
    empty = np.flatnonzero(~masks.reshape(len(masks), -1).any(axis=1))
    if len(empty):
        raise InputError(
            f"{path}: the mask of picture {empty[0]} is empty ({len(empty)} such); leave it out, "
            "there is nothing to find"
        )
    return arrays, images, masks
