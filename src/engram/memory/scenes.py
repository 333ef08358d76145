"""Procedural scenes: a world model for areas nobody has data about.

Each scene is an image in [0, 1] drawn from one of several families: groups of equal or
unequal shapes, thresholded and smooth random fields, strokes, fronts and gradients, point
clusters, plumes. No data set, no licence; scene k of a seed is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engram.memory.repeats import repeated_figures

Array = NDArray[np.float32]
Family = Callable[[np.random.Generator, int, int], Array]

KINDS = ("disc", "box", "ellipse", "triangle", "ring", "cross", "diamond", "bar")


def _frame(h: int, w: int) -> tuple[Array, Array]:
    yy, xx = np.mgrid[0:h, 0:w].astype(np.float32)
    return yy, xx


def stamp(
    kind: str, yy: Array, xx: Array, cy: float, cx: float, r: float, angle: float, ratio: float
) -> NDArray[np.bool_]:
    """Pixels of one shape with centre (cy, cx), size r, turned by ``angle``."""
    dy, dx = yy - cy, xx - cx
    if kind == "disc":
        return np.asarray(dy**2 + dx**2 <= r**2)
    if kind == "ring":
        d2 = dy**2 + dx**2
        return np.asarray((d2 <= r**2) & (d2 >= (ratio * 0.8 * r) ** 2))
    c, s = np.cos(angle), np.sin(angle)
    u, v = c * dx + s * dy, -s * dx + c * dy
    if kind == "ellipse":
        return np.asarray((u / r) ** 2 + (v / (r * ratio)) ** 2 <= 1)
    if kind == "box":
        return np.asarray((np.abs(u) <= 0.85 * r) & (np.abs(v) <= 0.85 * r))
    if kind == "bar":
        return np.asarray((np.abs(u) <= 1.2 * r) & (np.abs(v) <= np.maximum(0.35 * r, 0.8)))
    if kind == "diamond":
        return np.asarray(np.abs(u) + np.abs(v) <= 1.15 * r)
    if kind == "triangle":
        return np.asarray((v >= -0.6 * r) & (v <= 1.2 * r - 1.9 * np.abs(u)))
    arm = np.maximum(0.35 * r, 0.7)  # cross
    inside = (np.abs(u) <= r) & (np.abs(v) <= r)
    return np.asarray(inside & ((np.abs(u) <= arm) | (np.abs(v) <= arm)))


def _grid_aligned(rng: np.random.Generator) -> float:
    """Half of the angles are multiples of a quarter turn."""
    return float(rng.choice([0.0, np.pi / 2]) if rng.random() < 0.5 else rng.uniform(0, np.pi))


def shape_group(rng: np.random.Generator, h: int, w: int) -> Array:
    """Several shapes of one kind, mostly equal in size, mostly apart from each other."""
    yy, xx = _frame(h, w)
    scale = min(h, w) / 32
    kind = str(rng.choice(KINDS, p=[0.36, 0.14, 0.12, 0.08, 0.08, 0.08, 0.08, 0.06]))
    base = float(rng.uniform(1.2, 6.0)) * (scale if rng.random() < 0.5 else 1.0)
    if rng.random() < 0.5:
        base = float(np.clip(np.round(base * 2) / 2, 1.0, None))
    equal = rng.random() < 0.7
    apart = rng.random() < 0.75
    inside = rng.random() < 0.7
    whole = rng.random() < 0.6
    angle0, ratio = _grid_aligned(rng), float(rng.uniform(0.35, 0.8))
    room = h * w / (np.pi * base**2)
    count = int(rng.integers(1, max(2, min(24, int(0.5 * room))) + 1))
    if rng.random() < 0.5:
        count = min(count, int(rng.integers(3, 12)))
    image = np.zeros((h, w), np.float32)
    placed: list[tuple[float, float, float]] = []
    clumped = rng.random() < 0.25
    hub = rng.uniform([0, 0], [h, w])
    for _ in range(count * 6):
        if len(placed) == count:
            break
        r = base if equal else float(np.clip(base * rng.lognormal(0, 0.35), 1.0, 9.0))
        pad = r if inside else 0.0
        if clumped:
            cy, cx = rng.normal(hub, 0.22 * min(h, w))
        else:
            cy = rng.uniform(pad, max(h - 1 - pad, pad))
            cx = rng.uniform(pad, max(w - 1 - pad, pad))
        if inside and not (pad <= cy <= h - 1 - pad and pad <= cx <= w - 1 - pad):
            continue
        if whole:
            cy, cx = round(float(cy)), round(float(cx))
        if apart and any((cy - y) ** 2 + (cx - x) ** 2 <= (r + q) ** 2 for y, x, q in placed):
            continue
        placed.append((float(cy), float(cx), r))
        angle = angle0 if equal else float(rng.uniform(0, np.pi))
        image[stamp(kind, yy, xx, float(cy), float(cx), r, angle, ratio)] = 1.0
    return image


def shape_rows(rng: np.random.Generator, h: int, w: int) -> Array:
    """Equal shapes side by side in rows, with gaps: parked vehicles, moored boats, houses."""
    yy, xx = _frame(h, w)
    kind = str(rng.choice(("bar", "box", "ellipse", "cross")))
    r, ratio = float(rng.uniform(1.2, 0.1 * min(h, w))), float(rng.uniform(0.35, 0.8))
    tilt, turn = _grid_aligned(rng), float(rng.choice([0.0, np.pi / 2]))
    along, across = r * rng.uniform(1.4, 3.0), r * rng.uniform(2.4, 8.0)
    filled, middle = rng.uniform(0.3, 1.0), rng.uniform([0, 0], [h, w])
    image = np.zeros((h, w), np.float32)
    for row in range(int(rng.integers(1, 5))):
        for place in range(int(rng.integers(3, 13))):
            if rng.random() > filled:
                continue
            v, u = row * across, (place - 5) * along
            cy = middle[0] + np.sin(tilt) * u + np.cos(tilt) * v
            cx = middle[1] + np.cos(tilt) * u - np.sin(tilt) * v
            image[stamp(kind, yy, xx, float(cy), float(cx), r, tilt + turn, ratio)] = 1.0
    return image


def mixed_shapes(rng: np.random.Generator, h: int, w: int) -> Array:
    """Shapes of different kinds and brightness over one another."""
    yy, xx = _frame(h, w)
    image = np.zeros((h, w), np.float32)
    for _ in range(int(rng.integers(1, 9))):
        kind, r = str(rng.choice(KINDS)), float(rng.uniform(1.5, 9.0))
        cy, cx = rng.uniform(0, h), rng.uniform(0, w)
        inside = stamp(kind, yy, xx, cy, cx, r, rng.uniform(0, np.pi), rng.uniform(0.3, 0.9))
        image[inside] = 1.0 if rng.random() < 0.7 else rng.uniform(0.3, 1.0)
    return image


def _field(rng: np.random.Generator, h: int, w: int) -> Array:
    """A Gaussian random field with a random length scale, roughness and anisotropy."""
    fy, fx = np.fft.fftfreq(h)[:, None], np.fft.rfftfreq(w)[None]
    length = float(np.exp(rng.uniform(np.log(1.2), np.log(max(1.2, 0.3 * min(h, w))))))
    stretch = float(np.exp(rng.normal(0, 0.3)))
    k2 = (fy * stretch) ** 2 + (fx / stretch) ** 2
    if rng.random() < 0.5:
        amp = np.exp(-2 * (np.pi * length) ** 2 * k2)
    else:
        amp = (1 + (2 * np.pi * length) ** 2 * k2) ** -float(rng.uniform(0.8, 2.0))
    noise = np.fft.rfft2(rng.standard_normal((h, w)))
    field = np.fft.irfft2(noise * amp, s=(h, w))
    return np.asarray((field - field.mean()) / (field.std() + 1e-9), np.float32)


def thresholded_field(rng: np.random.Generator, h: int, w: int) -> Array:
    """Patches: where a random field is above a quantile."""
    field = _field(rng, h, w)
    return np.asarray(field > np.quantile(field, rng.uniform(0.5, 0.95)), np.float32)


def smooth_field(rng: np.random.Generator, h: int, w: int) -> Array:
    """A random field squeezed into [0, 1], peaks or plains."""
    field = _field(rng, h, w)
    steepness, middle = rng.uniform(0.7, 4), rng.uniform(-1, 2)
    return np.asarray(1 / (1 + np.exp(-steepness * (field - middle))), np.float32)


def strokes(rng: np.random.Generator, h: int, w: int) -> Array:
    """Curved lines of constant width: roads, rivers, faults, vessels."""
    yy, xx = _frame(h, w)
    image = np.zeros((h, w), bool)
    width = float(rng.uniform(0.6, 3.0))
    for _ in range(int(rng.integers(1, 5))):
        p = rng.uniform([0, 0], [h, w])
        heading, bend = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.08)
        for _ in range(int(rng.integers(6, 40))):
            image |= (yy - p[0]) ** 2 + (xx - p[1]) ** 2 <= width**2
            p = p + max(1.0, 0.8 * width) * np.array([np.sin(heading), np.cos(heading)])
            bend = 0.9 * bend + rng.normal(0, 0.06)
            heading += bend
    return image.astype(np.float32)


def front(rng: np.random.Generator, h: int, w: int) -> Array:
    """A wavy edge or gradient between two regimes."""
    yy, xx = _frame(h, w)
    angle, size = rng.uniform(0, 2 * np.pi), min(h, w)
    u = np.cos(angle) * (xx - w / 2) + np.sin(angle) * (yy - h / 2)
    v = -np.sin(angle) * (xx - w / 2) + np.cos(angle) * (yy - h / 2)
    height, length = rng.uniform(0, 0.12) * size, rng.uniform(0.3, 1.5) * size
    wave = height * np.sin(2 * np.pi * v / length + angle)
    edge = (u - rng.uniform(-0.25, 0.45) * size + wave) / (rng.uniform(0.02, 0.25) * size)
    soft = 1 / (1 + np.exp(-4 * edge))
    return np.asarray(soft > 0.5 if rng.random() < 0.5 else soft, np.float32)


def point_clusters(rng: np.random.Generator, h: int, w: int) -> Array:
    """Cells with at least one point of a clustered point process (sightings, deposits)."""
    image = np.zeros((h, w), np.float32)
    spread = rng.uniform(0.8, max(0.8, 0.14 * min(h, w)))
    for _ in range(int(rng.integers(1, 9))):
        centre = rng.uniform([0, 0], [h, w])
        points = rng.normal(centre, spread, size=(int(rng.integers(3, 60)), 2)).astype(int)
        ok = (points >= 0).all(1) & (points[:, 0] < h) & (points[:, 1] < w)
        np.add.at(image, tuple(points[ok].T), 1.0)
    if rng.random() < 0.5:
        return (image > 0).astype(np.float32)
    return np.asarray(np.clip(np.log1p(image) / np.log1p(max(image.max(), 1.0)), 0, 1), np.float32)


def plumes(rng: np.random.Generator, h: int, w: int) -> Array:
    """Soft elongated bumps: contamination, heat, lesions."""
    yy, xx = _frame(h, w)
    image = np.zeros((h, w), np.float32)
    for _ in range(int(rng.integers(1, 6))):
        angle, a = rng.uniform(0, np.pi), rng.uniform(1.2, max(1.2, 0.2 * min(h, w)))
        b = a * rng.uniform(0.3, 1.0)
        cy, cx = rng.uniform(0, h), rng.uniform(0, w)
        u = np.cos(angle) * (xx - cx) + np.sin(angle) * (yy - cy)
        v = -np.sin(angle) * (xx - cx) + np.cos(angle) * (yy - cy)
        bump = np.exp(-0.5 * ((u / a) ** 2 + (v / b) ** 2))
        image = np.maximum(image, rng.uniform(0.5, 1.0) * bump)
    return np.asarray(image > rng.uniform(0.3, 0.6) if rng.random() < 0.4 else image, np.float32)


FAMILIES: dict[str, tuple[Family, float]] = {
    "shape_group": (shape_group, 0.46),
    "mixed_shapes": (mixed_shapes, 0.09),
    "thresholded_field": (thresholded_field, 0.12),
    "smooth_field": (smooth_field, 0.08),
    "strokes": (strokes, 0.08),
    "front": (front, 0.05),
    "point_clusters": (point_clusters, 0.06),
    "plumes": (plumes, 0.06),
}
"""Family name -> (generator, share of the scenes)."""

REPEATS: dict[str, tuple[Family, float]] = {
    "repeated_figures": (repeated_figures, 0.62),
    "thresholded_field": (thresholded_field, 0.12),
    "smooth_field": (smooth_field, 0.05),
    "strokes": (strokes, 0.07),
    "front": (front, 0.04),
    "point_clusters": (point_clusters, 0.05),
    "plumes": (plumes, 0.05),
}
"""The same of scenes in which figures repeat; there are no discs among them."""

BOTH: dict[str, tuple[Family, float]] = {
    name: (family, sum(world[name][1] for world in (FAMILIES, REPEATS) if name in world) / 2)
    for name, (family, _) in {**FAMILIES, **REPEATS}.items()
}
"""Scenes of which one half is of the one sort, one half of the other."""

WORLDS = {"scenes": FAMILIES, "repeats": REPEATS, "both": BOTH}
"""Families of scenes by the name under which a memory is trained on them."""


def scene(
    rng: np.random.Generator, h: int, w: int, world: dict[str, tuple[Family, float]] = FAMILIES
) -> Array:
    """One scene (h, w) in [0, 1] from a random family of a world."""
    families = [family for family, _ in world.values()]
    shares = [share for _, share in world.values()]
    return families[int(rng.choice(len(families), p=shares))](rng, h, w)
