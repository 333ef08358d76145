"""DOTA folders: large images with one polygon per object, cut into tiles for search tasks.

A label file ``labelTxt/P0001.txt`` belongs to ``images/P0001.png``; each of its lines is

    x1 y1 x2 y2 x3 y3 x4 y4 category difficult

after optional headers such as ``imagesource:GoogleEarth``. Polygons may have more than four
corners; the difficult flag may be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._files import IMAGE_SUFFIXES, as_unit, open_image, read_text
from engram.errors import InputError
from engram.tasks.pictures import Picture, Pixels

TARGETS = {
    "small-vehicle": "vehicle",
    "large-vehicle": "vehicle",
    "plane": "plane",
    "helicopter": "plane",
    "ship": "ship",
}
"""DOTA category -> target of a task; the other categories are background."""

Window = tuple[int, int]
"""Left and top of a tile in the image's pixels."""


@dataclass(frozen=True)
class TilePlan:
    """How images are cut.

    tile      : side of a tile in the image's pixels, reduced to the size of the task
    share     : least and largest share of target pixels a tile may have
    difficult : whether objects marked as difficult count as target
    """

    tile: int = 512
    share: tuple[float, float] = (0.02, 0.30)
    difficult: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.share[0] < self.share[1] <= 1:
            raise InputError(f"share={self.share}: give two shares, 0 < least < largest <= 1")


@dataclass(frozen=True, eq=False)
class LabelledObject:
    """corners : (n, 2) x and y in pixels."""

    category: str
    corners: NDArray[np.float64]
    difficult: bool


def label_folder(path: Path) -> Path | None:
    """The folder of label files of a DOTA folder, None when it is not one."""
    folders = sorted(p for p in path.glob("labelTxt*") if p.is_dir())
    if len(folders) > 1:
        names = ", ".join(p.name for p in folders)
        raise InputError(f"{path} has several label folders ({names}); leave one")
    return folders[0] if folders else None


def read_labels(path: Path) -> list[LabelledObject]:
    """The objects of one label file."""
    objects = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.split()
        if not words or (":" in words[0] and len(words) < 8):
            continue
        digits = next((i for i, word in enumerate(words) if not _is_number(word)), len(words))
        if digits < 6 or digits % 2 or len(words) - digits not in (1, 2):
            raise InputError(
                f"{path}, line {number}: {line.strip()!r} is not 'x1 y1 x2 y2 x3 y3 x4 y4 "
                "category difficult'"
            )
        flag = words[digits + 1] if len(words) - digits == 2 else "0"
        corners = np.array([float(w) for w in words[:digits]]).reshape(-1, 2)
        objects.append(LabelledObject(words[digits].lower(), corners, flag != "0"))
    return objects


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False


def dota_pictures(
    path: Path, labels: Path, target: str, size: int, plan: TilePlan
) -> tuple[list[Picture], list[Path]]:
    """Tiles with a fitting share of target, and the files they come from.

    Whole tiles only, on a lattice from the top left corner; an image smaller than a tile has
    none. Tiles are found from the polygons alone; pixels are read when a task is made.
    """
    if plan.tile % size:
        raise InputError(
            f"tile={plan.tile}: give a multiple of the task's size, {size} (it is reduced by a "
            "whole factor)"
        )
    wanted = _wanted(target)
    folder = path / "images"
    images = {
        p.stem: p
        for p in sorted(folder.iterdir() if folder.is_dir() else [])
        if p.suffix.lower() in IMAGE_SUFFIXES
    }
    label_files = sorted(labels.glob("*.txt"))
    if not label_files or not images:
        raise InputError(f"{path}: no images in images/ or no .txt files in {labels.name}/")
    pictures: list[Picture] = []
    files: list[Path] = []
    seen: set[str] = set()
    best = 0.0
    for file in label_files:
        if file.stem not in images:
            raise InputError(
                f"{file} has no image {file.stem} in {folder}; add it or remove the file"
            )
        objects = read_labels(file)
        seen |= {item.category for item in objects}
        polygons = [
            item.corners
            for item in objects
            if item.category in wanted and (plan.difficult or not item.difficult)
        ]
        tiles, most = _tiles(images[file.stem], polygons, size, plan)
        best = max(best, most)
        pictures += tiles
        files += [images[file.stem], file] if tiles else []
    if not pictures:
        raise InputError(
            f"no tile of {path} has a share of {target!r} from {plan.share[0]:g} to "
            f"{plan.share[1]:g}; the best had {best:.3g}. Categories present: "
            f"{', '.join(sorted(seen)) or 'none'}"
        )
    return pictures, files


def _wanted(target: str) -> set[str]:
    if target == "all":
        return set(TARGETS)
    wanted = {category for category, group in TARGETS.items() if target in (group, category)}
    if not wanted:
        known = ", ".join(dict.fromkeys(TARGETS.values()))
        raise InputError(f"unknown target {target!r}; choose one of {known} or all")
    return wanted


def _tiles(
    image: Path, polygons: list[NDArray[np.float64]], size: int, plan: TilePlan
) -> tuple[list[Picture], float]:
    """Fitting tiles of one image, and the largest share of target of any."""
    width, height = _image_size(image)
    pictures, best = [], 0.0
    for top in range(0, height - plan.tile + 1, plan.tile):
        for left in range(0, width - plan.tile + 1, plan.tile):
            near = [
                p
                for p in polygons
                if (p.max(axis=0) >= (left, top)).all()
                and (p.min(axis=0) < (left + plan.tile, top + plan.tile)).all()
            ]
            if not near:
                continue
            share = float(tile_mask(near, (left, top), size, plan.tile).mean())
            best = max(best, share)
            if plan.share[0] <= share <= plan.share[1]:
                facts = {"file": image.name, "left": left, "top": top, "objects_near": len(near)}
                reader = _tile_reader(image, near, (left, top), size, plan.tile)
                pictures.append(Picture(f"{image} at ({left}, {top})", reader, facts))
    return pictures, best


def tile_mask(
    polygons: list[NDArray[np.float64]], window: Window, size: int, tile: int
) -> NDArray[np.bool_]:
    """(size, size) True where at least half of the image's pixels lie in a polygon."""
    from PIL import Image, ImageDraw

    canvas = Image.new("1", (tile, tile))
    draw = ImageDraw.Draw(canvas)
    for corners in polygons:
        draw.polygon([tuple(point) for point in (corners - window).tolist()], fill=1)
    step = tile // size
    shares = np.asarray(canvas, np.float32).reshape(size, step, size, step).mean(axis=(1, 3))
    return np.asarray(shares >= 0.5)


def _image_size(path: Path) -> tuple[int, int]:
    with open_image(path, str(path)) as image:
        return image.size


def _tile_reader(
    path: Path, polygons: list[NDArray[np.float64]], window: Window, size: int, tile: int
) -> Callable[[], Pixels]:
    def read() -> Pixels:
        left, top = window
        with open_image(path, str(path)) as image:
            part = image.crop((left, top, left + tile, top + tile)).convert("RGB")
        reduced = part.reduce(tile // size) if tile > size else part
        pixels = as_unit(np.asarray(reduced, np.uint8), str(path))
        return pixels, tile_mask(polygons, window, size, tile)

    return read
