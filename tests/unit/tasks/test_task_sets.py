from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from engram import InputError, ball_task
from engram.tasks.sets import TaskSet, ball_tasks, shuffled, task_rng


def test_balls_are_a_set_without_end() -> None:
    tasks = ball_tasks()
    assert tasks.size is None
    assert tasks.sha256 == ""
    np.testing.assert_array_equal(tasks.task(7).target, ball_task(7).target)
    assert ball_tasks(balls=10).task(3).facts["balls"] == 10
    assert tasks.numbers(3) == range(3)
    with pytest.raises(InputError, match="has no end"):
        tasks.numbers()
    with pytest.raises(TypeError, match="no end"):
        len(tasks)


def test_a_finite_set_knows_its_end() -> None:
    tasks = TaskSet("three", "three balls", ball_task, size=3)
    assert len(tasks) == 3
    assert tasks.numbers() == range(3)
    with pytest.raises(InputError, match="task 3 asked for; there are 3"):
        tasks.task(3)
    with pytest.raises(InputError, match="4 tasks asked for; there are 3"):
        tasks.numbers(4)
    with pytest.raises(InputError, match="at least 1"):
        tasks.numbers(0)


@pytest.mark.parametrize("k", [-1, 0.5, "one"])
def test_other_numbers_are_refused(k: int) -> None:
    with pytest.raises(InputError, match="numbered from 0"):
        ball_tasks().task(k)


def test_the_hash_is_that_of_the_bytes_whatever_the_name(tmp_path: Path) -> None:
    first, second, moved = (tmp_path / name for name in ("a", "b", "c"))
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    moved.write_bytes(b"one")

    def hashed(*files: Path) -> str:
        return TaskSet("x", "", ball_task, files=files).sha256

    assert hashed(first) == hashed(moved) == hashlib.sha256(b"one").hexdigest()
    assert len({hashed(first), hashed(first, second), hashed(second, first)}) == 3


def test_the_order_of_pictures_is_frozen() -> None:
    assert shuffled("overhead", 0, 8).tolist() == [3, 0, 5, 4, 2, 1, 7, 6]
    assert sorted(shuffled("overhead", 1, 50)) == list(range(50))
    assert shuffled("overhead", 1, 50).tolist() != shuffled("tumour", 1, 50).tolist()


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5])
def test_other_seeds_are_refused(seed: int) -> None:
    with pytest.raises(InputError, match="whole number from 0"):
        task_rng("species", seed, 0)
