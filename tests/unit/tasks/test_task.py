from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engram import Grid, InputError, Task

TARGET = np.zeros((4, 6), bool)
TARGET[0:2, 0:3] = True
TARGET[3, 5] = True


def task(**changes: Any) -> Task:
    grid = changes.pop("grid", Grid(4, 6, 1, (2, 2)))
    content = TARGET.astype(np.float32)[None]
    return Task(**{"name": "toy", "grid": grid, "content": content, "target": TARGET, **changes})


def test_outcomes_are_shares_of_target_pixels() -> None:
    assert task().outcomes.tolist() == [1.0, 0.5, 0.0, 0.0, 0.0, 0.25]
    assert task().outcomes.dtype == np.float64
    assert task().targets == 3


def test_closed_cells_hold_no_targets() -> None:
    assert task(grid=Grid(4, 6, 1, (2, 2)).with_closed([(0, 0)])).targets == 2


def test_separate_targets_are_counted_apart() -> None:
    assert task().objects.max() == 2
    labels = np.zeros((4, 6), int)
    labels[0, 0] = 7
    assert task(facts={"objects": labels}).objects.max() == 7


def test_measuring_a_cell() -> None:
    item = task(noise=0.1).measure((0, 1))
    np.testing.assert_array_equal(item.content, [[[1, 0], [1, 0]]])
    assert (item.outcome, item.noise) == (0.5, 0.1)
    with pytest.raises(InputError, match="outside"):
        task().measure((2, 0))


def test_masks_of_numbers_are_read_as_yes_and_no() -> None:
    made = task(target=TARGET * np.uint8(255), content=TARGET[None] * np.float64(1))
    assert made.target.dtype == bool
    assert made.content.dtype == np.float32
    assert made.targets == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"content": np.zeros((4, 6), np.float32)}, "content has shape"),
        ({"target": np.zeros((6, 4), bool)}, "target mask has shape"),
        ({"content": np.full((1, 4, 6), np.nan, np.float32)}, "NaN or infinite"),
        ({"content": np.full((1, 4, 6), 2.0, np.float32)}, r"outside the grid's range \[0, 1\]"),
        ({"target": np.zeros((4, 6), bool)}, "no open cell contains any target"),
    ],
)
def test_wrong_tasks_are_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        task(**wrong)


def test_closed_cells_may_hold_anything_finite() -> None:
    content = TARGET.astype(np.float32)[None].copy()
    content[0, 2:, :2] = -9999.0
    assert task(content=content, grid=Grid(4, 6, 1, (2, 2)).with_closed([(1, 0)])).targets == 3
