from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import label

from engram import InputError
from engram.tasks.shapes import CELLS, COPIES, KINDS, shape_mask, shape_task, shape_tasks

HASHES = {
    0: "458e82d9572d52d4865702d6ee4d1883f381bc84f540f765dd4895e6f2335b33",
    1: "38838596c0cab8f9fc6b602920fbed738300ce8fb269bd197f612135cca38327",
    2: "2cf0b745367c889b6c2f1df06b85bc27ededd7712b33d181fb87a492a8a86e22",
    1000: "a4e5f575e4994a6d0df0c3ac3abc249d38708b36b86706bfab9e484f7001754f",
    2000: "e5665e57d73e5e63b5d76a97fe67819288e596a813aef6ba177e2c156f554970",
}


@pytest.mark.parametrize("k", HASHES)
def test_task_k_is_the_same_on_every_machine(k: int) -> None:
    labels = shape_task(k).objects.astype("<i4")
    assert hashlib.sha256(labels.tobytes()).hexdigest() == HASHES[k]


def views(mask: NDArray[np.bool_]) -> set[bytes]:
    """The shape in its eight views, as bytes."""
    turns = [np.rot90(view, n) for view in (mask, mask[:, ::-1]) for n in range(4)]
    return {str(turn.shape).encode() + turn.tobytes() for turn in turns}


def test_tasks_follow_the_rules() -> None:
    kinds, counts, ways = [], set(), []
    for k in range(2 * len(KINDS)):
        task = shape_task(k)
        copies = task.facts["copies"]
        kinds.append(task.facts["kind"])
        counts.add(copies)
        np.testing.assert_array_equal(task.content[0] > 0, task.target)
        assert 0.10 < task.target.mean() < 0.33
        _, apart = label(task.target, np.ones((3, 3)))
        assert apart == copies == task.objects.max()
        seen: set[bytes] = set()
        first: NDArray[np.bool_] | None = None
        for i in range(copies):
            rows, cols = np.nonzero(task.objects == i + 1)
            box = np.s_[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
            copy = task.objects[box] == i + 1
            first = copy if first is None else first
            assert str(copy.shape).encode() + copy.tobytes() in views(first)
            assert 0.9 * CELLS[0] <= copy.sum() <= 1.1 * CELLS[1]
            seen.add(str(copy.shape).encode() + copy.tobytes())
        assert task.facts["turned"] or len(seen) == 1
        ways.append(len(seen))
    assert sorted(kinds) == sorted(2 * KINDS)  # every kind once in each stretch
    assert kinds[: len(KINDS)] != kinds[len(KINDS) :]
    assert counts == set(range(COPIES[0], COPIES[1] + 1))
    assert max(ways) > 3


def test_kind_and_number_of_copies_can_be_fixed() -> None:
    tasks = shape_tasks(kind="anchor")
    assert {tasks.task(k).facts["kind"] for k in range(5)} == {"anchor"}
    assert [shape_task(3, copies=n).objects.max() for n in range(1, 9)] == list(range(1, 9))
    own = shape_task(4)
    np.testing.assert_array_equal(shape_task(4, own.facts["kind"]).target, own.target)


def test_objects_of_mixed_areas_are_all_different() -> None:
    for k in range(6):
        task = shape_task(k, "mixed")
        labels = task.facts["objects"]
        assert isinstance(labels, np.ndarray)
        views = []
        for number in range(1, labels.max() + 1):
            rows, cols = np.nonzero(labels == number)
            shape = (labels == number)[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
            turns = [np.rot90(part, i) for part in (shape, shape[:, ::-1]) for i in range(4)]
            views.append({(turn.shape, turn.tobytes()) for turn in turns})
        assert len(views) == task.facts["copies"] >= 5
        assert not any(a & b for i, a in enumerate(views) for b in views[i + 1 :])


def test_every_size_of_every_kind_can_be_drawn() -> None:
    for kind in KINDS:
        for cells in (CELLS[0], 31, 44, CELLS[1]):
            assert abs(shape_mask(kind, cells).sum() - cells) <= 0.1 * cells


@pytest.mark.parametrize("k", [-1, 1.5, "zero"])
def test_other_numbers_are_refused(k: int) -> None:
    with pytest.raises(InputError, match="numbered from 0"):
        shape_task(k)


@pytest.mark.parametrize("copies", [0, 9, 2.5])
def test_other_counts_are_refused(copies: int) -> None:
    with pytest.raises(InputError, match="between 1 and 8"):
        shape_task(0, copies=copies)


def test_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="kind='disc': choose one of L, T"):
        shape_task(0, "disc")
