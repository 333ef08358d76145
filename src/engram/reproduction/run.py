"""Run all experiments and write what they show: digests, tables, figures, one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram._files import read_json
from engram._writing import write_file, write_files
from engram.bench.journal import NAME as JOURNAL
from engram.bench.runner import RESULTS, Executor, read_results, run_bench
from engram.bench.tables import csv_text, latex, markdown
from engram.bench.units import Row
from engram.errors import InputError
from engram.reproduction.catalogue import EXPERIMENTS, source_of
from engram.reproduction.digest import digest
from engram.reproduction.experiments import Experiment
from engram.reproduction.figures import figures_of
from engram.reproduction.jobs import Clock, Job, LeftOut, folder_of
from engram.reproduction.kept import as_text
from engram.reproduction.page import page
from engram.reproduction.tables import tables_of

KIND = "paper.json"

Progress = Callable[[Job, Clock], None]
"""Called when a benchmark starts and after each of its units."""


def run_jobs(
    jobs: Sequence[Job],
    *,
    executor: Executor,
    workers: int,
    fresh: bool = False,
    progress: Progress | None = None,
) -> None:
    """Run what is missing of every benchmark, each in its folder."""
    clock = Clock(jobs, workers)
    kept = {job.title: set() if fresh else _finished(job) for job in jobs}
    for job in jobs:
        clock.skip(job, [unit for unit in job.plan.units() if unit.key in kept[job.title]])
    for job in jobs:
        if progress is not None:
            progress(job, clock)

        def note(done: int, row: Row, job: Job = job) -> None:
            clock.finished(job, row)
            if progress is not None:
                progress(job, clock)

        run_bench(job.plan, job.folder, executor=executor, fresh=fresh, progress=note)


def _finished(job: Job) -> set[str]:
    """Keys of the units that are in the journal of a benchmark, whatever run made them."""
    path = job.folder / JOURNAL
    if not path.exists():
        return set()
    keys = set()
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        try:
            keys.add(str(json.loads(line)["key"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return keys


def check_kind(out: Path, *, quick: bool) -> None:
    """Refuse a folder that holds the other kind of run, quick or full."""
    path = out / KIND
    if not path.exists():
        return
    kept = read_json(path)
    before = isinstance(kept, dict) and kept.get("quick") is True
    if before != quick:
        raise InputError(
            f"{out} holds a {'quick' if before else 'full'} run; choose another folder, or "
            "discard its results with --fresh"
        )


def mark_kind(out: Path, *, quick: bool) -> None:
    """Say of a folder which kind of run it holds."""
    write_file(out / KIND, json.dumps({"quick": quick}) + "\n")


@dataclass(frozen=True)
class Written:
    """What a report consists of."""

    page: Path
    experiments: tuple[str, ...]
    foreign: tuple[str, ...]


def write_report(
    out: Path, *, version: str, quick: bool, left_out: Sequence[LeftOut] = ()
) -> Written:
    """Digests, tables, figures and ``report.md`` of all results in ``out``.

    Results of another commit than ``version`` are not mixed in; their experiments are named.
    """
    digests: dict[str, dict[str, Any]] = {}
    figures: dict[str, list[str]] = {}
    foreign: list[str] = []
    for experiment in EXPERIMENTS.values():
        results = _results(out, experiment, quick)
        if not results:
            continue
        if any(found["commit"] != version for found in results.values()):
            foreign.append(experiment.name)
            continue
        made = digest(experiment, results, quick=quick)
        digests[experiment.name] = made
        write_digest(out / "digests", made)
        _write_tables(out / "tables", experiment, made)
        paths = figures_of(experiment, results, out / "figures")
        figures[experiment.name] = [path.relative_to(out).as_posix() for path in paths]
    text = page(digests, figures, left_out=left_out)
    write_file(out / "report.md", text)
    return Written(out / "report.md", tuple(digests), tuple(foreign))


def _results(out: Path, experiment: Experiment, quick: bool) -> dict[str, dict[str, Any]]:
    """Results of the parts that were run; those of the other kind of run are passed over."""
    source = source_of(experiment)
    found = {}
    for part in source.parts_of(quick=quick):
        folder = folder_of(out, source, part.name)
        if (folder / RESULTS).exists():
            results = read_results(folder)
            if results["options"]["at"] == list(part.at):
                found[part.name] = results
    return found


def write_digest(folder: Path, made: dict[str, Any]) -> None:
    """One small readable file per experiment."""
    write_file(folder / f"{made['experiment']}.json", as_text(made))


def read_digests(folder: Path) -> dict[str, dict[str, Any]]:
    """Digests by experiment, in the order of the experiments."""
    found = {}
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if path.exists():
            found[name] = read_json(path)
    return found


def _write_tables(folder: Path, experiment: Experiment, made: dict[str, Any]) -> None:
    for named in tables_of(experiment, made):
        forms = {
            "md": f"{named.caption}\n\n{markdown(named.table)}",
            "csv": csv_text(named.table),
            "tex": latex(named.table, named.caption),
        }
        write_files({folder / f"{named.name}.{end}": text for end, text in forms.items()})
