"""A task from the user's own image: read it, fit it to a memory, say what was done.

Images are PNG, JPEG (or what else Pillow reads), ``.npy`` and ``.npz``. Targets are given as
a mask of the same height and width, or as a value above which a pixel is target.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import check_numbers, read_array
from engram._files import as_mask, open_image, read_image
from engram.errors import InputError
from engram.grid import Grid
from engram.tasks.base import Task

Image = NDArray[np.float32]
Mask = NDArray[np.bool_]
Size = tuple[int, int]

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in brightness."""

CONTENT_KEYS = ("image", "content")
MASK_KEYS = ("target", "mask")


@dataclass(frozen=True)
class Raster:
    """A task made from files, and what was done to them, in words."""

    task: Task
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

    channels : what the memory imagines; the image is converted to it
    limit    : (H, W) that larger images are reduced to, keeping their proportions
    size     : (H, W) to bring the image to instead, whatever its proportions
    above    : in the image's own units (0 to 255 for PNG and JPEG); brightness for colours
    """
    if (target is None) == (above is None):
        raise InputError("say what the targets are: a mask (--target) or a value (--above)")
    if min(cell) < 1:
        raise InputError(f"cell={cell[0]},{cell[1]}: a cell has at least 1,1 pixels")
    notes: list[str] = []
    content, top = _content(image, notes)
    if target is not None:
        mask = _mask(target, content.shape[1:])
        notes.append(f"Targets are the pixels marked in {target.name}.")
    else:
        assert above is not None
        mask = _above(content, above)
        notes.append(f"Targets are the pixels brighter than {above:g}.")
    content = _converted(content, channels, notes)
    content = _rescaled(content, top, notes)
    fitted = _within(mask.shape, cell, limit) if size is None else size
    content, mask = _resized(content, mask, fitted, notes)
    if size is None:
        content, mask = _trimmed(content, mask, cell, notes)
    grid = Grid(mask.shape[0], mask.shape[1], channels, cell)
    return Raster(Task(image.stem, grid, content, mask), tuple(notes))


def _content(path: Path, notes: list[str]) -> tuple[Image, float | None]:
    """(C, H, W) in the file's own units, and their largest value if the format fixes it."""
    array = read_array(path, CONTENT_KEYS) if _holds_arrays(path) else _pixels(path, notes)
    with np.errstate(over="ignore"):  # too large for float32 is infinite, refused below
        planes = np.asarray(check_numbers(array, str(path)), np.float32)
    if planes.ndim == 2:
        planes = planes[None]
    elif planes.ndim == 3 and planes.shape[-1] in (1, 3):
        planes = planes.transpose(2, 0, 1)
    if planes.ndim != 3 or planes.shape[0] not in (1, 3) or 0 in planes.shape:
        raise InputError(
            f"{path}: an array of shape {array.shape} is not an image; give (H, W), (H, W, C) or "
            "(C, H, W) with 1 or 3 channels (choose the bands to search by)"
        )
    if not np.isfinite(planes).all():
        raise InputError(f"{path}: the image has NaN or infinite values; fill or crop them first")
    return planes, 255.0 if array.dtype == np.uint8 else None


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
        return np.asarray(opened.convert("L" if mode in ("1", "L", "LA") else "RGB"))


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


def _brightness(content: Image) -> Image:
    """(C, H, W) -> (H, W)."""
    return np.asarray(content[0] if len(content) == 1 else np.tensordot(LUMA, content, axes=1))


def _above(content: Image, value: float) -> Mask:
    bright = _brightness(content)
    mask = bright > value
    if mask.all() or not mask.any():
        raise InputError(
            f"above={value:g}: {'every' if mask.all() else 'no'} pixel is; the image's brightness "
            f"runs from {bright.min():g} to {bright.max():g}"
        )
    return np.asarray(mask)


def _converted(content: Image, channels: int, notes: list[str]) -> Image:
    """Colours to brightness or grey to colours, as the memory needs it."""
    if len(content) == channels:
        return content
    if channels == 1:
        notes.append("Colours were turned into brightness, which is what the prior imagines.")
        return _brightness(content)[None]
    if len(content) == 1:
        notes.append(f"The grey image was repeated in {channels} channels for the prior.")
        return np.repeat(content, channels, axis=0)
    raise InputError(f"an image of {len(content)} channels cannot be given to one of {channels}")


def _rescaled(content: Image, top: float | None, notes: list[str]) -> Image:
    """Values to [0, 1]: by the format's range, as they are, or by their own range."""
    if top is not None:
        return content / np.float32(top)
    low, high = float(content.min()), float(content.max())
    if low >= 0 and high <= 1:
        return content
    notes.append(f"Values from {low:g} to {high:g} were rescaled to 0 to 1.")
    return np.asarray(np.clip((content - low) / (high - low or 1.0), 0.0, 1.0), np.float32)


def _within(shape: tuple[int, ...], cell: tuple[int, int], limit: tuple[int, int]) -> Size:
    """The size of an image reduced to ``limit``, in whole cells, or its own if it is smaller."""
    height, width = shape
    factor = min(limit[0] / height, limit[1] / width)
    if factor >= 1:
        return height, width
    fitted = [max(c, round(n * factor) // c * c) for n, c in zip(shape, cell, strict=True)]
    return fitted[0], fitted[1]


def _resized(content: Image, mask: Mask, size: Size, notes: list[str]) -> tuple[Image, Mask]:
    """Averages of the content; a smaller pixel is target when any part of it was."""
    if mask.shape == size:
        return content, mask
    from PIL.Image import Resampling, fromarray

    if min(size) < 1:
        raise InputError(f"size={size[0]},{size[1]}: give at least 1,1")
    before = mask.shape
    smaller = size[0] <= before[0] and size[1] <= before[1]
    how = Resampling.BOX if smaller else Resampling.BILINEAR

    def resize(plane: Image) -> Image:
        return np.asarray(fromarray(plane).resize((size[1], size[0]), how), np.float32)

    notes.append(
        f"The image was {'reduced' if smaller else 'brought'} from {before[0]}x{before[1]} to "
        f"{size[0]}x{size[1]} pixels; a pixel is target when "
        f"{'any part' if smaller else 'most'} of it was."
    )
    share = resize(mask.astype(np.float32))
    mask = np.asarray(share > (1e-4 if smaller else 0.5))
    return np.stack([resize(plane) for plane in content]).clip(0, 1), mask


def _trimmed(
    content: Image, mask: Mask, cell: tuple[int, int], notes: list[str]
) -> tuple[Image, Mask]:
    """Rows and columns that fill no whole cell are cut off at the bottom and on the right."""
    over = [n % c for n, c in zip(mask.shape, cell, strict=True)]
    height, width = (n - rest for n, rest in zip(mask.shape, over, strict=True))
    if min(height, width) < 1:
        raise InputError(
            f"cell={cell[0]},{cell[1]} is larger than the image of {mask.shape[0]}x{mask.shape[1]}"
        )
    if any(over):
        notes.append(
            f"{over[0]} rows at the bottom and {over[1]} columns on the right fill no whole cell "
            "and were cut off."
        )
    return np.ascontiguousarray(content[:, :height, :width]), mask[:height, :width]
