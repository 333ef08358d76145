"""``engram prior``: list, describe, train and sample permanent memories."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from engram.cli import _common as common
from engram.cli import _printing as printing
from engram.cli.consolidate import consolidate
from engram.cli.distil import distil
from engram.errors import EngramError, InputError, shown
from engram.memory.card import Card
from engram.memory.library import memory_files, memory_path, read_card

app = typer.Typer(no_args_is_help=True, help="List, describe, train and sample permanent memories.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _kind(card: Card) -> str:
    return "conditioned" if card.conditioned else "plain"


def _size(card: Card) -> str:
    return f"{card.height}x{card.width}x{card.channels}"


def _symmetric(card: Card) -> str:
    """How far the network that has learnt the average of eight views is from it."""
    made = card.symmetric
    if not made:
        return "-"
    error, before = made.get("error", "-"), made.get("error_of_one_view", "-")
    return f"{made.get('steps', '-')} steps; squared error {error}, of one view {before}"


@app.command("list")
def list_(json: Json = False) -> None:
    """Every memory in the library: those shipped, and those you trained."""
    found: list[dict[str, Any]] = []
    lines = []
    for name, path in sorted(memory_files().items()):
        try:
            card = read_card(str(path))
        except EngramError as error:
            printing.remark(f"left out: {error}")
            continue
        found.append({**card.to_dict(), "name": name, "path": str(path)})
        weight = f"{card.parameters / 1e6:.2f} M"
        lines.append([name, _size(card), _kind(card), weight, card.summary])
    if json:
        printing.say_json(found)
    elif lines:
        head = ["name", "size", "kind", "parameters", "summary"]
        printing.show_table((head, lines))
    else:
        printing.say("no memories; train one with 'engram prior train'")


@app.command()
def info(name: Annotated[str, typer.Argument(help="Name or file.")], json: Json = False) -> None:
    """The card of a memory: what it was trained on, how, and under which licence."""
    card, path = read_card(name), memory_path(name)
    if json:
        printing.say_json({**card.to_dict(), "path": str(path)})
        return
    facts = {
        "summary": card.summary,
        "trained on": card.data,
        "has seen": card.seen or "-",
        "licence": card.licence,
        "size": f"{_size(card)} (height, width, channels)",
        "range": f"{card.range[0]:g} to {card.range[1]:g}",
        "kind": _kind(card),
        "imagines": f"cells: {', '.join(card.layers)}" if card.layers else "pixels",
        "parameters": f"{card.parameters:,}",
        "training": f"{card.steps:,} steps, seed {card.seed}",
        "held-out loss": f"{card.loss:g}",
        "made by": card.recipe or "-",
        "parent": card.parent or "-",
        "symmetric": _symmetric(card),
        "sha256": card.sha256,
        "file": f"{path} ({path.stat().st_size / 1e6:.1f} MB)",
    }
    printing.say(card.name)
    for key, value in facts.items():
        printing.say(f"  {key:<14}{value}")


@app.command()
def train(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(
            help="Image folder, .npz, idx file, 'scenes', 'repeats' (figures that repeat) or "
            "'both'; for --sees photo archives or folders, for --sees map tables."
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the memory.")],
    out: Annotated[
        Path | None, typer.Option(help="Weights file (default: in your library).")
    ] = None,
    size: Annotated[str | None, typer.Option(help="H,W of the images.")] = None,
    channels: Annotated[int | None, typer.Option(help="1 or 3.")] = None,
    key: Annotated[str | None, typer.Option(help="Array of an .npz file.")] = None,
    affine: Annotated[float, typer.Option(help="Random moves of the images, 0 to 1.")] = 0.0,
    collage: Annotated[float, typer.Option(help="Share of collages of several, 0 to 1.")] = 0.0,
    sees: Annotated[
        str, typer.Option(help="What it imagines: pixels, or cells of a photo or map.")
    ] = "pixels",
    cell: Annotated[int, typer.Option(help="Pixels per side of a cell (photo, map).")] = 2,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Target species that no map may show (map).")
    ] = None,
    count: Annotated[int, typer.Option(help="Number of maps (map).")] = 6000,
    start: Annotated[str | None, typer.Option(help="Memory to go on from.")] = None,
    widths: Annotated[str, typer.Option(help="Channels per resolution.")] = "48,96",
    patch: Annotated[int, typer.Option(help="Pixels folded into one position.")] = 2,
    fine: Annotated[
        str,
        typer.Option(
            help="Attention at the finest resolution too: to 'all' positions, or to those "
            "'measured' (default: none)."
        ),
    ] = "",
    agreement: Annotated[
        bool,
        typer.Option(
            "--agreement",
            help="Tell it how measurements agree with themselves, shifted and turned, so that it "
            "can copy.",
        ),
    ] = False,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 8000,
    batch: Annotated[int, typer.Option(help="Images a step.")] = 64,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 1e-3,
    practice: Annotated[
        float,
        typer.Option(
            help="Share of each batch that is searches under way, up to 0.7; at least one is."
        ),
    ] = 0.36,
    unprompted: Annotated[
        float, typer.Option(help="Share of the rest that is told nothing, 0 to 1.")
    ] = 0.4,
    focus: Annotated[
        float, typer.Option(help="Additional weight of pixels next to a find in the loss.")
    ] = 0.0,
    mixed: common.MixedOption = False,
    seed: Annotated[int, typer.Option(help="Seed of weights and batches.")] = 0,
    conditioned: Annotated[
        bool,
        typer.Option(
            "--mask-conditioned/--plain", help="Take measurements as input, or not (the paper's)."
        ),
    ] = True,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where to save progress (default: beside the weights).")
    ] = None,
    licence: Annotated[str, typer.Option(help="Licence of the data.")] = "not stated",
    summary: Annotated[str, typer.Option(help="One line about the memory.")] = "",
    samples: Annotated[int, typer.Option(help="Samples on the sheet.")] = 64,
    threads: Annotated[int | None, typer.Option(help="Threads (default: 2).")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a memory of that name.")] = False,
) -> None:
    """Train a memory; an interrupted training goes on when the same command is given again."""
    from engram._threads import set_threads
    from engram.memory.library import load_memory
    from engram.memory.recipes import (
        cell_source_from,
        note_of,
        sample_memory,
        source_from,
        train_memory,
        write_sheet,
    )
    from engram.memory.training import TrainingPlan
    from engram.memory.unet import FINE, UNetConfig

    common.check_seed(seed)
    target = common.weights_target(name, out, overwrite)
    checkpoint = checkpoint or target.with_suffix(".checkpoint")
    layers = common.parse_numbers(widths, "widths")
    if min(layers) < 4 or max(layers) > 4096 or any(width % 4 for width in layers):
        raise InputError(f"widths={shown(widths)}: give multiples of 4, up to 4096")
    if not (1 <= patch <= 64 and 1 <= samples <= 10_000):
        raise InputError(
            f"patch={shown(patch)}, samples={shown(samples)}: give at least 1, and at most 64 and "
            "10,000"
        )
    if fine not in FINE or (fine == "measured" and not conditioned):
        raise InputError(
            f"fine={shown(fine)}: give all, or measured where the memory takes measurements, or "
            "leave it out"
        )
    if agreement and not conditioned:
        raise InputError("agreement: a memory that takes no measurements is not told of them")
    if not 0 < rate < 1:
        raise InputError(f"rate={rate}: give a number between 0 and 1")
    if not 0 <= practice <= 0.7:
        raise InputError(f"practice={practice}: give a number between 0 and 0.7")
    if not 0 <= unprompted <= 1:
        raise InputError(f"unprompted={unprompted}: give a number between 0 and 1")
    if not 0 <= focus <= 100:
        raise InputError(f"focus={focus}: give a number between 0 and 100")
    pair = None if size is None else common.parse_pair(size, "size")
    if sees != "pixels":
        if pair is not None and pair[0] != pair[1]:
            raise InputError(f"size={size}: areas of a memory of cells are square")
        side = 64 if pair is None else pair[0]
        images = cell_source_from(
            source, sees, cell=cell, size=side, exclude=exclude or (), count=count, seed=seed
        )
    elif len(source) > 1:
        raise InputError(f"{len(source)} sources given; a memory of pixels is trained on one")
    else:
        images = source_from(
            source[0], size=pair, channels=channels, affine=affine, collage=collage, key=key
        )
    plan = TrainingPlan(
        steps=steps,
        batch=batch,
        learning_rate=rate,
        seed=seed,
        emphasis=float(max(1, len(images.layers))),
        episodes=practice,
        unprompted=unprompted,
        focus=focus,
        mixed=mixed,
    )
    config = UNetConfig.for_image(
        images.shape[0],
        conditioned=conditioned,
        patch=patch,
        widths=layers,
        fine=fine,
        agreement=agreement,
    )
    set_threads(threads)
    kept = f"progress is saved every {plan.checkpoint_every} steps in {checkpoint}"
    losses = "loss {task.fields[loss]:.4f}, held out {task.fields[held]:.4f}"
    with (
        common.keeps(f"{kept}; the same command goes on from there"),
        common.moving_bar(losses) as bar,
    ):
        running = bar.add_task(name, total=steps, loss=float("nan"), held=float("nan"))
        memory = train_memory(
            images,
            config,
            plan,
            name=name,
            summary=summary or f"trained on {images.description}",
            licence=licence,
            start=None if start is None else load_memory(start),
            recipe=shlex.join(["engram", *(context.obj or sys.argv[1:])]),
            checkpoint=checkpoint,
            progress=lambda step, loss, held: bar.update(
                running, completed=step, loss=loss, held=held
            ),
        )
    card = memory.save(target)
    sheet = write_sheet(sample_memory(memory, samples, seed=seed), target.with_suffix(".png"))
    for leftover in (checkpoint, note_of(checkpoint)):
        leftover.unlink(missing_ok=True)
    printing.say(f"{card.name}: {card.parameters:,} parameters, held-out loss {card.loss:.4f}")
    printing.say(f"weights {target}, card {target.with_suffix('.json')}, samples {sheet}")


@app.command()
def sample(
    name: Annotated[str, typer.Argument(help="Name or file.")],
    out: Annotated[
        Path | None, typer.Option(help="PNG file (default: NAME-samples.png here).")
    ] = None,
    n: Annotated[int, typer.Option("-n", "--count", help="Number of samples.")] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    steps: Annotated[int, typer.Option(help="Denoising steps.")] = 50,
    size: Annotated[str | None, typer.Option(help="H,W (default: the memory's own).")] = None,
) -> None:
    """Draw samples of a memory as one picture."""
    from engram._threads import set_threads

    common.check_seed(seed)
    path = out or Path(f"{Path(name).stem}-samples.png")
    if path.suffix.lower() != ".png":
        raise InputError(f"out={path}: the name of the picture ends in .png")
    common.check_folder(path.parent)
    read_card(name)
    wanted = None if size is None else common.parse_pair(size, "size")
    set_threads()
    from engram.memory.library import load_memory
    from engram.memory.recipes import sample_memory, write_sheet

    with common.keeps("nothing was written"):
        images = sample_memory(load_memory(name), n, seed=seed, steps=steps, size=wanted)
        write_sheet(images, path)
    printing.say(f"{n} samples: {path}")


app.command()(consolidate)
app.command()(distil)
