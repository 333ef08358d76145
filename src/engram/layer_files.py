"""Layers and belief maps from files: rasters of any resolution, or tables of cells.

A raster that says where it lies (GeoTIFF) is looked up on the cells of an area that has a place;
any other covers the area from edge to edge. Numbers are averaged over the part of every pixel
that lies in a cell; of categories (``:kinds``) the one that covers most of a cell counts. A CSV
file has one row per cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engram._arrays import check_file, check_numbers, read_array
from engram._files import IMAGE_SUFFIXES, open_image, read_text
from engram.errors import InputError, shown
from engram.grid import Grid
from engram.layers import Array, Layer, Layers, categories_of

GDAL_NODATA = 42113
"""The tag of a GeoTIFF that holds its nodata value, as text."""
SKEWED = 0.05
"""By which part the proportions of a raster may differ from those of the area it covers."""
MOST_KINDS = 256
"""Categories of a raster; more are numbers."""
MISSING = {"", "na", "nan", "null", "none", "\\n"}
WAYS = ("more", "less", "kinds")
"""What may stand behind a layer's file: what is expected of it, or that its numbers are names."""

Span = tuple[float, float]


def read_layers(
    grid: Grid,
    given: Iterable[str] = (),
    belief: str | Path | None = None,
    *,
    span: Span | None = None,
) -> Layers | None:
    """Layers as they are written, ``NAME=FILE[:more|:less|:kinds]``, and a belief map.

    None where neither is given. span : rows and columns of cells that rasters cover, where the
    last cells stick out over the edge of the area.
    """
    layers, names = [], set()
    for text in given:
        name, file, way = parsed(text)
        if name in names:
            raise InputError(f"layer {name!r} is given twice; name each layer once")
        names.add(name)
        layers.append(read_layer(name, file, grid, way, span))
    if not layers and belief is None:
        return None
    return Layers(grid, layers, None if belief is None else read_belief(belief, grid, span))


def parsed(text: str) -> tuple[str, Path, str]:
    """Name, file and what is said of it: ``greenstone=rock.tif:more``."""
    name, equals, rest = text.partition("=")
    name, rest = name.strip(), rest.strip()
    if not equals or not name or not rest:
        raise InputError(
            f"layer {shown(text)} is not of the form NAME=FILE, NAME=FILE:more, NAME=FILE:less or "
            "NAME=FILE:kinds"
        )
    file, colon, way = rest.rpartition(":")
    if colon and way in WAYS:
        return name, Path(file), way
    if colon and not Path(rest).exists() and Path(file).exists():
        raise InputError(f"layer {name!r}: {shown(way)} is none of {', '.join(WAYS)}")
    return name, Path(rest), ""


def read_layer(name: str, file: Path, grid: Grid, way: str = "", span: Span | None = None) -> Layer:
    """A layer of one file, checked."""
    expected = way if way in ("more", "less") else ""
    where = f"layer {name!r}"
    if check_file(file).suffix.lower() in (".csv", ".txt", ".gz"):
        layer = _of_table(name, file, grid, expected, kinds=way == "kinds")
    elif way == "kinds":
        layer = _of_kinds(name, file, grid, span)
    else:
        layer = Layer(name, on_cells(file, where, grid, span, name), (), expected)
    layer.check(grid)
    return layer


def read_belief(file: str | Path, grid: Grid, span: Span | None = None) -> Array:
    """(n_cells,) probability of target; grey pictures of 8 or 16 bits run from 0 to 1."""
    path = check_file(Path(file))
    if path.suffix.lower() in (".csv", ".txt", ".gz"):
        return _numbers(_column("belief", path, grid), "belief", path)
    pixels = read_pixels(path, "belief")
    top = 1.0
    if path.suffix.lower() in IMAGE_SUFFIXES and not _placed(path, grid):
        with open_image(path, str(path)) as image:
            top = {"L": 255.0, "I;16": 65535.0}.get(image.mode, 1.0)
    if top > 1:
        return _averaged(pixels / top, grid, span, f"belief {path}")
    return on_cells(path, "belief", grid, span)


def on_cells(file: Path, where: str, grid: Grid, span: Span | None = None, name: str = "") -> Array:
    """(n_cells,) average of a raster over every cell, NaN where it has no value.

    name : of the band to take, where a GeoTIFF has one of that name
    """
    if _placed(file, grid):
        from engram.geo.place import Place
        from engram.geo.rasters import on_cells as looked_up

        found = looked_up(file, Place(grid), name)
        if np.isnan(found.values[grid.open_cells]).all():
            raise InputError(
                f"{where}: {file} does not cover the area; give a raster of the same place"
            )
        return found.values
    return _averaged(read_pixels(file, where), grid, span, f"{where}: {file}")


def _placed(file: Path, grid: Grid) -> bool:
    """Whether both the area and the raster say where they lie."""
    if grid.transform is None or grid.crs is None or file.suffix.lower() not in (".tif", ".tiff"):
        return False
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.rasters import open_geotiff

    with open_geotiff(file) as dataset:
        return dataset.crs is not None and not dataset.transform.is_identity


def read_pixels(file: Path, where: str) -> Array:
    """(H, W) numbers of a raster, NaN where it has none."""
    suffix = check_file(file).suffix.lower()
    if suffix in (".npy", ".npz"):
        pixels = np.array(check_numbers(read_array(file), f"{where}: {file}"), np.float64)
    elif suffix in IMAGE_SUFFIXES:
        pixels = _picture(file, where)
    else:
        raise InputError(f"{where}: {file} is none of .tif, .png, .npy, .npz and .csv")
    if pixels.ndim != 2:
        raise InputError(
            f"{where}: {file} has shape {pixels.shape}; give one value per pixel, (H, W), and a "
            "file for every band"
        )
    if np.isinf(pixels).any():
        raise InputError(
            f"{where}: {file} has {np.isinf(pixels).sum()} infinite pixel(s); give finite numbers, "
            "and NaN or nodata where nothing is known"
        )
    return pixels


def _picture(file: Path, where: str) -> Array:
    """(H, W) grey levels as they are stored; transparent and nodata pixels are missing."""
    with open_image(file, f"{where}: {file}") as image:
        nodata = str(getattr(image, "tag_v2", {}).get(GDAL_NODATA, "")).strip("\0 ")
        if image.mode == "P":
            image.load()
            return np.array(image, np.float64)
        stored = np.array(image)
    if stored.ndim == 3 and stored.shape[2] == 2:
        return np.where(stored[..., 1] > 0, stored[..., 0], np.nan)
    if stored.ndim == 3:
        colours = stored[..., :3].astype(np.float64)
        grey = colours @ np.array([0.299, 0.587, 0.114])
        return np.where(stored[..., 3] > 0, grey, np.nan) if stored.shape[2] == 4 else grey
    pixels = stored.astype(np.float64)
    try:
        value = float(nodata)
    except ValueError:
        return pixels
    value = float(stored.dtype.type(value)) if stored.dtype.kind == "f" else value
    return np.where(pixels == value, np.nan, pixels)


def _shares(count: int, pixels: int, span: float) -> Array:
    """(count, pixels) how much of every pixel lies in every cell; together they span ``span``."""
    edges = np.linspace(0.0, span, pixels + 1)
    cells = np.arange(count)[:, None]
    inside = np.minimum(edges[1:], cells + 1) - np.maximum(edges[:-1], cells)
    return np.asarray(np.maximum(inside, 0.0))


def _weights(shape: tuple[int, ...], grid: Grid, span: Span | None, where: str) -> list[Array]:
    """Shares of rows and of columns of pixels in those of cells."""
    rows, cols = span or (float(grid.rows), float(grid.cols))
    geometry = grid.geometry
    stretch = (shape[0] / shape[1]) / (rows * geometry.height / (cols * geometry.width))
    cellwise = shape == (grid.rows, grid.cols)
    if not cellwise and abs(np.log(stretch)) > SKEWED + 1 / min(shape):
        raise InputError(
            f"{where} has {shape[0]}x{shape[1]} pixels, which do not have the proportions of the "
            f"area of {grid.rows}x{grid.cols} cells; cut it to the area"
        )
    if cellwise:
        rows, cols = float(grid.rows), float(grid.cols)
    return [_shares(grid.rows, shape[0], rows), _shares(grid.cols, shape[1], cols)]


def _averaged(pixels: Array, grid: Grid, span: Span | None, where: str) -> Array:
    """(n_cells,) average over the known part of every cell."""
    down, right = _weights(pixels.shape, grid, span, where)
    known = ~np.isnan(pixels)
    total = down @ np.where(known, pixels, 0.0) @ right.T
    area = down @ known.astype(np.float64) @ right.T
    full = down.sum(axis=1)[:, None] * right.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(area > 1e-9 * full, total / area, np.nan).ravel()


def _of_kinds(name: str, file: Path, grid: Grid, span: Span | None) -> Layer:
    """The category that covers most of every cell."""
    if _placed(file, grid):
        from engram.geo.place import Place
        from engram.geo.rasters import commonest

        found = commonest(file, Place(grid))
        return categories_of(name, ["" if np.isnan(v) else f"{v:g}" for v in found])
    pixels = read_pixels(file, f"layer {name!r}")
    kinds = np.unique(pixels[~np.isnan(pixels)])
    if len(kinds) > MOST_KINDS:
        raise InputError(
            f"layer {name!r} has {len(kinds)} categories, at most {MOST_KINDS} are counted; leave "
            ":kinds out if these are numbers"
        )
    down, right = _weights(pixels.shape, grid, span, f"layer {name!r}")
    areas = np.stack([(down @ (pixels == k) @ right.T).ravel() for k in kinds] or [[]])
    largest = np.argmax(areas, axis=0)
    texts = [f"{kinds[k]:g}" if areas[k, i] > 0 else "" for i, k in enumerate(largest)]
    return categories_of(name, texts)


# -- tables --------------------------------------------------------------------------------


def _of_table(name: str, file: Path, grid: Grid, expected: str, *, kinds: bool) -> Layer:
    """A column of numbers, or of texts, which are categories."""
    texts = _column(name, file, grid)
    try:
        if kinds:
            return categories_of(name, texts)
        return Layer(name, _numbers(texts, f"layer {name!r}", file), (), expected)
    except InputError:
        if expected or all(_is_number(text) for text in texts if text):
            raise
        return categories_of(name, texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(texts: list[str], where: str, file: Path) -> Array:
    """Numbers of a column, NaN where missing."""
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text:
            if not _is_number(text):
                raise InputError(f"{where}: {file} has {shown(text)}, which is not a number")
            values[i] = float(text)
    return values


def _column(name: str, file: Path, grid: Grid) -> list[str]:
    """One text per cell: of the column of that name, or of the only one besides row and col."""
    lines = [line for line in csv.reader(io.StringIO(read_text(file), newline="")) if line]
    header = [field.strip() for field in lines[0]] if lines else []
    values = [field for field in header if field not in ("row", "col")]
    column = name if name in values else values[0] if len(values) == 1 else None
    if column is None:
        raise InputError(
            f"layer {name!r}: {file} has no column {name!r}; its columns are "
            f"{', '.join(header) or 'none'}"
        )
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise InputError(
                f"layer {name!r}: {file}, line {number} has {len(line)} fields where the header "
                f"has {len(header)}"
            )
        rows.append(dict(zip(header, line, strict=True)))
    texts = [row[column].strip() for row in rows]
    texts = ["" if text.lower() in MISSING else text for text in texts]
    if {"row", "col"} <= set(header):
        return _placed_by_cell(name, file, grid, rows, texts)
    if len(texts) != grid.n_cells:
        raise InputError(
            f"layer {name!r}: {file} has {len(texts)} rows; give one for each of the "
            f"{grid.rows}x{grid.cols} cells, or columns row and col"
        )
    return texts


def _placed_by_cell(
    name: str, file: Path, grid: Grid, rows: list[Mapping[str, Any]], texts: list[str]
) -> list[str]:
    out, seen = [""] * grid.n_cells, set()
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), 2):
        where = f"layer {name!r}: {file}, line {number}"
        try:
            cell = int(row["row"]), int(row["col"])
        except ValueError:
            raise InputError(
                f"{where}: row {shown(row['row'])} and col {shown(row['col'])} are not whole "
                "numbers"
            ) from None
        try:
            index = grid.index(cell)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if index in seen:
            raise InputError(f"{where}: cell {cell} is there twice; give every cell once")
        seen.add(index)
        out[index] = text
    return out
