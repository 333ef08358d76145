r"""A policy's chances, corrected by how its earlier forecasts turned out.

Each cell measured so far had a forecast, made before the measurement. They give a logistic
correction :math:`p' = \sigma(a + b\,\mathrm{logit}\,p)` with a near 0 and b near 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHIFT, SLOPE = 0.5, 0.25
"""Prior standard deviations of a (around 0) and b (around 1)."""


def _logit(p: Array) -> Array:
    q = np.clip(p, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(q / (1 - q)))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -40, 40))))


def fitted(forecast: Array, hits: Array) -> tuple[float, float]:
    """Most likely (a, b) given forecasts (n,) and hits (n,), 1 where target was found."""
    x = np.column_stack([np.ones(len(forecast)), _logit(forecast)])
    centre = np.array([0.0, 1.0])
    precision = np.diag([SHIFT**-2, SLOPE**-2])
    mean = centre.copy()
    for _ in range(20):
        p = _sigmoid(x @ mean)
        gradient = x.T @ (hits - p) - precision @ (mean - centre)
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + precision
        step = np.linalg.solve(hessian, gradient)
        mean = mean + step
        if np.abs(step).max() < 1e-8:
            break
    return float(mean[0]), float(mean[1])


def corrected(probability: Array, forecast: Array, hits: Array) -> Array:
    """The chances after the correction."""
    a, b = fitted(forecast, hits)
    return _sigmoid(a + b * _logit(probability))
