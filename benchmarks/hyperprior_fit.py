"""Learn which hyperprior the transient memory starts from, by searches in areas of a kind.

    python benchmarks/hyperprior_fit.py --searches DIR [--workers 2] [--without-h] [--write]
    python benchmarks/hyperprior_fit.py --searches DIR --maps TABLE ... --exclude SPECIES ...

Searches ``AREAS`` with the universal memory, or maps of records with the species memory
(searches already in DIR are read), keeps what h saw of every cell before it was measured, and
fits a normal distribution of h's weights over areas: the weights of each area given the
distribution, then the distribution given those weights and how well each is known (Laplace), in
turn. No ball task and no species named by ``--exclude`` is used. Every fourth area is held out;
printed is how well its outcomes are predicted, each from those before it, by no h, by h with a
plain ridge penalty, by h with the hyperprior for any area, and by h with this one. ``--write``
replaces the file of ``engram.policies.hyperprior`` and says in it what made it.

Searches run with h on, with the hyperprior shipped at the time, as users' searches do; so which
cells the new one is fitted on depends on the old one. ``--without-h`` fits on searches that
used no h, kept under names of their own; ``benchmarks/habits.py`` measures the difference. What h
sees of a cell does not depend on h, and each outcome is predicted from those before it, so the
likelihood of a search is the same whatever chose its cells. Copies are left out: h does not see
them, and the shipped hyperprior is older than they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from searches import memory_of, scene_task

from engram._threads import set_threads
from engram.bench.provenance import commit, made
from engram.grid import Grid
from engram.memory.datasets import species_maps
from engram.memory.library import read_card
from engram.memory.scenes import scene
from engram.origins import NOT_RECORDED
from engram.policies import make_policy
from engram.policies.base import log_likelihood
from engram.policies.emptdm import EmPtdm
from engram.policies.hyperprior import Hyperprior, file_of, usual
from engram.policies.lens import Lensed
from engram.policies.outcome_h import curvature, most_likely, tilted
from engram.simulation import simulate
from engram.tasks.base import Task
from engram.tasks.species_plan import SpeciesPlan

Array = NDArray[np.float64]
Lesson = tuple[Array, Array]
"""Rows (n, k) and hits (n,) of one search."""

AREAS = (
    *(("full", k) for k in range(140)),
    *(("any", k) for k in range(100, 148)),
)
"""Full: 32 x 32 cells, 250 measurements, 3 to 50 % target; any: those of ``searches``, other sizes,
budgets and shares too. The universal memory knows such scenes, so what h learns is how areas
differ, not what one memory gets wrong."""
MAPS = 64
"""Maps of records that are searched, of the size of the species tasks, 250 measurements each."""
ROUNDS, RIDGE, JITTER = 15, 5.0, 0.002


@dataclass(frozen=True)
class Source:
    """Where areas come from: procedural scenes, or maps of records but for some species.

    h : whether the searches use the transient memory
    """

    tables: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    h: bool = True

    @property
    def kind(self) -> str:
        return "map" if self.tables else "any"

    @property
    def memory(self) -> str:
        return "species" if self.tables else "universal"

    def areas(self) -> list[tuple[str, int]]:
        return [("map", k) for k in range(MAPS)] if self.tables else list(AREAS)

    @property
    def description(self) -> str:
        areas = f"{len(self.areas())} procedural scenes (AREAS)"
        if self.tables:
            names = ", ".join(table.name for table in self.tables)
            areas = f"{MAPS} maps of {names} without {', '.join(self.exclude)}"
        used = "h on, with the hyperprior shipped then" if self.h else "h off"
        return f"searches of em-ptdm without copies, {used}, in {areas}"

    def task(self, series: str, k: int) -> tuple[Task, int]:
        """Area k of a series, and a budget."""
        if series == "map":
            return map_task(self, k), 250
        return full_scene(k) if series == "full" else scene_task(k)


def full_scene(k: int) -> tuple[Task, int]:
    """Procedural scene k as a task, target where it is above one half; and a budget.

    The shipped hyperprior was fitted on two series of scenes, so there are two seeds.
    """
    rng = np.random.default_rng([92, k] if k < 80 else [991, k - 80])
    while True:
        image = scene(rng, 32, 32)
        if 0.03 < (image > 0.5).mean() < 0.5:
            return Task(f"scene-{k}", Grid(32, 32), image[None], image > 0.5), 250


@cache
def maps_of(source: Source) -> NDArray[np.uint8]:
    """(MAPS, 64, 64) maps as the species memory was trained on, but drawn anew."""
    stack = species_maps(
        source.tables, exclude=source.exclude, count=MAPS, plan=SpeciesPlan(), seed=93
    )
    return stack.images


def map_task(source: Source, k: int) -> Task:
    """Map k as a task: target is wherever something was recorded."""
    image, block = maps_of(source)[k], SpeciesPlan().block
    grid = Grid(*image.shape, 1, (block, block))
    return Task(f"map-{k}", grid, image[None].astype(np.float32) / 255, image > 0)


def lesson(job: tuple[Source, str, int, Path]) -> tuple[Lesson, str]:
    """What h saw in the search of one area, from the folder if it is there; and its commit."""
    source, series, k, folder = job
    file = folder / f"hyperprior-{series}-{k}{'' if source.h else '-without-h'}.npz"
    sha256 = read_card(source.memory).sha256
    if not file.exists():
        set_threads(1)
        task, budget = source.task(series, k)
        memory = memory_of("em-ptdm", source.memory)
        options = {"h": source.h, "every": budget + 1, "copies": False}
        policy = make_policy("em-ptdm", task.grid, budget, memory=memory, **options)
        simulate(policy, task)
        inside = policy.inner if isinstance(policy, Lensed) else policy
        assert isinstance(inside, EmPtdm)
        seen = inside.memory.transient.state()
        folder.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".part.npz")
        stamps = {"commit": np.array(commit()), "memory": np.array(sha256)}
        np.savez_compressed(half, rows=seen["rows"], hits=seen["hits"], **stamps)
        half.rename(file)
    with np.load(file) as arrays:
        if str(arrays.get("memory", sha256)) != sha256:
            raise SystemExit(f"{file} is a search of another {source.memory} memory; remove it")
        kept = str(arrays.get("commit", NOT_RECORDED))
        return (arrays["rows"], arrays["hits"]), kept


def fitted(lessons: Sequence[Lesson]) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of h's weights over areas."""
    size = lessons[0][0].shape[1]
    mean, covariance = np.zeros(size), np.eye(size) / RIDGE
    for _ in range(ROUNDS):
        precision = np.linalg.inv(covariance)
        found = [most_likely(rows, hits, mean, precision) for rows, hits in lessons]
        doubt = [
            np.linalg.inv(curvature(rows, tilted(rows, zeta), precision))
            for (rows, _), zeta in zip(lessons, found, strict=True)
        ]
        mean = np.mean(found, axis=0)
        spread = np.cov(np.array(found).T, bias=True)
        covariance = np.mean(doubt, axis=0) + spread + JITTER * np.eye(size)
    return mean, covariance


def prequential(lessons: Sequence[Lesson], mean: Array, precision: Array | None) -> float:
    """Mean log-likelihood of outcomes; h learns every fifth measurement, or never."""
    values = []
    for rows, hits in lessons:
        zeta = mean
        for t, (row, hit) in enumerate(zip(rows, hits, strict=True)):
            if precision is not None and t and t % 5 == 0:
                zeta = most_likely(rows[:t], hits[:t], mean, precision, zeta)
            values.append(log_likelihood(float(hit), float(tilted(row, zeta))))
    return float(np.mean(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--maps", type=Path, nargs="+", default=[], metavar="TABLE")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="SPECIES")
    parser.add_argument("--without-h", action="store_true", help="searches that use no h")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    source = Source(tuple(args.maps), tuple(args.exclude), h=not args.without_h)
    jobs = [(source, *area, args.searches) for area in source.areas()]
    with ProcessPoolExecutor(args.workers) as pool:
        kept = list(pool.map(lesson, jobs))
    lessons = [one for one, _ in kept]
    size = lessons[0][0].shape[1]
    nothing, ridge = np.zeros(size), RIDGE * np.eye(size)
    mean, covariance = fitted([one for k, one in enumerate(lessons) if k % 4])
    held_out, known = lessons[::4], usual()
    said = (
        f"without h {prequential(held_out, nothing, None):.4f}, "
        f"ridge {prequential(held_out, nothing, ridge):.4f}, "
        f"any hyperprior {prequential(held_out, known.mean, np.linalg.inv(known.covariance)):.4f}, "
        f"these {prequential(held_out, mean, np.linalg.inv(covariance)):.4f} nats a measurement"
    )
    print(said)
    if args.write:
        note = (
            f"held out: {said}; searches at {', '.join(sorted({made_at for _, made_at in kept}))}"
        )
        origin = made([source.memory], source.description, note)
        Hyperprior(*fitted(lessons)).write(file_of(source.kind), origin)


if __name__ == "__main__":
    main()
