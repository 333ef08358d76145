"""Shape tasks: copies of one shape that is in no training scene.

A memory that has seen fields of equal discs has an easy time with balls. Here five to eight
equal copies of one hand-drawn shape (``_drawings``) lie in a 32 x 32 area, entirely inside and
apart from each other, all the same way round or each turned and mirrored on its own. Every
kind comes once in each stretch of as many tasks as there are kinds, in an order of its own.
With kind ``mixed`` no two objects of an area are of one kind: what is gained by copies elsewhere
has to vanish there. Task k is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, label

from engram.errors import InputError
from engram.grid import Grid, whole
from engram.seeding import numpy_generator
from engram.tasks._drawings import DRAWINGS
from engram.tasks.base import Task
from engram.tasks.sets import TAGS, TaskSet

Mask = NDArray[np.bool_]

KINDS = tuple(DRAWINGS)
MIXED = "mixed"
"""In the place of a kind: each object of an area is of a kind of its own."""
SIZE = 32
COPIES = (5, 8)
CELLS = (24, 60)
"""Fewest and most cells of one copy."""
SHARE = (0.12, 0.30)
"""Least and largest share of the area that all copies are meant to cover."""
FINE = 8
"""Points per side of a cell at which a drawing is looked up."""
EIGHT = np.ones((3, 3), bool)
"""The cells that touch a cell, by a side or a corner."""


def _whole_draw(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return low + int(rng.random() * (high - low + 1))


def kind_of(k: int) -> str:
    """The kind of shape in task k."""
    block, place = divmod(k, len(KINDS))
    order = numpy_generator(0, "task", TAGS["shapes"], 0, block).random(len(KINDS)).argsort()
    return KINDS[int(order[place])]


def _covered(drawing: Mask, scale: float, phase: tuple[float, float]) -> NDArray[np.float64]:
    """(h, w) share of every cell that the drawing covers, ``scale`` cells per mark."""

    def marks(length: int, start: float) -> NDArray[np.intp]:
        cells = int(np.ceil(length * scale + start))
        return np.floor(((np.arange(cells * FINE) + 0.5) / FINE - start) / scale).astype(np.intp)

    rows, cols = (marks(*pair) for pair in zip(drawing.shape, phase, strict=True))
    (height, width), edge = drawing.shape, 1
    padded = np.pad(drawing, edge)
    fine = padded[np.clip(rows, -1, height) + edge][:, np.clip(cols, -1, width) + edge]
    cells = fine.reshape(len(rows) // FINE, FINE, len(cols) // FINE, FINE)
    return np.asarray(cells.mean(axis=(1, 3)), np.float64)


@lru_cache(maxsize=256)
def shape_mask(kind: str, cells: int) -> Mask:
    """The shape in about ``cells`` cells: connected, and as crisp as cells can draw it.

    Of several scales and places relative to the cells, that is the one whose cells are most
    nearly covered or bare: the largest mean of (covered - 1/2)^2.
    """
    drawing, best = DRAWINGS[kind], (-1.0, np.empty((0, 0), bool))
    for factor, y, x in product((0.9, 0.95, 1.0, 1.05, 1.1), *[(0.0, 0.25, 0.5, 0.75)] * 2):
        covered = _covered(drawing, float(np.sqrt(factor * cells / drawing.sum())), (y, x))
        mask = covered >= 0.5
        crisp = float(np.square(covered - 0.5)[binary_dilation(mask, EIGHT)].mean())
        near = abs(int(mask.sum()) - cells) <= 0.1 * cells
        if near and crisp > best[0] and label(mask, EIGHT)[1] == 1:
            best = crisp, mask
    if best[0] < 0:
        raise InputError(f"shape {kind!r} cannot be drawn in {cells} cells")
    mask = best[1]
    return mask[np.ix_(mask.any(axis=1), mask.any(axis=0))]


def _view(mask: Mask, k: int) -> Mask:
    """The mask under symmetry k in 0..7: k % 4 quarter turns, mirrored from 4 on."""
    turned = np.rot90(mask, k % 4)
    return turned[:, ::-1] if k >= 4 else turned


def _places(taken: Mask, mask: Mask) -> NDArray[np.intp]:
    """(n, 2) top left corners at which the mask meets no cell that is taken."""
    height, width = (n - m + 1 for n, m in zip(taken.shape, mask.shape, strict=True))
    free = np.ones((height, width), bool)
    for y, x in np.argwhere(mask):
        free &= ~taken[y : y + height, x : x + width]
    return np.argwhere(free)


def _placed(rng: np.random.Generator, masks: Sequence[Mask], turned: bool) -> NDArray[np.int32]:
    """(SIZE, SIZE) labels 1, 2, ... of the masks, each apart from the others; fewer if no room is
    left."""
    labels: NDArray[np.int32] = np.zeros((SIZE, SIZE), np.int32)
    way = _whole_draw(rng, 0, 7)
    for i, mask in enumerate(masks):
        view = _view(mask, _whole_draw(rng, 0, 7) if turned else way)
        places = _places(binary_dilation(labels > 0, EIGHT), view)
        if not len(places):
            break
        y, x = places[_whole_draw(rng, 0, len(places) - 1)]
        labels[y : y + view.shape[0], x : x + view.shape[1]][view] = i + 1
    return labels


def _masks(rng: np.random.Generator, kind: str, cells: int, count: int) -> list[Mask]:
    """What is put into an area: copies of one shape, or different ones of about that size."""
    if kind != MIXED:
        return [shape_mask(kind, cells)] * count
    return [shape_mask(KINDS[i], cells) for i in rng.random(len(KINDS)).argsort()[:count]]


def _check(kind: str | None, copies: int | None) -> None:
    if kind is not None and kind not in (*KINDS, MIXED):
        raise InputError(f"kind={kind!r}: choose one of {', '.join((*KINDS, MIXED))}")
    if copies is not None and (whole(copies) is None or not 1 <= copies <= COPIES[1]):
        raise InputError(f"copies={copies!r}: between 1 and {COPIES[1]} fit into the area")


def shape_task(k: int, kind: str | None = None, copies: int | None = None) -> Task:
    """Shape task number k; ``kind`` and ``copies`` fix the shape and how many there are."""
    number = whole(k)
    if number is None or number < 0:
        raise InputError(f"shape task {k!r}: tasks are numbered from 0")
    _check(kind, copies)
    kind = kind or kind_of(number)
    path = (TAGS["shapes"], 1, number, (*KINDS, MIXED).index(kind), copies or 0)
    rng = numpy_generator(0, "task", *path)
    count = copies or _whole_draw(rng, *COPIES)
    turned = rng.random() < 0.5
    low, high = (round(share * SIZE**2 / count) for share in SHARE)
    labels: NDArray[np.int32] = np.zeros((SIZE, SIZE), np.int32)
    while labels.max() < count:
        cells = _whole_draw(rng, min(max(low, CELLS[0]), CELLS[1]), min(high, CELLS[1]))
        labels = _placed(rng, _masks(rng, kind, cells, count), turned)
    facts = {"kind": kind, "copies": count, "turned": turned, "objects": labels}
    content = (labels > 0).astype(np.float32)[None]
    return Task(f"shapes-{k}", Grid(SIZE, SIZE), content, labels > 0, facts=facts)


def shape_tasks(kind: str | None = None, copies: int | None = None) -> TaskSet:
    """The shape tasks, without end."""
    _check(kind, copies)
    return TaskSet(
        name="shapes" if kind is None else f"shapes-{kind}",
        description=f"{copies or 'five to eight'} copies of one shape in a 32x32 area",
        make=lambda k: shape_task(k, kind, copies),
        options={"kind": kind, "copies": copies},
    )
