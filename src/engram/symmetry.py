"""The eight turns and mirrorings of a square area."""

from __future__ import annotations

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
