"""Measurements and contents from files; every fault is named with line and field."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram._arrays import check_numbers, read_array, read_arrays
from engram._files import open_image, read_json, read_text
from engram.errors import InputError, shown
from engram.grid import Grid

IMAGES = (".png", ".tif", ".tiff", ".bmp", ".pgm", ".jpg", ".jpeg")
_JSON_FIELDS = (
    *("row", "col", "cell", "latitude", "longitude", "x", "y", "outcome", "count"),
    *("value", "content", "noise", "detection", "false_alarm", "by", "date", "note"),
)


def default_content(grid: Grid, outcome: float) -> NDArray[np.float32]:
    """The content of a cell whose outcome alone is known: the outcome on the grid's range."""
    if grid.channels != 1:
        raise InputError(
            f"the area has {grid.channels} channels: give the content of the cell "
            "(--content FILE or --value V,V,...)"
        )
    try:
        share = float(np.clip(float(outcome), 0.0, 1.0))
    except (TypeError, ValueError):
        share = 0.0  # the outcome itself is refused by Observation.checked
    low, high = grid.range
    return np.full(grid.content_shape, low + share * (high - low), np.float32)


def content_from_values(grid: Grid, values: ArrayLike) -> NDArray[np.float32]:
    """One value per channel (the same on every pixel), or one per channel and pixel."""
    with np.errstate(over="ignore"):  # too large for float32 is infinite, refused with the content
        flat = plain_array(values, "value").astype(np.float32).ravel()
    c, h, w = grid.content_shape
    if flat.size == c:
        return np.repeat(flat, h * w).reshape(c, h, w)
    if flat.size == c * h * w:
        return flat.reshape(c, h, w)
    wanted = f"{c} (one per channel)" + (f" or {c * h * w} (all pixels)" if h * w > 1 else "")
    raise InputError(f"{flat.size} value(s) given; a cell takes {wanted}")


def read_raster(path: Path) -> NDArray[Any]:
    """Numbers from .npy, .npz (its only array), .csv, .txt, .json or an image."""
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        array = read_array(path)
    elif suffix in (".csv", ".txt"):
        array = _table(path, "," if suffix == ".csv" else None)
    elif suffix == ".json":
        array = _json_array(path)
    elif suffix in IMAGES:
        with open_image(path, str(path)) as image:
            if image.mode in ("P", "PA"):  # pixels are numbers of colours, not brightness
                image = image.convert("RGBA" if image.has_transparency_data else "RGB")
            array = np.asarray(image)
    else:
        raise InputError(f"{path}: give an .npy, .npz, .csv, .txt, .json, .png or .tif file")
    return check_numbers(array, str(path))


def _json_array(path: Path) -> NDArray[Any]:
    """Nested lists of a JSON file as an array; shapes (GeoJSON) are named."""
    data = read_json(path)
    if isinstance(data, dict):
        what = f"an object of type {data['type']!r}" if "type" in data else "an object"
        raise InputError(
            f"{path} holds {what}, not rows of numbers; burn shapes (GeoJSON) into a raster "
            "(gdal_rasterize, QGIS) and give the GeoTIFF"
        )
    return plain_array(data, str(path))


def _table(path: Path, delimiter: str | None) -> NDArray[np.float64]:
    """Lines of numbers, (n, m)."""
    lines = read_text(path).splitlines()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is refused by who asked for it
            return np.loadtxt(lines, np.float64, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise InputError(f"{path} is not a table of numbers: {error}") from error


def plain_array(data: Any, where: str) -> NDArray[Any]:
    """Nested lists of numbers as an array; dictionaries, texts and ragged lists are refused."""
    try:
        array = np.asarray(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: the lists are not of equal lengths: {error}") from error
    if array.dtype.kind not in "buif":
        raise InputError(f"{where}: give lists of numbers within the range of 64 bits")
    return array


def read_content(path: Path, grid: Grid) -> NDArray[Any]:
    """The content of one cell; images with 8 or 16 bits are scaled to the grid's range."""
    array = read_raster(path)
    if path.suffix.lower() not in (".npy", ".npz", ".csv", ".txt", ".json"):
        low, high = grid.range
        top = np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 1.0
        array = low + array.astype(np.float64) / top * (high - low)
    return array


def read_cost(path: Path, rows: int, cols: int) -> NDArray[np.float64]:
    """(rows, cols) cost of a visit, one number per cell."""
    cost = np.asarray(read_raster(path), np.float64)
    if cost.shape != (rows, cols):
        raise InputError(f"cost {path} has shape {cost.shape}; the grid has {rows}x{cols} cells")
    return cost


def json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measurements of a JSON file, each with where it stands."""
    data = read_json(path)
    if not isinstance(data, list):
        raise InputError(
            f"{path}: give a list of measurements"
            + (
                "; this is the log of a campaign: export it as .csv or .npz to tell it again"
                if isinstance(data, dict) and "events" in data
                else ""
            )
        )
    for i, item in enumerate(data, 1):
        if not isinstance(item, dict):
            raise InputError(f"{path.name}, item {i}: it is not an object")
        unknown = [name for name in item if name not in _JSON_FIELDS]
        if unknown:
            raise InputError(f"{path.name}, item {i}: field {shown(unknown[0])} is unknown")
        yield f"item {i}", item


def npz_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measurements of an .npz file, each with where it stands."""
    arrays = read_arrays(path, ("cells", "outcomes"))
    more = ("noise", "detection", "false_alarm")
    unknown = sorted(set(arrays) - {"cells", "outcomes", "contents", *more})
    if unknown:
        raise InputError(f"{path}: array {unknown[0]!r} is unknown")
    count = arrays["outcomes"].size
    for name, array in arrays.items():
        shape = {"cells": (count, 2), "contents": (count, *array.shape[1:])}.get(name, (count,))
        if array.shape != shape:
            raise InputError(
                f"{path}: array {name!r} has shape {array.shape}; give outcomes (n,), cells (n, 2),"
                " contents (n, C, h, w) and noise, detection, false_alarm (n,) with the same n"
            )
        if count:
            check_numbers(array, f"{path}: array {name!r}")
    for i in range(count):
        row: dict[str, Any] = {
            "cell": arrays["cells"][i].tolist(),
            "outcome": arrays["outcomes"][i],
        }
        if "contents" in arrays:
            row["content"] = arrays["contents"][i]
        row |= {name: arrays[name][i] for name in more if name in arrays}
        yield f"entry {i}", row
