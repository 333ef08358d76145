"""Exploration weight and update times against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import InputError
from engram.pacing import UpdateSchedule, alpha


def test_alpha_follows_the_formula() -> None:
    assert alpha(0, 100) == 1.0
    assert alpha(50, 100) == pytest.approx(1 / 3)
    assert alpha(100, 100) == 0.0
    assert alpha(30, 100, a=0.2) == 0.0  # negative without the max
    assert alpha(10, 100, a=0.2) == pytest.approx(10 / 30)
    assert alpha(100, 100, a=5) == pytest.approx(400 / 600)


@given(st.integers(1, 500), st.sampled_from([0.2, 1.0, 5.0]))
def test_alpha_falls_from_one_and_stays_a_weight(budget: int, a: float) -> None:
    values = [alpha(t, budget, a) for t in range(budget + 1)]
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)
    assert all(0 <= v <= 1 for v in values)


@pytest.mark.parametrize(("budget", "a"), [(0, 1.0), (10, 0.0), (10, -1.0)])
def test_alpha_refuses_nonsense(budget: int, a: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        alpha(0, budget, a)


@pytest.mark.parametrize(("budget", "updates", "gamma"), [(200, 30, 1), (250, 30, 1), (400, 10, 2)])
def test_adaptive_times_are_sums_of_the_intervals(budget: int, updates: int, gamma: float) -> None:
    intervals = [budget / updates * (1 - i / (updates + 1)) ** gamma for i in range(updates)]
    expected = sorted({max(1, round(p)) for p in np.cumsum(intervals)} - {budget})
    times = UpdateSchedule("adaptive", updates, gamma).times(budget)
    assert list(times) == [p for p in expected if p < budget]
    assert times[0] == round(budget / updates)


def test_how_far_the_adaptive_schedule_reaches() -> None:
    """The intervals sum to B for gamma = 0 and to B (U + 3) / 2 (U + 1) for gamma = 1."""
    assert UpdateSchedule("adaptive", 20, gamma=0).times(200) == tuple(range(10, 200, 10))
    for budget, updates in ((200, 30), (250, 30), (300, 12)):
        last = UpdateSchedule("adaptive", updates, gamma=1).times(budget)[-1]
        assert last == round(budget * (updates + 3) / (2 * (updates + 1)))


def test_a_stretched_schedule_fills_the_budget() -> None:
    """All intervals grow alike, so that the last update would fall on the last measurement."""
    for budget, updates, gamma in ((200, 30, 1.0), (400, 10, 2.0)):
        intervals = np.array([(1 - i / (updates + 1)) ** gamma for i in range(updates)])
        points = budget * intervals.cumsum() / intervals.sum()
        times = UpdateSchedule("adaptive", updates, gamma, stretch=True).times(budget)
        assert list(times) == sorted({round(p) for p in points} - {budget})
        assert times[-1] > 0.95 * budget


@given(st.integers(60, 1000), st.integers(2, 20), st.floats(1, 3))
def test_adaptive_updates_come_faster_later(budget: int, updates: int, gamma: float) -> None:
    times = np.array(UpdateSchedule("adaptive", updates, gamma).times(budget))
    gaps = np.diff(np.concatenate([[0], times]))
    assert (gaps >= 1).all()
    assert (np.diff(gaps) <= 1).all()  # shrinking, up to rounding
    assert gaps[0] >= gaps[-1]


@given(
    st.sampled_from(["adaptive", "uniform"]),
    st.integers(1, 300),
    st.integers(0, 40),
    st.integers(1, 30),
    st.integers(1, 20),
)
def test_times_lie_inside_the_budget(
    kind: str, budget: int, updates: int, every: int, first: int
) -> None:
    times = UpdateSchedule(kind, updates, every=every, first=first).times(budget)
    assert list(times) == sorted(set(times))
    assert all(first <= t < budget for t in times)
    if kind == "adaptive":
        assert len(times) <= updates


def test_uniform_times() -> None:
    assert UpdateSchedule("uniform", every=20).times(100) == (20, 40, 60, 80)
    assert UpdateSchedule("uniform", every=20, first=30).times(100) == (40, 60, 80)


@pytest.mark.parametrize(
    "wrong", [{"kind": "hourly"}, {"every": 0}, {"updates": -1}, {"gamma": -1.0}]
)
def test_nonsense_schedules_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        UpdateSchedule(**wrong)  # type: ignore[arg-type]
