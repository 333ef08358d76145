"""The eight turns and mirrorings of a square area."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

TURNS = 8


def turned(x: Tensor, k: int) -> Tensor:
    """Image (..., H, W) under symmetry k in 0..7: k % 4 quarter turns, mirrored from 4 on."""
    y = torch.rot90(x, k % 4, (-2, -1))
    return y.flip(-1) if k >= 4 else y


def turned_back(x: Tensor, k: int) -> Tensor:
    """Inverse of ``turned``."""
    y = x.flip(-1) if k >= 4 else x
    return torch.rot90(y, -(k % 4), (-2, -1))


def views_of(x: Tensor, turns: tuple[int, ...]) -> Tensor:
    """(len(turns), C, H, H) a square image (1, C, H, H), or one a view, under each symmetry."""
    return _placed(x, _sources(x.shape[-1], turns))


def views_back(x: Tensor, turns: tuple[int, ...]) -> Tensor:
    """Inverse of ``views_of``, image by image."""
    return _placed(x, _sources(x.shape[-1], turns, back=True))


def _placed(x: Tensor, sources: Tensor) -> Tensor:
    """Images (B, C, H, W) of the pixels of x (1 or B, ...) that ``sources`` (B, H W) names."""
    batch, channels = len(sources), x.shape[1]
    flat = x.flatten(2).expand(batch, -1, -1)
    moved = flat.gather(2, sources[:, None].expand(-1, channels, -1))
    return moved.reshape(batch, *x.shape[1:])


@lru_cache(maxsize=32)
def _sources(side: int, turns: tuple[int, ...], back: bool = False) -> Tensor:
    """(len(turns), side^2) the pixel that each pixel of a view is taken from."""
    pixels = torch.arange(side * side).reshape(side, side)
    turn = turned_back if back else turned
    return torch.stack([turn(pixels, k).flatten() for k in turns])
