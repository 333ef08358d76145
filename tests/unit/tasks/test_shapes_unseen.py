"""No memory may be trained on the kinds of shapes that the suite ``shapes`` searches.

Scenes are drawn large, where a shape is not blurred by its cells, and everything connected in
them is held against every kind: enlarged to one area, turned, mirrored and shifted, by
intersection over union. What lies in the scenes by chance stays below ``ALIKE``; a kind of the
suite drawn by a maker of scenes is above.

Scenes in which figures repeat (``repeats``) are full of copies, small ones that often touch: there
the figures themselves are held against every kind, large and in cells of the suite's sizes. They
are drawn at random, so none of them being like a kind cannot be asked for: of 6,000, eight were
(six like an L), and of copies in 24 to 60 cells 7 in 1,000. What can is that none is so often:
at most ``SELDOM``, which a maker that draws a kind on purpose exceeds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from inspect import isfunction, signature
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import affine_transform, label
from sklearn.datasets import load_digits

import engram.memory
from engram.memory import repeats, scenes
from engram.memory.collage import collages
from engram.seeding import torch_generator
from engram.tasks._drawings import DRAWINGS
from engram.tasks.shapes import CELLS, KINDS, shape_mask

Mask = NDArray[np.bool_]
Stack = NDArray[np.float32]

SCENE, SCENES = 96, 50
CANVAS, AREA = 40, 240.0
ALIKE, RARELY = 0.8, 0.01
FIGURES, SELDOM, SMALL = 1000, 0.005, 24
DIGITS = "digits in collages"
MAKERS = {
    name: maker
    for name, maker in vars(scenes).items()
    if isfunction(maker)
    and [*signature(maker).parameters] == ["rng", "h", "w"]
    and not name.startswith("_")
    and name != "scene"
}


def turned(mask: Mask, area: float, angle: float, side: int, shift: float = 0.0) -> Mask:
    """The mask around the centre of (side, side), of this area, turned by ``angle``."""
    mask = np.pad(mask, 1)
    c, s, zoom = np.cos(angle), np.sin(angle), (mask.sum() / area) ** 0.5
    turn = zoom * np.array([[c, -s], [s, c]])
    start = np.argwhere(mask).mean(axis=0) - turn @ np.full(2, (side - 1) / 2 + shift)
    drawn = affine_transform(mask.astype(np.float32), turn, start, (side, side), order=1)
    return np.asarray(drawn > 0.5)


def large(kind: str) -> Mask:
    return np.kron(DRAWINGS[kind], np.ones((4, 4), bool)).astype(bool)


@cache
def templates(kind: str) -> Stack:
    """(n, CANVAS * CANVAS): the kind turned by steps of 10 degrees, mirrored and shifted."""
    drawn, steps = large(kind), [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    ways = [
        turned(view, AREA, float(angle), CANVAS)
        for view in (drawn, drawn[:, ::-1])
        for angle in np.arange(36) * np.pi / 18
    ]
    return np.stack([np.roll(way, by, (0, 1)).ravel() for way in ways for by in steps]).astype("f4")


def components(images: Iterable[NDArray[np.float32]]) -> Stack:
    """(n, CANVAS * CANVAS): what is connected in the images, one object each."""
    found = []
    for image in images:
        labels, count = label(image > 0.5, np.ones((3, 3)))
        masks = [labels == i for i in range(1, count + 1)]
        found += [turned(m, AREA, 0.0, CANVAS).ravel() for m in masks if 120 <= m.sum() <= 4000]
    return np.stack(found).astype("f4") if found else np.empty((0, CANVAS**2), "f4")


def overlaps(objects: Stack, known: Stack) -> NDArray[np.float32]:
    """Best intersection over union of every object with any of these."""
    common = objects @ known.T
    union = objects.sum(axis=1)[:, None] + known.sum(axis=1) - common
    return np.asarray((common / union).max(axis=1), np.float32)


@cache
def objects_of(maker: str) -> Stack:
    if maker != DIGITS:
        rng = np.random.default_rng([4711, *map(ord, maker)])
        return components(MAKERS[maker](rng, SCENE, SCENE) for _ in range(SCENES))
    small = torch.from_numpy(load_digits().images[:60]).float()[:, None] / 8 - 1
    images = torch.nn.functional.interpolate(small, (SCENE, SCENE), mode="bilinear")
    areas = collages(images, SCENES, torch_generator(0, "task"))
    return components(area[0].numpy() / 2 + 0.5 for area in areas)


def test_the_makers_of_scenes_are_found() -> None:
    assert {"shape_group", "shape_rows", "strokes", "thresholded_field"} <= set(MAKERS)
    families = [family for world in scenes.WORLDS.values() for family, _ in world.values()]
    assert repeats.repeated_figures in families
    assert all(MAKERS[family.__name__] is family for family in families)
    some = ("shape_group", "strokes", "repeated_figures", DIGITS)
    assert min(len(objects_of(maker)) for maker in some) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_in_no_training_scene(kind: str) -> None:
    for maker in (*MAKERS, DIGITS):
        objects = objects_of(maker)
        if len(objects):
            alike = float((overlaps(objects, templates(kind)) > ALIKE).mean())
            assert alike <= RARELY, f"{maker}: {alike:.0%} of the objects look like {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_in_the_scenes_would_be_noticed(kind: str) -> None:
    rng = np.random.default_rng([4712, *map(ord, kind)])
    drawn = [
        turned(large(kind), rng.uniform(200, 700), rng.uniform(0, 6.3), SCENE, rng.uniform(-0.5, 0))
        for _ in range(12)
    ]
    objects = components(image.astype("f4") for image in drawn)
    assert (overlaps(objects, templates(kind)) > ALIKE).mean() > 0.5


@cache
def figures() -> list[Mask]:
    rng = np.random.default_rng(4713)
    return [repeats.figure(rng) for _ in range(FIGURES)]


@cache
def large_figures() -> Stack:
    return np.stack([turned(m, AREA, 0.0, CANVAS).ravel() for m in figures()]).astype("f4")


def in_cells(masks: Iterable[Mask], kind: str = "") -> Stack:
    """(n, SMALL * SMALL): the masks around one place, and for a kind a cell beside it too."""
    steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)] if kind else [(0, 0)]
    found = []
    for mask in masks:
        there = np.zeros((SMALL, SMALL), bool)
        corner = np.rint(SMALL / 2 - np.argwhere(mask).mean(axis=0)).astype(int)
        y, x = np.clip(corner, 0, SMALL - np.array(mask.shape))
        there[y : y + mask.shape[0], x : x + mask.shape[1]] = mask
        found += [np.roll(there, step, (0, 1)).ravel() for step in steps]
    return np.stack(found).astype("f4")


@cache
def small_templates(kind: str) -> Stack:
    """The kind as tasks have it, of several sizes, in eight views."""
    drawn = [shape_mask(kind, cells) for cells in range(CELLS[0], CELLS[1] + 1, 4)]
    views = [np.rot90(m, k) for mask in drawn for m in (mask, mask[:, ::-1]) for k in range(4)]
    return in_cells(views, kind)


def copies(masks: Iterable[Mask], seed: int) -> Stack:
    """One copy of each mask as scenes have it, in quarter turns, of the sizes of the suite."""
    rng = np.random.default_rng([4714, seed])
    drawn = []
    for mask in masks:
        turns, mirrored = rng.integers(4), rng.random() < 0.5
        way = repeats.Way(turns * np.pi / 2, mirrored, rng.uniform(*CELLS))
        drawn.append(repeats.drawn(mask, way))
    return in_cells(mask for mask in drawn if mask.size and max(mask.shape) <= SMALL)


@cache
def small_figures() -> Stack:
    return copies(figures(), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_seldom_among_figures_that_repeat(kind: str) -> None:
    assert (overlaps(large_figures(), templates(kind)) > ALIKE).mean() <= SELDOM
    assert len(small_figures()) > 0.9 * FIGURES
    assert (overlaps(small_figures(), small_templates(kind)) > ALIKE).mean() <= SELDOM


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_among_figures_that_repeat_would_be_noticed(kind: str) -> None:
    """Every fortieth figure would be enough: cells blur a kind, but one copy in five is alike."""
    drawn = copies([large(kind)] * 40, 1)
    assert (overlaps(drawn, small_templates(kind)) > ALIKE).mean() > 40 * SELDOM


def test_no_memory_reads_the_drawings() -> None:
    assert set(KINDS).isdisjoint(scenes.KINDS)
    for path in Path(engram.memory.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(n.name for n in node.names)]
                words = {word for name in names for word in name.split(".")}
                assert words.isdisjoint({"shapes", "shape_task", "shape_tasks", "_drawings"}), path
