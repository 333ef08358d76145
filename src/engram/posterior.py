r"""Samples of the whole area given the measured cells.

A *guidance* turns an unconditional estimate of :math:`x_0` into one that knows the
measurements :math:`y = A x_0 + n`, :math:`n \sim \mathcal N(0, \sigma^2)`; A selects the
measured pixels. All of them share one sampler (Algorithm 1's DDIM step, any eta):

``Amortised``
    a mask-conditioned memory is told the measurements; forward passes alone.
``MomentMatching`` (MMPS)
    :math:`\hat x_0 + V A^\top (\sigma^2 I + A V A^\top)^{-1} (y - A \hat x_0)` with
    :math:`V = \mathrm{Cov}[x_0 \mid x_t] = (s^2 / a)\, \partial \hat x_0 / \partial x_t`,
    solved by conjugate gradients on vector-Jacobian products.
``Dps``
    a gradient step on :math:`\|y - A \hat x_0(x_t)\|` with the norm taken per sample.
``Replacement``
    measured pixels of :math:`\hat x_0` are replaced; no Jacobian, carries little to
    unmeasured cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engram.errors import InputError
from engram.memory.denoiser import Denoiser, Estimate, Known, noise_to_weight, per_sample
from engram.seeding import particle_noise

MIN_SIGMA = 1e-2
"""Noise, in model units, that guidance assumes at least (half a grey level of 256)."""

TOLD_DOUBT = 0.05
"""Doubt left in a measured pixel when the network was told its value: exact measurements are
reproduced, noisy ones are left to the network, which knows their noise."""


@dataclass(frozen=True)
class Measured:
    """What is measured, in model units: values (1, C, H, W), mask and sigma (1, 1, H, W)."""

    values: Tensor
    mask: Tensor
    sigma: Tensor

    @property
    def known(self) -> Known:
        """The same as conditioning input of a network."""
        return Known(self.values, self.mask * noise_to_weight(self.sigma))

    @property
    def variance(self) -> Tensor:
        return self.sigma.clamp_min(MIN_SIGMA) ** 2


class Guidance(Protocol):
    """Conditional estimate of x0 and eps at x_t."""

    def estimate(self, denoiser: Denoiser, x_t: Tensor, t: Tensor, measured: Measured) -> Estimate:
        """x_t (P, C, H, W), t scalar -> Estimate given the measurements."""
        ...


def _as_estimate(denoiser: Denoiser, x_t: Tensor, t: Tensor, x0: Tensor) -> Estimate:
    tt = per_sample(t, x_t)
    a, s = denoiser.schedule.a(tt), denoiser.schedule.s(tt).clamp_min(1e-6)
    return Estimate(x0=x0, eps=(x_t - a * x0) / s)


def pinned(x0: Tensor, measured: Measured, doubt: float | Tensor = 1.0) -> Tensor:
    """x0 with measured pixels moved to their values, as far as their noise allows.

    ``doubt`` is the standard deviation of x0 itself: weights are the usual
    precision weights, :math:`w = d^2 / (d^2 + \\sigma^2)`.
    """
    d2 = torch.as_tensor(doubt, dtype=x0.dtype) ** 2
    w = measured.mask * d2 / (d2 + measured.sigma**2)
    return x0 + w * (measured.values - x0)


@dataclass(frozen=True)
class Amortised:
    """Conditioning by the mask-conditioned memory itself."""

    def estimate(self, denoiser: Denoiser, x_t: Tensor, t: Tensor, measured: Measured) -> Estimate:
        if not denoiser.conditioned:
            raise InputError(
                "this memory was not trained with measurement masks; use guidance 'mmps', 'dps' "
                "or 'replacement'"
            )
        x0 = denoiser.estimate(x_t, t, measured.known).x0
        return _as_estimate(denoiser, x_t, t, pinned(x0, measured, TOLD_DOUBT))


@dataclass(frozen=True)
class Replacement:
    """Jacobian-free: measured pixels of the unconditional estimate are replaced."""

    def estimate(self, denoiser: Denoiser, x_t: Tensor, t: Tensor, measured: Measured) -> Estimate:
        x0 = denoiser.estimate(x_t, t).x0
        doubt = denoiser.schedule.s(per_sample(t, x_t))
        return _as_estimate(denoiser, x_t, t, pinned(x0, measured, doubt))


@dataclass(frozen=True)
class Dps:
    r"""Diffusion posterior sampling with a per-sample norm.

    The score gains :math:`-\zeta\, \nabla_{x_t} \|y - A\hat x_0\|` (norm over one
    sample's pixels, so guidance does not weaken with the number of particles), i.e.
    :math:`\hat x_0` moves by :math:`-\zeta\,(s^2 / a)` times that gradient, with the step
    scaled by the residual's expected size :math:`\sqrt{\sigma^2 + r_t^2}`,
    :math:`r_t^2 = s^2 / (s^2 + a^2)`.
    """

    strength: float = 1.5

    def estimate(self, denoiser: Denoiser, x_t: Tensor, t: Tensor, measured: Measured) -> Estimate:
        tt = per_sample(t, x_t)
        a, s = denoiser.schedule.a(tt), denoiser.schedule.s(tt)
        with torch.enable_grad():
            x = x_t.detach().requires_grad_(True)
            x0 = denoiser.estimate(x, t).x0
            spread = s**2 / (s**2 + a**2)
            residual = measured.mask * (measured.values - x0) / (measured.variance + spread).sqrt()
            loss = 0.5 * residual.square().sum(dim=(1, 2, 3))
            (gradient,) = torch.autograd.grad(loss.sum(), x)
        moved = x0.detach() - self.strength * (s**2 / a.clamp_min(1e-3)) * gradient
        return _as_estimate(denoiser, x_t, t, moved)


@dataclass(frozen=True)
class MomentMatching:
    """Covariance-aware guidance (MMPS); ``iterations`` of conjugate gradients a step."""

    iterations: int = 4

    def estimate(self, denoiser: Denoiser, x_t: Tensor, t: Tensor, measured: Measured) -> Estimate:
        tt = per_sample(t, x_t)
        a, s = denoiser.schedule.a(tt), denoiser.schedule.s(tt)
        scale = s**2 / a.clamp_min(1e-3)
        mask, variance = measured.mask, measured.variance
        with torch.enable_grad():
            x = x_t.detach().requires_grad_(True)
            x0 = denoiser.estimate(x, t).x0

            def covariance(u: Tensor) -> Tensor:
                (g,) = torch.autograd.grad(x0, x, u, retain_graph=True)
                return scale * g

            residual = mask * (measured.values - x0.detach())
            solved = _conjugate_gradient(
                lambda u: mask * covariance(u) + variance * u, residual, self.iterations
            )
            moved = x0.detach() + covariance(mask * solved)
        return _as_estimate(denoiser, x_t, t, moved.detach())


def _conjugate_gradient(apply: Callable[[Tensor], Tensor], b: Tensor, iterations: int) -> Tensor:
    """Solve apply(u) = b per sample, (P, ...); stops per sample when the residual is gone."""

    def dot(p: Tensor, q: Tensor) -> Tensor:
        return (p * q).sum(dim=(1, 2, 3), keepdim=True)

    u = torch.zeros_like(b)
    r, p = b.clone(), b.clone()
    rr = dot(r, r)
    floor = 1e-10 * rr + 1e-20
    for _ in range(iterations):
        ap = apply(p)
        curvature = dot(p, ap)
        ok = (rr > floor) & (curvature > 0)
        step = torch.where(ok, rr / curvature.clamp_min(1e-20), torch.zeros_like(rr))
        u = u + step * p
        r = r - step * ap
        new = dot(r, r)
        p = r + torch.where(ok, new / rr.clamp_min(1e-20), torch.zeros_like(rr)) * p
        rr = new
    return u


GUIDANCES: dict[str, type[Amortised] | type[Dps] | type[MomentMatching] | type[Replacement]] = {
    "amortised": Amortised,
    "mmps": MomentMatching,
    "dps": Dps,
    "replacement": Replacement,
}


class Sampler:
    """Algorithm 1's reverse process for a denoiser and a guidance.

    ``eta`` = 0 is deterministic DDIM, 1 the ancestral sampler. Particle i at step k of
    query q uses the stream (seed, q, i) alone.
    """

    def __init__(
        self, guidance: Guidance, steps: int = 30, eta: float = 1.0, first: float = 1.0
    ) -> None:
        if steps < 1:
            raise InputError(f"steps={steps}: a sampler needs at least 1 step")
        self.guidance, self.steps, self.eta, self.first = guidance, steps, eta, first

    def draw(
        self,
        denoiser: Denoiser,
        measured: Measured,
        particles: int,
        *,
        seed: int,
        path: Sequence[int] = (),
    ) -> Tensor:
        """Fresh particles (P, C, H, W) in model units, from pure noise."""
        shape = (self.steps + 1, *measured.values.shape[1:])
        noise = particle_noise(seed, "particles", path, particles, shape)
        start = torch.full((), self.first)
        x = noise[:, 0]
        return self._reverse(denoiser, measured, x, start, self.steps, noise[:, 1:])

    def refresh(
        self,
        denoiser: Denoiser,
        measured: Measured,
        particles: Tensor,
        *,
        depth: float,
        steps: int,
        seed: int,
        path: Sequence[int] = (),
    ) -> Tensor:
        """Re-noise existing particles to time ``depth`` and denoise them again."""
        if steps < 1:
            raise InputError(f"steps={steps}: a refresh needs at least 1 step")
        shape = (steps + 1, *particles.shape[1:])
        noise = particle_noise(seed, "refresh", path, particles.shape[0], shape)
        start = torch.full((), min(depth, self.first))
        x = denoiser.schedule.noised(particles, start, noise[:, 0])
        return self._reverse(denoiser, measured, x, start, steps, noise[:, 1:])

    def _reverse(
        self,
        denoiser: Denoiser,
        measured: Measured,
        x: Tensor,
        start: Tensor,
        steps: int,
        noise: Tensor,
    ) -> Tensor:
        times = denoiser.schedule.steps(steps, float(start))
        for k in range(steps):
            estimate, x = self.step(denoiser, measured, x, times[k], times[k + 1], noise[:, k])
        return reproduced(estimate.x0, measured)

    @torch.no_grad()
    def step(
        self,
        denoiser: Denoiser,
        measured: Measured,
        x: Tensor,
        now: Tensor,
        then: Tensor,
        noise: Tensor,
    ) -> tuple[Estimate, Tensor]:
        r"""Guided estimate at x_now, and x_then by a DDIM step (Algorithm 1, line 14):

        .. math::  x_{then} = a\, \hat x_0 + \sqrt{s^2 - \sigma^2}\, \hat\varepsilon
                   + \sigma \epsilon , \qquad
                   \sigma = \eta\, \frac{s}{s_{now}} \sqrt{1 - a_{now}^2 / a^2}
        """
        schedule = denoiser.schedule
        estimate = self.guidance.estimate(denoiser, x, now, measured)
        a, s = schedule.a(then), schedule.s(then)
        ratio = (1 - (schedule.a(now) / a) ** 2).clamp_min(0.0)
        sigma = self.eta * (s / schedule.s(now)) * ratio.sqrt()
        direction = (s**2 - sigma**2).clamp_min(0.0).sqrt()
        return estimate, a * estimate.x0 + direction * estimate.eps + sigma * noise


def reproduced(x: Tensor, measured: Measured) -> Tensor:
    """Bring measured pixels that strayed further than 2 sigma back to that distance."""
    low = measured.values - 2 * measured.sigma
    high = measured.values + 2 * measured.sigma
    return torch.where(measured.mask > 0, torch.minimum(torch.maximum(x, low), high), x)
