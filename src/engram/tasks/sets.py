"""Numbered tasks behind one small face: ``tasks.task(k)`` is the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._files import sha256_of
from engram.errors import InputError
from engram.grid import whole
from engram.tasks.balls import SIZE, ball_task
from engram.tasks.base import Task

TAGS = {
    "species": 78,
    "overhead": 79,
    "digits": 80,
    "tumour": 81,
    "maps": 82,
    "photographs": 83,
    "shapes": 84,
    "windows": 85,
    "noise": 86,
}
"""Kind of data -> number that keeps its draws apart from those of other kinds (balls: 77)."""


@dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks made from data files, or by a generator.

    make    : number -> task; the same number gives the same task, always
    size    : how many tasks there are; None = as many as one likes
    files   : the data files, in the order in which they count for ``sha256``
    options : everything but the files that decides what task k is, for result files
    """

    name: str
    description: str
    make: Callable[[int], Task] = field(repr=False)
    size: int | None = None
    files: tuple[Path, ...] = field(default=(), repr=False)
    options: dict[str, Any] = field(default_factory=dict)

    def task(self, k: int) -> Task:
        """Task number k, counted from 0."""
        number = whole(k)
        if number is None or number < 0:
            raise InputError(f"{self.name}: task {k!r} asked for; tasks are numbered from 0")
        if self.size is not None and number >= self.size:
            raise InputError(f"{self.name}: task {k} asked for; there are {self.size} (from 0)")
        return self.make(number)

    def numbers(self, count: int | None = None) -> range:
        """The first ``count`` task numbers (all of a finite set when None)."""
        if count is None:
            if self.size is None:
                raise InputError(f"{self.name} has no end; say how many tasks you want")
            return range(self.size)
        if count < 1:
            raise InputError(f"{count} tasks asked for; ask for at least 1")
        if self.size is not None and count > self.size:
            raise InputError(f"{self.name}: {count} tasks asked for; there are {self.size}")
        return range(count)

    def __len__(self) -> int:
        """Number of tasks; a set without end has no length."""
        if self.size is None:
            raise TypeError(f"{self.name} has no end; see its size (None)")
        return self.size

    @cached_property
    def sha256(self) -> str:
        """Hash of the data files, whatever their names; empty for generated tasks."""
        return sha256_of(self.files)


def task_rng(kind: str, seed: int, *path: int) -> np.random.RandomState:
    """NumPy's frozen legacy generator for (kind, seed, path)."""
    number = whole(seed)
    if number is None or not 0 <= number < 2**32:
        raise InputError(f"task seed {seed}: give a whole number from 0 to 2**32 - 1")
    return np.random.RandomState([TAGS[kind], number, *(p % 2**32 for p in path)])


def shuffled(kind: str, seed: int, count: int) -> NDArray[np.intp]:
    """Order in which the ``count`` entries of a file become tasks 0, 1, ..."""
    return np.asarray(task_rng(kind, seed).permutation(count), np.intp)


def ball_tasks(balls: int | None = None, size: int = SIZE) -> TaskSet:
    """The ball tasks (appendix M.1), without end; ``size`` cells per side."""
    number = balls or ("five to ten" if size == SIZE else "five to ten for every 32x32 cells,")
    return TaskSet(
        name="balls" if balls is None else f"balls-of-{balls}",
        description=f"{number} equal balls in a {size}x{size} area",
        make=lambda k: ball_task(k, balls, size),
        options={"balls": balls} if size == SIZE else {"balls": balls, "size": size},
    )
