from __future__ import annotations

import os
from pathlib import Path

import pytest

from engram import EngramError, InputError
from engram._threads import cores
from engram.bench.pool import Report, run_pool


def square(item: int, report: Report) -> tuple[int, str]:
    report(item, 2 * item)
    return item**2, os.environ["OMP_NUM_THREADS"]


def refuse(item: int, report: Report) -> int:
    raise InputError(f"item {item} is wrong")


def crash(item: int, report: Report) -> int:
    return item // 0


def die_once(marker: Path, report: Report) -> int:
    if not marker.exists():
        marker.touch()
        os._exit(9)
    return 1


def die(item: int, report: Report) -> int:
    os._exit(9)


def test_results_and_progress_come_back_by_position() -> None:
    seen: list[tuple[int, int, int]] = []
    items = [5, 6, 7]
    found = dict(run_pool(square, items, workers=2, progress=lambda *m: seen.append(m)))
    assert {i: value for i, (value, _) in found.items()} == {0: 25, 1: 36, 2: 49}
    assert {threads for _, threads in found.values()} == {"1"}
    assert sorted(seen) == [(0, 5, 10), (1, 6, 12), (2, 7, 14)]


def test_nothing_to_do_starts_nothing() -> None:
    assert list(run_pool(square, [], workers=2)) == []


def test_an_error_of_the_users_comes_back_as_it_is() -> None:
    with pytest.raises(InputError, match="item 4 is wrong"):
        list(run_pool(refuse, [4], workers=1))


def test_a_bug_comes_back_with_its_trace() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(run_pool(crash, [4], workers=1))


def test_the_item_of_a_lost_worker_is_done_again(tmp_path: Path) -> None:
    assert list(run_pool(die_once, [tmp_path / "been-here"], workers=1)) == [(0, 1)]


def test_an_item_that_kills_its_workers_is_given_up() -> None:
    with pytest.raises(EngramError, match="died 2 times"):
        list(run_pool(die, [1], workers=1))


def test_cores_are_known() -> None:
    assert cores() >= 1
