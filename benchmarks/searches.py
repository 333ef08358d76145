"""Searches in which the truth is known, kept in files: what benchmarks of "what is left" look at.

A search does not depend on how it is judged, so it is run once and judged as often as needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from engram.campaign.remaining import SearchSoFar
from engram.detection import Detection
from engram.grid import Grid
from engram.memory.permanent import PermanentMemory
from engram.memory.scenes import scene
from engram.observation import Observation, Observations
from engram.policies import POLICIES, make_policy
from engram.tasks.balls import ball_task
from engram.tasks.base import Task

MOMENTS = tuple(sorted({*range(0, 50, 5), *range(50, 281, 10), *range(75, 250, 50)}))
"""Numbers of measurements after which the chances of all cells are kept."""

SUITES = ("balls", "rare", "scenes")

RARE_SIZES = ((24, 40), (32, 32), (20, 30), (16, 24), (40, 24))
"""Rows and columns of scenes with rare targets."""


@dataclass(frozen=True)
class Search:
    """cells, hits, forecast (B,): measured cells in order, 1 for a find, its chance beforehand;
    truth (n_cells,): target; chances: after t measurements, (n_cells,) chances of target;
    believed: after t measurements, the chance of detection that the policy reckoned with."""

    grid: Grid
    truth: NDArray[np.bool_]
    cells: NDArray[np.intp]
    hits: NDArray[np.float64]
    forecast: NDArray[np.float64]
    chances: dict[int, NDArray[np.float64]]
    believed: dict[int, float] = field(default_factory=dict)


def so_far_at(search: Search, t: int) -> tuple[SearchSoFar, int]:
    """What was known after t measurements, and how many targets were left.

    A search that takes blanks for truth does not count those that it missed as left; they are.
    """
    grid, believed = search.grid, Detection(search.believed.get(t, 1.0))
    seen = Observations(grid, detection=believed)
    for cell, hit in zip(search.cells[:t], search.hits[:t], strict=True):
        seen.add(Observation.checked(grid, grid.at(int(cell)), hit, hit))
    found = np.unique(search.cells[:t][search.hits[:t] > 0])
    left = search.truth.copy()
    left[found] = False
    known = SearchSoFar.of(seen, seen.available, search.forecast[:t], search.chances[t])
    return known, int(left.sum())


def scene_task(k: int) -> tuple[Task, int]:
    """Procedural scene k as a task (target where it is above one half), and a budget.

    Areas of 16 x 16, 24 x 24 and 32 x 32 cells. Of the first hundred, every third has less than
    8 % target; of the second every fourth has, and half have more than 15 %; the third hundred
    have less than 2 %; from 300 on, small areas are measured almost to the end, and every third
    has less than 2 % target. From 400 on, areas of ``RARE_SIZES`` have less than 1, 3 or 6 %.
    """
    rng = np.random.default_rng([91, k])
    if k >= 400:
        rows, cols = RARE_SIZES[k % 5]
        budget = (150, 220)[k % 2] if rows * cols > 500 else 160
        return _drawn(f"scene-{k}", rng, rows, cols, 0.0, (0.01, 0.03, 0.06)[k % 3]), budget
    size = (32, 32, 24, 32, 16)[k % 5] if k < 300 else (16, 24)[k % 2]
    budget = {16: 90, 24: 150, 32: (200, 280, 120)[k % 3]}[size] if k < 300 else 13 * size - 32
    low, high = 0.0, 0.65
    if 200 <= k < 300 or (k >= 300 and k % 3 == 0):
        high = 0.02
    elif k < 200 and k % (3 if k < 100 else 4) == 0:
        high = 0.08
    elif 100 <= k < 200 and k % 4 < 3:
        low = 0.15
    return _drawn(f"scene-{k}", rng, size, size, low, high), budget


def _drawn(
    name: str, rng: np.random.Generator, rows: int, cols: int, low: float, high: float
) -> Task:
    """The first scene whose share of target lies between ``low`` and ``high``."""
    while True:
        image = scene(rng, rows, cols)
        target = image > 0.5
        if low < target.mean() < high:
            return Task(name, Grid(rows, cols), image[None], target)


def rare_task(k: int) -> Task:
    """A map of 24 x 40 cells with few targets in patches; no scene of the fit is drawn so.

    Even k: 2 to 5 % target in three patches; odd k: 0.3 to 2 % in one to five. A patch grows
    from a cell by cells that touch it, drawn at random; patches may meet.
    """
    rng = np.random.default_rng([92, k])
    rows, cols = 24, 40
    share, patches = (
        (rng.uniform(0.003, 0.02), int(rng.integers(1, 6)))
        if k % 2
        else (rng.uniform(0.02, 0.05), 3)
    )
    target = np.zeros((rows, cols), bool)
    sizes = np.maximum(
        rng.multinomial(round(share * rows * cols), np.full(patches, 1 / patches)), 1
    )
    for size in sizes:
        free = np.argwhere(~target)
        patch = np.zeros_like(target)
        patch[tuple(free[rng.integers(len(free))])] = True
        while patch.sum() < size:
            edge = np.argwhere(binary_dilation(patch) & ~patch & ~target)
            if not len(edge):
                break
            patch[tuple(edge[rng.integers(len(edge))])] = True
        target |= patch
    return Task(f"rare-{k}", Grid(rows, cols), target[None].astype(np.float32), target)


@cache
def memory_of(policy: str, prior: str) -> PermanentMemory | None:
    """The memory a policy needs, loaded once."""
    if not POLICIES[policy].needs_memory:
        return None
    from engram.memory.library import load_memory

    return load_memory(prior)


def run(
    task: Task, policy: str, prior: str, budget: int, seed: int, told: float | str | None = None
) -> Search:
    """Search a task; the policy reckons with the chance of detection it is ``told``."""
    memory, options = memory_of(policy, prior), {}
    if policy == "auto":  # the same search without the particles, which only explain it
        policy, options = "em-ptdm", {"every": budget + 1}
    searcher = make_policy(
        policy, task.grid, budget, seed=seed, memory=memory, detection=told, **options
    )
    chances, believed = {}, {}
    for t in range(budget + 1):
        if t in MOMENTS:
            chances[t] = searcher.current_scores().probability
            believed[t] = searcher.observations.detection.chance
        if t < budget:
            cell = searcher.suggest()[0].cell
            searcher.observe(task.measure(cell, searcher.observations.cells.count(cell)))
    cells = np.array([task.grid.index(cell) for cell in searcher.observations.cells], np.intp)
    hits = (searcher.observations.outcomes > 0).astype(np.float64)
    forecast = np.array(searcher.log.forecast)
    return Search(task.grid, task.outcomes > 0, cells, hits, forecast, chances, believed)


def kept(
    suite: str,
    k: int,
    policy: str,
    prior: str,
    *,
    budget: int = 0,
    folder: Path | None = None,
    detection: float = 1.0,
    told: float | str | None = None,
) -> Search:
    """Search of ball task, rare map or scene k, from the folder if it is there.

    ``budget`` is that of a ball task or rare map; scenes bring their own. A visit finds a target
    that is there with the chance ``detection``; the policy is ``told`` that, another, or 'learn'.
    """
    file = None
    if folder is not None:
        label = Path(prior).stem if POLICIES[policy].needs_memory else "none"
        missing = "" if detection == 1 else f"-d{detection:g}-{detection if told is None else told}"
        file = folder / f"{suite}-{policy}-{label}{missing}-{k}.npz"
        if file.exists():
            return _read(file)
    if suite == "scenes":
        task, budget = scene_task(k)
    else:
        task = ball_task(k) if suite == "balls" else rare_task(k)
    task = replace(task, detection=Detection.read(detection))
    told = detection if told is None else told
    found = run(task, policy, prior, budget, k, told)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, found)
    return found


def _write(file: Path, search: Search) -> None:
    arrays = {f"p{t}": p.astype(np.float32) for t, p in search.chances.items()}
    arrays |= {f"d{t}": np.array(d) for t, d in search.believed.items()}
    arrays |= {"truth": search.truth, "order": search.cells, "y": search.hits}
    arrays |= {"size": np.array([search.grid.rows, search.grid.cols]), "forecast": search.forecast}
    half = file.with_suffix(".part.npz")
    np.savez_compressed(half, **arrays)
    half.rename(file)


def _read(file: Path) -> Search:
    with np.load(file) as a:
        chances = {
            int(name[1:]): a[name].astype(np.float64)
            for name in a.files
            if name[1:].isdigit() and name[0] == "p"
        }
        rows, cols = (int(v) for v in a["size"][:2])
        known = (Grid(rows, cols), a["truth"], a["order"], a["y"], a["forecast"], chances)
        believed = {
            int(name[1:]): float(a[name])
            for name in a.files
            if name[1:].isdigit() and name[0] == "d"
        }
        return Search(*known, believed)
