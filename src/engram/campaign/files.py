"""Measurements and contents from files; every fault is named with line and field."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram._arrays import check_numbers, read_array, read_arrays
from engram._files import open_image, read_json, read_text
from engram.errors import InputError, shown
from engram.grid import Grid
from engram.observation import Observation

IMAGES = (".png", ".tif", ".tiff", ".bmp", ".pgm", ".jpg", ".jpeg")
_CSV_FIELDS = ("row", "col", "outcome", "value", "noise")
_JSON_FIELDS = (*_CSV_FIELDS, "cell", "content")


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
        flat = _plain_array(values, "value").astype(np.float32).ravel()
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
    return _plain_array(data, str(path))


def _table(path: Path, delimiter: str | None) -> NDArray[np.float64]:
    """Lines of numbers, (n, m)."""
    lines = read_text(path).splitlines()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is refused by who asked for it
            return np.loadtxt(lines, np.float64, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise InputError(f"{path} is not a table of numbers: {error}") from error


def _plain_array(data: Any, where: str) -> NDArray[Any]:
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


def read_tells(path: Path, grid: Grid) -> tuple[list[str], list[Observation]]:
    """Measurements of a file, with a label ('line 3: ') for each.

    CSV  : columns row, col, outcome; optionally value, or value_0, value_1, ...; noise
    JSON : a list of objects with cell [row, col], outcome; optionally content or value; noise
    NPZ  : arrays cells (n, 2), outcomes (n,); optionally contents (n, C, h, w), noise (n,)
    """
    readers = {".csv": _csv_rows, ".json": _json_rows, ".npz": _npz_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: give a .csv, .json or .npz file of measurements")
    labels, observations = [], []
    if not path.is_file():
        raise InputError(f"cannot read {path}: there is no such file")
    for where, row in reader(path):
        labels.append(f"{path.name}, {where}: ")
        observations.append(_observation(grid, row, labels[-1]))
    if not observations:
        raise InputError(f"{path} holds no measurement")
    return labels, observations


def _observation(grid: Grid, row: Mapping[str, Any], label: str) -> Observation:
    if "cell" in row and ("row" in row or "col" in row):
        raise InputError(f"{label}give the cell once: either cell, or row and col")
    if "content" in row and "value" in row:
        raise InputError(f"{label}give either content or value")
    cell = row["cell"] if "cell" in row else (row.get("row"), row.get("col"))
    if not isinstance(cell, list | tuple) or len(cell) != 2:
        raise InputError(f"{label}field cell: {shown(cell)} is not [row, col]")
    place = tuple(
        _whole(value, name, label) for name, value in zip(("row", "col"), cell, strict=True)
    )
    outcome = _number(row.get("outcome"), "outcome", label)
    noise = _number(row.get("noise", 0.0), "noise", label)
    try:
        if row.get("content") is not None:
            content = _plain_array(row["content"], "field content")
        elif row.get("value") is not None:
            content = content_from_values(grid, row["value"])
        else:
            content = default_content(grid, outcome)
        return Observation.checked(grid, (place[0], place[1]), content, outcome, noise)
    except InputError as error:
        raise InputError(f"{label}{error}") from error


def _number(value: Any, name: str, label: str) -> float:
    if value is None or value == "":
        raise InputError(f"{label}field {name} is missing")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{label}field {name}: {shown(value)} is not a number") from error


def _whole(value: Any, name: str, label: str) -> int:
    number = _number(value, name, label)
    if number != int(number) if np.isfinite(number) else True:
        raise InputError(f"{label}field {name}: {shown(value)} is not a whole number")
    return int(number)


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        names = [(name or "").strip() for name in reader.fieldnames or ()]
        values = [f"value_{i}" for i in range(sum(n.startswith("value_") for n in names))]
        fault = _header_fault(names, values)
        if fault:
            raise InputError(
                f"{path.name}, line 1: {fault}; give row, col, outcome and optionally value "
                "(or value_0, value_1, ...) and noise, with commas between them; the line reads "
                f"{shown(','.join(names))}"
            )
        reader.fieldnames = names
        for raw in reader:
            where = f"line {reader.line_num}"
            if None in raw or None in raw.values():
                raise InputError(f"{path.name}, {where}: it does not have {len(names)} fields")
            row: dict[str, Any] = {k: v.strip() for k, v in raw.items() if v.strip() != ""}
            if values:
                row["value"] = [
                    _number(row.get(name), name, f"{path.name}, {where}: ") for name in values
                ]
            elif "value" in row:
                row["value"] = [_number(row["value"], "value", f"{path.name}, {where}: ")]
            yield where, row
    except csv.Error as error:
        raise InputError(f"{path.name}, line {reader.line_num + 1}: {error}") from error


def _header_fault(names: Sequence[str], values: Sequence[str]) -> str:
    """What is wrong with the columns of a CSV file, or nothing."""
    counts, known = Counter(names), {*_CSV_FIELDS, *values}
    faults = (
        *(f"column {n!r} is missing" for n in ("row", "col", "outcome") if n not in counts),
        *(f"column {n!r} is missing" for n in values if n not in counts),
        *(f"column {shown(n)} is unknown" for n in names if n not in known),
        *(f"column {shown(n)} is there twice" for n, count in counts.items() if count > 1),
        *(["'value' stands beside 'value_0'"] if values and "value" in counts else []),
    )
    return next(iter(faults), "")


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
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


def _npz_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    arrays = read_arrays(path, ("cells", "outcomes"))
    unknown = sorted(set(arrays) - {"cells", "outcomes", "contents", "noise"})
    if unknown:
        raise InputError(f"{path}: array {unknown[0]!r} is unknown")
    count = arrays["outcomes"].size
    for name, array in arrays.items():
        shape = {"cells": (count, 2), "contents": (count, *array.shape[1:])}.get(name, (count,))
        if array.shape != shape:
            raise InputError(
                f"{path}: array {name!r} has shape {array.shape}; give outcomes (n,), cells (n, 2),"
                " contents (n, C, h, w) and noise (n,) with the same n"
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
        if "noise" in arrays:
            row["noise"] = arrays["noise"][i]
        yield f"entry {i}", row
