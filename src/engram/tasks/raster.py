"""A task from the user's own image: read it, fit it to a memory, say what was done.

Images are PNG, JPEG (or what else Pillow reads), GeoTIFF, ``.npy`` and ``.npz``. Targets are given
as a mask of the same height and width, or as a value above which a pixel is target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import check_numbers, read_array
from engram._files import as_mask, open_image, pixels_of, read_image
from engram.errors import InputError
from engram.grid import Grid
from engram.tasks.base import Task
from engram.tasks.cutting import Cut, Image, Mask, Size
from engram.tasks.strips import (
    Plane,
    cells_of,
    limits,
    mapped,
    plane_of,
    resized,
    strips,
    weighed,
    where,
)

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in brightness."""

MOST_PIXELS = 10**8
"""Of an image that is brought to another size."""
CONTENT_KEYS = ("image", "content")
MASK_KEYS = ("target", "mask")


@dataclass(frozen=True)
class Raster:
    """A task made from files, how the image was cut, and what was done to it, in words."""

    task: Task
    cut: Cut
    notes: tuple[str, ...]


def raster_task(
    image: Path,
    *,
    target: Path | None = None,
    above: float | None = None,
    cell: tuple[int, int] = (1, 1),
    channels: int = 1,
    limit: tuple[int, int] = (64, 64),
    size: tuple[int, int] | None = None,
) -> Raster:
    """A task from an image file and its targets.

    cell     : (h, w) in pixels of the image; the last cells may stick out over its edge
    channels : what the memory imagines; the image is converted to it
    limit    : (H, W) that larger images are reduced to where a cell is one pixel, keeping their
        proportions
    size     : (H, W) to bring the image to first, whatever its proportions
    above    : in the image's own units (0 to 255 for PNG and JPEG); brightness for colours
    """
    if (target is None) == (above is None):
        raise InputError("say what the targets are: a mask (--target) or a value (--above)")
    if min(cell) < 1:
        raise InputError(f"cell={cell[0]},{cell[1]}: a cell has at least 1,1 pixels")
    notes: list[str] = []
    content, top, blank = _content(image, notes)
    if target is not None:
        mask = _mask(target, content.shape[1:])
        notes.append(f"Targets are the pixels marked in {target.name}.")
    else:
        assert above is not None
        mask = _above(content, above)
        notes.append(f"Targets are the pixels brighter than {above:g}.")
    planes = _scaled(_converted(content, channels, notes), mask.shape, top, notes)
    resize = _resizing(mask.shape, size or _within(mask.shape, cell, limit), notes)
    mask = resize.mask(mask)
    cut = Cut(resize.size, cell)
    kept = np.stack([cells_of(resize.plane(plane), cut) for plane in planes])
    (rows, cols), (h, w) = (cut.rows, cut.cols), cut.kept
    grid = Grid(rows * h, cols * w, channels, cut.kept, sides=cut.cell)
    if blank is not None:
        shares = cut.shares(resize.mask(blank))
        grid = replace(grid, closed=(shares > 0.5).reshape(rows, cols))
    facts = {"outcomes": cut.shares(mask)}
    task = Task(image.stem, grid, kept.clip(0, 1), cut.target(mask), facts=facts)
    return Raster(task, cut, (*notes, *cut.notes))


def _content(
    path: Path, notes: list[str]
) -> tuple[NDArray[Any], float | None, NDArray[np.bool_] | None]:
    """(C, H, W) as it is stored, its largest value if the format fixes it, and where it has none.

    The last is None for anything but a GeoTIFF with nodata, whose pixels there are its lowest.
    """
    if _is_geotiff(path):
        return _geotiff(path, notes)
    array = read_array(path, CONTENT_KEYS) if _holds_arrays(path) else _pixels(path, notes)
    planes = check_numbers(array, str(path))
    if planes.ndim == 2:
        planes = planes[None]
    elif planes.ndim == 3 and planes.shape[-1] in (1, 3):
        planes = planes.transpose(2, 0, 1)
    if planes.ndim != 3 or planes.shape[0] not in (1, 3) or 0 in planes.shape:
        raise InputError(
            f"{path}: an array of shape {array.shape} is not an image; give (H, W), (H, W, C) or "
            "(C, H, W) with 1 or 3 channels (choose the bands to search by)"
        )
    with np.errstate(over="ignore"):  # too large for float32 is infinite, refused here
        if planes.dtype.kind == "f" and not all(_finite(plane) for plane in planes):
            raise InputError(
                f"{path}: the image has NaN or infinite values; fill or crop them first"
            )
    return planes, 255.0 if array.dtype == np.uint8 else None, None


def _is_geotiff(path: Path) -> bool:
    """True for a TIFF that says where it lies; any other is a picture like a PNG."""
    if path.suffix.lower() not in (".tif", ".tiff") or find_spec("rasterio") is None:
        return False
    from engram.geo.rasters import open_geotiff

    with open_geotiff(path) as dataset:
        return dataset.crs is not None


def _geotiff(
    path: Path, notes: list[str]
) -> tuple[NDArray[Any], float | None, NDArray[np.bool_] | None]:
    from engram.geo.rasters import read_bands

    planes, blank = read_bands(path)
    top = 255.0 if planes.dtype == np.uint8 else None
    if blank.all():
        raise InputError(f"{path}: every pixel is nodata; give a raster with values")
    if not blank.any():
        return planes, top, None
    notes.append(f"{blank.mean():.0%} of the pixels are nodata; cells mostly so are not searched.")
    lowest = min(plane.min(where=~blank, initial=plane.max()) for plane in planes)
    for plane in planes:
        plane[blank] = lowest
    return planes, top, blank


def _finite(plane: NDArray[Any]) -> bool:
    parts = map(plane_of(plane), strips((plane.shape[0], plane.shape[1])))
    return all(bool(np.isfinite(part).all()) for part in parts)


def _holds_arrays(path: Path) -> bool:
    if not path.is_file():
        raise InputError(f"no file at {path}")
    return path.suffix.lower() in (".npy", ".npz")


def _pixels(path: Path, notes: list[str]) -> NDArray[Any]:
    """Pixels of an image file; grey levels of more than 8 bits are kept."""
    with open_image(path, str(path)) as opened:
        mode = opened.mode
        if mode.startswith(("I", "F")):
            return np.asarray(opened)
        if opened.has_transparency_data:
            notes.append("Transparency is not looked at: transparent pixels are searched too.")
        return pixels_of(opened, "L" if mode in ("1", "L", "LA") else "RGB")


def _mask(path: Path, shape: tuple[int, ...]) -> Mask:
    """(H, W) True where the mask file marks a target."""
    if _holds_arrays(path):
        array = read_array(path, MASK_KEYS)
    else:
        array = read_image(path, str(path), "mask")
    array = array.squeeze() if array.ndim > 2 else array
    if array.shape != tuple(shape):
        raise InputError(
            f"mask {path} has shape {array.shape}, the image is {shape[0]}x{shape[1]}; give a mask "
            "of the same height and width"
        )
    mask = as_mask(array, f"mask {path}")
    if not mask.any():
        raise InputError(
            f"mask {path} marks no target: its values run from {array.min()} to {array.max()}; "
            "give 0 and 1, or 0 and 255"
        )
    return mask


def _brightness(content: NDArray[Any]) -> Plane:
    """(C, H, W) -> (H, W)."""
    planes = [plane_of(plane) for plane in content]
    return planes[0] if len(planes) == 1 else weighed(planes, list(LUMA))


def _above(content: NDArray[Any], value: float) -> Mask:
    bright, size = _brightness(content), (content.shape[1], content.shape[2])
    mask = where(bright, size, lambda part: part > value)
    if mask.all() or not mask.any():
        low, high = limits(bright, size)
        raise InputError(
            f"above={value:g}: {'every' if mask.all() else 'no'} pixel is; the image's brightness "
            f"runs from {low:g} to {high:g}"
        )
    return mask


def _converted(content: NDArray[Any], channels: int, notes: list[str]) -> list[Plane]:
    """Planes of colour turned to brightness, or of grey to colours, as the memory needs it."""
    if len(content) == channels:
        return [plane_of(plane) for plane in content]
    if channels == 1:
        notes.append("Colours were turned into brightness, which is what the prior imagines.")
        return [_brightness(content)]
    if len(content) == 1:
        notes.append(f"The grey image was repeated in {channels} channels for the prior.")
        return [plane_of(content[0])] * channels
    raise InputError(f"an image of {len(content)} channels cannot be given to one of {channels}")


def _scaled(
    planes: list[Plane], size: tuple[int, ...], top: float | None, notes: list[str]
) -> list[Plane]:
    """Values in [0, 1]: by the format's range, as they are, or by their own range."""
    if top is not None:
        most = np.float32(top)
        return [mapped(plane, lambda part: np.asarray(part / most, np.float32)) for plane in planes]
    ends = [limits(plane, (size[0], size[1])) for plane in planes]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if low >= 0 and high <= 1:
        return planes
    notes.append(f"Values from {low:g} to {high:g} were rescaled to 0 to 1.")

    def unit(part: Image) -> Image:
        return np.asarray(np.clip((part - low) / (high - low or 1.0), 0.0, 1.0), np.float32)

    return [mapped(plane, unit) for plane in planes]


def _within(shape: tuple[int, ...], cell: tuple[int, int], limit: tuple[int, int]) -> Size:
    """The size of an image in cells of one pixel, reduced to ``limit``; else its own."""
    height, width = shape
    factor = min(limit[0] / height, limit[1] / width)
    if factor >= 1 or cell != (1, 1):
        return height, width
    return max(1, round(height * factor)), max(1, round(width * factor))


@dataclass(frozen=True)
class _Resizing:
    """From one size to another: averages of the content; any part of a smaller pixel counts."""

    before: Size
    size: Size

    @property
    def smaller(self) -> bool:
        return self.size[0] <= self.before[0] and self.size[1] <= self.before[1]

    def plane(self, plane: Plane) -> Plane:
        return plane if self.size == self.before else plane_of(self._resized(plane))

    def mask(self, mask: Mask) -> Mask:
        if self.size == self.before:
            return mask
        return self._resized(plane_of(mask)) > (1e-4 if self.smaller else 0.5)

    def _resized(self, plane: Plane) -> Image:
        from PIL.Image import Resampling

        how = Resampling.BOX if self.smaller else Resampling.BILINEAR
        return resized(plane, self.before, self.size, how)


def _resizing(before: tuple[int, ...], size: Size, notes: list[str]) -> _Resizing:
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        raise InputError(
            f"size={size[0]},{size[1]}: give at least 1,1 and at most {MOST_PIXELS:,} pixels"
        )
    resizing = _Resizing((before[0], before[1]), size)
    if resizing.size != resizing.before:
        part = "any part" if resizing.smaller else "most"
        notes.append(
            f"The image was {'reduced' if resizing.smaller else 'brought'} from {before[0]}x"
            f"{before[1]} to {size[0]}x{size[1]} pixels; a pixel is target when {part} of it was."
        )
    return resizing
