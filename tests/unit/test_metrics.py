from __future__ import annotations

import numpy as np
import pytest

from engram import Grid, Task, make_policy, simulate
from engram.metrics import (
    calibration,
    expected_random_rate,
    forecast_distance,
    gap_closed,
    l2_distance,
    mass_found,
    objects_touched,
    recall,
    success_rate,
)

TARGET = np.zeros((4, 8), bool)
TARGET[0:2, 0:3] = True
TARGET[3, 6:8] = True
TASK = Task("toy", Grid(4, 8, 1, (2, 2)), TARGET.astype(np.float32)[None], TARGET)
# outcomes of the cells: 1, 0.5, 0, 0 / 0, 0, 0, 0.5


def test_success_counts_cells_with_any_target() -> None:
    outcomes = [0.0, 0.5, 1.0, 0.0, 0.5]
    assert success_rate(outcomes, 2, targets=3) == 1 / 2
    assert success_rate(outcomes, 4, targets=3) == 2 / 3  # no more than U can be found
    assert success_rate(outcomes, 5, targets=3) == 1.0
    assert recall(outcomes, 2, targets=3) == 1 / 3
    assert recall(outcomes, 5, targets=3) == 1.0


def test_mass_is_a_share_of_the_best_possible() -> None:
    assert mass_found([0.5, 0.0], 2, TASK) == pytest.approx(0.5 / 1.5)
    assert mass_found([1.0, 0.5], 2, TASK) == 1.0
    assert mass_found([1.0, 0.5, 0.0, 0.5], 4, TASK) == 1.0
    closed = Task("toy", TASK.grid.with_closed([(0, 0)]), TASK.content, TARGET)
    assert mass_found([0.5], 1, closed) == 1.0


def test_gap_closed() -> None:
    assert gap_closed(0.5, 0.5) == 0.0
    assert gap_closed(1.0, 0.4) == 1.0
    assert gap_closed(0.7, 0.4) == pytest.approx(0.5)
    assert gap_closed(1.0, 1.0) == 0.0


def test_expected_rate_of_random_search_is_its_average() -> None:
    for budget in (2, 5):
        rates = [
            simulate(make_policy("random", TASK.grid, budget, seed=s), TASK).success_rate()
            for s in range(400)
        ]
        assert np.mean(rates) == pytest.approx(expected_random_rate(TASK, budget), abs=0.05)


def test_objects_touched_counts_each_target_once() -> None:
    assert objects_touched(TASK, []) == 0
    assert objects_touched(TASK, [(1, 0)]) == 0
    assert objects_touched(TASK, [(0, 0), (0, 1)]) == 1
    assert objects_touched(TASK, [(0, 0), (1, 3)]) == 2


def test_distance_to_the_truth() -> None:
    assert l2_distance(TASK.content, TASK) == 0.0
    blank = np.zeros_like(TASK.content)
    assert l2_distance(blank, TASK) == pytest.approx(np.sqrt(TARGET.mean()))
    assert l2_distance(blank, TASK, targets_only=True) == 1.0


def test_calibration_of_honest_and_of_bold_forecasts() -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(20000)
    hits = (rng.random(20000) < forecasts).astype(float)
    curve, error = calibration(forecasts, hits)
    assert len(curve) == 10
    assert sum(point["count"] for point in curve) == 20000
    assert error < 0.02
    _, bold = calibration(np.ones(100), np.zeros(100))
    assert bold == 1.0
    assert calibration(np.zeros(0), np.zeros(0)) == ([], 0.0)


def test_forecasts_are_judged_where_nothing_was_measured() -> None:
    half = np.full(8, 0.5)
    measured = np.zeros(8, bool)
    assert forecast_distance(half, TASK, measured) == 0.5
    assert forecast_distance(half, TASK, measured, targets_only=True) == 0.5
    measured[0] = True  # one of three targets, one of eight cells
    assert forecast_distance(half, TASK, measured) == pytest.approx((7 / 8) ** 0.5 / 2)
    assert forecast_distance(half, TASK, measured, targets_only=True) == pytest.approx(
        (2 / 3) ** 0.5 / 2
    )
    closed = Task("toy", TASK.grid.with_closed([(0, 1), (0, 2)]), TASK.content, TARGET)
    wrong = 1.0 - (TASK.outcomes > 0)
    wrong[[1, 2]] = 99.0  # closed cells do not count
    assert forecast_distance(wrong, closed, np.zeros(8, bool)) == 1.0
