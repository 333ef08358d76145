"""GeoTIFF read within bounds: one driver, one file handle, nothing beside it.

The library gets an open handle instead of a name, so that it has nothing to look for: no sidecar,
no overview file, no reference to another file or a server.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS

from engram._arrays import check_file, check_room
from engram.errors import InputError
from engram.geo.crs import file_crs, moved
from engram.geo.place import Place

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""How a TIFF begins; the last two are BigTIFF."""
SUFFIXES = (".tif", ".tiff")
LOCKED = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_GEOREF_SOURCES": "INTERNAL",
    "GDAL_HTTP_MAX_RETRY": "0",
    "CPL_CURL_ENABLE_VSIMEM": "NO",
    "GDAL_NUM_THREADS": "1",
}
"""Settings of the library under which files of users are read."""
MOST_PIXELS = 64_000_000
"""Pixels that are held at once; a larger raster is read reduced."""
LARGEST_PICTURE, AT_ONCE = 400_000_000, 4_000_000
"""Pixels of a picture that is searched, and how many are read at once."""
DENSEST = 8
"""Points per side of a cell at which a raster is looked up."""

Array = NDArray[np.float64]


def is_raster(path: Path) -> bool:
    """True for the name of a GeoTIFF."""
    return path.suffix.lower() in SUFFIXES


@contextmanager
def open_geotiff(path: Path) -> Iterator[Any]:
    """A GeoTIFF (also a cloud-optimised one); whatever goes wrong until it is closed is named."""
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning

    check_file(path)
    try:
        with path.open("rb") as file:
            if file.read(4) not in MAGIC:
                raise InputError(f"{path} is not a GeoTIFF; only that is read as a raster")
            file.seek(0)
            with warnings.catch_warnings(), rasterio.Env(**LOCKED):
                warnings.simplefilter("ignore", NotGeoreferencedWarning)
                with rasterio.open(file, driver="GTiff") as dataset:
                    _check_size(dataset, path)
                    yield dataset
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory; cut or reduce it") from error
    except Exception as error:  # what damaged bytes do to the library has no other name
        words = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"cannot read {path} as a GeoTIFF: {words}; save it again") from error


def _check_size(dataset: Any, path: Path) -> None:
    """Refuse rasters that unfold to far more than is in the file, and single blocks that do."""
    wide = max(np.dtype(kind).itemsize for kind in dataset.dtypes) * dataset.count
    packed = path.stat().st_size
    check_room(dataset.width * dataset.height * wide, packed, str(path))
    for height, width in dataset.block_shapes:
        check_room(height * width * wide, 0, f"{path}, a block of it,")


def crs_of(dataset: Any, path: Path) -> CRS:
    """The coordinate system of a raster, and a transform that is one."""
    if dataset.crs is None or dataset.transform.is_identity:
        raise InputError(
            f"{path} does not say where it lies (coordinate system or transform are missing); "
            "georeference it"
        )
    return file_crs(dataset.crs.to_wkt(), str(path))


@dataclass(frozen=True, eq=False)
class OnCells:
    """A raster looked up on a grid.

    values : (n_cells,) mean of the points of a cell that have a value, NaN without any
    share  : (n_cells,) share of the points of a cell that have a value
    """

    values: Array
    share: Array


def on_cells(path: Path, place: Place, name: str = "") -> OnCells:
    """A raster on the cells of a grid, whatever its system and resolution.

    It is the band of this name, if there is one, and the first otherwise.
    """
    total, count, points = np.zeros(place.grid.n_cells), np.zeros(place.grid.n_cells), 0
    for cells, found in sampled(path, place, name):
        total[cells] += found
        count[cells] += 1
        points += 1
    with np.errstate(invalid="ignore"):
        values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return OnCells(values, count / points)


def commonest(path: Path, place: Place, name: str = "") -> Array:
    """(n_cells,) the value that most of a cell's points have, NaN without any."""
    counts: dict[float, Array] = {}
    for cells, found in sampled(path, place, name):
        for kind in np.unique(found):
            count = counts.setdefault(float(kind), np.zeros(place.grid.n_cells))
            count[cells[found == kind]] += 1
    if not counts:
        return np.full(place.grid.n_cells, np.nan)
    kinds = np.array(sorted(counts))
    table = np.stack([counts[kind] for kind in kinds])
    return np.where(table.any(axis=0), kinds[table.argmax(axis=0)], np.nan)


def sampled(
    path: Path, place: Place, name: str = ""
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """A raster (the band of this name, or the first) at evenly spaced points of all cells.

    One point of every cell at a time: yields the cells (flat indices) whose point has a value, and
    the values.
    """
    with open_geotiff(path) as dataset:
        crs = crs_of(dataset, path)
        named = [text or "" for text in dataset.descriptions]
        band = named.index(name) + 1 if name in named and name else 1
        reduce = max(1, int(np.ceil(np.sqrt(dataset.width * dataset.height / MOST_PIXELS))))
        shape = (-(-dataset.height // reduce), -(-dataset.width // reduce))
        pixels = dataset.read(band, out_shape=shape)
        if pixels.dtype.kind not in "buif":
            raise InputError(f"{path} holds {pixels.dtype}, not real numbers; save it as such")
        known = (dataset.read_masks(band, out_shape=shape) > 0) & np.isfinite(pixels)
        scale = (dataset.width / shape[1], dataset.height / shape[0])
        inverse = tuple(~dataset.transform)[:6]
    side = _points_per_side(place, crs, inverse, scale)
    rows, cols = np.divmod(np.arange(place.grid.n_cells), place.grid.cols)
    for i in range(side):
        for j in range(side):
            x, y = place.xy(rows + (i + 0.5) / side, cols + (j + 0.5) / side)
            x, y = moved(place.crs, crs, x, y)
            col, row = _applied(inverse, x, y)
            col, row = col / scale[0], row / scale[1]
            inside = (col >= 0) & (col < shape[1]) & (row >= 0) & (row < shape[0])
            r, c = row[inside].astype(np.intp), col[inside].astype(np.intp)
            hit = known[r, c]
            yield np.flatnonzero(inside)[hit], pixels[r[hit], c[hit]]


def _applied(affine: tuple[float, ...], x: Any, y: Any) -> tuple[Any, Any]:
    """(x, y) through an affine map (a, b, c, d, e, f)."""
    a, b, c, d, e, f = affine
    return a * x + b * y + c, d * x + e * y + f


def _points_per_side(
    place: Place, crs: CRS, inverse: tuple[float, ...], scale: tuple[float, float]
) -> int:
    """So many points that a cell misses no pixel, up to a limit."""
    middle = place.grid.rows / 2, place.grid.cols / 2
    x, y = place.xy([middle[0], middle[0] + 1], [middle[1], middle[1] + 1])
    col, row = _applied(inverse, *moved(place.crs, crs, x, y))
    pixels = max(abs(col[1] - col[0]) / scale[0], abs(row[1] - row[0]) / scale[1])
    return int(np.clip(np.ceil(pixels), 2, DENSEST)) if np.isfinite(pixels) else 2


def footprint(path: Path) -> tuple[Any, CRS]:
    """The rectangle (shapely) that a raster covers, and its coordinate system."""
    import shapely

    with open_geotiff(path) as dataset:
        crs = crs_of(dataset, path)
        corners = [
            _applied(tuple(dataset.transform)[:6], c * dataset.width, r * dataset.height)
            for r, c in ((0, 0), (0, 1), (1, 1), (1, 0))
        ]
    return shapely.Polygon(corners), crs


def geotiff_of(place: Place, bands: dict[str, Array]) -> bytes:
    """A cloud-optimised GeoTIFF of named bands, each (n_cells,), NaN where nothing is known."""
    from affine import Affine
    from rasterio.io import MemoryFile

    grid = place.grid
    (x, across, down), (y, right, below) = (
        [float(v) for v in axis] for axis in place.xy([0, 0, 1], [0, 1, 0])
    )
    with MemoryFile() as memory:
        with memory.open(
            driver="COG",
            height=grid.rows,
            width=grid.cols,
            count=len(bands),
            dtype="float32",
            crs=place.crs.to_wkt(),
            transform=Affine(across - x, down - x, x, right - y, below - y, y),
            nodata=np.nan,
            compress="DEFLATE",
        ) as file:
            tables = [band.reshape(grid.rows, grid.cols) for band in bands.values()]
            file.write(np.stack(tables).astype(np.float32))
            for number, name in enumerate(bands, 1):
                file.set_band_description(number, name)
        return bytes(memory.read())


def read_bands(path: Path) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """(C, H, W) values of a GeoTIFF as they are stored, and (H, W) True where it has none.

    Transparency is no band; of more than three bands the first three are taken.
    """
    from rasterio.enums import ColorInterp
    from rasterio.windows import Window

    with open_geotiff(path) as dataset:
        shown = [
            i
            for i, colour in zip(dataset.indexes, dataset.colorinterp, strict=True)
            if colour != ColorInterp.alpha
        ]
        wanted = shown[: 3 if len(shown) >= 3 else 1]
        if dataset.width * dataset.height > LARGEST_PICTURE:
            raise InputError(
                f"{path} has {dataset.width * dataset.height:,} pixels, more than "
                f"{LARGEST_PICTURE:,}; cut or reduce it"
            )
        kind = np.result_type(*(dataset.dtypes[i - 1] for i in wanted))
        if kind.kind not in "buif":
            raise InputError(f"{path} holds {kind}, not real numbers; save it as such")
        pixels = np.empty((len(wanted), dataset.height, dataset.width), kind)
        blank = np.empty(pixels.shape[1:], bool)
        step = max(1, AT_ONCE // dataset.width)
        for top in range(0, dataset.height, step):
            rows = slice(top, min(top + step, dataset.height))
            window = Window(0, top, dataset.width, rows.stop - top)
            pixels[:, rows] = dataset.read(wanted, window=window)
            known = (dataset.read_masks(wanted, window=window) > 0).all(axis=0)
            blank[rows] = ~(known & np.isfinite(pixels[:, rows]).all(axis=0))
    return pixels, blank
