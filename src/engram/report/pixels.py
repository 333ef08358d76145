"""Areas as pictures: arrays (H, W, 3) in [0, 1], one pixel of the area each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.grid import Cell, Grid
from engram.tasks.base import Task

Picture = NDArray[np.float32]

GREEN = (0.13, 0.73, 0.33)
RED = (0.84, 0.20, 0.17)
UNKNOWN = (0.45, 0.50, 0.57)
CLOSED = (0.30, 0.26, 0.40)


def picture(grid: Grid, content: NDArray[np.float32]) -> Picture:
    """Content (C, H, W) in the grid's range as red, green, blue.

    One channel is shown in grey, three as colours, any other number by its mean.
    """
    low, high = grid.range
    scaled = np.clip((np.asarray(content, np.float32) - low) / (high - low), 0, 1)
    if len(scaled) != 3:
        scaled = np.repeat(scaled.mean(axis=0, keepdims=True), 3, axis=0)
    return np.asarray(scaled.transpose(1, 2, 0), np.float32)


def measured_pixels(grid: Grid, cells: Sequence[Cell]) -> NDArray[np.bool_]:
    """(H, W) True on the pixels of the cells."""
    table = np.zeros((grid.rows, grid.cols), bool)
    for row, col in cells:
        table[row, col] = True
    return np.asarray(grid.pixels(table), bool)


def visited(
    task: Task, cells: Sequence[Cell], outcomes: Sequence[float], *, reveal: bool = True
) -> Picture:
    """Measured cells in green (y > 0) and red over the content.

    The rest is the dimmed content, or a plain grey when the truth is not to be revealed.
    """
    grid = task.grid
    truth = picture(grid, task.content)
    image = 0.55 * truth + 0.12 if reveal else np.full_like(truth, UNKNOWN)
    image[grid.pixels(grid.closed).astype(bool)] = CLOSED
    for cell, outcome in zip(cells, outcomes, strict=True):
        rows, cols = grid.block(cell)
        colour = np.array(GREEN if outcome > 0 else RED, np.float32)
        image[rows, cols] = 0.7 * colour + 0.3 * truth[rows, cols]
    return np.asarray(image, np.float32)


def known(task: Task, cells: Sequence[Cell]) -> Picture:
    """The content of the measured cells; the rest is a plain grey-blue."""
    image = picture(task.grid, task.content)
    image[~measured_pixels(task.grid, cells)] = UNKNOWN
    return image


def fitted(image: NDArray[Any], most: int) -> NDArray[Any]:
    """Every k-th pixel of an image with more than ``most`` of them on a side: files stay small."""
    k = -(-max(image.shape[:2]) // most)
    return image[::k, ::k]
