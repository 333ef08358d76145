"""``engram bench paper``: every experiment of the paper in one command."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing

if TYPE_CHECKING:
    from engram.bench.runner import Executor
    from engram.reproduction.jobs import Clock, Job, LeftOut

LOG_SECONDS = 60.0
"""How often a run that is not on a terminal says how far it is."""


def paper(
    out: Annotated[Path, typer.Option(help="Folder for results, tables, figures and report.md.")],
    data_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder with mnist/, overhead/, species/ and extra/ (none: balls alone)."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few tasks each: minutes.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            help="Names of experiments, or EXPERIMENT:PART for one part, separated by commas."
        ),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="At most so many tasks for each experiment.")
    ] = None,
    executor: common.ExecutorOption = "local",
    workers: Annotated[
        int | None, typer.Option(help="Processes of one thread each (default: the cores).")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster (default: one on this machine, for this run).")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard results in the folder.")] = False,
) -> None:
    """Run the paper's experiments and set the results beside its own.

    Give the same command again to go on. Results of other options, other data or another
    version of the code are never mixed in.
    """
    from engram._threads import cores, set_threads
    from engram.bench.provenance import commit
    from engram.bench.runner import make_executor
    from engram.reproduction.catalogue import chosen
    from engram.reproduction.jobs import prepare
    from engram.reproduction.run import check_kind, mark_kind, write_report

    experiments, version = chosen(only, quick=quick), commit()
    folder = common.check_folder(out)
    runner = make_executor(executor, workers, address)
    set_threads(1)
    if not fresh:
        check_kind(folder, quick=quick)
    jobs, left_out = prepare(experiments, folder, data_root=data_root, quick=quick, tasks=tasks)
    mark_kind(folder, quick=quick)
    _name_missing(left_out, data_root)
    with common.keeps(f"finished units are kept in {folder}; the same command goes on"):
        _run(jobs, runner, min(workers or cores(), cores()), fresh)
    written = write_report(folder, version=version, quick=quick, left_out=left_out)
    for name in written.foreign:
        printing.remark(f"{name}: its results are of another version of the code and were left out")
    printing.say(
        f"{len(written.experiments)} experiments: {written.page}; tables, figures and small result "
        "files are in the folders tables, figures and digests beside it"
    )


def _name_missing(left_out: Sequence[LeftOut], data_root: Path | None) -> None:
    """Say exactly what is not run, and which files it needs."""
    if not left_out:
        return
    where = "give --data-root DIR" if data_root is None else f"not found below {data_root}"
    printing.remark(f"Left out for want of data ({where}):")
    for part in left_out:
        printing.remark(f"  {part.title}: {', '.join(part.files)}")


def _run(jobs: Sequence[Job], executor: Executor, workers: int, fresh: bool) -> None:
    """Run with a bar over all units and an estimate of the time left."""
    from engram.reproduction.run import run_jobs

    if not jobs:
        return
    with common.moving_bar("{task.fields[left]}") as bar:
        shown = bar.add_task("paper", total=None, left="")
        said = 0.0

        def progress(job: Job, clock: Clock) -> None:
            nonlocal said
            left = f"{job.title}, about {duration(clock.seconds_left)} left"
            bar.update(shown, total=clock.units, completed=clock.done, left=left)
            if not printing.err.is_terminal and time.monotonic() - said > LOG_SECONDS:
                printing.remark(f"{clock.done} of {clock.units} units done; {left}")
                said = time.monotonic()

        run_jobs(jobs, executor=executor, workers=workers, fresh=fresh, progress=progress)


def duration(seconds: float) -> str:
    """``90`` -> ``2 min``; hours from 100 minutes on."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
