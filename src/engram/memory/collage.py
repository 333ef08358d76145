"""Collages: several smaller, thicker copies of training images in one area.

A memory of one centred object per image believes that the rest of the area is empty once it
has seen the object, and it knows one thickness only. Areas hold several objects, near and
far; collages teach that without a single further image.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LAYERS = 9
THICKENINGS = (1, 1, 3, 3, 5)


def _centres(count: int, generator: torch.Generator) -> Tensor:
    """(count, LAYERS, 2) in [-1, 1]: different squares of a 3 x 3 lattice, or anywhere."""
    order = torch.rand(count, 9, generator=generator).argsort(dim=1)[:, :LAYERS]
    lattice = torch.stack([order // 3, order % 3], dim=2).float() * 0.62 - 0.62
    jitter = torch.rand(count, LAYERS, 2, generator=generator) * 2 - 1
    free = (torch.rand(count, 1, 1, generator=generator) < 0.3).float()
    return free * 0.85 * jitter + (1 - free) * (lattice + 0.25 * jitter)


def collages(images: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(n, 1, H, W) in [-1, 1] -> (count, 1, H, W) in [-1, 1]."""
    n, channels, h, w = images.shape
    pick = torch.randint(0, n, (count, LAYERS), generator=generator)
    same = torch.rand(count, 1, generator=generator) < 0.5
    pick = torch.where(same, pick[:, :1], pick)
    base = torch.rand(count, 1, generator=generator)
    own = torch.rand(count, LAYERS, generator=generator)
    equal = torch.rand(count, 1, generator=generator) < 0.7
    zoom = 1 / (0.25 + 0.4 * torch.where(equal, base, own))
    turn = (torch.rand(count, LAYERS, generator=generator) - 0.5) * 0.8
    turn = torch.where(same, turn[:, :1], turn)
    centre = _centres(count, generator)
    c, s = zoom * turn.cos(), zoom * turn.sin()
    shift_x = -(c * centre[..., 1] - s * centre[..., 0])
    shift_y = -(s * centre[..., 1] + c * centre[..., 0])
    theta = torch.stack([torch.stack([c, -s, shift_x], -1), torch.stack([s, c, shift_y], -1)], -2)
    layers = images[pick.flatten()] + 1
    grid = F.affine_grid(theta.reshape(-1, 2, 3), [count * LAYERS, channels, h, w], False)
    drawn = F.grid_sample(layers, grid, align_corners=False)
    drawn = drawn.reshape(count, LAYERS, channels, h, w)
    shown = torch.randint(1, LAYERS + 1, (count, 1), generator=generator)
    visible = (torch.arange(LAYERS)[None] < shown).float()[:, :, None, None, None]
    out = (drawn * visible).amax(dim=1)
    return _thickened(out, generator) - 1


def _thickened(x: Tensor, generator: torch.Generator) -> Tensor:
    """Images in [0, 2], dilated by a few pixels and half of them made binary."""
    kind = torch.randint(0, len(THICKENINGS), (len(x),), generator=generator)
    for index, size in enumerate(THICKENINGS):
        chosen = kind == index
        if size > 1 and chosen.any():
            x[chosen] = F.max_pool2d(x[chosen], size, stride=1, padding=size // 2)
    binary = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
    return torch.where(binary, (x > 0.8).float() * 2, x)
