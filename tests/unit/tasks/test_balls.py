from __future__ import annotations

import hashlib

import numpy as np
import pytest

from engram import InputError, ball_task

HASHES = {
    0: "868dafe2741f67c26b0a04ed5671ca6d5a99148f0d0e49f940e72b553c62ce59",
    1: "471360bbfdd74f5dccad63b2899b51201527b995613acede12f6806c7ce2775e",
    2: "a1f5aafdd1cff3f4083b58efde8512b8f0cead548907d25d2b8051b3dd2b791d",
    1000: "dc253f3957ba85d6e2ea9f2ef86f66f06a11c4780b59d2b32a7b35b2ad869917",
}


@pytest.mark.parametrize("k", HASHES)
def test_task_k_is_the_same_on_every_machine(k: int) -> None:
    labels = ball_task(k).objects.astype("<i4")
    assert hashlib.sha256(labels.tobytes()).hexdigest() == HASHES[k]


def test_tasks_follow_the_rules_of_the_appendix() -> None:
    counts, radii = set(), set()
    for k in range(60):
        task = ball_task(k)
        balls, radius = task.facts["balls"], task.facts["radius"]
        counts.add(balls)
        radii.add(radius)
        area = int(sum(y * y + x * x <= radius**2 for y in range(-4, 5) for x in range(-4, 5)))
        sizes = np.bincount(task.objects.ravel(), minlength=balls + 1)[1:]
        assert sizes.tolist() == [area] * balls  # whole, inside, no pixel shared
        assert task.targets == area * balls
        np.testing.assert_array_equal(task.content[0] > 0, task.target)
        centres = [np.argwhere(task.objects == i + 1).mean(axis=0) for i in range(balls)]
        gaps = [np.linalg.norm(a - b) for i, a in enumerate(centres) for b in centres[:i]]
        assert min(gaps) > 2 * radius
    assert counts == set(range(5, 11))
    assert radii == {3, 4}


def test_the_number_of_balls_can_be_fixed() -> None:
    assert [ball_task(3, balls=n).facts["balls"] for n in range(1, 11)] == list(range(1, 11))


@pytest.mark.parametrize("k", [-1, 1.5, "zero"])
def test_other_numbers_are_refused(k: int) -> None:
    with pytest.raises(InputError, match="numbered from 0"):
        ball_task(k)


@pytest.mark.parametrize("balls", [0, 11, 2.5])
def test_other_counts_are_refused(balls: int) -> None:
    with pytest.raises(InputError, match="between 1 and 10"):
        ball_task(0, balls=balls)


@pytest.mark.parametrize("size", [20, 64, 300])
def test_larger_areas_hold_balls_in_proportion(size: int) -> None:
    tasks = [ball_task(k, size=size) for k in range(8)]
    share = (size / 32) ** 2
    for task in tasks:
        balls, radius = task.facts["balls"], task.facts["radius"]
        assert (task.grid.rows, task.grid.cols) == (size, size)
        assert max(1, round(5 * share)) <= balls <= round(10 * share)
        area = int(sum(y * y + x * x <= radius**2 for y in range(-4, 5) for x in range(-4, 5)))
        assert np.bincount(task.objects.ravel())[1:].tolist() == [area] * balls
    few = tasks[0].objects
    assert np.array_equal(few, ball_task(0, size=size).objects)
    assert not np.array_equal(few, tasks[1].objects)


def test_balls_of_a_larger_area_lie_apart_and_everywhere() -> None:
    task = ball_task(1, size=128)
    centres = np.array(
        [np.argwhere(task.objects == i + 1).mean(axis=0) for i in range(task.facts["balls"])]
    )
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2) + 1e9 * np.eye(len(centres))
    assert gaps.min() > 2 * task.facts["radius"]
    quarters = {(int(y >= 64), int(x >= 64)) for y, x in centres}
    assert len(quarters) == 4


@pytest.mark.parametrize("size", [8, 1_000_000, 64.5, "wide"])
def test_sizes_that_cannot_be_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="size="):
        ball_task(0, size=size)


def test_more_balls_than_fit_are_refused() -> None:
    assert ball_task(0, balls=40, size=64).facts["balls"] == 40
    with pytest.raises(InputError, match="between 1 and 40"):
        ball_task(0, balls=41, size=64)
