r"""Masks for training a mask-conditioned memory: the network practises searching.

A mask may depend on measured values and on chance, never on unmeasured truth; only then
is :math:`p(x_0 \mid m, m \odot x_0)` the posterior the network should learn. Three kinds
are mixed: empty (the unconditional model), cells scattered at random, and *episodes*: the
network's own posterior mean of the last training step chooses what is measured next, as a
search would. Episodes cost no extra evaluation and put the training masks where the
search-time masks will be.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def scattered_masks(count: int, h: int, w: int, generator: torch.Generator) -> Tensor:
    """(count, 1, h, w) masks of random density, in blocks of 1, 2 or 4 pixels."""
    out = torch.empty(count, 1, h, w)
    for i in range(count):
        block = int(2 ** torch.randint(0, 3, (1,), generator=generator))
        block = block if torch.rand(1, generator=generator) < 0.5 else 1
        density = 0.6 * torch.rand(1, generator=generator) ** 2.5
        small = torch.rand(1, 1, -(-h // block), -(-w // block), generator=generator) < density
        out[i] = F.interpolate(small.float(), scale_factor=block, mode="nearest")[0, :, :h, :w]
    return out


def near_finds(images: Tensor, masks: Tensor, reach: int = 2) -> Tensor:
    """(B, 1, H, W) in {0, 1} for images (B, C, H, W) in [-1, 1] and masks (B, 1, H, W).

    Pixels not measured, within ``reach`` of a measured bright one: where a search looks next
    and where a shape's outline is decided. The weight of a
    pixel in the loss may depend on it, since it is a function of what was measured alone: the
    optimum stays the posterior mean.
    """
    finds = (images.mean(dim=1, keepdim=True) > 0).float() * masks
    around = F.max_pool2d(finds, 2 * reach + 1, stride=1, padding=reach)
    return around * (1 - masks)


class Episodes:
    """A pool of searches that go on through training, one step per training step.

    images : (N, C, H, W) in [-1, 1]; masks : (N, 1, H, W) in {0, 1}.
    """

    def __init__(self, images: Tensor) -> None:
        self.images = images.clone()
        self.masks = images.new_zeros(images.shape[0], 1, *images.shape[2:])
        self.limit = torch.zeros(images.shape[0])  # measured share at which a search ends

    def advance(
        self, mean: Tensor, fresh: Callable[[int], Tensor], generator: torch.Generator
    ) -> None:
        """Measure what ``mean`` (N, C, H, W) suggests; finished searches restart.

        ``fresh`` draws that many images (., C, H, W) for new searches.
        """
        n, _, h, w = self.masks.shape
        u = torch.rand(n, 4, generator=generator)
        # Most searches hunt bright cells; some hunt dark ones; some hunt doubt.
        brightness = mean.mean(1)
        hunt = torch.where(u[:, 0, None, None] < 0.8, brightness, -brightness)
        hunt = torch.where(u[:, 1, None, None] < 0.15, -brightness.abs(), hunt)
        heat = (0.02 + 0.4 * u[:, 2] ** 2)[:, None, None]
        gumbel = -torch.log(-torch.log(torch.rand(n, h, w, generator=generator) + 1e-9) + 1e-9)
        score = hunt + heat * gumbel
        score = score.masked_fill(self.masks[:, 0] > 0, -torch.inf).flatten(1)
        order = score.argsort(dim=1, descending=True)
        take = (1 + (u[:, 3] ** 2 * 0.03 * h * w).long())[:, None]
        chosen = (torch.arange(h * w)[None] < take).float()
        self.masks.flatten(1).scatter_add_(1, order, chosen)
        self.masks.clamp_(max=1.0)
        self._restart(fresh, generator)

    def _restart(self, fresh: Callable[[int], Tensor], generator: torch.Generator) -> None:
        done = self.masks.mean(dim=(1, 2, 3)) >= self.limit
        count = int(done.sum())
        if not count:
            return
        h, w = self.masks.shape[2:]
        self.images[done] = fresh(count)
        self.limit[done] = 0.05 + 0.35 * torch.rand(count, generator=generator)
        # A search starts with one random cell, a third of them with about a percent more: an
        # empty mask is left to the unconditional model.
        noise = torch.rand(count, h * w, generator=generator)
        several = torch.rand(count, 1, generator=generator) < 0.33
        first = noise == noise.amin(dim=1, keepdim=True)
        start = first | (several & (noise < 0.01))
        self.masks[done] = start.float().reshape(count, 1, h, w)

    def state(self) -> dict[str, Tensor]:
        """Tensors of a checkpoint."""
        return {"images": self.images, "masks": self.masks, "limit": self.limit}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a checkpoint."""
        self.images, self.masks = state["images"].clone(), state["masks"].clone()
        self.limit = state["limit"].clone()
