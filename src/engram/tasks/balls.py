"""Ball tasks (appendix M.1): equal balls, apart from each other, in a 32 x 32 area.

Five to ten balls of radius 3 or 4 (one radius per task), placed uniformly at random,
entirely inside and without overlap. Task k is the same on every machine: it is drawn from
NumPy's frozen legacy generator.

A task of another ``size`` has as many balls an area: five to ten for every 32 x 32 cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.grid import Grid, whole
from engram.tasks.base import Task

SIZE = 32
LARGEST = 4096
"""Cells per side of the largest task."""


def _place(rng: np.random.RandomState, count: int, radius: int) -> list[tuple[int, int]] | None:
    centres: list[tuple[int, int]] = []
    for _ in range(200):
        y, x = (int(v) for v in rng.randint(radius, SIZE - radius, 2))
        if all((y - v) ** 2 + (x - u) ** 2 > (2 * radius) ** 2 for v, u in centres):
            centres.append((y, x))
            if len(centres) == count:
                return centres
    return None


def _place_many(rng: np.random.RandomState, count: int, radius: int, size: int) -> NDArray[np.intp]:
    """Up to ``count`` centres (n, 2): each drawn from all places that are still free."""
    reach = 2 * radius
    yy, xx = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    near = yy**2 + xx**2 <= reach**2
    free = np.zeros((size + 2 * reach, size + 2 * reach), bool)  # a margin saves every border case
    inside = slice(reach + radius, reach + size - radius)
    free[inside, inside] = True
    centres = []
    for place in rng.permutation(size * size):
        y, x = divmod(int(place), size)
        if free[y + reach, x + reach]:
            free[y : y + 2 * reach + 1, x : x + 2 * reach + 1] &= ~near
            centres.append((y, x))
            if len(centres) == count:
                break
    return np.array(centres, np.intp).reshape(-1, 2)


def ball_task(k: int, balls: int | None = None, size: int = SIZE) -> Task:
    """Ball task number k; ``balls`` fixes the number of balls (appendix H)."""
    if whole(k) is None or k < 0:
        raise InputError(f"ball task {k!r}: tasks are numbered from 0")
    if whole(size) is None or not SIZE // 2 <= size <= LARGEST:
        raise InputError(f"size={size!r}: give {SIZE // 2} to {LARGEST} cells per side")
    share = (size / SIZE) ** 2
    most = max(1, int(10 * share))
    if balls is not None and (whole(balls) is None or not 1 <= balls <= most):
        raise InputError(f"balls={balls!r}: between 1 and {most} fit into the area")
    address = [77, int(k) % 2**32, balls or 0]
    rng = np.random.RandomState(address if size == SIZE else [*address, int(size)])
    count = int(rng.randint(5, 11)) if balls is None else balls
    radius = int(rng.randint(3, 5))
    if size == SIZE:
        centres = None
        while centres is None:
            centres = _place(rng, count, radius)
    else:
        wanted = max(1, round(count * share)) if balls is None else count
        centres = [(int(y), int(x)) for y, x in _place_many(rng, wanted, radius, size)]
    yy, xx = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    ball = yy**2 + xx**2 <= radius**2
    labels: NDArray[np.int32] = np.zeros((size, size), np.int32)
    for i, (y, x) in enumerate(centres):
        labels[y - radius : y + radius + 1, x - radius : x + radius + 1][ball] = i + 1
    facts = {"balls": len(centres), "radius": radius, "objects": labels}
    content = (labels > 0).astype(np.float32)[None]
    name = f"balls-{k}" if size == SIZE else f"balls-{k}-of-{size}"
    return Task(name, Grid(size, size), content, labels > 0, facts=facts)
