"""Scenes in which figures repeat: what one of them looks like tells what the others do.

Every scene has a few copies of one or two figures that nobody has drawn before: lumps, branches,
heaps of boxes, rounded figures with bays. Copies lie all the same way round, in quarter turns and
mirrored, or at any angle; apart or touching, scattered or on a lattice with members missing, equal
or unequal in size, whole or cut by the border, alone or with a stranger among them. A memory that
is trained on such scenes has to take the shape from what was measured. No discs are among the
figures, and no kind of the suite ``shapes`` is drawn; what chance draws is like one of them about
once in a thousand figures, mostly like an L (a test looks how often).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform, binary_dilation, gaussian_filter, label

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]
Figure = Callable[[np.random.Generator], Mask]

FINE = 40
"""Points per side at which figures are drawn."""
EIGHT = np.ones((3, 3), bool)
LEAST, MOST = 6.0, 80.0
"""Cells of the smallest and the largest figure in an area of 32 x 32."""
SHARE = (0.01, 0.35)
"""Least and largest share of an area that is covered."""
COMPACT = 1.2
"""``spread_out`` that a figure exceeds."""
TRIES = 8
"""Places that are tried for each copy."""


def _points() -> tuple[Array, Array]:
    """Two (FINE, FINE) tables of coordinates from -1 to 1."""
    line = np.linspace(-1, 1, FINE, dtype=np.float32)
    return np.meshgrid(line, line, indexing="ij")


def lump(rng: np.random.Generator) -> Mask:
    """The largest patch of a rough field that fades out towards the border."""
    y, x = _points()
    field = gaussian_filter(rng.standard_normal((FINE, FINE)), rng.uniform(2.5, 5.5))
    field = field / field.std() - 2.5 * (y**2 + x**2) ** 2
    return np.asarray(field > np.quantile(field, rng.uniform(0.7, 0.85)))


def branches(rng: np.random.Generator) -> Mask:
    """Four to six arms of unequal length and width; each begins on one that is there."""
    y, x = _points()
    out, ends = np.zeros((FINE, FINE), bool), [np.zeros(2)]
    for _ in range(int(rng.integers(4, 7))):
        start = ends[int(rng.integers(len(ends)))]
        angle, length = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 0.9)
        way = length * np.array([np.sin(angle), np.cos(angle)])
        along = np.clip(((y - start[0]) * way[0] + (x - start[1]) * way[1]) / length**2, 0, 1)
        off = np.hypot(y - start[0] - along * way[0], x - start[1] - along * way[1])
        out |= off <= rng.uniform(0.07, 0.2)
        ends += [np.clip(start + way, -0.9, 0.9), start + rng.uniform(0.3, 0.7) * way]
    return out


def heap(rng: np.random.Generator) -> Mask:
    """Four to seven boxes of all proportions, each over a corner of one before it."""
    y, x = _points()
    out, corners = np.zeros((FINE, FINE), bool), [np.zeros(2)]
    for _ in range(int(rng.integers(4, 8))):
        centre = corners[int(rng.integers(len(corners)))] + rng.uniform(-0.1, 0.1, 2)
        half = rng.uniform(0.08, 0.4, 2)
        out |= (np.abs(y - centre[0]) <= half[0]) & (np.abs(x - centre[1]) <= half[1])
        corners += [np.clip(centre + sign * half, -0.8, 0.8) for sign in ((1, 1), (-1, 1), (1, -1))]
    return out


def lobes(rng: np.random.Generator) -> Mask:
    """A closed curve around a centre, waves of several lengths on it, mostly with a bay."""
    y, x = _points()
    angle, radius = np.arctan2(y, x), np.hypot(y, x)
    edge = np.full(radius.shape, 0.55)
    for waves in range(1, 5):
        edge += rng.normal(0, 0.28 / waves**0.7) * np.cos(waves * angle + rng.uniform(0, 6.3))
    out = radius <= np.clip(edge, 0.12, 1.0)
    if rng.random() < 0.7:
        off = rng.uniform(0.3, 0.7) * np.array([np.sin(a := rng.uniform(0, 6.3)), np.cos(a)])
        out &= np.hypot(y - off[0], 1.5 * (x - off[1])) > rng.uniform(0.15, 0.35)
    return np.asarray(out)


FIGURES: tuple[Figure, ...] = (lump, branches, heap, lobes)


def _whole(mask: Mask) -> Mask:
    """The largest connected part of a figure, cut out."""
    parts, count = label(mask, EIGHT)
    if count > 1:
        mask = parts == 1 + np.bincount(parts.ravel())[1:].argmax()
    return mask[np.ix_(mask.any(axis=1), mask.any(axis=0))]


def spread_out(mask: Mask) -> float:
    r"""Second moment of a figure about its centre, times :math:`2 \pi / A^2`: 1 for a disc, the
    most compact of all figures, 1.05 for a square."""
    points = np.argwhere(mask)
    moment = np.square(points - points.mean(axis=0)).sum()
    return float(2 * np.pi * moment / len(points) ** 2)


def figure(rng: np.random.Generator) -> Mask:
    """A figure nobody has drawn before, connected, and nothing like a disc."""
    while True:
        mask = _whole(FIGURES[int(rng.integers(len(FIGURES)))](rng))
        if mask.sum() >= 0.04 * FINE**2 and spread_out(mask) > COMPACT:
            return mask


class Way(NamedTuple):
    """How a copy lies: turned by ``angle``, mirrored or not, ``cells`` large."""

    angle: float
    mirrored: bool
    cells: float


def drawn(mask: Mask, way: Way) -> Mask:
    """(h, w) the figure in cells, no cell of the border free; empty where nothing is left of it."""
    mask = np.pad(mask[:, ::-1] if way.mirrored else mask, 1)
    zoom = float(np.sqrt(mask.sum() / way.cells))
    side = int(np.ceil(np.hypot(*mask.shape) / zoom)) + 1
    c, s = np.cos(way.angle), np.sin(way.angle)
    turn = zoom * np.array([[c, -s], [s, c]])
    middle = (np.array(mask.shape) - 1) / 2
    start = middle - turn @ np.full(2, (side - 1) / 2)
    smooth = gaussian_filter(mask.astype(np.float32), 0.35 * zoom)
    out = affine_transform(smooth, turn, start, (side, side), order=1) > 0.5
    return np.asarray(out[np.ix_(out.any(axis=1), out.any(axis=0))], bool)


def _ways(rng: np.random.Generator, cells: float) -> Callable[[], Way]:
    """How the copies of one scene lie: all alike, in quarter turns, or anyhow."""
    first, kind = rng.uniform(0, 2 * np.pi), rng.random()
    if rng.random() < 0.6:
        first = 0.0
    mirrored, unequal = rng.random() < 0.5, rng.random() < 0.2

    def way() -> Way:
        size = float(np.clip(cells * rng.lognormal(0, 0.5), LEAST, 2 * MOST)) if unequal else cells
        if kind < 0.45:
            return Way(first, False, size)
        if kind < 0.8:
            turns = int(rng.integers(4)) * np.pi / 2
            return Way(first + turns, mirrored and rng.random() < 0.5, size)
        return Way(rng.uniform(0, 2 * np.pi), mirrored and rng.random() < 0.5, size)

    return way


def _places(rng: np.random.Generator, h: int, w: int, reach: float) -> Callable[[], Array]:
    """Where copies of one scene are put: anywhere, in a clump, or on a lattice."""
    kind, hub = rng.random(), rng.uniform([0, 0], [h, w])
    step, start = rng.uniform(1.1, 2.0) * reach, rng.uniform(0, reach, 2)
    tilt = rng.uniform(0, np.pi / 2) if rng.random() < 0.4 else 0.0
    turn = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    counts = np.array([h, w]) / step

    def place() -> Array:
        if kind < 0.15:
            return rng.normal(hub, 0.25 * min(h, w)).astype(np.float32)
        if kind < 0.35:
            knot = np.floor(rng.uniform(0, np.ceil(counts)))
            return np.asarray(start + turn @ (knot * step), np.float32)
        return rng.uniform([0, 0], [h, w]).astype(np.float32)

    return place


def repeated_figures(rng: np.random.Generator, h: int, w: int) -> Array:
    """Copies of one figure, sometimes of two, sometimes with a stranger among them."""
    scale = h * w / 32**2
    figures = [figure(rng) for _ in range(2 if rng.random() < 0.15 else 1)]
    cells = float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST)))) * min(scale, 2.0)
    wanted = float(np.exp(rng.uniform(*np.log(SHARE)))) * h * w
    count = int(np.clip(round(wanted / cells), 1, 14 * scale))
    count = max(count, int(rng.integers(2, 6))) if rng.random() < 0.8 else count
    way = _ways(rng, cells)
    place = _places(rng, h, w, 2 * float(np.sqrt(cells)))
    gap, inside = int(rng.choice([0, 1, 1, 2])), rng.random() < 0.75
    image, taken = np.zeros((h, w), bool), np.zeros((h, w), bool)
    strangers = [figure(rng)] if rng.random() < 0.15 else []
    for number in range(count + len(strangers)):
        mask = figures[number % len(figures)] if number < count else strangers[0]
        copy = drawn(mask, way())
        for _ in range(TRIES):
            if _put(image, taken, copy, place(), gap, inside):
                break
    return image.astype(np.float32)


def _put(image: Mask, taken: Mask, copy: Mask, at: Array, gap: int, inside: bool) -> bool:
    """Put a copy around a place and take the cells around it, unless some are taken already."""
    top, left = (round(float(c) - n / 2) for c, n in zip(at, copy.shape, strict=True))
    (h, w), (rows, cols) = image.shape, copy.shape
    if inside and not (0 <= top <= h - rows and 0 <= left <= w - cols):
        if rows > h or cols > w:
            return False
        top, left = min(max(top, 0), h - rows), min(max(left, 0), w - cols)
    low, high = (max(0, top), max(0, left)), (min(h, top + rows), min(w, left + cols))
    if low[0] >= high[0] or low[1] >= high[1]:
        return False
    there = (slice(low[0], high[0]), slice(low[1], high[1]))
    part = copy[low[0] - top : high[0] - top, low[1] - left : high[1] - left]
    if (part & taken[there]).any() or not part.any():
        return False
    image[there] |= part
    whole: Mask = np.zeros_like(image)
    whole[there] = part
    taken |= binary_dilation(whole, EIGHT, iterations=gap) if gap else whole
    return True
