"""Files of places for tests: a park near Berlin with a bay, two zones, and rasters of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

LON, LAT = 13.25, 52.48


def ring(lon: float = LON, lat: float = LAT, size: float = 0.02) -> list[list[float]]:
    """A closed outline around a place, in degrees; it has a bay in the west."""
    angles = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    radius = 1 - 0.35 * np.exp(-((angles - math.pi) ** 2))
    points = [
        [lon + size * r * math.cos(a) / math.cos(math.radians(lat)), lat + size * r * math.sin(a)]
        for a, r in zip(angles, radius, strict=True)
    ]
    return [*points, points[0]]


def box(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def polygon(path: Path, points: list[list[float]], **members: Any) -> Path:
    """A GeoJSON file of one polygon."""
    path.write_text(json.dumps({"type": "Polygon", "coordinates": [points], **members}))
    return path


def geotiff(
    path: Path,
    values: np.ndarray[Any, Any],
    corner: tuple[float, float],
    side: float,
    crs: str = "EPSG:32633",
    **more: Any,
) -> Path:
    """A GeoTIFF (H, W) or (C, H, W), north-up, of square pixels."""
    import rasterio
    from rasterio.transform import from_origin

    bands = values if values.ndim == 3 else values[None]
    with rasterio.open(
        path, "w", driver="GTiff", height=bands.shape[1], width=bands.shape[2], count=len(bands),
        dtype=bands.dtype, crs=crs, transform=from_origin(*corner, side, side), **more,
    ) as file:  # fmt: skip
        file.write(bands)
    return path
