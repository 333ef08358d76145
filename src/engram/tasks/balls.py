"""Ball tasks (appendix M.1): equal balls, apart from each other, in a 32 x 32 area.

Five to ten balls of radius 3 or 4 (one radius per task), placed uniformly at random,
entirely inside and without overlap. Task k is the same on every machine: it is drawn from
NumPy's frozen legacy generator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.grid import Grid, whole
from engram.tasks.base import Task

SIZE = 32


def _place(rng: np.random.RandomState, count: int, radius: int) -> list[tuple[int, int]] | None:
    centres: list[tuple[int, int]] = []
    for _ in range(200):
        y, x = (int(v) for v in rng.randint(radius, SIZE - radius, 2))
        if all((y - v) ** 2 + (x - u) ** 2 > (2 * radius) ** 2 for v, u in centres):
            centres.append((y, x))
            if len(centres) == count:
                return centres
    return None


def ball_task(k: int, balls: int | None = None) -> Task:
    """Ball task number k; ``balls`` fixes the number of balls (appendix H)."""
    if whole(k) is None or k < 0:
        raise InputError(f"ball task {k!r}: tasks are numbered from 0")
    if balls is not None and (whole(balls) is None or not 1 <= balls <= 10):
        raise InputError(f"balls={balls!r}: between 1 and 10 fit into the area")
    rng = np.random.RandomState([77, int(k) % 2**32, balls or 0])
    count = int(rng.randint(5, 11)) if balls is None else balls
    radius = int(rng.randint(3, 5))
    centres = None
    while centres is None:
        centres = _place(rng, count, radius)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    labels: NDArray[np.int32] = np.zeros((SIZE, SIZE), np.int32)
    for i, (y, x) in enumerate(centres):
        labels[(yy - y) ** 2 + (xx - x) ** 2 <= radius**2] = i + 1
    facts = {"balls": count, "radius": radius, "objects": labels}
    content = (labels > 0).astype(np.float32)[None]
    return Task(f"balls-{k}", Grid(SIZE, SIZE), content, labels > 0, facts=facts)
