r"""Noise schedule, the denoiser contract, and the composite of the two memories.

The forward process mixes an image with noise, :math:`t \in [0, 1]`,

.. math::  x_t = a(t)\, x_0 + s(t)\, \varepsilon, \qquad a^2 + s^2 = 1 ,

with :math:`a(t) = \sqrt{\bar\alpha_t}`, for our networks :math:`\cos(\pi t / 2)`. At
:math:`t = 1` nothing of the image is left, so the estimate there is the (conditional) mean of
:math:`x_0`.

Networks predict the velocity :math:`v = a\,\varepsilon - s\,x_0`, from which

.. math::  \hat x_0 = a\,x_t - s\,v, \qquad \hat\varepsilon = s\,x_t + a\,v .

A correction :math:`\delta` of the velocity is therefore a correction
:math:`a\,\delta` of the noise (the :math:`h^\zeta` of Eq. 7) and
:math:`-s\,\delta` of the image (appendix B.1), finite at every :math:`t`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from engram.memory.card import Card
from engram.memory.unet import UNet


class Schedule(ABC):
    """How much of an image and how much noise there is at time t, a^2 + s^2 = 1."""

    @abstractmethod
    def a(self, t: Tensor) -> Tensor:
        """Signal level sqrt(alpha_bar), shape of t; 1 at t = 0, 0 at t = 1."""

    @abstractmethod
    def s(self, t: Tensor) -> Tensor:
        """Noise level sqrt(1 - alpha_bar), shape of t."""

    def steps(self, n: int, start: float = 1.0) -> Tensor:
        """n + 1 times from ``start`` down to 0, evenly spaced."""
        return torch.linspace(start, 0.0, n + 1)

    def noised(self, x0: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        """x_t for x0, eps (B, C, H, W) and t (B,)."""
        t = per_sample(t, x0)
        return self.a(t) * x0 + self.s(t) * eps


class CosineSchedule(Schedule):
    """The cosine variance-preserving schedule, continuous in t: that of our networks."""

    def a(self, t: Tensor) -> Tensor:
        return torch.cos(t * (math.pi / 2)).clamp_min(0.0)

    def s(self, t: Tensor) -> Tensor:
        return torch.sin(t * (math.pi / 2))


def per_sample(t: Tensor, like: Tensor) -> Tensor:
    """Bring t, scalar or (B,), to (B, 1, 1, 1) or broadcastable form."""
    return t.reshape(-1, *([1] * (like.ndim - 1)))


@dataclass(frozen=True)
class Known:
    """What has been measured, in the model's range [-1, 1].

    values : (1 or B, C, H, W), anything where not measured
    weight : (1 or B, 1, H, W) in [0, 1]; 0 = not measured, 1 = measured exactly,
        ``1 / (1 + (sigma / SIGMA_REF)^2)`` for a measurement with noise sigma.
    """

    values: Tensor
    weight: Tensor

    @property
    def channels(self) -> Tensor:
        """The conditioning input of a network, (., C + 1, H, W)."""
        return torch.cat([self.values * self.weight, self.weight], dim=1)

    def expand(self, batch: int) -> Known:
        """The same knowledge for every sample of a batch."""
        if self.values.shape[0] == batch:
            return self
        return Known(self.values.expand(batch, -1, -1, -1), self.weight.expand(batch, -1, -1, -1))

    def to(self, device: str) -> Known:
        """The same on a device."""
        return Known(self.values.to(device), self.weight.to(device))

    def at(self, index: Tensor) -> Known:
        """Rows of a batch."""
        return Known(self.values[index], self.weight[index])


SIGMA_REF = 0.25
"""Noise, in model units, at which a measurement counts half."""


def noise_to_weight(sigma: Tensor) -> Tensor:
    """Conditioning weight of measurements with noise sigma (model units)."""
    return 1.0 / (1.0 + (sigma / SIGMA_REF) ** 2)


@dataclass(frozen=True)
class Estimate:
    """Predicted clean image and predicted noise, both (B, C, H, W)."""

    x0: Tensor
    eps: Tensor


class Denoiser(Protocol):
    """(x_t, t, known) -> estimate. ``known`` is ignored by unconditional models."""

    @property
    def schedule(self) -> Schedule: ...

    @property
    def conditioned(self) -> bool: ...

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        """x_t (B, C, H, W), t scalar or (B,) -> Estimate."""
        ...


class Memory(Denoiser, Protocol):
    """What a policy needs of a permanent memory: a frozen denoiser and its card."""

    @property
    def card(self) -> Card: ...

    @property
    def channels(self) -> int: ...

    @property
    def symmetric(self) -> Denoiser | None:
        """What says its mean over the symmetries of a square in one evaluation, if it has one."""
        ...

    def on(self, device: str) -> Memory:
        """The same memory with its network on a device."""
        ...


class NetworkDenoiser(nn.Module):
    """A U-Net read as a denoiser; mask-conditioned when the network takes a mask.

    An unconditional call of a mask-conditioned network passes an empty mask, which is
    part of its training: it gives the unconditional model back.
    """

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network = network
        self.schedule: Schedule = CosineSchedule()

    @property
    def conditioned(self) -> bool:
        return self.network.config.conditioned

    def velocity(self, x_t: Tensor, t: Tensor, known: Known | None) -> Tensor:
        """Predicted v (B, C, H, W)."""
        batch = x_t.shape[0]
        t = t.reshape(-1).expand(batch)
        signal = self.schedule.a(per_sample(t, x_t))
        inputs = [signal * x_t]
        if self.conditioned:
            if known is None:
                inputs.append(x_t.new_zeros(batch, x_t.shape[1] + 1, *x_t.shape[2:]))
            else:
                inputs.append(known.expand(batch).channels)
        out: Tensor = self.network(torch.cat(inputs, dim=1), t)
        return out

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        v = self.velocity(x_t, t, known)
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        return Estimate(x0=a * x_t - s * v, eps=s * x_t + a * v)


PASS = 16
"""Images of one network evaluation, the unit in which cost is counted."""


class CountedDenoiser:
    """A denoiser that counts what it is asked, in passes of ``PASS`` images.

    A pass back to the input, which DPS and MMPS make, counts as one more: it costs about as much
    as the forward pass.
    """

    def __init__(self, inner: Denoiser) -> None:
        self.inner, self.evaluations = inner, 0.0

    @property
    def schedule(self) -> Schedule:
        return self.inner.schedule

    @property
    def conditioned(self) -> bool:
        return self.inner.conditioned

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        self.evaluations += len(x_t) / PASS
        estimate = self.inner.estimate(x_t, t, known)
        if estimate.x0.requires_grad:
            estimate.x0.register_hook(self._count_back)  # type: ignore[no-untyped-call]
        return estimate

    def _count_back(self, gradient: Tensor) -> None:
        self.evaluations += len(gradient) / PASS
