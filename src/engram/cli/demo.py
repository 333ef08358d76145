"""``engram demo``: three policies on a ball task, and a report of what they did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.memory.library import DEFAULT_MEMORY

if TYPE_CHECKING:
    from engram.bench.pool import Report
    from engram.policies.spec import PolicyChoice
    from engram.simulation import Trace

POLICIES = "em-ptdm,diffatd,random"


@dataclass(frozen=True)
class Search:
    """One search of the demo, by value, for a worker process."""

    choice: PolicyChoice
    task: int
    budget: int
    seed: int

    def __str__(self) -> str:
        return f"demo: {self.choice.label} on ball task {self.task}"


def run_search(job: Search, report: Report) -> Trace:
    """Search a ball task with one policy."""
    from engram.simulation import simulate
    from engram.tasks.balls import ball_task

    task = ball_task(job.task)
    policy = job.choice.build(task, job.budget, job.seed)
    return simulate(policy, task, snapshots=common.stages(job.budget), progress=report)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    task: Annotated[int, typer.Option(help="Number of the ball task, from 0.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the policies.")] = 0,
    budget: Annotated[int, typer.Option(help="Measurements each policy may make.")] = 250,
    prior: Annotated[str, typer.Option(help="Permanent memory: name or file.")] = DEFAULT_MEMORY,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Search a ball task with EM-PTDM, DiffATD and at random; write a report to look at."""
    from engram.bench.units import row_of
    from engram.memory.library import read_cards
    from engram.policies.spec import parse_policies
    from engram.report import write_report
    from engram.tasks.balls import ball_task

    common.check_folder(out)
    common.check_seed(seed)
    truth = ball_task(task)
    truth.grid.check_budget(budget)
    read_cards(prior)
    choices = parse_policies(POLICIES, preset="default", prior=prior)
    for choice in choices:
        choice.warn_of_preset()
    with common.keeps("nothing was written"):
        traces = _run([Search(choice, task, budget, seed) for choice in choices])
        facts = truth.facts
        notes = [
            f"Ball task {task}: {facts['balls']} balls of radius {facts['radius']}, "
            f"{truth.targets} target cells of {truth.grid.n_cells}.",
            f"Permanent memory: {prior}. Seed {seed}.",
        ]
        results = {
            "task": task,
            "seed": seed,
            "budget": budget,
            "prior": prior,
            "rows": [{"policy": trace.policy, **row_of(trace, [budget])} for trace in traces],
        }
        page = write_report(
            traces,
            out,
            title=f"Ball task {task}",
            notes=notes,
            beside={"results.json": printing.to_json(results) + "\n"},
        )
    common.show_report(traces, results, page, f"animation: {out / 'search.gif'}", json)


def _run(jobs: list[Search]) -> list[Trace]:
    """The traces in the order of the jobs, one process per search as far as cores reach."""
    from engram._threads import cores, set_threads
    from engram.bench.pool import run_pool

    set_threads(1)
    traces: dict[int, Trace] = {}
    with common.moving_bar(common.FOUND) as bar:
        bars = [bar.add_task(job.choice.label, total=job.budget, found=0) for job in jobs]

        def progress(position: int, taken: int, found: int) -> None:
            bar.update(bars[position], completed=taken, found=found)

        workers = min(cores(), len(jobs))
        for position, trace in run_pool(run_search, jobs, workers=workers, progress=progress):
            traces[position] = trace
    return [traces[i] for i in range(len(jobs))]
