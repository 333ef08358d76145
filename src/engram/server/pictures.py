"""Maps of cells as small PNG pictures, in colours that everybody can tell apart."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Table = NDArray[np.float32]

TILE = 256
"""Pixels of a tile's side."""

_STOPS = (0x440154, 0x482878, 0x3E4989, 0x31688E, 0x26828E, 0x1F9E89, 0x35B779, 0x6ECE58, 0xB5DE2B)
_LAST = 0xFDE725


def _colours() -> NDArray[np.uint8]:
    """(256, 4) viridis, from violet (low) to yellow (high)."""
    stops = np.array([[v >> 16, v >> 8 & 255, v & 255] for v in (*_STOPS, _LAST)], float)
    place = np.linspace(0, len(stops) - 1, 256)
    table = [np.interp(place, np.arange(len(stops)), stops[:, i]) for i in range(3)]
    return np.stack([*table, np.full(256, 255.0)], axis=1).round().astype(np.uint8)


COLOURS = _colours()


def limits_of(table: Table, low: float | None, high: float | None) -> tuple[float, float]:
    """Where the colours begin and end: as asked, or at the smallest and largest value."""
    finite = table[np.isfinite(table)]
    least = float(finite.min()) if low is None and finite.size else low or 0.0
    most = float(finite.max()) if high is None and finite.size else 1.0 if high is None else high
    return least, most


def painted(table: Table, low: float, high: float) -> NDArray[np.uint8]:
    """(rows, cols, 4) colours; transparent where there is no number."""
    span = high - low if high > low else 1.0
    known = np.isfinite(table)
    share = np.clip((np.where(known, table, low) - low) / span, 0.0, 1.0)
    colours = COLOURS[np.rint(255 * share).astype(np.uint8)]
    colours[~known] = 0
    return colours


def png(colours: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(colours).save(out, "PNG", compress_level=3)
    return out.getvalue()


def coloured(
    table: Table, low: float | None, high: float | None
) -> tuple[bytes, tuple[float, float]]:
    """A map as a picture of one pixel per cell, and where its colours begin and end."""
    limits = limits_of(table, low, high)
    return png(painted(table, *limits)), limits


def tile(table: Table, zoom: int, x: int, y: int, low: float | None, high: float | None) -> bytes:
    """The tile (x, y) of a map whose cells are 2^zoom pixels wide."""
    side = TILE >> zoom
    part = table[y * side : (y + 1) * side, x * side : (x + 1) * side]
    out = np.zeros((TILE, TILE, 4), np.uint8)
    if part.size:
        colours = painted(part, *limits_of(table, low, high))
        whole = colours.repeat(1 << zoom, axis=0).repeat(1 << zoom, axis=1)
        out[: whole.shape[0], : whole.shape[1]] = whole
    return png(out)
