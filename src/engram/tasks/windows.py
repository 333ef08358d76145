"""Windows of one mapped area: a backtest on data of one's own, with what was known beforehand.

An ``.npz`` file holds arrays (H, W) of the same size: what is sought (a mask, or counts: whatever
is above 0 is target), and any that are known beforehand, which become layers. Task k is a window
of the area, a few pixels smaller than it and placed by chance, so that the borders of cells fall
elsewhere in every task; it is cut into square cells, and a measurement says whether a cell holds
target.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import check_numbers, read_arrays
from engram._files import Paths, as_paths
from engram.errors import InputError
from engram.grid import Grid
from engram.layers import Layer
from engram.tasks.base import Task
from engram.tasks.sets import TaskSet, task_rng


def window_tasks(
    paths: Paths,
    target: str = "target",
    layers: str = "",
    *,
    cell: int = 4,
    spare: int = 4,
    seed: int = 0,
) -> TaskSet:
    """Tasks without end from one file.

    target : name of the array that is sought;  layers : those known beforehand, ``;`` between them,
        each with ``:more`` or ``:less`` where that is expected of it
    cell   : pixels per side of a cell;  spare : pixels by which a window may be placed elsewhere
    """
    files = as_paths(paths)
    if len(files) != 1:
        raise InputError(f"{len(files)} data files given; windows are cut from one .npz file")
    expected = dict(_expectation(text) for text in layers.split(";") if text.strip())
    names = list(expected)
    arrays = read_arrays(files[0], [target, *names])
    planes = {name: _plane(arrays[name], name, files[0]) for name in (target, *names)}
    shape = planes[target].shape
    for name, plane in planes.items():
        if plane.shape != shape:
            raise InputError(
                f"{files[0]}: array {name!r} has shape {plane.shape}, {target!r} {shape}; give "
                "arrays of the same height and width"
            )
    if cell < 1 or spare < 0:
        raise InputError(f"cell={cell}, spare={spare}: give at least 1 and 0 pixels")
    rows, cols = (max(0, side - spare) // cell for side in shape)
    if rows < 2 or cols < 2:
        raise InputError(
            f"{files[0]} has {shape[0]}x{shape[1]} pixels: with cell={cell} and spare={spare} "
            "fewer than 2x2 cells are left"
        )
    grid = Grid(rows * cell, cols * cell, cell=(cell, cell))

    def make(k: int) -> Task:
        rng = task_rng("windows", seed, k)
        top, left = (
            int(rng.randint(side - inside + 1))
            for side, inside in zip(shape, (grid.height, grid.width), strict=True)
        )
        cut = (slice(top, top + grid.height), slice(left, left + grid.width))
        held = grid.cells_of((planes[target][cut] > 0).astype(np.float32)).any(axis=(1, 2))
        found = grid.pixels(np.asarray(held).reshape(rows, cols))
        known = [
            Layer(name, _averages(grid, planes[name][cut]), expected=way)
            for name, way in expected.items()
        ]
        facts: dict[str, Any] = {"top": top, "left": left}
        content = found[None].astype(np.float32)
        task = Task(f"{files[0].stem}-{k}", grid, content, found, facts=facts)
        return task.told(known) if known else task

    make(0)
    return TaskSet(
        name=f"windows:{target}",
        description=f"{target} of {files[0].name} in windows of {grid.height}x{grid.width} pixels, "
        f"cells of {cell}x{cell}",
        make=make,
        files=tuple(files),
        options={
            "target": target,
            "layers": [f"{name}:{way}" if way else name for name, way in expected.items()],
            "cell": cell,
            "spare": spare,
            "seed": seed,
        },
    )


def _expectation(text: str) -> tuple[str, str]:
    """Name of a layer and what is expected of it: ``rock:more`` -> ("rock", "more")."""
    name, _, way = text.strip().partition(":")
    return name.strip(), way.strip()


def _plane(array: NDArray[Any], name: str, path: Path) -> NDArray[np.float64]:
    """(H, W) numbers, NaN where missing."""
    plane = np.array(check_numbers(array, f"{path}, array {name!r}"), np.float64)
    if plane.ndim != 2:
        raise InputError(f"{path}: array {name!r} has shape {plane.shape}; give (H, W)")
    return plane


def _averages(grid: Grid, plane: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_cells,) mean of the known pixels of every cell."""
    known = ~np.isnan(plane)
    total = grid.cells_of(np.where(known, plane, 0.0)).sum(axis=(1, 2))
    count = grid.cells_of(known.astype(np.float64)).sum(axis=(1, 2))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
