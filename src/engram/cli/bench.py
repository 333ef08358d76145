"""``engram bench``: compare policies on numbered tasks, with honest statistics."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.cli import _tasks as given
from engram.memory.library import DEFAULT_MEMORY
from engram.reproduction.command import paper

if TYPE_CHECKING:
    from engram.bench.runner import Executor, Plan

app = typer.Typer(
    no_args_is_help=True, help="Compare policies on numbered tasks, with honest statistics."
)

app.command()(paper)

POLICIES = "random,spread,gp,greedy,diffatd,em-ptdm"
"""What every benchmark compares unless told otherwise."""

LOG_SECONDS = 60.0
"""How often a run that is not on a terminal says how far it is."""


@app.command()
@given.with_settings()
def run(
    suite: given.SuiteName,
    data: given.Data = None,
    policies: Annotated[
        str, typer.Option(help="Separated by commas; options in brackets: em-ptdm\\[h=off,a=5].")
    ] = POLICIES,
    tasks: Annotated[str, typer.Option(help="Numbers A:B, B not included.")] = "0:20",
    budget: Annotated[
        int | None, typer.Option(help="Measurements (default: the suite's largest).")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="Budgets to report (default: the suite's).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trials per task, seeds 0 to K-1.")] = 1,
    preset: Annotated[str, typer.Option(help="default, thorough or paper.")] = "default",
    prior: Annotated[str, typer.Option(help="Permanent memory: name or file.")] = DEFAULT_MEMORY,
    workers: Annotated[
        int | None, typer.Option(help="Processes of one thread each (default: the cores).")
    ] = None,
    executor: common.ExecutorOption = "local",
    address: common.AddressOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder (default: runs/SUITE).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard results in the folder.")] = False,
    layer: common.LayerOption = None,
    belief: common.BeliefOption = None,
    noise_layers: Annotated[
        int, typer.Option(help="Layers of random numbers that every task is told as well.")
    ] = 0,
    track: Annotated[
        int,
        typer.Option(help="Compare beliefs with the truth every so many measurements; 0: never."),
    ] = 10,
    json: Annotated[bool, typer.Option("--json", help="Print results.json.")] = False,
    *,
    settings: given.Settings,
) -> None:
    """Run policies on tasks and write results.json; an interrupted run goes on.

    Give the same command again to go on. Results of other options, other data or another
    version of the code are never mixed in.
    """
    from engram._threads import cores, set_threads
    from engram.bench.known import Known
    from engram.bench.runner import Plan, make_executor

    plan = Plan.checked(
        suite,
        policies,
        tasks=common.parse_span(tasks, "tasks"),
        budget=budget,
        at=() if at is None else common.parse_numbers(at, "at"),
        seeds=seeds,
        preset=preset,
        prior=prior,
        settings=settings,
        data=data or (),
        known=Known(tuple(layer or ()), "" if belief is None else str(belief), noise_layers),
        track=track,
    )
    folder = common.check_folder(out or Path("runs") / suite)
    chosen = make_executor(executor, workers, address)
    if workers is not None and workers > cores() and address is None:
        printing.remark(f"workers: {cores()}, one for each core (not {workers})")
    set_threads(1)
    for choice in plan.policies:
        choice.warn_of_preset()
    with common.keeps(f"finished units are kept in {folder}; the same command goes on"):
        results = _run(plan, folder, chosen, fresh)
    with printing.acknowledges(f"the results are in {folder / 'results.json'}"):
        if json:
            printing.say_json(results)
            return
        _show(results)
        printing.say(f"Results: {folder / 'results.json'}; figures: engram bench report {folder}")


def _run(plan: Plan, folder: Path, executor: Executor, fresh: bool) -> dict[str, Any]:
    """Run with a bar that counts units and finds."""
    from engram.bench.runner import run_bench

    units = len(plan.units())
    with common.moving_bar(common.FOUND) as bar:
        shown = bar.add_task(plan.suite, total=units, found=0, visible=False)
        found, said = 0, time.monotonic()

        def progress(done: int, row: dict[str, Any]) -> None:
            nonlocal found, said
            found += len(row["hits"])
            bar.update(shown, completed=done, found=found, visible=True)
            if not printing.err.is_terminal and time.monotonic() - said > LOG_SECONDS:
                printing.remark(f"{done} of {units} units done, {found} found")
                said = time.monotonic()

        return run_bench(plan, folder, executor=executor, fresh=fresh, progress=progress)


def _unfinished(results: dict[str, Any]) -> str:
    """How much of a run there is, if not all."""
    if results["complete"]:
        return ""
    return f"unfinished: {results['units']['done']} of {results['units']['all']} units"


def _show(results: dict[str, Any]) -> None:
    from engram.bench.seen import seen_lines
    from engram.bench.tables import cost_table, paired_table, rate_table

    summary, at = results["summary"], results["options"]["at"]
    left = _unfinished(results)
    printing.show_table(
        rate_table(summary, at),
        f"{_title(results)}{f' ({left})' if left else ''}; ± half of 95 % interval",
    )
    printing.show_table(cost_table(summary))
    if summary["paired"]:
        printing.show_table(paired_table(summary, at), "paired over tasks")
    for line in seen_lines(results["options"]["memories"], results.get("seen")):
        printing.say(line)


def _title(results: dict[str, Any]) -> str:
    options = results["options"]
    first, end = options["tasks"]
    chosen = "".join(f", {name} {value}" for name, value in options["settings"].items())
    return f"{options['suite']} {first}:{end}{chosen}, prior {options['prior']}"


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Print the table of a run; write it as table.md and draw its curves beside it."""
    from engram._writing import write_file
    from engram.bench.figures import calibration_figure, rate_figure
    from engram.bench.provenance import command_of
    from engram.bench.runner import read_results
    from engram.bench.seen import seen_lines
    from engram.bench.tables import cost_table, markdown, paired_table, rate_table, summarise

    results = read_results(folder)
    options, rows = results["options"], results["rows"]
    summary = results["summary"] = summarise(rows, options["at"])
    place = folder if folder.is_dir() else folder.parent
    tables = [rate_table(summary, options["at"]), cost_table(summary)]
    if summary["paired"]:
        tables.append(paired_table(summary, options["at"]))
    source = (
        f"`{command_of(options)}` at {results['commit']}; ± is half of the 95 % interval over "
        "tasks."
    )
    left = _unfinished(results)
    if left:
        source += f" The run is {left}: not every policy has searched every task."
    seen = seen_lines(options["memories"], results.get("seen"))
    text = "\n".join([*map(markdown, tables), *(f"{line}\n" for line in seen), source, ""])
    write_file(place / "table.md", text)
    title = _title(results)
    drawn = [
        rate_figure(rows, place / "sr.png", title=title, budget=options["budget"]),
        calibration_figure(rows, place / "calibration.png", title=title),
    ]
    if json:
        printing.say_json(summary)
        return
    _show(results)
    for path in (place / "table.md", *drawn):
        if path is not None:
            printing.say(f"wrote {path}")
