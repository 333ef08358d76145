r"""Proposition 1 on a toy where every step is exact: EM never lowers the evidence.

Fields :math:`x \sim \mathcal N(0, C)` are seen through random masks with noise. The E-step is
the Gaussian posterior of each field under the present prior, the M-step the covariance of
all posterior samples together (in the limit of many of them).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.testing import Gaussian, squared_exponential

SIGMA = 0.2
Array = NDArray[np.float64]


def measurements(seed: int, fields: int, size: int) -> list[tuple[Array, NDArray[np.bool_]]]:
    rng = np.random.default_rng(seed)
    truth = Gaussian(np.zeros(size**2), squared_exponential(size, size, 1.5))
    seen = []
    for x in truth.sample(fields, rng):
        mask = rng.random(size**2) < rng.uniform(0.2, 0.8)
        seen.append(((x + SIGMA * rng.standard_normal(x.shape)) * mask, mask))
    return seen


def log_evidence(cov: Array, seen: list[tuple[Array, NDArray[np.bool_]]]) -> float:
    total = 0.0
    for y, mask in seen:
        inner = cov[np.ix_(mask, mask)] + SIGMA**2 * np.eye(int(mask.sum()))
        _, logdet = np.linalg.slogdet(2 * np.pi * inner)
        total -= 0.5 * (logdet + y[mask] @ np.linalg.solve(inner, y[mask]))
    return total


def em_step(cov: Array, seen: list[tuple[Array, NDArray[np.bool_]]]) -> Array:
    prior = Gaussian(np.zeros(len(cov)), cov)
    moments = np.zeros_like(cov)
    for y, mask in seen:
        posterior = prior.given(y, np.full(len(y), SIGMA), mask)
        moments += posterior.cov + np.outer(posterior.mean, posterior.mean)
    return moments / len(seen)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("start", [0.3, 1.0, 10.0])
def test_em_raises_the_evidence_at_every_iteration(seed: int, start: float) -> None:
    seen = measurements(seed, fields=25, size=4)
    cov = start * np.eye(16)
    curve = [log_evidence(cov, seen)]
    for _ in range(30):
        cov = em_step(cov, seen)
        curve.append(log_evidence(cov, seen))
    assert (np.diff(curve) > -1e-8).all()
    assert curve[1] > curve[0] + 1
    assert curve[-1] > curve[0] + 20


def test_em_improves_the_posterior_of_a_new_field() -> None:
    """The learnt prior fills gaps better than the uninformative one it started from."""
    cov = np.eye(16)
    for _ in range(30):
        cov = em_step(cov, measurements(0, fields=200, size=4))
    rng = np.random.default_rng(9)
    truth = Gaussian(np.zeros(16), squared_exponential(4, 4, 1.5))
    errors = {"blank": 0.0, "learnt": 0.0}
    for x in truth.sample(40, rng):
        mask = rng.random(16) < 0.4
        for name, prior in (("blank", np.eye(16)), ("learnt", cov)):
            guess = Gaussian(np.zeros(16), prior).given(x, np.full(16, SIGMA), mask).mean
            errors[name] += float(((guess - x)[~mask] ** 2).sum())
    assert errors["learnt"] < 0.4 * errors["blank"]
