from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engram.grid import Grid
from engram.report.curves import moving_mean, touched_by_step
from engram.report.figures import _even
from engram.report.summary import (
    entries_of,
    headline,
    object_sizes,
    random_result,
    result_of,
    stages,
)
from engram.simulation import Snapshot, Trace
from engram.tasks.balls import ball_task
from engram.tasks.base import Task

Make = Callable[..., Trace]


def test_expectation_of_random_search_matches_many_runs(village: Task) -> None:
    budget, rng = 20, np.random.default_rng(0)
    expected = random_result(village, budget)
    cells = village.grid.open_cells
    labels = village.grid.cells_of(village.objects.astype(np.float32)).reshape(len(cells) + 3, -1)
    runs = [rng.permutation(cells)[:budget] for _ in range(4000)]
    found = np.mean([(village.outcomes[run] > 0).sum() for run in runs])
    touched = np.mean([len(set(labels[run].ravel()) - {0}) for run in runs])
    best = np.sort(village.outcomes[cells])[::-1][:budget].sum()
    mass = np.mean([village.outcomes[run].sum() for run in runs]) / best
    assert expected.found == pytest.approx(found, rel=0.03)
    assert expected.objects == pytest.approx(touched, rel=0.03)
    assert expected.mass == pytest.approx(mass, rel=0.03)
    assert expected.gap == 0


def test_object_sizes_of_balls() -> None:
    task = ball_task(3)
    assert len(object_sizes(task)) == task.facts["balls"]
    assert sum(object_sizes(task)) == task.targets


def test_an_object_counts_once_in_a_cell_of_several_pixels() -> None:
    target = np.zeros((4, 6), bool)
    target[0, 0:4] = target[3, 5] = True  # a bar in cells 0 and 1, a dot in cell 5
    task = Task("bar", Grid(4, 6, cell=(2, 2)), target[None].astype(np.float32), target)
    assert object_sizes(task) == [1, 2]


def test_closed_targets_do_not_count(village: Task) -> None:
    closed = village.grid.with_closed(
        [(r, c) for r in range(6) for c in range(16) if village.outcomes[r * 16 + c] and c < 8]
    )
    task = Task("closed", closed, village.content, village.target)
    assert len(object_sizes(task)) == len(object_sizes(village)) - 1 == 1


def test_results_agree_with_the_trace(plain: Make) -> None:
    trace = plain(budget=60)
    result = result_of(entries_of([trace])[0])
    assert result.found == trace.found
    assert result.success_rate == trace.success_rate()
    assert result.objects == touched_by_step(trace)[-1] == trace.objects()
    expected = random_result(trace.task, 60).success_rate
    assert result.gap == pytest.approx((result.success_rate - expected) / (1 - expected))


def test_labels_are_distinct(plain: Make) -> None:
    one, two = plain(), plain(seed=1)
    assert [e.label for e in entries_of([one])] == ["random"]
    assert [e.label for e in entries_of([one, two])] == ["random (seed 0)", "random (seed 1)"]
    assert len({e.label for e in entries_of([one, one, two])}) == 3


def test_headline_puts_the_best_first_and_is_honest(plain: Make) -> None:
    task = ball_task(3)
    best = Trace("em-ptdm", task, 10, 0)
    best.cells = [task.grid.at(int(i)) for i in np.flatnonzero(task.outcomes)[:10]]
    best.outcomes = [1.0] * 10
    worst = Trace("gp", task, 10, 0)
    worst.cells = [task.grid.at(int(i)) for i in np.flatnonzero(task.outcomes == 0)[:10]]
    worst.outcomes = [0.0] * 10
    lead, others = headline(entries_of([worst, best]))
    assert lead.startswith(f"em-ptdm found 10 of the {task.targets} target cells with 10 meas")
    assert "times as many as" in lead
    assert others == [
        f"gp found 0 with 10 measurements: fewer than the {task.targets * 10 / 1024:.1f} "
        "that random search finds on average."
    ]


def test_stages_are_even_and_end_with_the_last(dressed: Make) -> None:
    trace = dressed()
    view = trace.snapshots[0].view
    trace.snapshots = [Snapshot(t, view) for t in range(0, 41, 4)]
    assert [s.t for s in stages(trace, 3)] == [0, 20, 40]
    assert len(stages(trace, 99)) == 11


def test_moving_mean() -> None:
    assert moving_mean([1, 2, 3, 4], 2).tolist() == [1, 1.5, 2.5, 3.5]
    assert moving_mean([1, 2, 3, 4], 9).tolist() == [1, 1.5, 2, 2.5]


def test_the_sheet_takes_four_different_stages(dressed: Make) -> None:
    view = dressed().snapshots[0].view

    def taken(*times: int) -> list[int]:
        return [s.t for s in _even([Snapshot(t, view) for t in times], 80)]

    assert taken(0, 5, 20, 40, 80) == [5, 20, 40, 80]
    assert taken(*range(0, 81, 8)) == [8, 32, 56, 80]
    assert taken(0, 80) == [0, 80]
    assert taken() == []
