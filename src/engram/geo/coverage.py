"""What share of each cell a shape covers, exactly, at the price of its edge instead of its area."""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

WHOLE = 1e-9
"""Part of a block that may be missing, or be there, without its cells being looked at."""


def shares(
    geometry: BaseGeometry, corner: tuple[float, float], side: float, rows: int, cols: int
) -> NDArray[np.float64]:
    """(rows, cols) share of each square cell that lies in a shape.

    corner : (x, y) of the upper left corner of the grid, y going down with the rows

    Blocks of cells are halved until they lie inside, outside, or are one cell; each is cut out of
    its parent's part of the shape, so that a cell at the edge is compared with a few corners.
    """
    out = np.zeros((rows, cols))
    blocks = np.array([[0, rows, 0, cols]])
    parts = np.array([geometry], dtype=object)
    while len(blocks):
        top, bottom, left, right = blocks.T
        boxes = shapely.box(
            corner[0] + left * side,
            corner[1] - bottom * side,
            corner[0] + right * side,
            corner[1] - top * side,
        )
        parts = shapely.intersection(parts, boxes)
        size = (bottom - top) * (right - left)
        share = shapely.area(parts) / (size * side**2)
        done = (share >= 1 - WHOLE) | (share <= WHOLE) | (size == 1)
        for (r0, r1, c0, c1), value in zip(blocks[done], share[done], strict=True):
            out[r0:r1, c0:c1] = (
                min(max(value, 0.0), 1.0) if r1 - r0 == c1 - c0 == 1 else value > 0.5
            )
        blocks, parts = _halved(blocks[~done], parts[~done])
    return out


def _halved(
    blocks: NDArray[np.int_], parts: NDArray[np.object_]
) -> tuple[NDArray[np.int_], NDArray[np.object_]]:
    """Blocks cut across their longer side, each half with its parent's part of the shape."""
    if not len(blocks):
        return blocks, parts
    top, bottom, left, right = blocks.T
    tall = bottom - top >= right - left
    row = np.where(tall, (top + bottom) // 2, bottom)
    col = np.where(tall, right, (left + right) // 2)
    first = np.stack([top, row, left, col], axis=1)
    second = np.stack([np.where(tall, row, top), bottom, np.where(tall, left, col), right], axis=1)
    return np.concatenate([first, second]), np.concatenate([parts, parts])
