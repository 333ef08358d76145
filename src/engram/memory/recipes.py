"""From a folder of images to a memory with a complete card, and back to a sheet of samples."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._files import read_json
from engram._writing import write_file
from engram.errors import InputError, shown
from engram.memory.card import Card
from engram.memory.consolidation import dream
from engram.memory.denoiser import NetworkDenoiser
from engram.memory.layers import LayerSet
from engram.memory.permanent import PermanentMemory, fresh_network, grown_network
from engram.memory.scenes import WORLDS
from engram.memory.sources import (
    ArraySource,
    SceneSource,
    Source,
    fitted,
    load_folder,
    load_idx,
    load_npz,
)
from engram.memory.training import Trainer, TrainingPlan
from engram.memory.unet import UNetConfig

Images = NDArray[np.uint8] | NDArray[np.float32]
Progress = Callable[[int, float, float], None]
"""Called with (steps done, smoothed loss, last held-out loss)."""

MOST_SAMPLES, MOST_STEPS = 10_000, 10_000
"""Samples of one sheet, and denoising steps of each."""

SEES = ("pixels", "photo", "map")
"""What a memory is trained to imagine: pixels, or cells of photographs or of maps."""
PLANNED = (
    *("steps", "batch", "learning_rate", "seed"),
    *("emphasis", "episodes", "unprompted", "focus", "mixed"),
)
DEFAULT_SIZE = (32, 32)
HELD_OUT_CHECKS = 20
"""How often the held-out loss is measured in the course of a training."""


def source_from(
    origin: str | Path,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    affine: float = 0.0,
    collage: float = 0.0,
    key: str | None = None,
) -> Source:
    """Training images from ``scenes``, ``repeats`` or ``both``, a folder, .npz or idx file.

    size     : (H, W); folders are cropped and resized to it, arrays padded with zeros
        (default: 32x32 for scenes and folders, their own size for arrays)
    channels : 1 or 3; arrays are converted to it (default: 1, or what an array has)
    affine   : how far drawn images are moved, turned and scaled at random, 0 to 1
    collage  : share of draws that show several smaller images at once, 0 to 1
    key      : the array of an .npz file
    """
    if channels not in (None, 1, 3):
        raise InputError(f"channels={channels}: give 1 or 3")
    if size is not None and min(size) < 4:
        raise InputError(f"size={size[0]},{size[1]}: give at least 4,4")
    for option, value in (("affine", affine), ("collage", collage)):
        if not 0 <= value <= 1:
            raise InputError(f"{option}={value}: give a number between 0 and 1")
    if str(origin) in WORLDS:
        if channels == 3:
            raise InputError(f"channels=3: {origin} have 1 channel")
        return SceneSource(*(size or DEFAULT_SIZE), str(origin))
    path = Path(origin)
    if not path.exists():
        raise InputError(
            f"no training data at {path}; give a folder, a file, or one of {', '.join(WORLDS)}"
        )
    images: Images
    if path.is_dir():
        images = load_folder(path, size or DEFAULT_SIZE, channels or 1)
    elif path.suffix.lower() == ".npz":
        images = load_npz(path, key)
    else:
        images = load_idx(path)
    images = _with_channels(images, channels)
    if size is not None:
        images = fitted(images, size)  # type: ignore[arg-type]
    description = f"{len(images)} images of {path.name}"
    return ArraySource(images, description=description, affine=affine, collage=collage)


def cell_source_from(
    origins: Sequence[str | Path],
    sees: str,
    *,
    cell: int = 2,
    size: int = 64,
    exclude: Sequence[str] = (),
    count: int = 6000,
    seed: int = 0,
) -> Source:
    """Training areas of a memory of cells (``memory.cell_sources``).

    sees    : ``photo`` (photographs: zip archives, .npz files, folders) or ``map`` (maps of
        species from occurrence tables)
    cell    : pixels per side of a cell;  size : pixels per side of an area
    exclude : species that are left out (the targets);  count : number of maps
    """
    from engram.memory.cell_sources import MapSource, PhotoSource
    from engram.memory.datasets import PRIOR_PLAN, photographs, species_maps

    paths = [Path(origin) for origin in origins]
    if sees == "photo":
        photos = photographs(paths, size, seed=seed)
        return PhotoSource(photos.images, cell, f"{photos.description}, with invented targets")
    if sees == "map":
        plan = replace(PRIOR_PLAN, size=size, block=cell)
        maps = species_maps(paths, exclude=exclude, count=count, plan=plan, seed=seed)
        return MapSource(maps.images, cell, maps.description)
    raise InputError(f"sees={sees!r}: choose one of {', '.join(SEES)}")


def _with_channels(images: Images, channels: int | None) -> Images:
    """(n, H, W[, C]) with the wanted number of channels: averaged or repeated."""
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or channels is None or images.shape[-1] == channels:
        return images
    if channels == 3:
        wanted = np.repeat(images[..., :1], 3, axis=-1)
    else:
        wanted = images[..., :3].mean(axis=-1, keepdims=True)
    return wanted.astype(np.uint8) if images.dtype == np.uint8 else wanted.astype(np.float32)


def train_memory(
    source: Source,
    config: UNetConfig,
    plan: TrainingPlan,
    *,
    name: str,
    summary: str,
    licence: str,
    recipe: str = "",
    start: PermanentMemory | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> PermanentMemory:
    """Train a memory to the end of the plan; the averaged network with its complete card.

    ``start`` is a memory to go on from; it may have fewer channels (``grown_network``).

    With ``checkpoint`` an interrupted training goes on where it stopped; a checkpoint of
    another training (other data, network or plan) is refused.
    """
    if not name:
        raise InputError("a memory needs a name")
    if start is None:
        network = fresh_network(config, plan.seed)
    else:
        network = grown_network(start.network, config, plan.seed)
    trainer = Trainer(network, source, plan)
    held_out = float("nan")
    every = max(1, plan.steps // HELD_OUT_CHECKS)

    def report(step: int, _: int, loss: float) -> None:
        nonlocal held_out
        if progress is None:
            return
        if step % every == 0:
            held_out = trainer.held_out_loss(batches=2)
        progress(step, loss, held_out)

    if checkpoint is not None:
        claim(checkpoint, source, config, plan, start)
    trainer.run(report, checkpoint)
    channels, height, width = source.shape
    card = Card(
        name=name,
        summary=summary,
        data=source.description,
        licence=licence,
        channels=channels,
        height=height,
        width=width,
        range=(0.0, 1.0),
        network=config.to_dict(),
        parameters=sum(p.numel() for p in trainer.averaged.parameters()),
        seed=plan.seed,
        steps=plan.steps,
        loss=round(trainer.held_out_loss(), 6),
        recipe=recipe,
        parent="" if start is None else start.card.sha256,
        layers=source.layers,
        seen=_seen(source, start),
    )
    return PermanentMemory(NetworkDenoiser(trainer.averaged.network), card)


def _seen(source: Source, start: PermanentMemory | None) -> str:
    """The training data, and what the memory it started from has seen."""
    if start is None:
        return source.description
    earlier = start.card.seen or start.card.data
    return f"{source.description}; before that, as {start.card.name!r}: {earlier}"


def note_of(checkpoint: Path) -> Path:
    """The file beside a checkpoint that says which training it belongs to."""
    return checkpoint.with_name(checkpoint.name + ".json")


def claim(
    checkpoint: Path,
    source: Source,
    config: UNetConfig,
    plan: TrainingPlan,
    start: PermanentMemory | None,
) -> None:
    """Write what this training is beside its checkpoint, or compare with what is there."""
    wanted = {
        "data": source.description,
        "shape": list(source.shape),
        "affine": getattr(source, "affine", 0.0),
        "collage": getattr(source, "collage", 0.0),
        "network": config.to_dict(),
        "start": "" if start is None else start.card.sha256,
        **{key: getattr(plan, key) for key in PLANNED},
    }
    note = note_of(checkpoint)
    if not checkpoint.exists():
        write_file(note, json.dumps(wanted) + "\n")
        return
    try:
        there = read_json(note)
    except InputError:
        there = {}
    kept = {"mixed": False} | (there if isinstance(there, dict) else {})  # older notes lack it
    differing = [key for key, value in wanted.items() if kept.get(key) != value]
    if differing:
        raise InputError(
            f"checkpoint {checkpoint} belongs to another training ({', '.join(differing)} differ); "
            "delete it, or choose another with --checkpoint"
        )


def sample_memory(
    memory: PermanentMemory,
    count: int,
    *,
    seed: int = 0,
    steps: int = 50,
    size: tuple[int, int] | None = None,
) -> NDArray[np.float32]:
    """(count, 1 or 3, H, W) pictures of unconditional samples, in [0, 1]."""
    if not 1 <= count <= MOST_SAMPLES:
        raise InputError(
            f"count={shown(count)}: ask for at least 1 sample, at most {MOST_SAMPLES:,}"
        )
    if not 1 <= steps <= MOST_STEPS:
        raise InputError(
            f"steps={shown(steps)}: a sampler needs at least 1 step, at most {MOST_STEPS:,}"
        )
    images = dream(memory, count, seed=seed, steps=steps, size=size)
    return _pictures(np.asarray((images.numpy() + 1) / 2, np.float32), memory.card.layers)


def _pictures(images: NDArray[np.float32], layers: LayerSet) -> NDArray[np.float32]:
    """(n, C, H, W) -> something to look at: content and presence of cells side by side."""
    if len(layers) < 2:
        return images
    content, presence = layers.picture(images), images[:, -1:]
    return np.concatenate([content, np.broadcast_to(presence, content.shape)], axis=3)


def write_sheet(images: NDArray[np.float32], path: Path, *, scale: int = 2) -> Path:
    """Write (n, C, H, W) images in [0, 1] as one PNG, in rows of about the square root of n."""
    from PIL import Image

    count, _, height, width = images.shape
    columns = int(np.ceil(count**0.5))
    rows, gap = -(-count // columns), 2
    sheet = np.ones((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), np.float32)
    for i, image in enumerate(images):
        top, left = (gap + (i // columns) * (height + gap), gap + (i % columns) * (width + gap))
        colours = image.transpose(1, 2, 0)
        sheet[top : top + height, left : left + width] = colours  # one channel is repeated
    picture = Image.fromarray((sheet * 255).round().astype(np.uint8))
    size = (picture.width * scale, picture.height * scale)
    drawn = io.BytesIO()
    picture.resize(size, Image.Resampling.NEAREST).save(drawn, format="png")
    write_file(path, drawn.getvalue())
    return path
