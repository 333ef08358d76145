"""Collages: several smaller, thicker or filled copies of training images in one area.

A memory of one centred object per image believes that the rest of the area is empty once it
has seen the object, it knows one thickness only, and where objects are drawn by their outlines
it has never seen a solid one. Areas hold several objects, near and far, thin and solid;
collages teach that without a single further image.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LAYERS = 9
THICKENINGS = (1, 1, 3, 3, 5)
FILLED = 0.4
"""Share of collages whose objects are made solid."""


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
    solid = torch.rand(count, 1, generator=generator) < FILLED
    both = torch.cat([images, _filled(images)])
    layers = both[(pick + n * solid).flatten()] + 1
    grid = F.affine_grid(theta.reshape(-1, 2, 3), [count * LAYERS, channels, h, w], False)
    drawn = F.grid_sample(layers, grid, align_corners=False)
    drawn = drawn.reshape(count, LAYERS, channels, h, w)
    shown = torch.randint(1, LAYERS + 1, (count, 1), generator=generator)
    visible = (torch.arange(LAYERS)[None] < shown).float()[:, :, None, None, None]
    out = (drawn * visible).amax(dim=1)
    return _thickened(out, solid[:, 0], generator) - 1


def _thickened(x: Tensor, solid: Tensor, generator: torch.Generator) -> Tensor:
    """Images in [0, 2], dilated by a few pixels (solid ones less), half of them made binary."""
    kind = torch.randint(0, len(THICKENINGS), (len(x),), generator=generator)
    kind = torch.where(solid, kind.clamp(max=len(THICKENINGS) - 2), kind)
    for index, size in enumerate(THICKENINGS):
        chosen = kind == index
        if size > 1 and chosen.any():
            x[chosen] = _dilated(x[chosen], size)
    binary = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
    return torch.where(binary, (x > 0.8).float() * 2, x)


def _filled(x: Tensor) -> Tensor:
    """Closed objects: gaps of a third of the image's side are gone, outlines stay."""
    size = 2 * (min(x.shape[2:]) // 6) + 1
    return -_dilated(-_dilated(x, size), size)


def _dilated(x: Tensor, size: int) -> Tensor:
    """The largest value in the square of ``size`` pixels around each pixel."""
    return F.max_pool2d(x, size, stride=1, padding=size // 2)
