r"""How good a search was.

* success rate (SR): queried cells with y > 0, over min(B, U)
* mass found: sum of y over the largest sum any B cells could give
* recall: queried cells with y > 0, over U
* gap closed: :math:`(SR - SR_{random}) / (1 - SR_{random})`
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.tasks.base import Task


def success_rate(outcomes: Sequence[float], budget: int, targets: int) -> float:
    """SR after ``budget`` queries of a task with ``targets`` target cells."""
    found = int((np.asarray(outcomes[:budget]) > 0).sum())
    return found / min(budget, targets)


def recall(outcomes: Sequence[float], budget: int, targets: int) -> float:
    """Share of all target cells found within ``budget`` queries."""
    return int((np.asarray(outcomes[:budget]) > 0).sum()) / targets


def mass_found(outcomes: Sequence[float], budget: int, task: Task) -> float:
    """Sum of outcomes over the best possible sum for that budget."""
    best = np.sort(task.outcomes[task.grid.open_cells])[::-1][:budget].sum()
    return float(np.sum(outcomes[:budget]) / best)


def gap_closed(rate: float, random_rate: float) -> float:
    """Share of the distance from random search to perfection that was closed."""
    return (rate - random_rate) / (1 - random_rate) if random_rate < 1 else 0.0


def expected_random_rate(task: Task, budget: int) -> float:
    """Expected SR of random search, exactly."""
    cells = len(task.grid.open_cells)
    return task.targets * budget / cells / min(budget, task.targets)


def objects_touched(task: Task, cells: Sequence[tuple[int, int]]) -> int:
    """Number of separate targets of which at least one pixel was measured."""
    seen: set[int] = set()
    for cell in cells:
        rows, cols = task.grid.block(cell)
        seen.update(int(v) for v in np.unique(task.objects[rows, cols]))
    return len(seen - {0})


def l2_distance(mean: NDArray[np.float32], task: Task, *, targets_only: bool = False) -> float:
    """Root mean squared distance of a posterior mean (C, H, W) to the truth."""
    squared = ((mean - task.content) ** 2).mean(axis=0)
    values = squared[task.target] if targets_only else squared
    return float(np.sqrt(values.mean()))


def forecast_distance(
    probability: NDArray[np.float64],
    task: Task,
    measured: NDArray[np.bool_],
    *,
    targets_only: bool = False,
) -> float:
    """Root mean squared distance of the forecast of every open cell to what it holds (0 or 1).

    probability, measured : (n_cells,); a measured cell is known, so its distance is 0.
    """
    truth = task.outcomes > 0
    squared = np.where(measured, 0.0, (probability - truth) ** 2)
    cells = task.grid.open_cells
    values = squared[cells][truth[cells]] if targets_only else squared[cells]
    return float(np.sqrt(values.mean()))


def calibration(
    forecasts: NDArray[np.float64], hits: NDArray[np.float64], bins: int = 10
) -> tuple[list[dict[str, float]], float]:
    """Reliability curve and expected calibration error of forecasts against 0/1 hits."""
    edges = np.linspace(0, 1, bins + 1)
    which = np.clip(np.digitize(forecasts, edges[1:-1]), 0, bins - 1)
    curve, error = [], 0.0
    for b in range(bins):
        inside = which == b
        if not inside.any():
            continue
        p, f, n = forecasts[inside].mean(), hits[inside].mean(), int(inside.sum())
        curve.append({"forecast": float(p), "frequency": float(f), "count": float(n)})
        error += n / len(forecasts) * abs(p - f)
    return curve, float(error)
