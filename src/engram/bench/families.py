"""Makers of task sets from data files and flat settings; loaders are imported when used.

The keyword arguments of a maker are the settings of its suite (those of species are a dataclass):
one word, number or switch each, as they are written on the command line and in result files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from engram.errors import InputError
from engram.tasks.balls import SIZE
from engram.tasks.sets import TaskSet, ball_tasks
from engram.tasks.settings import Setting
from engram.tasks.species import species_tasks
from engram.tasks.species_plan import SpeciesPlan

Files = Sequence[Path]


def balls(files: Files, *, balls: int | None = None, size: int | None = None) -> TaskSet:
    """``balls`` fixes their number, ``size`` the cells per side."""
    return ball_tasks(balls, SIZE if size is None else size)


def shapes(files: Files, *, kind: str | None = None, copies: int | None = None) -> TaskSet:
    """``kind`` and ``copies`` fix the shape and how many there are."""
    from engram.tasks.shapes import shape_tasks

    return shape_tasks(kind, copies)


def species(files: Files, plan: SpeciesPlan) -> TaskSet:
    """The settings are those of :class:`engram.tasks.species.SpeciesPlan`."""
    return species_tasks(files, plan=plan)


def overhead(
    files: Files,
    *,
    target: Annotated[str, Setting("overhead: vehicle, plane, ship or all.")] = "all",
    size: int = 128,
    cell: int = 4,
    tile: int = 512,
    min_share: float = 0.02,
    max_share: float = 0.30,
    difficult: bool = True,
    coarse: bool = False,
    mosaic: int = 1,
    seed: int = 0,
) -> TaskSet:
    """Those from ``tile`` to ``difficult`` are for DOTA folders.

    ``coarse`` gives the picture reduced to one grey pixel per cell as a layer; ``mosaic`` puts
    so many pictures a side together as one area.
    """
    from engram.tasks.dota import TilePlan
    from engram.tasks.overhead import overhead_tasks

    tiles = TilePlan(tile, (min_share, max_share), difficult)
    return overhead_tasks(
        files, target, seed=seed, size=size, cell=cell, tiles=tiles, coarse=coarse, mosaic=mosaic
    )


def tumour(files: Files, *, size: int = 128, cell: int = 4, seed: int = 0) -> TaskSet:
    """Slices of one or several files."""
    from engram.tasks.tumour import tumour_tasks

    return tumour_tasks(files, seed=seed, size=size, cell=cell)


def windows(
    files: Files,
    *,
    target: str = "target",
    layers: str = "",
    cell: int = 4,
    spare: int = 4,
    seed: int = 0,
) -> TaskSet:
    """``target`` and ``layers`` name arrays of the file; ``;`` stands between several layers."""
    from engram.tasks.windows import window_tasks

    return window_tasks(files, target, layers, cell=cell, spare=spare, seed=seed)


def digits(
    files: Files,
    *,
    digit: int | None = None,
    size: int = 28,
    fit: str = "pad",
    cell: int = 1,
    seed: int = 0,
) -> TaskSet:
    """One file of images; ``digit`` keeps one class by the labels given or found beside it."""
    from engram.tasks.digits import digit_tasks, is_label_file

    labels = [path for path in files if len(files) > 1 and is_label_file(path)]
    images = [path for path in files if path not in labels]
    if len(images) != 1 or len(labels) > 1:
        raise InputError(
            f"{len(files)} data files given ({', '.join(path.name for path in files)}); digits "
            "come from one idx file of images and at most one of labels"
        )
    return digit_tasks(images[0], *labels, digit=digit, seed=seed, size=size, fit=fit, cell=cell)
