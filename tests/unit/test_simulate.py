from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engram import Grid, Task, make_policy, simulate
from engram.policies import Policy, View
from engram.policies.base import flat_scores, log_likelihood
from engram.scores import Scores

TARGET = np.zeros((4, 8), bool)
TARGET[0, 0:3] = True
TASK = Task("toy", Grid(4, 8), TARGET.astype(np.float32)[None], TARGET)


class Clairvoyant(Policy):
    """Knows the truth: measures the targets first, from the last to the first."""

    name = "clairvoyant"

    def scores(self) -> Scores:
        truth = TASK.outcomes
        return flat_scores(self.grid, truth, truth + 0.001 * np.arange(self.grid.n_cells))

    def view(self) -> View:
        return View(self.current_scores(), mean=TASK.content)


def test_a_trace_keeps_what_happened() -> None:
    seen: list[tuple[int, int]] = []
    trace = simulate(
        Clairvoyant(TASK.grid, 5, seed=9),
        TASK,
        snapshots=(0, 3, 5, 99),
        progress=lambda t, found: seen.append((t, found)),
    )
    assert (trace.policy, trace.budget, trace.seed) == ("clairvoyant", 5, 9)
    assert trace.cells[:3] == [(0, 2), (0, 1), (0, 0)]
    assert trace.outcomes == [1, 1, 1, 0, 0]
    assert trace.found == 3
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)]
    assert [s.t for s in trace.snapshots] == [0, 3, 5]
    assert trace.distances() == [(0, 0.0), (3, 0.0), (5, 0.0)]
    assert trace.distances(targets_only=True)[0] == (0, 0.0)
    assert trace.terms[0]["probability"] == 1.0
    trace.snapshots[1] = replace(
        trace.snapshots[1], view=replace(trace.snapshots[1].view, shows="target")
    )
    assert [t for t, _ in trace.distances()] == [0, 5]  # a map of target is no picture


def test_measures_at_several_budgets() -> None:
    trace = simulate(Clairvoyant(TASK.grid, 5), TASK)
    assert trace.success_rate(2) == 1.0
    assert trace.success_rate() == 1.0
    assert trace.recall(2) == pytest.approx(2 / 3)
    assert trace.mass(1) == 1.0
    assert trace.objects() == 1


def test_evidence_is_the_likelihood_of_what_was_foreseen() -> None:
    trace = simulate(Clairvoyant(TASK.grid, 4), TASK)
    assert trace.forecast == [1, 1, 1, 0]
    assert trace.evidence == pytest.approx([np.log(0.99)] * 4)


def test_likelihood_of_fractions() -> None:
    assert log_likelihood(1, 0.5) == pytest.approx(np.log(0.5))
    assert log_likelihood(0.25, 0.8) == pytest.approx(0.25 * np.log(0.8) + 0.75 * np.log(0.2))
    assert log_likelihood(1, 0.0) == pytest.approx(np.log(0.01))
    best = max(np.linspace(0.01, 0.99, 99), key=lambda p: log_likelihood(0.3, float(p)))
    assert best == pytest.approx(0.3)


def test_random_search_finds_its_share() -> None:
    found = [simulate(make_policy("random", TASK.grid, 16, seed=s), TASK).found for s in range(100)]
    assert np.mean(found) == pytest.approx(1.5, abs=0.25)


def test_beliefs_are_compared_with_the_truth_on_the_way() -> None:
    trace = simulate(Clairvoyant(TASK.grid, 5), TASK, track=2)
    assert [point["t"] for point in trace.tracked] == [0, 2, 4]
    for point in trace.tracked:
        assert {point[name] for name in point if name != "t"} == {0.0}
    assert simulate(Clairvoyant(TASK.grid, 5), TASK).tracked == []
    blind = simulate(make_policy("random", TASK.grid, 3), TASK, track=1).tracked[0]
    assert blind.keys() == {"t", "forecast", "forecast_targets"}
