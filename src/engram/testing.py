r"""Stand-ins for tests: memories that are tiny, or whose posterior is known exactly.

For a Gaussian prior :math:`x_0 \sim \mathcal N(\mu, C)` everything a memory has to learn is
linear algebra: the denoiser :math:`\mathbb E[x_0 \mid x_t]`, the posterior given noisy
measurements of some pixels, and the denoiser of that posterior. For a handful of possible areas
with known weights (``Enumerated``) it is a sum over them. Use either, as a denoiser or as a
memory (``exact_memory``), to check a guidance method, a sampler or a policy against the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.memory.card import Card
from engram.memory.denoiser import (
    SIGMA_REF,
    CosineSchedule,
    Estimate,
    Known,
    NetworkDenoiser,
    Schedule,
    per_sample,
)
from engram.memory.permanent import PermanentMemory, fresh_network
from engram.memory.unet import UNetConfig
from engram.posterior import Measured
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

    def given_measured(self, measured: Measured) -> Gaussian:
        """The posterior given measurements as the samplers take them."""
        values, sigma, mask = (
            v.numpy().astype(np.float64).ravel()
            for v in (measured.values, measured.sigma, measured.mask)
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


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A few possible areas: images (K, n) in model units, of weights (K,) that sum to 1."""

    areas: Array
    weights: Array

    def given(self, values: Array, sigma: Array, measured: NDArray[np.bool_]) -> Enumerated:
        """The posterior after measuring some pixels; all arguments (n,)."""
        off = (values - self.areas)[:, measured] / sigma[measured]
        with np.errstate(divide="ignore"):
            log = np.log(self.weights) - 0.5 * (off**2).sum(axis=1)
        weights = np.exp(log - log.max())
        return Enumerated(self.areas, weights / weights.sum())

    @property
    def mean(self) -> Array:
        """(n,) expected image."""
        return np.asarray(self.weights @ self.areas)

    def denoised(self, x_t: Tensor, a: Tensor, s: Tensor) -> Tensor:
        r""":math:`\mathbb E[x_0 | x_t] = \sum_k w_k x_k`, each area weighted by how well it
        explains x_t, :math:`w_k \propto p_k \exp(-\|x_t - a x_k\|^2 / 2 s^2)`.

        x_t (B, n) and a, s (B or 1, 1), all float64; differentiable.
        """
        areas, prior = torch.from_numpy(self.areas), torch.from_numpy(self.weights)
        off = (x_t[:, None] - a[:, None] * areas).square().sum(dim=2)
        weights = (prior.log() - off / (2 * s.clamp_min(1e-4) ** 2)).softmax(dim=1)
        return weights @ areas


class ExactDenoiser:
    """The exact denoiser of a Gaussian or enumerated prior; implements ``Denoiser``.

    A ``conditioned`` one behaves like a perfectly trained mask-conditioned memory: told the
    measurements, it returns the exact :math:`\\mathbb E[x_0 \\mid x_t, y]`, each sample of a
    batch by what is known of it.
    """

    def __init__(self, prior: Gaussian | Enumerated, *, conditioned: bool = False) -> None:
        self.prior, self.conditioned = prior, conditioned
        self.schedule: Schedule = CosineSchedule()

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        flat = x_t.flatten(1).double()
        levels = [level.flatten(1).double().expand(len(flat), 1) for level in (a, s)]
        if not self.conditioned or known is None:
            denoised = self.prior.denoised(flat, *levels)
        else:
            denoised = torch.empty_like(flat)
            for belief, rows in self._beliefs(known.expand(len(flat))):
                denoised[rows] = belief.denoised(flat[rows], *(level[rows] for level in levels))
        x0 = denoised.to(x_t.dtype).reshape(x_t.shape)
        return Estimate(x0=x0, eps=(x_t - a * x0) / s.clamp_min(1e-6))

    def _beliefs(self, known: Known) -> list[tuple[Gaussian | Enumerated, list[int]]]:
        """Posteriors, and the rows of the batch that know as much."""
        weights = known.weight.flatten(1).double().numpy()
        values = known.values.flatten(1).double().numpy()
        groups: dict[bytes, list[int]] = {}
        for row, (value, weight) in enumerate(zip(values, weights, strict=True)):
            groups.setdefault((value * (weight > 0)).tobytes() + weight.tobytes(), []).append(row)
        return [(self._given(values[rows[0]], weights[rows[0]]), rows) for rows in groups.values()]

    def _given(self, values: Array, weight: Array) -> Gaussian | Enumerated:
        if not weight.any():
            return self.prior
        sigma = SIGMA_REF * np.sqrt(1 / np.maximum(weight, 1e-12) - 1)
        return self.prior.given(values, np.maximum(sigma, 1e-4), weight > 0)


class GaussianDenoiser(ExactDenoiser):
    """The exact denoiser of a Gaussian prior."""

    prior: Gaussian

    def __init__(self, prior: Gaussian, *, conditioned: bool = False) -> None:
        super().__init__(prior, conditioned=conditioned)


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """A smooth random field of which some pixels were measured, and the truth about it.

    measured : (n,) bool; the other members are self-explaining.
    """

    prior: Gaussian
    posterior: Gaussian
    measurements: Measured
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

    measurements = Measured(image(values), image(measured * 1.0), image(np.full(n, sigma)))
    return FieldProblem(prior, prior.given_measured(measurements), measurements, measured)


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
    parameters = sum(p.numel() for p in network.parameters())
    card = _card("tiny", channels, size, size, network=config.to_dict(), parameters=parameters)
    return PermanentMemory(NetworkDenoiser(network), card)


class ExactMemory(PermanentMemory):
    """A permanent memory that is an exact denoiser instead of a network."""

    def __init__(self, exact: ExactDenoiser, card: Card) -> None:
        self.exact, self.card = exact, card

    @property
    def schedule(self) -> Schedule:
        return self.exact.schedule

    @property
    def conditioned(self) -> bool:
        return self.exact.conditioned

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        return self.exact.estimate(x_t, t, known)


def exact_memory(
    prior: Gaussian | Enumerated, height: int, width: int, *, conditioned: bool = True
) -> ExactMemory:
    """A memory of (height, width) pixels that knows exactly this prior."""
    exact = ExactDenoiser(prior, conditioned=conditioned)
    return ExactMemory(
        exact, _card("exact", 1, height, width, network={"conditioned": conditioned})
    )


def _card(
    name: str,
    channels: int,
    height: int,
    width: int,
    *,
    network: dict[str, Any] | None = None,
    parameters: int = 0,
) -> Card:
    return Card(
        name=name,
        summary="for tests",
        data="none",
        licence="Apache-2.0",
        channels=channels,
        height=height,
        width=width,
        range=(0.0, 1.0),
        network=network or {},
        parameters=parameters,
        seed=0,
        steps=0,
        loss=1.0,
    )
