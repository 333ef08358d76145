"""Measurements, contents and masks from files; every fault is named with line and field."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.errors import InputError
from engram.grid import Grid
from engram.observation import Observation

_IMAGES = (".png", ".tif", ".tiff", ".bmp", ".pgm", ".jpg", ".jpeg")
_FIELDS = ("row", "col", "cell", "outcome", "content", "value", "noise")


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
    try:
        flat = np.asarray(values, np.float32).ravel()
    except (TypeError, ValueError) as error:
        raise InputError(f"value={values!r} is not a list of numbers") from error
    c, h, w = grid.content_shape
    if flat.size == c:
        return np.repeat(flat, h * w).reshape(c, h, w)
    if flat.size == c * h * w:
        return flat.reshape(c, h, w)
    wanted = f"{c} (one per channel)" + (f" or {c * h * w} (all pixels)" if h * w > 1 else "")
    raise InputError(f"{flat.size} value(s) given; a cell takes {wanted}")


def read_array(path: Path) -> NDArray[Any]:
    """An array from .npy, .npz (its only array), .csv, .json or an image."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                if len(arrays.files) != 1:
                    raise InputError(
                        f"{path} holds {len(arrays.files)} arrays; give a file with one"
                    )
                return np.asarray(arrays[arrays.files[0]])
        if suffix in (".csv", ".txt"):
            return np.loadtxt(path, delimiter="," if suffix == ".csv" else None, ndmin=2)
        if suffix == ".json":
            return np.asarray(json.loads(path.read_text()), np.float64)
        if suffix in _IMAGES:
            from PIL import Image

            with Image.open(path) as image:
                if image.mode in ("P", "PA"):  # pixels are numbers of colours, not brightness
                    mode = "RGBA" if image.has_transparency_data else "RGB"
                    return np.asarray(image.convert(mode))
                return np.asarray(image)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    raise InputError(f"{path}: give an .npy, .npz, .csv, .txt, .json, .png or .tif file")


def read_content(path: Path, grid: Grid) -> NDArray[Any]:
    """The content of one cell; images with 8 or 16 bits are scaled to the grid's range."""
    array = read_array(path)
    if path.suffix.lower() not in (".npy", ".npz", ".csv", ".txt", ".json"):
        low, high = grid.range
        top = np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 1.0
        array = low + array.astype(np.float64) / top * (high - low)
    return array


def read_mask(path: Path, cell: tuple[int, int]) -> NDArray[np.bool_]:
    """(rows, cols) True where a cell is closed, from a raster of the whole area.

    Zero (black), NaN and transparent pixels lie outside; a cell is open when at least half of
    its pixels are inside.
    """
    pixels = read_array(path)
    if pixels.ndim == 3:
        pixels = _opaque(pixels) if path.suffix.lower() in _IMAGES else pixels
        pixels = pixels.max(axis=2 if pixels.shape[2] <= 4 else 0)
    if pixels.ndim != 2:
        raise InputError(f"mask {path} has {pixels.ndim} dimensions; give rows and columns")
    inside = np.nan_to_num(pixels.astype(np.float64), nan=0.0) != 0
    grid = Grid(inside.shape[0], inside.shape[1], cell=cell)
    share = grid.cells_of(inside.astype(np.float32)).mean(axis=(1, 2))
    return np.asarray(share < 0.5).reshape(grid.rows, grid.cols)


def _opaque(pixels: NDArray[Any]) -> NDArray[Any]:
    """(H, W, 1 to 4) -> the same without its alpha channel, 0 where that is."""
    if pixels.shape[2] not in (2, 4):
        return pixels
    return np.asarray(np.where(pixels[..., -1:] > 0, pixels[..., :-1], 0))


def read_cost(path: Path, rows: int, cols: int) -> NDArray[np.float64]:
    """(rows, cols) cost of a visit, one number per cell."""
    cost = np.asarray(read_array(path), np.float64)
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
    try:
        for where, row in reader(path):
            labels.append(f"{path.name}, {where}: ")
            observations.append(_observation(grid, row, labels[-1]))
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if not observations:
        raise InputError(f"{path} holds no measurement")
    return labels, observations


def _observation(grid: Grid, row: Mapping[str, Any], label: str) -> Observation:
    cell = row.get("cell") or (row.get("row"), row.get("col"))
    if not isinstance(cell, list | tuple) or len(cell) != 2:
        raise InputError(f"{label}field cell: {cell!r} is not [row, col]")
    place = tuple(
        _whole(value, name, label) for name, value in zip(("row", "col"), cell, strict=True)
    )
    outcome = _number(row.get("outcome"), "outcome", label)
    noise = _number(row.get("noise", 0.0), "noise", label)
    try:
        if row.get("content") is not None:
            content = row["content"]
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
    except (TypeError, ValueError) as error:
        raise InputError(f"{label}field {name}: {value!r} is not a number") from error


def _whole(value: Any, name: str, label: str) -> int:
    number = _number(value, name, label)
    if number != int(number) if np.isfinite(number) else True:
        raise InputError(f"{label}field {name}: {value!r} is not a whole number")
    return int(number)


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names = [(name or "").strip() for name in reader.fieldnames or ()]
        values = [f"value_{i}" for i in range(sum(n.startswith("value_") for n in names))]
        fault = _header_fault(names, values)
        if fault:
            raise InputError(
                f"{path.name}, line 1: {fault}; give row, col, outcome and optionally value "
                "(or value_0, value_1, ...) and noise, with commas between them; the line reads "
                f"{','.join(names)!r}"
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
            row.pop("content", None)
            yield where, row


def _header_fault(names: Sequence[str], values: Sequence[str]) -> str:
    """What is wrong with the columns of a CSV file, or nothing."""
    faults = (
        *(f"column {n!r} is missing" for n in ("row", "col", "outcome") if n not in names),
        *(f"column {n!r} is missing" for n in values if n not in names),
        *(f"column {n!r} is unknown" for n in names if n not in _FIELDS and n not in values),
        *(f"column {n!r} is there twice" for n in names if names.count(n) > 1),
    )
    return next(iter(faults), "")


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from error
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
        unknown = [name for name in item if name not in _FIELDS]
        if unknown:
            raise InputError(f"{path.name}, item {i}: field {unknown[0]!r} is unknown")
        yield f"item {i}", item


def _npz_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except ValueError as error:
        raise InputError(f"cannot read {path}: {error}") from error
    for name in ("cells", "outcomes"):
        if name not in arrays:
            raise InputError(f"{path}: array {name!r} is missing")
    unknown = sorted(set(arrays) - {"cells", "outcomes", "contents", "noise"})
    if unknown:
        raise InputError(f"{path}: array {unknown[0]!r} is unknown")
    count = len(arrays["outcomes"])
    for name, array in arrays.items():
        if len(array) != count:
            raise InputError(f"{path}: array {name!r} has {len(array)} entries, outcomes {count}")
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
