"""A small U-Net made for CPUs: fp32, channels-last, most work on patches.

The image is folded into patches first (``pixel_unshuffle``), so the widest tensors never
live at full resolution, and normalisation is a LayerNorm over the channels of a pixel
(GroupNorm's channels-last backward crashes in some CPU builds of torch, and mixes cells
that have nothing to do with each other).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engram.memory.agreement import CHANNELS, agreement

FINE = ("", "all", "measured")
"""What attention at the finest resolution looks at; empty: there is none."""


@dataclass(frozen=True)
class UNetConfig:
    """Sizes of a U-Net; ``inputs`` channels in, ``outputs`` channels out.

    fine : attention at the finest resolution too, where shapes are decided: to ``all`` positions,
        or to those where something was ``measured``; empty = none
    agreement : the network is told how measurements agree with themselves, shifted and turned
        (``memory.agreement``), so that it can copy
    """

    inputs: int
    outputs: int
    conditioned: bool = False
    patch: int = 2
    widths: tuple[int, ...] = (64, 128)
    blocks: int = 2
    time_features: int = 32
    attention: bool = True
    fine: str = ""
    agreement: bool = False

    def __post_init__(self) -> None:
        if self.fine not in FINE:
            raise ValueError(f"fine={self.fine!r}: choose one of {', '.join(FINE[1:])}, or nothing")
        if self.fine == "measured" and not self.conditioned:
            raise ValueError("fine='measured': the network is told nothing that was measured")
        if self.agreement and not self.conditioned:
            raise ValueError("agreement: the network is told nothing that was measured")

    @property
    def multiple(self) -> int:
        """Heights and widths are padded to a multiple of this."""
        return int(self.patch * 2 ** (len(self.widths) - 1))

    def to_dict(self) -> dict[str, Any]:
        plain = {**asdict(self), "widths": list(self.widths)}
        for name in ("fine", "agreement"):
            if not plain[name]:
                del plain[name]
        return plain

    @property
    def entering(self) -> int:
        """Channels that enter the network: its inputs, and what it is told of agreement."""
        return self.inputs + (CHANNELS if self.agreement else 0)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> UNetConfig:
        """The sizes on a card; ``ValueError`` for what no network of engram's has."""
        config = cls(**{**data, "widths": tuple(data["widths"])})
        names = ("inputs", "outputs", "patch", "blocks", "time_features")
        sizes = (*(getattr(config, name) for name in names), *config.widths)
        if not config.widths or len(config.widths) > 8:
            raise ValueError(f"a network of {len(config.widths)} widths")
        if not all(isinstance(size, int) and 1 <= size <= 4096 for size in sizes):
            raise ValueError("a size of the network is not a whole number of 1 to 4096")
        if config.blocks > 64:
            raise ValueError(f"a network of {config.blocks} blocks; 64 at most")
        return config

    @classmethod
    def for_image(
        cls,
        channels: int,
        *,
        conditioned: bool,
        patch: int = 2,
        widths: Sequence[int] = (64, 128),
        fine: str = "",
        agreement: bool = False,
    ) -> UNetConfig:
        """Inputs are x_t, and for a conditioned network the measured values and the mask."""
        inputs = 2 * channels + 1 if conditioned else channels
        told = tuple(widths)
        return cls(inputs, channels, conditioned, patch, told, fine=fine, agreement=agreement)


def _zero(layer: nn.Module) -> None:
    """Make a layer's output zero at birth."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of each pixel; free of copies in channels-last."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = F.layer_norm(x.permute(0, 2, 3, 1), (x.shape[1],), self.weight, self.bias)
        return y.permute(0, 3, 1, 2)


def _frequencies(count: int) -> Tensor:
    """(count,) from pi to 64 pi; where shapes alone are asked for, no more than the shape: any
    arithmetic on the device "meta" loads torch's compiler, which costs more than loading torch."""
    if torch.get_default_device().type == "meta":
        return torch.empty(count)
    return torch.exp(torch.linspace(0.0, math.log(64.0), count)) * math.pi


class PixelLinear(nn.Conv2d):
    """A convolution of one pixel: in channels-last a plain matrix product, free of copies."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x.permute(0, 2, 3, 1), self.weight.flatten(1), self.bias)
        return y.permute(0, 3, 1, 2)


class TimeEmbedding(nn.Module):
    """t in [0, 1], shape (B,) -> (B, width) by Fourier features and one layer."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.register_buffer("freqs", _frequencies(features // 2), persistent=False)
        self.project = nn.Linear(features, width)
        self.freqs: Tensor

    def forward(self, t: Tensor) -> Tensor:
        angles = t[:, None] * self.freqs[None]
        return F.silu(self.project(torch.cat([angles.sin(), angles.cos()], dim=1)))


class ResBlock(nn.Module):
    """norm -> conv -> time scale and shift -> conv, added to the input."""

    def __init__(self, channels: int, time_width: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(time_width, 2 * channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        _zero(self.conv2)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        scale, shift = self.time(emb)[:, :, None, None].chunk(2, dim=1)
        h = self.conv1(F.silu(self.norm(x)))
        change: Tensor = self.conv2(F.silu(h * (1 + scale) + shift))
        return x + change


class Attention(nn.Module):
    """Self-attention over all positions: what one corner shows, the other may use."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = ChannelNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        _zero(self.out)

    def forward(self, x: Tensor, seen: Tensor | None = None) -> Tensor:
        """``seen`` (B, h, w): positions that are looked at, and each at itself; None = all."""
        b, c, h, w = x.shape
        tokens = self.norm(x).permute(0, 2, 3, 1).reshape(b, h * w, c)
        qkv = self.qkv(tokens).reshape(b, h * w, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        looked = None
        if seen is not None:
            itself = torch.eye(h * w, dtype=torch.bool, device=x.device)
            looked = (seen.reshape(b, 1, 1, h * w) | itself).expand(b, 1, h * w, h * w)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=looked)
        change: Tensor = self.out(y.transpose(1, 2).reshape(b, h * w, c))
        return x + change.reshape(b, h, w, c).permute(0, 3, 1, 2)


class Stage(nn.Module):
    """A run of residual blocks at one resolution."""

    def __init__(self, channels: int, blocks: int, time_width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ResBlock(channels, time_width) for _ in range(blocks))

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, emb)
        return x


class UNet(nn.Module):
    """(B, inputs, H, W), (B,) -> (B, outputs, H, W)."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        widths, folded = config.widths, config.patch**2
        time_width = 2 * widths[0]
        self.time = TimeEmbedding(config.time_features, time_width)
        self.stem = nn.Conv2d(config.entering * folded, widths[0], 3, padding=1)
        self.down = nn.ModuleList(Stage(w, config.blocks, time_width) for w in widths[:-1])
        pairs = list(pairwise(widths))
        self.shrink = nn.ModuleList(PixelLinear(4 * a, b) for a, b in pairs)
        self.bottom = Stage(widths[-1], config.blocks, time_width)
        self.attention = Attention(widths[-1]) if config.attention else nn.Identity()
        self.bottom2 = Stage(widths[-1], 1, time_width)
        self.grow = nn.ModuleList(PixelLinear(b, 4 * a) for a, b in reversed(pairs))
        self.merge = nn.ModuleList(PixelLinear(2 * a, a) for a, _ in reversed(pairs))
        self.up = nn.ModuleList(Stage(w, config.blocks, time_width) for w in reversed(widths[1:-1]))
        self.fine = Attention(widths[0]) if config.fine else None
        self.tail = Tail(config)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        out: Tensor = self.tail(*self.trunk(x, t))
        return out[..., :height, :width]

    def trunk(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, widths[0], H / patch, W / patch) and time embedding for the tail."""
        height, width = x.shape[-2:]
        m = self.config.multiple
        pad_h, pad_w = -height % m, -width % m
        if pad_h or pad_w:
            x = F.pad(x, (0, pad_w, 0, pad_h))
        emb, told = self.time(t), x[:, -1:]  # the mask, where the network is told measurements
        if self.config.agreement:
            x = torch.cat([x, agreement(x[:, -2], x[:, -1], (height, width))], dim=1)
        x = self.stem(_channels_last(F.pixel_unshuffle(x, self.config.patch)))
        skips = []
        for stage, shrink in zip(self.down, self.shrink, strict=True):
            x = stage(x, emb)
            skips.append(x)
            x = shrink(_channels_last(F.pixel_unshuffle(x, 2)))
        x = self.bottom2(self.attention(self.bottom(x, emb)), emb)
        for level, (grow, merge) in enumerate(zip(self.grow, self.merge, strict=True)):
            x = _channels_last(F.pixel_shuffle(grow(x), 2))
            x = merge(torch.cat([x, skips.pop()], dim=1))
            if level < len(self.up):
                x = self.up[level](x, emb)
        if self.fine is not None:
            measured = self.config.fine == "measured"
            x = self.fine(x, F.max_pool2d(told, self.config.patch)[:, 0] > 0 if measured else None)
        return x, emb


class Tail(nn.Module):
    """The last stage of a U-Net: features -> image. A copy of it can learn on its own."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        width = config.widths[0]
        self.patch = config.patch
        self.stage = Stage(width, config.blocks, 2 * width)
        self.norm = ChannelNorm(width)
        self.head = nn.Conv2d(width, config.outputs * config.patch**2, 3, padding=1)
        _zero(self.head)

    def forward(self, features: Tensor, emb: Tensor) -> Tensor:
        x = self.head(F.silu(self.norm(self.stage(features, emb))))
        return F.pixel_shuffle(x, self.patch)


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
