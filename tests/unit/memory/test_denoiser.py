from __future__ import annotations

import torch

from engram.memory.denoiser import Known, NetworkDenoiser
from engram.memory.permanent import fresh_network
from engram.memory.unet import UNetConfig
from engram.testing import Gaussian, GaussianDenoiser, squared_exponential, tiny_memory


def test_an_empty_mask_gives_the_unconditional_model_back() -> None:
    memory = tiny_memory()
    x, t = torch.randn(3, 1, 8, 8), torch.tensor(0.6)
    nothing = Known(torch.randn(1, 1, 8, 8), torch.zeros(1, 1, 8, 8))
    told, untold = memory.estimate(x, t, nothing), memory.estimate(x, t)
    assert torch.equal(told.x0, untold.x0)
    assert torch.equal(told.eps, untold.eps)


def test_measurements_change_a_conditioned_model_only() -> None:
    x, t = torch.randn(3, 1, 8, 8), torch.tensor(0.6)
    known = Known(torch.ones(1, 1, 8, 8), torch.ones(1, 1, 8, 8))
    for conditioned in (True, False):
        memory = tiny_memory(conditioned=conditioned)
        assert memory.conditioned is conditioned
        same = torch.equal(memory.estimate(x, t, known).x0, memory.estimate(x, t).x0)
        assert same is not conditioned


def test_times_may_be_one_or_one_per_sample() -> None:
    memory = tiny_memory()
    x = torch.randn(3, 1, 8, 8)
    one = memory.estimate(x, torch.tensor(0.3)).x0
    many = memory.estimate(x, torch.tensor([0.3, 0.3, 0.3])).x0
    torch.testing.assert_close(one, many)


def test_pure_noise_says_nothing() -> None:
    """At t = 1 the estimate is the mean: x_t itself does not matter."""
    memory = tiny_memory()
    one = torch.tensor(1.0)
    a, b = (memory.estimate(torch.randn(1, 1, 8, 8), one).x0 for _ in range(2))
    torch.testing.assert_close(a, b)


def test_colour_images() -> None:
    network = fresh_network(UNetConfig.for_image(3, conditioned=True, widths=(8,)), 0)
    denoiser = NetworkDenoiser(network).requires_grad_(False)
    known = Known(torch.rand(1, 3, 6, 6), torch.ones(1, 1, 6, 6))
    assert denoiser.estimate(torch.randn(2, 3, 6, 6), torch.tensor(0.5), known).x0.shape[1] == 3


def test_the_stand_in_denoises_exactly() -> None:
    """E[x0 | x_t] of a Gaussian minimises the squared error: other gains do worse."""
    prior = Gaussian(torch.zeros(16).double().numpy(), squared_exponential(4, 4, 1.0))
    denoiser = GaussianDenoiser(prior)
    generator = torch.Generator().manual_seed(0)
    factor = torch.linalg.cholesky(torch.from_numpy(prior.cov)).float()
    x0 = (torch.randn(4000, 16, generator=generator) @ factor.T).reshape(-1, 1, 4, 4)
    t = torch.tensor(0.5)
    x_t = denoiser.schedule.noised(x0, t, torch.randn(x0.shape, generator=generator))
    estimate = denoiser.estimate(x_t, t)
    best = (estimate.x0 - x0).square().mean()
    for gain in (0.9, 1.1):
        assert (gain * estimate.x0 - x0).square().mean() > best
    assert best < 0.9 * (0.7071 * x_t - x0).square().mean()
