"""``engram prior consolidate``: a new memory that has learnt from finished tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.cli import _tasks as given

REHEARSED = 192
"""Images the old memory draws once, to be rehearsed."""


@given.with_settings("species", "target")
def consolidate(
    prior: Annotated[str, typer.Argument(help="The memory to start from: name or file.")],
    name: Annotated[str, typer.Option(help="Name of the new memory.")],
    suite: given.SuiteName = "balls",
    tasks: Annotated[str, typer.Option(help="Numbers A:B of the tasks to learn from.")] = "0:20",
    budget: Annotated[
        int | None, typer.Option(help="Measurements a task (default: the suite's largest).")
    ] = None,
    data: given.Data = None,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 1000,
    batch: Annotated[int, typer.Option(help="Images a step.")] = 64,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 5e-4,
    rehearsal: Annotated[
        float, typer.Option(help="Share of images the old memory draws, against forgetting.")
    ] = 0.3,
    seed: Annotated[int, typer.Option(help="Seed of searches and training.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Weights file (default: in your library).")
    ] = None,
    samples: Annotated[int, typer.Option(help="Samples on the sheet.")] = 64,
    threads: Annotated[int | None, typer.Option(help="Threads (default: 2).")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a memory of that name.")] = False,
    *,
    settings: given.Settings,
) -> None:
    """Search tasks with a memory, and let a new memory learn from what was found.

    The old memory stays as it is; what it knows is rehearsed so that it is not forgotten.
    """
    from engram._threads import set_threads
    from engram.bench.suites import get_suite
    from engram.experience import lessons_of
    from engram.memory.consolidation import ConsolidationPlan
    from engram.memory.consolidation import consolidate as learn
    from engram.memory.library import load_memory
    from engram.memory.recipes import sample_memory, write_sheet

    common.check_seed(seed)
    path = common.weights_target(name, out, overwrite)
    first, end = common.parse_span(tasks, "tasks")
    family = get_suite(suite)
    made = family.tasks(data or (), settings)
    budget = budget or max(family.budgets)
    made.task(first).grid.check_budget(budget)
    plan = ConsolidationPlan(
        steps=steps,
        batch=batch,
        learning_rate=rate,
        rehearsal=rehearsal,
        rehearsed=REHEARSED,
        seed=seed,
    )
    set_threads(threads)
    memory = load_memory(prior)
    with common.keeps("nothing was written"):
        with common.moving_bar("success rate {task.fields[rate]:.3f}") as bar:
            shown = bar.add_task("searching", total=end - first, rate=float("nan"))
            lessons = lessons_of(
                memory,
                (made.task(k) for k in range(first, end)),
                budget,
                seed=seed,
                progress=lambda done, rate: bar.update(shown, completed=done, rate=rate),
            )
        with common.moving_bar("loss {task.fields[loss]:.4f}") as bar:
            shown = bar.add_task("learning", total=steps, loss=float("nan"))
            new = learn(
                memory,
                lessons,
                plan,
                name=name,
                progress=lambda step, _, loss: bar.update(shown, completed=step, loss=loss),
            )
    card = new.save(path)
    sheet = write_sheet(sample_memory(new, samples, seed=seed), path.with_suffix(".png"))
    printing.say(f"{card.name}: learnt from {len(lessons)} tasks, held-out loss {card.loss:.4f}")
    printing.say(f"weights {path}, card {path.with_suffix('.json')}, samples {sheet}")
