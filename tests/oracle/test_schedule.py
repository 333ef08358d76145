"""Identities of the noise schedule and of the three ways to speak of an estimate."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.memory.denoiser import (
    SIGMA_REF,
    CosineSchedule,
    Known,
    noise_to_weight,
    per_sample,
)
from engram.testing import tiny_memory

SCHEDULE = CosineSchedule()


@given(st.floats(0, 1))
def test_variance_is_preserved(t: float) -> None:
    level = torch.tensor(t)
    assert torch.allclose(SCHEDULE.a(level) ** 2 + SCHEDULE.s(level) ** 2, torch.ones(()))


def test_ends_of_the_schedule() -> None:
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    assert SCHEDULE.a(zero) == 1
    assert SCHEDULE.s(zero) == 0
    assert SCHEDULE.a(one) == 0  # nothing of the image is left
    assert SCHEDULE.s(one) == 1
    times = SCHEDULE.steps(7, 0.8)
    assert len(times) == 8
    assert times[-1] == 0
    assert (times.diff() < 0).all()


@given(st.floats(0, 1), st.integers(0, 99))
def test_image_noise_and_velocity_convert_into_each_other(t: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x0, eps = torch.randn(2, 3, 1, 4, 4, generator=generator)
    level = torch.full((3,), t)
    a, s = (f(per_sample(level, x0)) for f in (SCHEDULE.a, SCHEDULE.s))
    x_t = SCHEDULE.noised(x0, level, eps)
    v = a * eps - s * x0
    torch.testing.assert_close(x_t, a * x0 + s * eps)
    torch.testing.assert_close(a * x_t - s * v, x0, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(s * x_t + a * v, eps, rtol=1e-5, atol=1e-5)


def test_a_network_estimate_is_consistent_at_every_time() -> None:
    denoiser = tiny_memory(conditioned=False)
    x_t = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    t = torch.linspace(0, 1, 5)
    estimate = denoiser.estimate(x_t, t)
    rebuilt = SCHEDULE.noised(estimate.x0, t, estimate.eps)
    torch.testing.assert_close(rebuilt, x_t, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(estimate.x0[0], x_t[0])  # no noise: the image itself
    torch.testing.assert_close(estimate.eps[-1], x_t[-1])  # only noise: the noise itself
    one_time = denoiser.estimate(x_t, torch.tensor(0.25))
    torch.testing.assert_close(one_time.x0[1], estimate.x0[1], rtol=1e-4, atol=1e-5)


def test_weights_of_noisy_measurements() -> None:
    sigma = torch.tensor([0.0, SIGMA_REF, 2 * SIGMA_REF, 1e6])
    torch.testing.assert_close(noise_to_weight(sigma), torch.tensor([1.0, 0.5, 0.2, 0.0]))
    known = Known(torch.full((1, 1, 2, 2), 3.0), torch.tensor([[[[0.0, 0.5], [1.0, 0.0]]]]))
    assert known.channels[0, 0].tolist() == [[0.0, 1.5], [3.0, 0.0]]
    assert known.expand(4).channels.shape == (4, 2, 2, 2)
    assert known.expand(1) is known
