"""The area of a campaign from a raster: which cells are open, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._files import open_image
from engram.campaign.files import IMAGES, read_raster
from engram.errors import InputError
from engram.grid import Grid

GDAL_NODATA = 42113
"""The tag of a GeoTIFF that holds its nodata value, as text."""


@dataclass(frozen=True)
class AreaMask:
    """closed : (rows, cols) True where a cell is closed; words : what was read, in one line."""

    closed: NDArray[np.bool_]
    words: str


def read_mask(path: Path, cell: tuple[int, int]) -> AreaMask:
    """The open cells of a raster of the whole area.

    Outside lie pixels of 0 (black) or less, NaN or infinite, transparent, or of the raster's
    nodata value (GeoTIFF); a cell is open when at least half of its pixels are inside.
    """
    pixels = read_raster(path)
    unknown = ~np.isfinite(pixels)
    pixels = np.where(unknown, 0, pixels)
    if pixels.ndim == 3:
        pixels = _opaque(pixels) if path.suffix.lower() in IMAGES else pixels
        axis = 2 if pixels.shape[2] <= 4 else 0
        pixels, unknown = pixels.max(axis=axis), unknown.all(axis=axis)
    if pixels.ndim != 2:
        raise InputError(f"mask {path} has {pixels.ndim} dimensions; give rows and columns")
    nodata, blank = _nodata(path, pixels.shape)
    inside = (pixels > 0) & ~blank
    grid = Grid(inside.shape[0], inside.shape[1], cell=cell)
    share = grid.cells_of(inside.astype(np.float32)).mean(axis=(1, 2))
    closed = np.asarray(share < 0.5).reshape(grid.rows, grid.cols)
    causes = {
        f"nodata ({nodata})": blank,
        "negative": (pixels < 0) & ~blank,
        "not finite": unknown & ~blank,
    }
    counts = [f"{where.sum()} {cause}" for cause, where in causes.items() if where.any()]
    why = f"; pixels outside: {', '.join(counts)}" if counts else ""
    words = f"{path.name}: {(~closed).sum()} of {closed.size} cells are open{why}"
    if closed.all():
        raise InputError(f"mask {words}; give a raster whose pixels inside are above 0")
    return AreaMask(closed, words)


def _nodata(path: Path, shape: tuple[int, ...]) -> tuple[str, NDArray[np.bool_]]:
    """The nodata value of a GeoTIFF, as it is written there, and the pixels that hold it."""
    none = np.zeros(shape, bool)
    if path.suffix.lower() not in (".tif", ".tiff"):
        return "", none
    with open_image(path, str(path)) as image:
        text = str(getattr(image, "tag_v2", {}).get(GDAL_NODATA, "")).strip("\0 ")
        stored = np.asarray(image)  # numbers of colours where there is a palette
    try:
        value = float(text)
    except ValueError:
        return "", none
    if stored.dtype.kind == "f":
        value = float(stored.dtype.type(value))
    held = stored == value
    return text, held.all(axis=2) if held.ndim == 3 else held


def _opaque(pixels: NDArray[Any]) -> NDArray[Any]:
    """(H, W, 1 to 4) -> the same without its alpha channel, 0 where that is."""
    if pixels.shape[2] not in (2, 4):
        return pixels
    return np.asarray(np.where(pixels[..., -1:] > 0, pixels[..., :-1], 0))
