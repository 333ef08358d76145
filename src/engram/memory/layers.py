"""Layers: what a memory that works at one pixel per cell knows of a cell.

An area of 128x128 colour pixels searched in blocks of 4x4 has 32x32 cells. A memory of cells
imagines those instead of pixels: a summary of what a measurement shows (colour, contrast,
density) and of what it says (share of target, presence). It is as fast as a memory of 32x32
pixels, and knows that what is seen in a cell tells something about the cells beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError

Array = NDArray[np.float32]
Layer = Callable[[Array, Array], Array]
"""(contents (n, C, h, w) in [0, 1], outcomes (n,)) -> (n,) in [0, 1]."""

CONTRAST_GAIN = 4.0
"""A standard deviation of a quarter of the range is full contrast."""


def _colour(channel: int) -> Layer:
    def mean(contents: Array, outcomes: Array) -> Array:
        chosen = contents[:, min(channel, contents.shape[1] - 1)]
        return np.asarray(chosen.mean(axis=(1, 2)), np.float32)

    return mean


def _contrast(contents: Array, outcomes: Array) -> Array:
    grey = contents.mean(axis=1)
    return np.asarray(np.minimum(CONTRAST_GAIN * grey.std(axis=(1, 2)), 1.0), np.float32)


LAYERS: dict[str, Layer] = {
    "red": _colour(0),
    "green": _colour(1),
    "blue": _colour(2),
    "contrast": _contrast,
    "density": lambda contents, outcomes: contents.mean(axis=(1, 2, 3)),
    "share": lambda contents, outcomes: outcomes,
    "presence": lambda contents, outcomes: (outcomes > 0).astype(np.float32),
}
"""Name -> how the layer is had from a measured cell."""

COLOURS = ("red", "green", "blue")


class LayerSet(tuple[str, ...]):
    """The layers of a memory by name: how it sees a cell, and how that is shown.

    The last is always ``presence``, what is searched for. Empty for a memory of pixels.
    """

    __slots__ = ()

    @classmethod
    def checked(cls, names: Sequence[str]) -> LayerSet:
        """Layers of a card; names that are not known are refused."""
        unknown = [name for name in names if name not in LAYERS]
        if unknown:
            raise InputError(
                f"unknown layer(s) {', '.join(unknown)}; known are {', '.join(LAYERS)}"
            )
        if names and names[-1] != "presence":
            raise InputError(f"layers={','.join(names)}: the last one has to be presence")
        return cls(names)

    def seen(self, contents: Array, outcomes: Array) -> Array:
        """(n, C, h, w) in [0, 1] and (n,) -> (n, layers) in [0, 1]."""
        columns = [LAYERS[name](contents, outcomes) for name in self]
        return np.stack(columns, axis=1).astype(np.float32)

    @property
    def content(self) -> tuple[str, ...]:
        """The layers that show what a cell looks like: colours, a density, or none."""
        if set(COLOURS) <= set(self):
            return COLOURS
        return ("density",) if "density" in self else ()

    @property
    def channels(self) -> int:
        """Channels of the pictures of an area that such a memory is shown."""
        return len(self.content) or 1

    @property
    def shows(self) -> str:
        """What its pictures show: the content, or the target where no layer is content."""
        return "content" if self.content else "target"

    def picture(self, image: Array) -> Array:
        """(..., layers, H, W) -> (..., channels, H, W): the content, or the presence."""
        names = self.content or self[-1:]
        return np.asarray(image[..., [self.index(name) for name in names], :, :])


PRESENCE = LayerSet(("presence",))
PHOTO = LayerSet((*COLOURS, "contrast", "share", "presence"))
MAP = LayerSet(("density", "presence"))
