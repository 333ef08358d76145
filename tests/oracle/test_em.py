r"""Expectation and maximisation as the package does them, against steps that are known exactly.

The frozen memory believes in white noise, :math:`x_0 \sim \mathcal N(0, I)`, so its velocity is
zero and its estimate :math:`a\,x_t`. If the area is :math:`\mathcal N(m, I)` instead, the exact h
is :math:`\delta = -s\,m` at every noise level: an h of that form (``Shift``) has the optimum m in
Eq. 7, and EM on measurements :math:`y = x + n` has a known course (Proposition 1),

.. math::  m_{k+1} = m_k + \frac{y - m_k}{1 + \sigma^2} ,

along which :math:`\log \mathcal N(y; m_k, 1 + \sigma^2)` never falls. Sampler, guidance, composite,
``TransientMemory.adapt`` and ``OutcomeTransform.update`` are the package's own.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engram import Grid, Observation, Observations
from engram.memory.denoiser import SIGMA_REF, Known
from engram.memory.transient import AdaptPlan, CompositeDenoiser, Examples, TransientMemory
from engram.policies.hyperprior import Hyperprior
from engram.policies.outcome_h import OutcomeTransform
from engram.posterior import Measured, MomentMatching, Sampler
from engram.testing import Gaussian, GaussianDenoiser

SIZE = 3
PIXELS = SIZE * SIZE
WHITE = GaussianDenoiser(Gaussian(np.zeros(PIXELS), np.eye(PIXELS)))
PLANS = [AdaptPlan(m_steps=n, batch=512, learning_rate=r) for n, r in ((60, 0.1), (60, 0.01))]
MEAN_SQUARE = 0.5 - (np.sin(np.pi * 0.99) - np.sin(np.pi * 0.02)) / (2 * np.pi * 0.97)
"""Mean of s(t)^2 over the times of Eq. 7, uniform from 0.02 to 0.99."""


class Shift(nn.Module):
    """h of the form of the exact one: the area's mean is m, whatever was measured."""

    def __init__(self) -> None:
        super().__init__()
        self.m = nn.Parameter(torch.zeros(1, 1, SIZE, SIZE))

    def forward(self, x_t: Tensor, x0: Tensor, t: Tensor, known: Known, signal: Tensor) -> Tensor:
        return -(1 - signal**2).sqrt() * self.m.expand_as(x_t)


class Gain(nn.Module):
    """h that may only repeat what it is told, times a number it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, x_t: Tensor, x0: Tensor, t: Tensor, known: Known, signal: Tensor) -> Tensor:
        return -(1 - signal**2).sqrt() * self.gain * known.values * (known.weight > 0)


def memory_with(body: nn.Module) -> TransientMemory:
    return TransientMemory(body, told=False)  # type: ignore[arg-type]


def image(values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).reshape(-1, 1, SIZE, SIZE)


def draws(mean: NDArray[np.float64], sd: float = 1.0, count: int = 2048) -> Tensor:
    """Samples whose mean is exact, so that the optimum is too."""
    noise = np.random.default_rng(0).standard_normal((count // 2, PIXELS))
    return image(mean + sd * np.concatenate([noise, -noise]))


def nothing_known() -> Known:
    return Known(torch.zeros(1, 1, SIZE, SIZE), torch.zeros(1, 1, SIZE, SIZE))


def taught(transient: TransientMemory, examples: Examples, path: int = 0) -> list[float]:
    losses = []
    for k, plan in enumerate(PLANS):
        losses += transient.adapt(WHITE, examples, plan, seed=0, path=10 * path + k)
    return losses


def test_the_m_step_finds_the_exact_shift() -> None:
    """The loss is 1 + mean(s^2) |m|^2 at birth and 1, the variance left, at the optimum."""
    m = np.linspace(-0.8, 0.8, PIXELS)
    transient = memory_with(Shift())
    examples = Examples(draws(m), nothing_known(), torch.ones(1, 1, SIZE, SIZE))
    losses = taught(transient, examples)
    found = transient.body.m.detach().flatten().numpy()
    assert found == pytest.approx(m, abs=0.05)
    assert losses[0] == pytest.approx(1 + MEAN_SQUARE * (m**2).mean(), abs=0.08)
    assert np.mean(losses[-40:]) == pytest.approx(1.0, abs=0.03)


def test_the_loss_counts_the_pixels_it_is_told_to() -> None:
    m = np.linspace(-0.8, 0.8, PIXELS)
    weight = torch.zeros(1, 1, SIZE, SIZE)
    weight[0, 0, 0] = 1.0
    transient = memory_with(Shift())
    taught(transient, Examples(draws(m), nothing_known(), weight))
    found = transient.body.m.detach().flatten().numpy()
    assert found[:3] == pytest.approx(m[:3], abs=0.05)
    assert found[3:].tolist() == [0.0] * 6


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_h_learns_how_far_a_measurement_is_to_be_trusted(sigma: float) -> None:
    """Given y, x0 has the mean y / (1 + sigma^2): the gain that Eq. 7 has to find."""
    y = np.array([0.9, -0.7, 0.8, 0, 0, 0, -0.9, 0.6, 0])
    trust = 1 / (1 + sigma**2)
    known = Known(image(y), image((y != 0) / (1 + (sigma / SIGMA_REF) ** 2)))
    transient = memory_with(Gain())
    examples = Examples(draws(trust * y, np.sqrt(1 - trust)), known, torch.ones(1, 1, SIZE, SIZE))
    taught(transient, examples)
    assert float(transient.body.gain.detach()) == pytest.approx(trust, abs=0.05)


def test_h_told_of_new_measurements_at_every_step_learns_from_those() -> None:
    """Joint draws: every draw is measured anew, without noise, so the gain is 1."""

    def anew(images: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        mask = (torch.rand(len(images), 1, SIZE, SIZE, generator=generator) < 0.5).float()
        return images, Known(images * mask, mask), torch.ones_like(mask)

    misleading = Known(torch.full((1, 1, SIZE, SIZE), -3.0), torch.ones(1, 1, SIZE, SIZE))
    transient = memory_with(Gain())
    weight = torch.ones(1, 1, SIZE, SIZE)
    taught(transient, Examples(draws(np.zeros(PIXELS)), misleading, weight, anew))
    # E[v | y] = -s y where x0 = y was measured, and the noise is independent of it
    assert float(transient.body.gain.detach()) == pytest.approx(1.0, abs=0.05)


def test_weights_made_anew_are_those_of_the_loss() -> None:
    m = np.linspace(-0.8, 0.8, PIXELS)

    def anew(images: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        weight = torch.zeros(len(images), 1, SIZE, SIZE)
        weight[:, :, 0] = 1.0
        return images, nothing_known().expand(len(images)), weight

    transient = memory_with(Shift())
    whole = torch.ones(1, 1, SIZE, SIZE)
    taught(transient, Examples(draws(m), nothing_known(), whole, anew))
    found = transient.body.m.detach().flatten().numpy()
    assert found[:3] == pytest.approx(m[:3], abs=0.05)
    assert found[3:].tolist() == [0.0] * 6


def test_the_composite_is_the_exact_denoiser_of_the_shifted_area() -> None:
    m = np.linspace(-0.8, 0.8, PIXELS)
    transient = memory_with(Shift())
    transient.body.m.data = image(m)
    transient.blank = False
    composite = CompositeDenoiser(WHITE, transient, nothing_known())
    exact = GaussianDenoiser(Gaussian(m, np.eye(PIXELS)))
    x_t = torch.randn(4, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    for t in (0.1, 0.5, 0.9):
        one, other = (d.estimate(x_t, torch.tensor(t)) for d in (composite, exact))
        torch.testing.assert_close(one.x0, other.x0, atol=1e-5, rtol=0)
        torch.testing.assert_close(one.eps, other.eps, atol=1e-5, rtol=0)


def test_em_takes_the_exact_course_and_the_evidence_never_falls() -> None:
    """E-step: guided samples of both memories. M-step: Eq. 7 on them. Three times over."""
    sigma, y = 0.7, np.array([1.0, -0.8, 0.0, 0.6, 0.0, 0.0, -1.0, 0.0, 0.9])
    measured = y != 0
    measurements = Measured(image(y), image(measured * 1.0), image(np.full(PIXELS, sigma)))
    transient = memory_with(Shift())
    exact, found, course = np.zeros(PIXELS), np.zeros(PIXELS), []
    for k in range(4):
        off = (y - found)[measured]
        course.append(float(-0.5 * (off**2).sum() / (1 + sigma**2)))
        assert found[measured] == pytest.approx(exact[measured], abs=0.1)
        assert np.abs(found[~measured]).max() < 0.2  # nothing but the chance of a thousand draws
        composite = CompositeDenoiser(WHITE, transient, measurements.known)
        samples = Sampler(MomentMatching(2), 24).draw(composite, measurements, 1024, seed=k)
        taught(transient, Examples(samples, measurements.known, torch.ones(1, 1, SIZE, SIZE)), k)
        found = transient.body.m.detach().flatten().double().numpy()
        exact = exact + np.where(measured, (y - exact) / (1 + sigma**2), 0.0)
    assert (np.diff(course) > 0).all()
    assert course[-1] > 0.2 * course[0]


# -- the M-step on outcomes ----------------------------------------------------------------------


def told(transform: OutcomeTransform, grid: Grid, outcomes: list[float]) -> None:
    """Outcomes of cells of which the memory and the process say one half, far from each other."""
    half = np.full(grid.n_cells, 0.5)
    features = transform.features(half, (half, np.zeros_like(half)), Observations(grid))
    new = [Observation.checked(grid, grid.at(i), y, y) for i, y in enumerate(outcomes)]
    transform.note(features, new)


@pytest.mark.parametrize("finds", [3, 10, 17])
def test_h_on_outcomes_learns_the_rate_exactly(finds: int) -> None:
    """With hardly any hyperprior the constant becomes the odds of a find; nothing else moves."""
    grid = Grid(5, 4)
    hyperprior = Hyperprior(np.zeros(12), np.eye(12))
    transform = OutcomeTransform(grid, strength=1e-7, hyperprior=hyperprior)
    told(transform, grid, [1.0] * finds + [0.0] * (20 - finds))
    judged = transform.update(20)
    assert judged is not None
    rate = finds / 20
    assert transform.weights[3] == pytest.approx(np.log(rate / (1 - rate)), abs=1e-4)
    assert np.abs(np.delete(transform.weights, 3)).max() < 1e-6
    assert judged.before == pytest.approx(np.log(0.5))
    assert judged.after == pytest.approx(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))


def test_habits_hold_h_back_as_a_normal_prior_does() -> None:
    """The constant solves finds - n p = strength (z - mean) / variance."""
    grid = Grid(5, 4)
    mean = np.zeros(12)
    mean[3] = 0.4
    transform = OutcomeTransform(grid, strength=2.0, hyperprior=Hyperprior(mean, 0.5 * np.eye(12)))
    told(transform, grid, [1.0] * 16 + [0.0] * 4)
    transform.update(20)
    z = transform.weights[3]
    p = 1 / (1 + np.exp(-z))
    assert 16 - 20 * p == pytest.approx(2.0 * (z - 0.4) / 0.5, abs=1e-5)
    assert 0.4 < z < np.log(4)
