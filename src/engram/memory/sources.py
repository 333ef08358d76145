"""Where training images come from: arrays, idx files, .npz, image folders, scenes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram._arrays import check_numbers, read_arrays
from engram._files import IMAGE_SUFFIXES, open_image, read_bytes
from engram.errors import InputError
from engram.memory import scenes
from engram.memory.collage import collages
from engram.memory.layers import LayerSet


class Source(Protocol):
    """Draws training images in the model's range [-1, 1].

    ``layers`` names the channels of a memory of cells; it is empty for pixels.
    """

    description: str
    layers: LayerSet

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        ...

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        """(count, C, H, W) in [-1, 1]; held-out images are never used for training.

        ``plain`` asks for images as they are: what the unconditional model should draw.
        """
        ...


class ArraySource:
    """Images held in memory; the last ``held_out`` share is kept for validation.

    images : (n, H, W) or (n, H, W, C), uint8 or floats in [0, 1].
    ``affine`` in [0, 1] moves, turns and scales each drawn image at random
    (0 = as it is), so that a memory of centred objects knows off-centre ones too;
    ``collage`` is the share of draws that show several smaller images at once.
    """

    layers: LayerSet = LayerSet()

    def __init__(
        self,
        images: NDArray[np.uint8] | NDArray[np.float32],
        *,
        description: str,
        affine: float = 0.0,
        collage: float = 0.0,
        held_out: float = 0.05,
    ) -> None:
        if images.ndim == 3:
            images = images[..., None]
        if images.ndim != 4 or images.shape[-1] not in (1, 3, 4):
            raise InputError(
                f"training images have shape {images.shape}; give (n, H, W) or (n, H, W, C) "
                "with 1 or 3 channels"
            )
        if len(images) < 2:
            raise InputError(f"{len(images)} training image(s) given; at least 2 are needed")
        self.images = images[..., :3]
        self._check_values()
        self.description = description
        self.affine, self.collage = affine, collage
        self._split = max(1, min(len(images) - 1, round(len(images) * (1 - held_out))))

    def _check_values(self) -> None:
        if self.images.dtype == np.uint8:
            return
        if not np.issubdtype(self.images.dtype, np.floating):
            raise InputError(
                f"training images are of type {self.images.dtype}; give uint8 or floats in [0, 1]"
            )
        if not np.isfinite(self.images).all():
            raise InputError("training images contain NaN or infinite values; remove them first")
        low, high = float(self.images.min()), float(self.images.max())
        if low < 0 or high > 1:
            raise InputError(
                f"training images run from {low:g} to {high:g}; rescale floats to [0, 1]"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        _, h, w, c = self.images.shape
        return c, h, w

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        low, high = (self._split, len(self.images)) if held_out else (0, self._split)
        index = torch.randint(low, high, (count,), generator=generator).numpy()
        batch = torch.from_numpy(np.ascontiguousarray(self.images[index].transpose(0, 3, 1, 2)))
        x = batch.float() / 127.5 - 1 if batch.dtype == torch.uint8 else batch.float() * 2 - 1
        if plain or count == 0:
            return x
        if self.affine:
            x = self._moved(x, generator)
        if self.collage:
            several = torch.rand(count, 1, 1, 1, generator=generator) < self.collage
            x = torch.where(several, collages(x, count, generator), x)
        return x

    def _moved(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, k = x.shape[0], self.affine
        u = torch.rand(n, 4, generator=generator) * 2 - 1
        angle, scale = u[:, 0] * 0.5 * k, torch.exp(u[:, 1] * 0.5 * k)
        c, s = torch.cos(angle) * scale, torch.sin(angle) * scale
        theta = torch.stack(
            [torch.stack([c, -s, u[:, 2] * 0.4 * k], 1), torch.stack([s, c, u[:, 3] * 0.4 * k], 1)],
            1,
        )
        grid = torch.nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        moved = torch.nn.functional.grid_sample(x + 1, grid, align_corners=False) - 1
        keep = torch.rand(n, 1, 1, 1, generator=generator) < 0.5
        return torch.where(keep, x, moved)


class SceneSource:
    """Procedural scenes of a world (``scenes.WORLDS``), new ones at every draw."""

    layers: LayerSet = LayerSet()

    def __init__(self, height: int, width: int, world: str = "scenes") -> None:
        self.height, self.width = height, width
        self.families = scenes.WORLDS[world]
        self.description = "procedural scenes of engram.memory.scenes"
        if world != "scenes":
            self.description += f": {', '.join(self.families)}"

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.height, self.width

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        if count == 0:
            return torch.empty(0, *self.shape)
        seed = int(torch.randint(0, 2**62, (1,), generator=generator))
        rng = np.random.default_rng([seed, int(held_out)])
        size = (self.height, self.width)
        batch = np.stack([scenes.scene(rng, *size, self.families) for _ in range(count)])
        return torch.from_numpy(batch)[:, None] * 2 - 1


def load_idx(path: Path) -> NDArray[np.uint8]:
    """Images of an idx file (MNIST's format), plain or gzipped: (n, H, W) uint8."""
    raw = read_bytes(path)
    if len(raw) < 16 or struct.unpack(">I", raw[:4])[0] != 2051:
        raise InputError(
            f"{path} is not an idx file of images (its magic number is not 2051); tables of "
            "records are read with --sees map"
        )
    n, h, w = struct.unpack(">III", raw[4:16])
    if len(raw) != 16 + n * h * w:
        raise InputError(f"{path} is cut short: {len(raw)} bytes, {16 + n * h * w} expected")
    return np.frombuffer(raw, np.uint8, offset=16).reshape(n, h, w)


def load_npz(path: Path, key: str | None = None) -> NDArray[np.uint8] | NDArray[np.float32]:
    """The image stack of an .npz file: array ``key``, or ``images``, or the only one."""
    arrays = read_arrays(path)
    name = key or ("images" if "images" in arrays or len(arrays) != 1 else next(iter(arrays)))
    if name not in arrays:
        raise InputError(
            f"{path} has no array {name!r}; it has {', '.join(arrays) or 'none at all'}"
        )
    array = check_numbers(arrays[name], f"array {name!r} of {path}")
    if array.dtype == np.uint8:
        return np.asarray(array, np.uint8)
    with np.errstate(over="ignore"):
        numbers = np.asarray(array, np.float32)
    if not np.isfinite(numbers).all():
        raise InputError(f"array {name!r} of {path} has NaN or infinite values; fill them first")
    low, high = float(numbers.min()), float(numbers.max())
    if low >= 0 and high <= 1:
        return numbers
    return np.asarray((numbers - low) / ((high - low) or 1.0), np.float32)


def load_folder(path: Path, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """Every image below a folder, centre-cropped to the aspect and resized: (n, H, W, C)."""
    from PIL import ImageOps

    if channels not in (1, 3):
        raise InputError(f"channels={channels}: images have 1 (grey) or 3 (colour) channels")
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        raise InputError(f"no images ({', '.join(sorted(IMAGE_SUFFIXES))}) below {path}")
    mode = "L" if channels == 1 else "RGB"
    images = []
    for file in files:
        with open_image(file, str(file)) as image:
            fitted = ImageOps.fit(image.convert(mode), (size[1], size[0]))
        images.append(np.asarray(fitted, np.uint8).reshape(*size, channels))
    return np.stack(images)


def fitted(images: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Pad (never stretch) images (n, h, w[, C]) with zeros to ``size``, centred."""
    h, w = images.shape[1:3]
    if (h, w) == size:
        return images
    if h > size[0] or w > size[1]:
        raise InputError(
            f"images of {h}x{w} do not fit into {size[0]}x{size[1]}; give --size {h},{w}"
        )
    top, left = (size[0] - h) // 2, (size[1] - w) // 2
    pad = [(0, 0), (top, size[0] - h - top), (left, size[1] - w - left)]
    return np.pad(images, pad + [(0, 0)] * (images.ndim - 3))
