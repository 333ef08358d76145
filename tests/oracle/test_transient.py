r"""The h-network against a known h-transform.

For a Gaussian prior and fixed measurements y the optimal correction is the difference of two
linear denoisers, that of the posterior and that of the prior. Trained by Eq. 7 on exact
posterior samples, h has to approach it: no loss can be below the one of the exact
conditional denoiser, and h = 0 has the loss of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.memory.denoiser import Denoiser, Known, per_sample
from engram.memory.transient import (
    AdaptPlan,
    CompositeDenoiser,
    Examples,
    HNetwork,
    ShiftedDenoiser,
    TransientMemory,
)
from engram.posterior import Measured, Replacement, Sampler
from engram.testing import FieldProblem, GaussianDenoiser, field_problem

SIZE = 4


def samples(problem: FieldProblem, count: int, seed: int) -> Tensor:
    exact = problem.posterior.sample(count, np.random.default_rng(seed))
    return torch.from_numpy(exact.astype(np.float32)).reshape(count, 1, SIZE, SIZE)


@dataclass
class Taught:
    problem: FieldProblem
    prior: GaussianDenoiser
    transient: TransientMemory
    losses: list[float]

    @property
    def known(self) -> Known:
        return self.problem.measurements.known

    @property
    def composite(self) -> CompositeDenoiser:
        return CompositeDenoiser(self.prior, self.transient, self.known)


def adapted(problem: FieldProblem, rates: tuple[float, ...], steps: int = 70) -> Taught:
    prior = GaussianDenoiser(problem.prior)
    transient = TransientMemory(HNetwork(1, (16,), seed=0), told=False)
    count, losses = 1024, []
    for k, rate in enumerate(rates):
        known = problem.measurements.known.expand(count)
        examples = Examples(samples(problem, count, k), known, torch.ones(count, 1, SIZE, SIZE))
        plan = AdaptPlan(m_steps=steps, batch=64, learning_rate=rate)
        losses += transient.adapt(prior, examples, plan, seed=0, path=k)
    return Taught(problem, prior, transient, losses)


@pytest.fixture(scope="module")
def taught() -> Taught:
    problem = field_problem(0, [0, 6, 9, 14], sigma=0.05, size=SIZE)
    return adapted(problem, (5e-3, 5e-3, 1e-3))


def test_h_reaches_the_known_transform(taught: Taught) -> None:
    generator = torch.Generator().manual_seed(5)
    x0 = samples(taught.problem, 3000, 99)
    t = 0.02 + 0.97 * torch.rand(len(x0), generator=generator)
    eps = torch.randn(x0.shape, generator=generator)
    x_t = taught.prior.schedule.noised(x0, t, eps)
    tt = per_sample(t, x_t)
    a, s = taught.prior.schedule.a(tt), taught.prior.schedule.s(tt)
    ideal = GaussianDenoiser(taught.problem.prior, conditioned=True)

    def measured(denoiser: Denoiser, known: Known | None = None) -> tuple[float, Tensor]:
        with torch.no_grad():
            estimate = denoiser.estimate(x_t, t, known)
        error = a * (estimate.eps - eps) - s * (estimate.x0 - x0)
        return float(error.square().mean()), estimate.x0

    none, x0_none = measured(taught.prior)
    best, x0_best = measured(ideal, taught.known)
    learnt, x0_learnt = measured(taught.composite)
    assert best < learnt < none
    assert (learnt - best) / (none - best) < 0.12
    away = (x0_learnt - x0_best).square().mean().sqrt()
    assert away < 0.25 * (x0_none - x0_best).square().mean().sqrt()


def test_samples_drawn_through_h_alone_follow_the_posterior(taught: Taught) -> None:
    """Algorithm 1 with no guidance at all: h carries everything that is known of y."""
    nothing = Measured(*(torch.zeros(1, 1, SIZE, SIZE) for _ in range(3)))
    sampler = Sampler(Replacement(), 48, first=0.98)
    drawn = sampler.draw(taught.composite, nothing, 400, seed=1)
    unguided = sampler.draw(taught.prior, nothing, 400, seed=1)
    assert taught.problem.error(unguided) > 0.8
    assert taught.problem.error(drawn) < 0.2
    assert 0.8 < taught.problem.spread(drawn) < 1.3


def test_the_loss_falls(taught: Taught) -> None:
    assert np.mean(taught.losses[-40:]) < 0.7 * np.mean(taught.losses[:10])


def test_before_any_adaptation_the_composite_is_the_prior() -> None:
    problem = field_problem(1, [0, 5], sigma=0.05, size=SIZE)
    prior = GaussianDenoiser(problem.prior)
    transient = TransientMemory(HNetwork(1, (16,), seed=0), told=False)
    composite = CompositeDenoiser(prior, transient, problem.measurements.known)
    x, t = torch.randn(3, 1, SIZE, SIZE), torch.tensor(0.5)
    assert torch.equal(composite.estimate(x, t).x0, prior.estimate(x, t).x0)
    transient.blank = False  # h itself is zero as well, not only skipped
    torch.testing.assert_close(composite.estimate(x, t).x0, prior.estimate(x, t).x0)
    torch.testing.assert_close(composite.estimate(x, t).eps, prior.estimate(x, t).eps)


def test_adaptation_is_repeatable_and_can_be_rolled_back() -> None:
    problem = field_problem(2, [0, 5], sigma=0.05, size=SIZE)
    one, two = (adapted(problem, (5e-3,), steps=5) for _ in range(2))
    x, t = torch.randn(3, 1, SIZE, SIZE), torch.tensor(0.5)

    def estimate(taught: Taught) -> Tensor:
        with torch.no_grad():
            return taught.composite.estimate(x, t).x0

    assert one.losses == two.losses
    assert torch.equal(estimate(one), estimate(two))
    before, kept = estimate(one), one.transient.state()
    examples = Examples(
        samples(problem, 64, 7), one.known.expand(64), torch.ones(64, 1, SIZE, SIZE)
    )
    one.transient.adapt(one.prior, examples, AdaptPlan(m_steps=3), seed=0, path=9)
    assert not torch.equal(estimate(one), before)
    one.transient.restore(kept)
    assert torch.equal(estimate(one), before)
    born = TransientMemory(HNetwork(1, (16,), seed=0), told=False)
    one.transient.restore(born.state())
    assert one.transient.blank


def test_a_shift_moves_the_mean_by_the_noise_level_and_keeps_x_t() -> None:
    """x_t = a x0 + s eps holds for the shifted estimate; at full noise the shift is whole."""
    problem = field_problem(0, [1, 6], sigma=0.1, size=SIZE)
    prior = GaussianDenoiser(problem.prior)
    shift = torch.full((1, 1, SIZE, SIZE), 0.3)
    shifted = ShiftedDenoiser(prior, shift)
    x_t = torch.randn(2, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    for t in (torch.tensor(0.4), torch.tensor(0.9)):
        a, s = prior.schedule.a(t), prior.schedule.s(t)
        base, moved = prior.estimate(x_t, t), shifted.estimate(x_t, t)
        assert torch.allclose(moved.x0 - base.x0, s * shift.expand_as(x_t), atol=1e-5)
        assert torch.allclose(a * moved.x0 + s * moved.eps, x_t, atol=1e-4)
