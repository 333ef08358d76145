"""Training areas for memories of cells (``memory.layers``): photographs and count maps.

A photograph has no targets, so each draw invents some: objects laid over it, alone, in groups
or in rows, in a colour or a texture of their own, or a part of the photograph that looks alike.
What a memory learns from that is not what a target looks like but how targets lie, and how
what was seen in measured cells bears on the next ones: the looks of objects, their edges, and
the surroundings in which they stop.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory import scenes
from engram.memory.layers import MAP, PHOTO, LayerSet

Array = NDArray[np.float32]

LEAST, MOST = 0.004, 0.4
"""Share of target cells that a draw must have."""
OBJECTS: tuple[tuple[scenes.Family, float], ...] = (
    (scenes.shape_group, 0.5),
    (scenes.shape_rows, 0.2),
    (scenes.mixed_shapes, 0.15),
    (scenes.thresholded_field, 0.05),
    (scenes.strokes, 0.05),
    (scenes.point_clusters, 0.05),
)


class CellSource:
    """Areas of cells with the layers of a card; subclasses define ``_area``."""

    layers: LayerSet

    def __init__(self, images: NDArray[np.uint8], cell: int, description: str) -> None:
        count, height, width = images.shape[:3]
        if count < 2:
            raise InputError(f"{count} training image(s) given; at least 2 are needed")
        channels = images.shape[3] if images.ndim == 4 else 1
        self.images = images.reshape(count, height, width, channels)
        self.grid = Grid(height, width, channels, (cell, cell))
        self.description = description
        self._split = max(1, min(count - 1, round(0.95 * count)))

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.layers), self.grid.rows, self.grid.cols

    def draw(
        self,
        count: int,
        generator: torch.Generator,
        *,
        held_out: bool = False,
        plain: bool = False,
    ) -> Tensor:
        """(count, layers, rows, cols) in [-1, 1]."""
        if count == 0:
            return torch.empty(0, *self.shape)
        rng = np.random.default_rng(int(torch.randint(0, 2**62, (1,), generator=generator)))
        low, high = (self._split, len(self.images)) if held_out else (0, self._split)
        areas = [self._area(rng, self._picture(rng, low, high)) for _ in range(count)]
        return torch.from_numpy(np.stack(areas)) * 2 - 1

    def _picture(self, rng: np.random.Generator, low: int, high: int) -> Array:
        """(C, H, W) in [0, 1], turned and mirrored at random."""
        image = self.images[int(rng.integers(low, high))]
        image = np.rot90(image, int(rng.integers(4)))
        if rng.random() < 0.5:
            image = image[:, ::-1]
        return np.asarray(image.transpose(2, 0, 1) / 255, np.float32)

    def _area(self, rng: np.random.Generator, picture: Array) -> Array:
        raise NotImplementedError

    def _layers(self, picture: Array, target: Array) -> Array:
        """Picture (C, H, W) and target (H, W) -> layers (L, rows, cols)."""
        contents = np.moveaxis(self.grid.cells_of(picture), 0, 1)
        outcomes = self.grid.cells_of(target).mean(axis=(1, 2))
        return self.layers.seen(contents, outcomes).T.reshape(self.shape)


class MapSource(CellSource):
    """Maps of counts (n, H, W): target is wherever something was counted."""

    layers: LayerSet = MAP

    def _area(self, rng: np.random.Generator, picture: Array) -> Array:
        return self._layers(picture, (picture[0] > 0).astype(np.float32))


class PhotoSource(CellSource):
    """Photographs (n, H, W, 3) with invented targets."""

    layers: LayerSet = PHOTO

    def __init__(self, images: NDArray[np.uint8], cell: int, description: str) -> None:
        super().__init__(images, cell, description)
        if self.grid.channels != 3:
            raise InputError(f"photographs have {self.grid.channels} channel(s); give colour ones")

    def _area(self, rng: np.random.Generator, picture: Array) -> Array:
        for _ in range(8):
            if rng.random() < 0.8:
                area = self._layers(*self._with_objects(rng, picture))
            else:
                area = self._layers(picture, self._part(rng, picture))
            if LEAST <= area[-1].mean() <= MOST:
                break
        return area

    def _with_objects(self, rng: np.random.Generator, picture: Array) -> tuple[Array, Array]:
        """Objects laid over the picture; target is where they are."""
        families, shares = zip(*OBJECTS, strict=True)
        family = families[int(rng.choice(len(families), p=shares))]
        target = (family(rng, *picture.shape[1:]) > 0.5).astype(np.float32)
        looks: Array = np.broadcast_to(rng.random((3, 1, 1), np.float32), picture.shape)
        if rng.random() < 0.3:  # the texture of another place
            shift = tuple(int(v) for v in rng.integers(8, 56, 2))
            looks = np.roll(picture, shift, axis=(1, 2))[rng.permutation(3)]
        grain = rng.normal(0, rng.uniform(0, 0.15), picture.shape)
        cover = target * rng.uniform(0.5, 1.0)
        mixed = picture * (1 - cover) + np.clip(looks + grain, 0, 1) * cover
        return mixed.astype(np.float32), target

    def _part(self, rng: np.random.Generator, picture: Array) -> Array:
        """What looks like some place of the picture."""
        place = rng.integers(0, self.grid.rows), rng.integers(0, self.grid.cols)
        looks = self._layers(picture, np.zeros(picture.shape[1:], np.float32))[:4]
        looks = uniform_filter(looks, (0, 3, 3))
        away = np.square(looks - looks[:, place[0], place[1]][:, None, None]).sum(axis=0)
        alike = away <= np.quantile(away, rng.uniform(0.03, 0.35))
        return self.grid.pixels(alike.astype(np.float32))
