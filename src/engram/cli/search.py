"""``engram search``: find the targets of the user's own image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.errors import InputError
from engram.memory.library import DEFAULT_MEMORY

if TYPE_CHECKING:
    from engram.policies import Policy
    from engram.simulation import Trace
    from engram.tasks.base import Task


SEPARATE = "Goal: separate targets, each touched once; objects counts them, not SR."


def search(
    image: Annotated[Path, typer.Option(help="The area: PNG, JPEG, NPY or NPZ.")],
    target: Annotated[Path | None, typer.Option(help="Mask of the targets, same size.")] = None,
    above: Annotated[
        float | None, typer.Option(help="Or: pixels brighter than this, in the image's units.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Search policy, like gp or em-ptdm\\[h=off,a=5].")
    ] = "em-ptdm",
    goal: common.GoalOption = None,
    budget: Annotated[
        int | None, typer.Option(help="Measurements (default: a quarter of the cells).")
    ] = None,
    cell: Annotated[str, typer.Option(help="Pixels of a cell, H,W.")] = "1,1",
    prior: Annotated[str, typer.Option(help="Permanent memory: name or file.")] = DEFAULT_MEMORY,
    preset: Annotated[str, typer.Option(help="default, thorough or paper.")] = "default",
    seed: Annotated[int, typer.Option(help="Seed of the policy.")] = 0,
    device: Annotated[
        str, typer.Option(help="Where the prior's network runs: cpu, cuda or mps.")
    ] = "cpu",
    size: Annotated[
        str | None,
        typer.Option(
            help="Bring the image to H,W first (default: only cells of 1,1, to twice the prior)."
        ),
    ] = None,
    layer: common.LayerOption = None,
    belief: common.BeliefOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the report and results.json.")] = Path(
        "search"
    ),
    executor: common.WindowsOption = "local",
    address: common.AddressOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Search an image of yours as if it were unknown, and report how well it went.

    A cell is measured by uncovering its pixels. --cell counts in the image's own pixels (in those
    of --size where that is given); cells of one pixel are those of the image reduced to what the
    prior can imagine. What was done to the image is said in words.
    """
    from engram._threads import default_threads, set_threads
    from engram.bench.units import row_of
    from engram.estimates import at_once, estimate
    from engram.layer_files import read_layers
    from engram.memory.library import read_cards
    from engram.policies.spec import PolicyChoice, with_goal
    from engram.report import write_report
    from engram.tasks.raster import raster_task

    common.check_folder(out)
    common.check_seed(seed)
    if executor == "ray" and device != "cpu":
        raise InputError(f"device={device!r}: Ray's workers compute on cpu; choose --device cpu")
    choice = PolicyChoice.parse(with_goal(policy, goal), preset=preset, prior=prior)
    card = next(iter(read_cards(choice.prior).values()))
    pair = common.parse_pair(cell, "cell")
    raster = raster_task(
        image,
        target=target,
        above=above,
        cell=pair,
        channels=card.area_channels,
        limit=(2 * card.height, 2 * card.width),
        size=None if size is None else common.parse_pair(size, "size"),
    )
    task = raster.task
    cut = raster.cut
    span = (cut.size[0] / cut.cell[0], cut.size[1] / cut.cell[1])
    known = read_layers(task.grid, layer or (), belief, span=span)
    if known is not None:
        task = task.told(known, known.belief)
        choice.needs_layers(task)
    budget = max(1, len(task.grid.open_cells) // 4) if budget is None else budget
    task.grid.check_budget(budget)
    set_threads(default_threads(1))
    built = choice.build(task, budget, seed, device)
    whole = known is not None or bool(at_once(choice.preset, dict(choice.options)))
    printing.remark(estimate(choice.name, task.grid, budget, whole=whole).words)
    for note in raster.notes:
        printing.remark(note)
    with common.keeps("nothing was written"), common.windows_at(executor, address):
        trace = _run(built, task, choice.label)
        (height, width), (h, w) = raster.cut.size, raster.cut.cell
        area = f"{height}x{width} pixels in cells of {h}x{w}"
        about = f"Policy {choice.label}, preset {choice.preset}, prior {choice.prior}, seed {seed}."
        after = [SEPARATE] if dict(choice.options).get("goal") == "objects" else []
        notes = [f"{image.name}: {area}.", *raster.notes, about, *after]
        results = {
            "image": str(image),
            "target": None if target is None else str(target),
            "above": above,
            "prior": choice.prior,
            "preset": choice.preset,
            "seed": seed,
            "budget": budget,
            "cell": [h, w],
            "size": [height, width],
            "cells": [raster.cut.rows, raster.cut.cols],
            "notes": list(raster.notes),
            **({} if known is None else {"layers": known.about()}),
            "rows": [{"policy": choice.label, **row_of(trace, [budget])}],
            "visited": [
                {"cell": list(where), "outcome": y}
                for where, y in zip(trace.cells, trace.outcomes, strict=True)
            ],
        }
        page = write_report(
            [trace],
            out,
            title=f"Search of {image.name}",
            notes=notes,
            beside={"results.json": printing.to_json(results) + "\n"},
        )
    common.show_report([trace], results, page, f"figures: {out / 'results.json'}", json)


def _run(policy: Policy, task: Task, label: str) -> Trace:
    from engram.simulation import simulate

    with common.moving_bar(common.FOUND) as bar:
        shown = bar.add_task(label, total=policy.budget, found=0)
        return simulate(
            policy,
            task,
            snapshots=common.stages(policy.budget),
            progress=lambda taken, found: bar.update(shown, completed=taken, found=found),
        )
