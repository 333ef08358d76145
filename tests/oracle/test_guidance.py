"""Guidance and sampler against the closed form of a Gaussian posterior.

The prior is a smooth field on 8 x 8 pixels, of which twelve are measured. Errors of the mean
are stated as a share of the prior's own error; spreads as a ratio to the posterior's.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engram.memory.denoiser import PASS, CountedDenoiser
from engram.posterior import (
    GUIDANCES,
    Amortised,
    Dps,
    Guidance,
    Measured,
    MomentMatching,
    Replacement,
    Sampler,
    pinned,
)
from engram.seeding import particle_noise
from engram.testing import FieldProblem, GaussianDenoiser, field_problem

Array = NDArray[np.float64]

EVEN = [8 * r + c for r in (1, 4, 6) for c in (0, 2, 5, 7)]
"""Twelve pixels spread over the area."""

STEPS, PARTICLES = 64, 512


def scattered(seed: int) -> list[int]:
    """Twelve pixels at random: clumps and gaps, the harder case."""
    return [int(i) for i in np.random.default_rng([seed, 1]).permutation(64)[:12]]


def drawn(
    problem: FieldProblem, guidance: Guidance, particles: int = PARTICLES, *, steps: int = STEPS
) -> torch.Tensor:
    denoiser = GaussianDenoiser(problem.prior, conditioned=isinstance(guidance, Amortised))
    return Sampler(guidance, steps).draw(denoiser, problem.measurements, particles, seed=1)


def measures(guidance: Guidance, pixels: list[list[int]], sigma: float) -> tuple[float, float]:
    """Mean error and mean spread over several problems."""
    problems = [field_problem(k, p, sigma=sigma) for k, p in enumerate(pixels)]
    results = [drawn(p, guidance) for p in problems]
    errors = [p.error(x) for p, x in zip(problems, results, strict=True)]
    spreads = [p.spread(x) for p, x in zip(problems, results, strict=True)]
    return float(np.mean(errors)), float(np.mean(spreads))


CASES = [
    # guidance, largest error and band of the spread: evenly measured, measured at random
    pytest.param(MomentMatching(8), 0.05, (0.90, 1.05), 0.06, (0.90, 1.05), id="mmps"),
    pytest.param(Amortised(), 0.05, (0.90, 1.05), 0.06, (0.90, 1.05), id="amortised"),
    pytest.param(Dps(), 0.15, (0.90, 1.15), 0.30, (0.95, 1.20), id="dps"),
    pytest.param(Replacement(), 0.45, (1.05, 1.45), 0.60, (1.05, 1.45), id="replacement"),
]


def test_every_guidance_has_a_case() -> None:
    assert {type(case.values[0]) for case in CASES} == set(GUIDANCES.values())


@pytest.mark.parametrize(("guidance", "error", "band", "error_random", "band_random"), CASES)
def test_posterior_mean_and_spread(
    guidance: Guidance,
    error: float,
    band: tuple[float, float],
    error_random: float,
    band_random: tuple[float, float],
) -> None:
    for pixels, limit, (low, high) in (
        ([EVEN] * 3, error, band),
        ([scattered(k) for k in range(3)], error_random, band_random),
    ):
        found, spread = measures(guidance, pixels, 0.05)
        assert found < limit
        assert low < spread < high


@pytest.mark.parametrize(
    "guidance", [case.values[0] for case in CASES], ids=lambda g: type(g).__name__
)
def test_a_particle_does_not_depend_on_its_neighbours(guidance: Guidance) -> None:
    problem = field_problem(0, EVEN, sigma=0.05)
    few, many = (drawn(problem, guidance, n, steps=16) for n in (4, 64))
    torch.testing.assert_close(few, many[:4], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("guidance", "depth"),
    [(MomentMatching(8), 0.3), (MomentMatching(8), 0.7), (Amortised(), 0.3), (Amortised(), 0.7)],
)
def test_refresh_leaves_the_posterior_invariant(guidance: Guidance, depth: float) -> None:
    problem = field_problem(3, EVEN, sigma=0.05)
    exact = problem.posterior.sample(PARTICLES, np.random.default_rng(0))
    particles = torch.from_numpy(exact.astype(np.float32)).reshape(-1, 1, 8, 8)
    denoiser = GaussianDenoiser(problem.prior, conditioned=isinstance(guidance, Amortised))
    sampler = Sampler(guidance, STEPS)
    renewed = sampler.refresh(
        denoiser, problem.measurements, particles, depth=depth, steps=40, seed=2
    )
    assert problem.error(renewed) < 0.05
    assert 0.9 < problem.spread(renewed) < 1.05
    moved = (renewed - particles).flatten(1).numpy()[:, ~problem.measured]
    assert moved.std() > 0.1  # other samples, not the same again
    unrelated = np.sqrt(2 * np.diag(problem.posterior.cov)[~problem.measured].mean())
    assert moved.std() < (0.6 if depth < 0.5 else 0.95) * unrelated  # nor strangers


def test_refresh_takes_in_a_new_measurement() -> None:
    """Particles that know eight pixels, refreshed from far back when twelve are known."""
    before = field_problem(3, EVEN[:8], sigma=0.05)
    after = field_problem(3, EVEN, sigma=0.05)
    old = torch.from_numpy(
        before.posterior.sample(PARTICLES, np.random.default_rng(0)).astype("f4")
    )
    renewed = Sampler(MomentMatching(8), STEPS).refresh(
        GaussianDenoiser(after.prior),
        after.measurements,
        old.reshape(-1, 1, 8, 8),
        depth=0.8,
        steps=48,
        seed=2,
    )
    assert after.error(renewed) < 0.06
    assert after.error(renewed) < 0.5 * after.error(old)


def one_step(guidance: Guidance, problem: FieldProblem, t: float) -> tuple[Array, Array]:
    """x_t (5, n) and what a guidance makes of it."""
    x_t = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    denoiser = GaussianDenoiser(problem.prior)
    found = guidance.estimate(denoiser, x_t, torch.tensor(t), problem.measurements).x0
    return x_t.flatten(1).double().numpy(), found.flatten(1).double().numpy()


@pytest.mark.parametrize("t", [0.3, 0.6, 0.9])
def test_one_step_of_mmps_is_the_exact_conditional_mean(t: float) -> None:
    """For a Gaussian, E[x0 | x_t, y] is known: x_t is a measurement of every pixel."""
    problem = field_problem(4, EVEN, sigma=0.3)
    x_t, found = one_step(MomentMatching(40), problem, t)
    a, s = np.cos(t * np.pi / 2), np.sin(t * np.pi / 2)
    every = np.ones(64, bool)
    for x, estimate in zip(x_t, found, strict=True):
        exact = problem.posterior.given(x / a, np.full(64, s / a), every).mean
        np.testing.assert_allclose(estimate, exact, atol=1e-3)


@pytest.mark.parametrize("t", [0.3, 0.6, 0.9])
def test_one_step_of_dps_is_its_formula(t: float) -> None:
    """x0 moves by strength (s^2 / a) J^T A^T (y - A x0) / (sigma^2 + s^2), J = dx0 / dx_t."""
    problem = field_problem(4, EVEN, sigma=0.3)
    x_t, found = one_step(Dps(strength=1.5), problem, t)
    a, s = np.cos(t * np.pi / 2), np.sin(t * np.pi / 2)
    cov = problem.prior.cov
    jacobian = a * cov @ np.linalg.inv(a**2 * cov + s**2 * np.eye(64))
    values = problem.measurements.values.double().numpy().ravel()
    for x, estimate in zip(x_t, found, strict=True):
        x0 = jacobian @ x
        residual = np.where(problem.measured, values - x0, 0.0) / (0.3**2 + s**2)
        exact = x0 + 1.5 * s**2 / a * jacobian.T @ residual
        np.testing.assert_allclose(estimate, exact, atol=2e-4)


def test_a_reverse_step_is_the_bridge_of_the_forward_process() -> None:
    r"""With eta = 1, x_{t'} given x_t and x0 has the mean and variance of the forward process:

    mean (a' (1 - r) x0 + sqrt(r) s'^2 x_t) / s^2 and variance s'^2 (1 - r) / s^2, r = (a/a')^2.
    """
    problem = field_problem(4, EVEN, sigma=0.3)
    nothing = Measured(*(torch.zeros(1, 1, 8, 8) for _ in range(3)))
    sampler = Sampler(Replacement(), 2, first=0.8)
    denoiser = GaussianDenoiser(problem.prior)
    found = sampler.draw(denoiser, nothing, 6, seed=2).flatten(1)
    noise = particle_noise(2, "particles", (), 6, (3, 1, 8, 8)).flatten(2).double()
    levels = [(np.cos(t * np.pi / 2), np.sin(t * np.pi / 2)) for t in (0.8, 0.4)]
    (a, s), (after, less) = levels
    x_t = noise[:, 0]
    x0 = problem.prior.denoised(x_t, torch.tensor(a), torch.tensor(s))
    kept = (a / after) ** 2
    mean = (after * (1 - kept) * x0 + np.sqrt(kept) * less**2 * x_t) / s**2
    x = mean + np.sqrt(less**2 * (1 - kept)) / s * noise[:, 1]
    exact = problem.prior.denoised(x, torch.tensor(after), torch.tensor(less))
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4)


def test_pinned_pixels_are_precision_weighted() -> None:
    """A guess of doubt 0.4 and a measurement of noise 0.3 meet where Gaussians multiply."""
    guess = torch.full((1, 1, 1, 2), 0.5)
    mask = torch.tensor([[[[1.0, 0.0]]]])
    measurements = Measured(torch.full((1, 1, 1, 2), -0.5), mask, torch.full((1, 1, 1, 2), 0.3))
    exact = (0.5 / 0.4**2 - 0.5 / 0.3**2) / (1 / 0.4**2 + 1 / 0.3**2)
    found = pinned(guess, measurements, 0.4)[0, 0, 0]
    assert found.tolist() == pytest.approx([exact, 0.5])


@pytest.mark.parametrize("name", list(GUIDANCES))
@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.3])
def test_measured_pixels_are_reproduced_within_their_noise(name: str, sigma: float) -> None:
    problem = field_problem(5, EVEN, sigma=sigma)
    particles = drawn(problem, GUIDANCES[name](), 16, steps=8)
    strayed = (particles - problem.measurements.values).abs() * problem.measurements.mask
    assert float(strayed.max()) <= 2 * sigma + 1e-6


NOISY = [
    pytest.param(MomentMatching(8), 0.05, id="mmps"),
    pytest.param(Dps(), 0.30, id="dps"),
    pytest.param(
        Amortised(),
        0.05,
        id="amortised",
    ),
    pytest.param(
        Replacement(),
        0.60,
        id="replacement",
    ),
]


@pytest.mark.parametrize(("guidance", "limit"), NOISY)
def test_noise_is_respected(guidance: Guidance, limit: float) -> None:
    """Noise of 0.3: the mean stays within its limit and measured pixels keep their spread."""
    problems = [field_problem(k, EVEN, sigma=0.3) for k in range(3)]
    results = [drawn(p, guidance) for p in problems]
    errors = [p.error(x) for p, x in zip(problems, results, strict=True)]
    spreads = [p.spread(x, measured=True) for p, x in zip(problems, results, strict=True)]
    assert np.mean(errors) < limit
    assert 0.75 < np.mean(spreads) < 1.2


def test_noisier_measurements_pull_less() -> None:
    """One pixel measured at 1 with growing noise: the mean follows the closed form to 0."""
    pulls = []
    for sigma in (0.05, 0.5, 1.0, 2.0):
        problem = field_problem(0, [27], sigma=sigma)
        measurements = Measured(
            torch.where(problem.measurements.mask > 0, 1.0, 0.0),
            problem.measurements.mask,
            problem.measurements.sigma,
        )
        truth = problem.prior.given_measured(measurements).mean[27]
        sampler = Sampler(MomentMatching(4), 32)
        draw = sampler.draw(GaussianDenoiser(problem.prior), measurements, 512, seed=0)
        found = float(draw[:, 0, 3, 3].mean())
        assert found == pytest.approx(truth, abs=0.1)
        pulls.append(found)
    assert pulls == sorted(pulls, reverse=True)
    assert pulls[0] > 0.95
    assert pulls[-1] < 0.35


def test_draws_count_their_evaluations() -> None:
    problem = field_problem(0, EVEN, sigma=0.05)
    for guidance, passes in ((Replacement(), 1), (Dps(), 2), (MomentMatching(2), 4)):
        denoiser = CountedDenoiser(GaussianDenoiser(problem.prior))
        Sampler(guidance, 5).draw(denoiser, problem.measurements, 2, seed=0)
        assert denoiser.evaluations == 5 * passes * 2 / PASS


def test_nothing_measured_gives_the_prior() -> None:
    problem = field_problem(0, EVEN, sigma=0.05)
    nothing = Measured(*(torch.zeros(1, 1, 8, 8) for _ in range(3)))
    for name, kind in GUIDANCES.items():
        denoiser = GaussianDenoiser(problem.prior, conditioned=name == "amortised")
        particles = Sampler(kind(), 48).draw(denoiser, nothing, 512, seed=0)
        assert float(particles.mean(0).abs().max()) < 0.2
        assert float(particles.std(0).mean()) == pytest.approx(1.0, abs=0.07)
