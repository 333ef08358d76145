"""Reading data files with errors that say what is wrong and what to do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import check_file, check_numbers, check_room, room_of
from engram.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

Paths = str | Path | Sequence[str | Path]

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"}


def as_paths(paths: Paths) -> list[Path]:
    """One or several existing paths, in the order of their names."""
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not given:
        raise InputError("no data file given")
    found = sorted((Path(p) for p in given), key=lambda p: (p.name, str(p)))
    for path in found:
        if not path.exists():
            raise InputError(f"no data file or folder at {path}")
    if len({path.resolve() for path in found}) != len(found):
        raise InputError(f"the same data file is given twice: {', '.join(map(str, found))}")
    return found


def sha256_of(files: Iterable[Path]) -> str:
    """Hash of one file, or of the hashes of several (the empty string of none).

    Names do not count: a file that was moved or renamed keeps its hash.
    """
    digests = []
    for path in files:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(digests) < 2:
        return "".join(digests)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked when it is gzipped."""
    check_file(path)
    try:
        raw = path.read_bytes()
        if raw[:2] != b"\x1f\x8b":
            return raw
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            data = packed.read(room_of(len(raw)) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}; fetch or compress it again") from error
    check_room(len(data), len(raw), str(path))
    return data


def read_text(path: Path) -> str:
    """The text of a file, plain or gzipped, in UTF-8 (a byte-order mark is dropped)."""
    raw = read_bytes(path)
    if raw[:2] == b"PK":
        raise InputError(f"{path} is a zip archive; unpack it and give the table inside")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not text in UTF-8 (byte {error.start}); save it as UTF-8, or give a "
            "CSV, CSV.gz or Parquet file"
        ) from error


DEEPEST = 200
"""Levels of lists and objects that JSON may have."""


def json_depth(raw: bytes) -> int:
    """How deep the brackets of a JSON text are nested, those in its strings left out."""
    plain = np.frombuffer(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", raw, flags=re.S), np.uint8)
    opens = np.isin(plain, list(b"[{")).astype(np.int64)
    return int((opens - np.isin(plain, list(b"]}"))).cumsum().max(initial=0))


def read_json(path: Path) -> Any:
    """What a JSON file says; too deep, too long numbers and other faults are named."""
    check_file(path)
    try:
        raw = path.read_bytes()
        if json_depth(raw) > DEEPEST:  # a parser at its limit disturbs what else goes on
            raise InputError(f"{path} is nested too deeply; give it flat")
        return json.loads(raw)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON: {error}") from error


def as_unit(images: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Pixel values in [0, 1]: bytes are divided by 255, floats must be in range already."""
    check_numbers(images, where)
    if images.dtype == np.uint8:
        return np.asarray(images / np.float32(255), np.float32)
    values = np.asarray(images, np.float32)
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        raise InputError(
            f"{where}: pixel values run from {values.min():g} to {values.max():g}; give bytes "
            "(uint8) or numbers in [0, 1]"
        )
    return values


def as_mask(mask: NDArray[Any], where: str) -> NDArray[np.bool_]:
    """Target pixels of a mask: from half of 1 upwards, or of 255 when values exceed 1."""
    values = np.asarray(check_numbers(mask, where), np.float64)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(values).all() or low < 0 or 1 < high < 128:
        raise InputError(
            f"{where}: the mask's values run from {low:g} to {high:g}; give 0 and 1, or 0 and 255"
        )
    return np.asarray(values >= (0.5 if high <= 1 else 128))


STRIP = 4_000_000
"""Pixels of a picture that are converted at once."""
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""Formats that pictures are read in; others of Pillow's start programs or are rarely tried."""


@contextmanager
def open_image(source: Path | bytes, name: str) -> Iterator[Image.Image]:
    """A picture whose pixels were not read yet; what goes wrong until it is closed is named."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on damaged or large files; both are judged here
            packed = len(source) if isinstance(source, bytes) else check_file(source).stat().st_size
            opened = io.BytesIO(source) if isinstance(source, bytes) else source
            with Image.open(opened, formats=FORMATS) as image:
                wide = 4 if image.mode.startswith(("I", "F")) else len(image.getbands())
                check_room(image.width * image.height * wide, packed, f"image {name}")
                yield image
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"image {name} does not fit into memory; reduce it") from error
    except Exception as error:  # what damaged bytes do to the parsers has no other name
        raise InputError(f"cannot read image {name}: {error or type(error).__name__}") from error


def pixels_of(image: Image.Image, mode: str) -> NDArray[np.uint8]:
    """(H, W) or (H, W, 3) of an open picture in mode 'L' or 'RGB', copied a strip at a time."""
    deep = () if mode == "L" else (len(mode),)
    out = np.empty((image.height, image.width, *deep), np.uint8)
    step = max(1, STRIP // image.width)
    for top in range(0, image.height, step):
        end = min(top + step, image.height)
        out[top:end] = np.asarray(image.crop((0, top, image.width, end)).convert(mode))
    return out


def read_image(source: Path | bytes, name: str, mode: str) -> NDArray[np.uint8]:
    """Pixels of an image in Pillow mode 'RGB' or 'L': (H, W, 3) or (H, W).

    Mode 'mask' keeps stored values (palette indices included) and refuses colours.
    """
    if isinstance(source, Path) and source.suffix.lower() in (".tif", ".tiff"):
        found = _geotiff_bytes(source)
        if found is not None:
            return _as_mode(found, name, mode)
    with open_image(source, name) as image:
        if mode != "mask":
            return pixels_of(image, mode)
        pixels = np.asarray(image)
    return _as_mode(pixels, name, mode)


def _geotiff_bytes(path: Path) -> NDArray[np.uint8] | None:
    """(H, W) or (H, W, 3) of a GeoTIFF of bytes with more bands than Pillow knows, else None."""
    if find_spec("rasterio") is None:
        return None
    from engram.geo.rasters import open_geotiff, read_bands

    with open_geotiff(path) as dataset:
        plain = dataset.count <= 4 or dataset.dtypes[0] != "uint8"
    if plain:
        return None
    return np.asarray(read_bands(path)[0].transpose(1, 2, 0).squeeze(), np.uint8)


def _as_mode(pixels: NDArray[Any], name: str, mode: str) -> NDArray[np.uint8]:
    """Pixels in a mode of Pillow's, or as a mask."""
    if mode == "RGB":
        return np.asarray(pixels if pixels.ndim == 3 else np.stack([pixels] * 3, -1), np.uint8)
    if mode == "L" and pixels.ndim == 3:
        return np.asarray(pixels[..., :3] @ np.array([0.299, 0.587, 0.114]), np.uint8)
    if pixels.ndim == 3:
        if (pixels[..., :3] != pixels[..., :1]).any():
            raise InputError(f"mask {name} has colours; give grey levels, 255 = target")
        pixels = pixels[..., 0]
    return np.asarray(pixels.clip(0, 255), np.uint8)
