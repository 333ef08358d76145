"""``engram prior distil``: a memory that says the average of its eight views in one evaluation."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.errors import InputError
from engram.memory.library import memory_path


def distil(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The memory: name or file.")],
    source: Annotated[
        list[str], typer.Argument(help="What it was trained on, as in 'engram prior train'.")
    ],
    key: Annotated[str | None, typer.Option(help="Array of an .npz file.")] = None,
    affine: Annotated[float, typer.Option(help="Random moves of the images, 0 to 1.")] = 0.0,
    collage: Annotated[float, typer.Option(help="Share of collages of several, 0 to 1.")] = 0.0,
    cell: Annotated[int, typer.Option(help="Pixels per side of a cell (photo, map).")] = 2,
    sees: Annotated[
        str, typer.Option(help="What it imagines: pixels, or cells of a photo or map.")
    ] = "pixels",
    exclude: Annotated[
        list[str] | None, typer.Option(help="Target species that no map may show (map).")
    ] = None,
    count: Annotated[int, typer.Option(help="Number of maps (map).")] = 6000,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 2000,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 3e-4,
    mixed: common.MixedOption = False,
    seed: Annotated[int, typer.Option(help="Seed of the batches.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where to save progress (default: beside the weights).")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads (default: 2).")] = None,
) -> None:
    """Teach a memory the average of its eight views, so that answers cost one of them.

    The memory stays as it is; the network that has learnt is kept beside it, in
    NAME.symmetric.safetensors. An interrupted training goes on when the command is given again.
    """
    from engram._threads import set_threads
    from engram.memory.distilling import PLAN
    from engram.memory.distilling import distil as learn
    from engram.memory.library import load_memory
    from engram.memory.recipes import cell_source_from, note_of, source_from

    common.check_seed(seed)
    if not 0 < rate < 1:
        raise InputError(f"rate={rate}: give a number between 0 and 1")
    path = memory_path(name)
    checkpoint = checkpoint or path.with_suffix(".distilling")
    memory = load_memory(str(path))
    card = memory.card
    if sees == "pixels" and len(source) > 1:
        raise InputError(f"{len(source)} sources given; a memory of pixels is trained on one")
    images = (
        source_from(
            source[0],
            size=(card.height, card.width),
            channels=card.channels,
            affine=affine,
            collage=collage,
            key=key,
        )
        if sees == "pixels"
        else cell_source_from(
            source,
            sees,
            cell=cell,
            size=cell * card.height,
            exclude=exclude or (),
            count=count,
            seed=seed,
        )
    )
    plan = replace(PLAN, steps=steps, learning_rate=rate, seed=seed, mixed=mixed)
    plan = replace(plan, emphasis=float(max(1, len(images.layers))))
    set_threads(threads)
    kept = f"progress is saved every {plan.checkpoint_every} steps in {checkpoint}"
    with (
        common.keeps(f"{kept}; the same command goes on from there"),
        common.moving_bar("loss {task.fields[loss]:.5f}") as bar,
    ):
        running = bar.add_task(card.name, total=steps, loss=float("nan"))
        learnt = learn(
            memory,
            images,
            plan,
            recipe=shlex.join(["engram", *(context.obj or sys.argv[1:])]),
            checkpoint=checkpoint,
            progress=lambda step, _, loss: bar.update(running, completed=step, loss=loss),
        )
    made = learnt.save(path).symmetric
    for leftover in (checkpoint, note_of(checkpoint)):
        leftover.unlink(missing_ok=True)
    printing.say(
        f"{card.name}: squared error {made['error']:.5f} of one evaluation against the average of "
        f"eight views; {made['error_of_one_view']:.5f} before"
    )
    printing.say(f"weights {path}, card {path.with_suffix('.json')}")
