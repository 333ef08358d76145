from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engram import ball_task, make_policy, simulate
from engram.bench.figures import calibration_figure, rate_figure
from engram.bench.tables import (
    cost_table,
    curve,
    interval,
    markdown,
    paired,
    paired_table,
    pooled_calibration,
    rate_table,
    summarise,
    trials,
)
from engram.bench.units import calibration_bins, row_of
from engram.metrics import calibration


def _row(policy: str, task: int, seed: int, rate: float, **more: Any) -> dict[str, Any]:
    return {
        "policy": policy,
        "task": task,
        "seed": seed,
        **{name: {"10": rate} for name in ("sr", "mass", "recall", "objects")},
        "random": {"10": 0.2},
        "targets": 20,
        "cells": 100,
        "hits": list(range(1, round(10 * rate) + 1)),
        "updates_accepted": 3,
        "updates_rolled_back": 1,
        "calibration": None,
        "seconds_per_observation": 0.5,
        "network_evaluations_per_observation": 2.0,
        "peak_rss_mb": 100.0 + task,
        **more,
    }


ROWS = [
    _row("a", 0, 0, 0.5),
    _row("a", 0, 1, 0.7),
    _row("a", 1, 0, 0.8),
    _row("a", 1, 1, 0.8),
    _row("b", 0, 0, 0.4),
    _row("b", 1, 0, 0.8),
    _row("b", 2, 0, 0.1),
]


def test_interval_is_students() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2
    assert found["mean"] == 2.5
    assert found["ci95"] == pytest.approx([2.5 - half, 2.5 + half], rel=1e-5)
    assert interval([1.0]) == {"mean": 1.0, "ci95": None, "sd": None, "n": 1}


def test_seeds_are_averaged_before_tasks_are_compared() -> None:
    cell = summarise(ROWS, [10])["policies"]["a"]["10"]
    assert cell["n"] == 2
    assert cell["mean"] == pytest.approx(0.7)
    assert cell["gap_closed"] == pytest.approx((0.7 - 0.2) / 0.8)
    assert cell["recall"]["mean"] == pytest.approx(0.7)


def test_differences_are_paired_over_common_tasks() -> None:
    found = paired(ROWS, "a", "b", 10)
    assert found["n"] == 2
    assert found["mean"] == pytest.approx((0.2 + 0.0) / 2)
    assert (found["wins"], found["losses"]) == (1, 0)
    assert paired(ROWS, "a", "absent", 10)["n"] == 0


def test_the_paired_test_is_students() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(2)
    a, b = rng.uniform(0, 1, (2, 12))
    rows = [_row(p, k, 0, float(x)) for p, xs in (("a", a), ("b", b)) for k, x in enumerate(xs)]
    assert paired(rows, "a", "b", 10)["p"] == pytest.approx(ttest_rel(a, b).pvalue)
    assert paired(rows, "a", "a", 10)["p"] is None
    assert paired(rows[:1], "a", "a", 10)["p"] is None


def test_trials_are_means_over_tasks_for_each_seed() -> None:
    found = trials(ROWS, "a", 10)
    assert found["n"] == 2
    assert found["mean"] == pytest.approx((0.65 + 0.75) / 2)
    assert found["sd"] == pytest.approx(np.std([0.65, 0.75], ddof=1))


def test_curves_of_sequences_are_those_of_their_later_tasks() -> None:
    steps = [_row("a", 0, 0, rate) for rate in (0.1, 0.5, 0.7)]
    whole = {**_row("a", 0, 0, 0.6), "steps": steps}
    assert curve([whole], "a", 10)[0, -1] == pytest.approx(0.6)


def test_pairing_removes_what_tasks_have_in_common() -> None:
    rng = np.random.default_rng(0)
    ease = rng.uniform(0, 0.8, 30)
    rows = [_row(p, k, 0, ease[k] + gain) for k in range(30) for p, gain in (("a", 0.1), ("b", 0))]
    found = paired(rows, "a", "b", 10)
    assert found["ci95"] == pytest.approx([0.1, 0.1])
    low, high = summarise(rows, [10])["policies"]["a"]["10"]["ci95"]
    assert high - low > 0.1


def test_cost_takes_the_mean_time_and_the_largest_memory() -> None:
    cost = summarise(ROWS, [10])["cost"]["b"]
    assert cost["seconds_per_observation"] == 0.5
    assert cost["peak_rss_mb"] == 102.0


def test_calibration_pools_to_the_same_curve_as_all_forecasts_together() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0, 1, 400)
    y = (rng.uniform(0, 1, 400) < p).astype(float)
    halves = [calibration_bins(list(p[s]), list(y[s])) for s in (slice(150), slice(150, None))]
    rows = [_row("a", k, 0, 0.5, calibration=half) for k, half in enumerate(halves)]
    pooled = pooled_calibration(rows, "a")
    assert pooled is not None
    expected, error = calibration(p, y)
    assert pooled["error"] == pytest.approx(error)
    for one, other in zip(pooled["curve"], expected, strict=True):
        assert one["forecast"] == pytest.approx(other["forecast"])
        assert one["frequency"] == pytest.approx(other["frequency"])
        assert one["count"] == other["count"]
    assert pooled_calibration(ROWS, "a") is None
    assert calibration_bins([], []) is None


def test_curves_agree_with_the_rates_of_a_real_search() -> None:
    traces = [simulate(make_policy("random", ball_task(k).grid, 120), ball_task(k)) for k in (0, 1)]
    rows = [
        {"policy": "random", "task": k, "seed": 0, "peak_rss_mb": 1.0, **row_of(t, [60, 120])}
        for k, t in enumerate(traces)
    ]
    y = curve(rows, "random", 120)
    chance = curve(rows, None, 120)
    for k, row in enumerate(rows):
        assert y[k, [59, 119]] == pytest.approx([row["sr"]["60"], row["sr"]["120"]])
        assert chance[k, [59, 119]] == pytest.approx([row["random"]["60"], row["random"]["120"]])
    assert rows[0]["objects_in_task"] == ball_task(0).facts["balls"]


def test_tables_are_whole(tmp_path: Path) -> None:
    summary = summarise(ROWS, [10])
    head, lines = rate_table(summary, [10])
    assert [line[0] for line in lines] == ["a", "b", "(random, expected)"]
    assert lines[0][1].startswith("0.700 ±")
    assert "(62%)" in lines[0][1]
    for table in ((head, lines), cost_table(summary), paired_table(summary, [10])):
        assert {len(line) for line in table[1]} == {len(table[0])}
        text = markdown(table).splitlines()
        assert {line.count("|") for line in text} == {len(table[0]) + 1}
    assert paired_table(summary, [10])[1][0][0] == "a - b"


def test_figures_are_pictures(tmp_path: Path) -> None:
    bins = calibration_bins([0.1, 0.9, 0.4], [0, 1, 1])
    rows = [_row(p, k, 0, 0.5, calibration=bins) for k in range(2) for p in ("random", "b")]
    path = rate_figure(rows, tmp_path / "sr.png", title="t", budget=10)
    other = calibration_figure(rows, tmp_path / "calibration.png", title="t")
    assert other is not None
    for file in (path, other):
        with Image.open(file) as image:
            assert image.width > 400
            assert np.asarray(image.convert("L")).std() > 5
    assert calibration_figure(ROWS, tmp_path / "none.png", title="t") is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["calibration.png", "sr.png"]
