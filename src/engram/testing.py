r"""Stand-ins for tests: memories that are tiny, or whose posterior is known in closed form.

For a Gaussian prior :math:`x_0 \sim \mathcal N(\mu, C)` everything a memory has to learn is
linear algebra: the denoiser :math:`\mathbb E[x_0 \mid x_t]`, the posterior given noisy
measurements of some pixels, and the denoiser of that posterior. Use it to check a guidance
method, a sampler or a policy against the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.memory.card import Card
from engram.memory.denoiser import (
    SIGMA_REF,
    Estimate,
    Known,
    NetworkDenoiser,
    Schedule,
    per_sample,
)
from engram.memory.permanent import PermanentMemory, fresh_network
from engram.memory.unet import UNetConfig
from engram.posterior import Evidence
from engram.seeding import torch_generator

Array = NDArray[np.float64]


def squared_exponential(height: int, width: int, length: float, nugget: float = 1e-3) -> Array:
    """Covariance (H W, H W) of a smooth field of unit variance on a grid of pixels."""
    yy, xx = np.mgrid[0:height, 0:width]
    points = np.stack([yy.ravel(), xx.ravel()], axis=1).astype(np.float64)
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    return np.asarray(np.exp(-squared / (2 * length**2)) + nugget * np.eye(len(points)))


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, cov) over the pixels of a (H, W) image of one channel: mean (n,), cov (n, n)."""

    mean: Array
    cov: Array

    def given(self, values: Array, sigma: Array, measured: NDArray[np.bool_]) -> Gaussian:
        """The posterior after measuring some pixels; all arguments (n,)."""
        index = np.flatnonzero(measured)
        inner = self.cov[np.ix_(index, index)] + np.diag(sigma[index] ** 2)
        gain = np.linalg.solve(inner, self.cov[index]).T
        mean = self.mean + gain @ (values[index] - self.mean[index])
        cov = self.cov - gain @ self.cov[index]
        return Gaussian(mean, (cov + cov.T) / 2)

    def given_evidence(self, evidence: Evidence) -> Gaussian:
        """The posterior given measurements as the samplers take them."""
        values, sigma, mask = (
            v.numpy().astype(np.float64).ravel()
            for v in (evidence.values, evidence.sigma, evidence.mask)
        )
        return self.given(values, sigma, mask > 0)

    def denoised(self, x_t: Tensor, a: Tensor, s: Tensor) -> Tensor:
        r""":math:`\mathbb E[x_0 | x_t] = \mu + a C (a^2 C + s^2 I)^{-1} (x_t - a\mu)`.

        x_t (B, n) and a, s (B or 1, 1), all float64; differentiable.
        """
        spectrum, basis = (torch.from_numpy(v) for v in self._spectrum)
        mean = torch.from_numpy(self.mean)
        gain = a * spectrum / (a**2 * spectrum + s**2).clamp_min(1e-12)
        shift: Tensor = (((x_t - a * mean) @ basis) * gain) @ basis.T
        return mean + shift

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """(count, n) exact samples."""
        spectrum, basis = self._spectrum
        noise = rng.standard_normal((count, len(self.mean)))
        return np.asarray(self.mean + (noise * np.sqrt(spectrum)) @ basis.T)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        spectrum, basis = np.linalg.eigh(self.cov)
        return spectrum.clip(0), basis


class GaussianDenoiser:
    """The exact denoiser of a Gaussian prior; implements ``Denoiser``.

    A ``conditioned`` one behaves like a perfectly trained mask-conditioned memory: told the
    measurements, it returns the exact :math:`\\mathbb E[x_0 \\mid x_t, y]`.
    """

    def __init__(self, prior: Gaussian, *, conditioned: bool = False) -> None:
        self.prior, self.conditioned = prior, conditioned
        self.schedule = Schedule()

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        belief = self.prior
        if self.conditioned and known is not None and bool((known.weight > 0).any()):
            weight = known.weight[0].double().flatten().numpy()
            sigma = SIGMA_REF * np.sqrt(1 / np.maximum(weight, 1e-12) - 1)
            belief = belief.given(
                known.values[0].double().flatten().numpy(), np.maximum(sigma, 1e-4), weight > 0
            )
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        flat = belief.denoised(
            x_t.flatten(1).double(), a.flatten(1).double(), s.flatten(1).double()
        )
        x0 = flat.to(x_t.dtype).reshape(x_t.shape)
        return Estimate(x0=x0, eps=(x_t - a * x0) / s.clamp_min(1e-6))


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """A smooth random field of which some pixels were measured, and the truth about it.

    measured : (n,) bool; the other members are self-explaining.
    """

    prior: Gaussian
    posterior: Gaussian
    evidence: Evidence
    measured: NDArray[np.bool_]

    def error(self, particles: Tensor) -> float:
        """Distance of the particles' mean to the posterior's, over that of the prior's."""
        mean = particles.flatten(1).double().numpy().mean(axis=0)
        prior_error = np.linalg.norm(self.prior.mean - self.posterior.mean)
        return float(np.linalg.norm(mean - self.posterior.mean) / prior_error)

    def spread(self, particles: Tensor, *, measured: bool = False) -> float:
        """Standard deviation over the posterior's, averaged over (un)measured pixels."""
        where = self.measured if measured else ~self.measured
        found = particles.flatten(1).double().numpy().std(axis=0)
        truth = np.sqrt(np.diag(self.posterior.cov))
        return float(found[where].mean() / truth[where].mean())


def field_problem(
    seed: int, pixels: Sequence[int], *, sigma: float, size: int = 8, length: float = 1.5
) -> FieldProblem:
    """Draw a field (size, size) and measure the given pixels with noise ``sigma``."""
    rng = np.random.default_rng(seed)
    n = size * size
    prior = Gaussian(np.zeros(n), squared_exponential(size, size, length))
    measured = np.zeros(n, bool)
    measured[list(pixels)] = True
    values = (prior.sample(1, rng)[0] + sigma * rng.standard_normal(n)) * measured

    def image(array: Array) -> Tensor:
        return torch.from_numpy(array.astype(np.float32)).reshape(1, 1, size, size)

    evidence = Evidence(image(values), image(measured * 1.0), image(np.full(n, sigma)))
    return FieldProblem(prior, prior.given_evidence(evidence), evidence, measured)


def tiny_memory(channels: int = 1, *, conditioned: bool = True, size: int = 8) -> PermanentMemory:
    """A memory with a few hundred untrained weights: fast, and of every right shape."""
    config = UNetConfig(
        2 * channels + 1 if conditioned else channels,
        channels,
        conditioned,
        patch=1,
        widths=(4,),
        blocks=1,
        time_features=4,
        attention=False,
    )
    network = fresh_network(config, 0)
    generator = torch_generator(0, "train", channels)
    for parameter in network.parameters():
        if not parameter.any():  # zero at birth, which would hide every input
            torch.nn.init.normal_(parameter, std=0.1, generator=generator)
    card = Card(
        name="tiny",
        summary="untrained, for tests",
        data="none",
        licence="Apache-2.0",
        channels=channels,
        height=size,
        width=size,
        range=(0.0, 1.0),
        network=config.to_dict(),
        parameters=sum(p.numel() for p in network.parameters()),
        seed=0,
        steps=0,
        loss=1.0,
    )
    return PermanentMemory(NetworkDenoiser(network), card)
