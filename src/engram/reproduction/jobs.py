"""From experiments to benchmarks that can be run: data found, plans checked, costs guessed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engram.bench.runner import Plan
from engram.bench.suites import get_suite
from engram.bench.units import Row, Unit
from engram.errors import InputError
from engram.reproduction.experiments import NOISE, Experiment, Part
from engram.reproduction.memories import noise_memory
from engram.reproduction.sequence import SequencePlan, SequenceUnit

SECONDS = {"random": 0.002, "spread": 0.01, "gp": 0.02, "greedy": 0.25, "diffatd": 0.25}
"""Rough cost of an observation by policy, to weigh units in the estimate of the time left."""
OURS, PAPER_PRESET = 0.06, 1.0
LESSON, REHEARSAL = 0.3, 10.0
"""Rough cost of a training step between two tasks, and of what comes before the first."""


UNSEEN = 2000
"""First task of suites that make as many as are asked for: lower ones are for development."""


@dataclass(frozen=True)
class Job:
    """One benchmark of an experiment, ready to run in its folder."""

    experiment: Experiment
    part: Part
    plan: Plan
    folder: Path

    @property
    def title(self) -> str:
        return title_of(self.experiment, self.part)


@dataclass(frozen=True)
class LeftOut:
    """A part that cannot be run, and the files it lacks."""

    title: str
    files: tuple[str, ...]


def title_of(experiment: Experiment, part: Part) -> str:
    """What a part is called in messages."""
    return " ".join(filter(None, (experiment.name, part.name)))


def folder_of(out: Path, experiment: Experiment, part: str) -> Path:
    """Where the results of a part lie."""
    return out / experiment.name / part if part else out / experiment.name


def prepare(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    data_root: Path | None,
    quick: bool,
    tasks: int | None = None,
) -> tuple[list[Job], list[LeftOut]]:
    """Every benchmark that can be run, and those whose data is missing.

    ``tasks`` is the largest number of tasks (or sequences) of any benchmark.
    """
    if data_root is not None and not data_root.is_dir():
        raise InputError(f"no folder of data at {data_root}; give --data-root DIR, or leave it out")
    if tasks is not None and tasks < 1:
        raise InputError(f"tasks={tasks}: give at least 1")
    jobs, left_out = [], []
    for experiment in experiments:
        for part in experiment.parts_of(quick=quick):
            found, missing = _find(part.data, data_root)
            folder = folder_of(out, experiment, part.name)
            if missing:
                left_out.append(LeftOut(title_of(experiment, part), missing))
                continue
            if tasks is not None:
                part = replace(part, tasks=min(tasks, part.tasks))
            jobs.append(Job(experiment, part, plan_of(part, found, out), folder))
    return jobs, left_out


def _find(files: Iterable[str], root: Path | None) -> tuple[list[Path], tuple[str, ...]]:
    """Paths of the files that are there, names of those that are not."""
    names = tuple(files)
    if root is None:
        return [], names
    return [root / name for name in names], tuple(n for n in names if not (root / n).exists())


def plan_of(part: Part, data: Sequence[Path], out: Path) -> Plan:
    """The checked plan of a part; the memory of noise is made in ``out`` where it is asked for."""
    size = get_suite(part.suite).tasks(data, part.settings).size
    per_unit = part.length or 1
    first = UNSEEN if size is None else 0
    count = part.tasks if size is None else min(part.tasks, size // per_unit)
    if count < 1:
        raise InputError(f"{part.suite}: {size} tasks in {data}; at least {per_unit} are needed")
    plan = Plan.checked(
        part.suite,
        ",".join(part.policies),
        tasks=(first, first + count),
        budget=part.budget,
        at=part.at,
        seeds=part.seeds,
        prior=part.prior,
        settings=part.settings,
        data=data,
    )
    if any(choice.prior == NOISE for choice in plan.policies):
        noise = str(noise_memory(out).resolve())
        choices = (replace(c, prior=noise) if c.prior == NOISE else c for c in plan.policies)
        plan = replace(plan, policies=tuple(choices))
    if part.length:
        return SequencePlan(**vars(plan), length=part.length, lessons=part.lessons)
    return plan


def guess(unit: Unit) -> float:
    """Seconds a unit may take, to no great precision."""
    choice = unit.choice
    paper = choice.preset == "paper" and choice.needs_memory
    seconds = unit.budget * (PAPER_PRESET if paper else SECONDS.get(choice.name, OURS))
    if isinstance(unit, SequenceUnit):
        learning = REHEARSAL + LESSON * unit.lessons if unit.lessons else 0.0
        seconds = seconds * unit.length + learning * (unit.length - 1)
    return seconds


class Clock:
    """Estimates the time left over all jobs from what the finished units took."""

    def __init__(self, jobs: Sequence[Job], workers: int) -> None:
        self.jobs = {
            job.title: {_name(unit): guess(unit) for unit in job.plan.units()} for job in jobs
        }
        self.units = sum(len(units) for units in self.jobs.values())
        self.left = sum(sum(units.values()) for units in self.jobs.values())
        self.done, self._worked, self._began = 0, 0.0, time.monotonic()
        self._workers = workers

    def skip(self, job: Job, units: Iterable[Unit]) -> None:
        """Units that were finished by an earlier run."""
        for unit in units:
            self.left -= self.jobs[job.title].pop(_name(unit), 0.0)
            self.done += 1

    def finished(self, job: Job, row: Row) -> None:
        """A unit of this run is done."""
        seconds = self.jobs[job.title].pop((row["policy"], row["task"], row["seed"]), 0.0)
        self.left -= seconds
        self._worked += seconds
        self.done += 1

    @property
    def seconds_left(self) -> float:
        """Seconds until everything is done, as far as can be said."""
        if not self._worked:
            return max(self.left, 0.0) / self._workers
        return max(self.left, 0.0) * (time.monotonic() - self._began) / self._worked


def _name(unit: Unit) -> tuple[str, int, int]:
    return unit.label, unit.task, unit.seed
