"""Habits of h from searches with and without h: who forecasts what, and what was held out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from engram.policies.hyperprior import usual

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``benchmarks/habits.py``."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("habits_script", ROOT / "benchmarks/habits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "habits_script", module)
    spec.loader.exec_module(module)
    return module


def lessons(sign: float, count: int = 8) -> list[tuple[np.ndarray, np.ndarray]]:
    """Searches in which every feature speaks for a find, or against it."""
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=(60, len(usual().mean))) for _ in range(count)]
    return [(own, (sign * own.sum(axis=1) > 0).astype(float)) for own in rows]


def test_no_area_is_forecast_by_what_was_fitted_on_it(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"with h": lessons(1), "without h": lessons(1)}
    fits: list[tuple[str, list[int]]] = []
    forecasts: list[tuple[int, int]] = []

    def place(one: object) -> tuple[str, int]:
        return next((k, i) for k, own in found.items() for i, o in enumerate(own) if o is one)

    def fitted(used: list[object]) -> tuple[np.ndarray, np.ndarray]:
        (kind,) = {place(one)[0] for one in used}
        fits.append((kind, [place(one)[1] for one in used]))
        return np.full(len(usual().mean), len(fits)), np.eye(len(usual().mean))

    def forecast(one: object, mean: np.ndarray, covariance: np.ndarray) -> float:
        if mean[0] in range(1, len(fits) + 1):
            forecasts.append((place(one)[1], int(mean[0]) - 1))
        return 0.0

    monkeypatch.setattr(script, "fitted", fitted)
    monkeypatch.setattr(script, "forecast", forecast)
    rows = script.judged(found)
    assert len(rows) == 2 * 8
    assert len(forecasts) == 2 * len(rows)
    assert all(len(used) == 6 for _, used in fits)
    assert all(area not in fits[fit][1] for area, fit in forecasts)


def test_habits_of_the_other_kind_of_search_are_told_apart(script: ModuleType) -> None:
    rows = script.judged({"with h": lessons(1), "without h": lessons(-1)})
    for kind, other in (("with h", "without h"), ("without h", "with h")):
        own = [row for row in rows if row["searches"] == kind]
        assert all(row[kind] > max(row["no h"], row[other]) for row in own)
    first, second = script.table(rows, "note").splitlines()[2:4]
    assert first.startswith("| with h | 8 |")
    assert first.endswith("| below |")
    assert second.endswith("| above |")
