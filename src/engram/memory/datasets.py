"""Training images of the permanent memories: natural photographs and species maps.

Both come back as bytes in a stack, ready for ``engram.memory.sources.ArraySource``. The same
files, options and seed give the same stack on every machine.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._arrays import check_room, read_arrays
from engram._files import (
    IMAGE_SUFFIXES,
    Paths,
    as_paths,
    as_unit,
    read_image,
    sha256_of,
)
from engram.errors import InputError
from engram.tasks.occurrences import Occurrences, Years
from engram.tasks.regions import lattice_of, log_counts
from engram.tasks.sets import task_rng
from engram.tasks.species import RegionSearch
from engram.tasks.species_plan import SpeciesPlan
from engram.tasks.tables import read_occurrences

PRIOR_PLAN = SpeciesPlan(min_records=30, max_share=1.0)
"""Regions for a prior: fewer records are enough, and full ones teach something too."""

Reader = Callable[[], NDArray[np.uint8]]
"""Brings the pixels (H, W) or (H, W, 3) of a picture."""


@dataclass(frozen=True, eq=False)
class TrainingStack:
    """images (n, H, W) or (n, H, W, C) uint8; where they come from, in words and as a hash."""

    images: NDArray[np.uint8]
    description: str
    sha256: str


def photographs(
    paths: Paths, size: int, *, channels: int = 3, limit: int | None = None, seed: int = 0
) -> TrainingStack:
    """Photographs of zip archives, .npz files (``images``) and folders: (n, size, size, C).

    Larger pictures are cut to a square around the centre and reduced; smaller ones are
    refused, since enlarging them would teach a blurred world. ``limit`` keeps a random subset.
    Pictures come in random order, so that the tail kept for validation is like the rest.
    """
    if channels not in (1, 3):
        raise InputError(f"channels={channels}: photographs have 1 (grey) or 3 (colour) channels")
    files = as_paths(paths)
    mode = "L" if channels == 1 else "RGB"
    pictures = [item for path in files for item in _pictures(path, mode)]
    order = task_rng("photographs", seed).permutation(len(pictures))[:limit]
    images = np.empty((len(order), size, size, *([3] if channels == 3 else [])), np.uint8)
    for row, i in enumerate(order):
        name, read = pictures[int(i)]
        images[row] = _fitted(read(), name, size)
    used = [f for path in files for f in ([path] if path.is_file() else _image_files(path))]
    names = " + ".join(path.name for path in files)
    return TrainingStack(images, f"{len(images)} photographs of {names}", sha256_of(used))


def _pictures(path: Path, mode: str) -> Iterator[tuple[str, Reader]]:
    """Name and reader of every picture, in the order of the names."""
    if path.is_dir():
        for file in _image_files(path):
            yield str(file), partial(read_image, file, str(file), mode)
    elif path.suffix.lower() == ".npz":
        stack = read_arrays(path, ("images",))["images"]
        if stack.ndim not in (3, 4) or (stack.ndim == 4 and stack.shape[3] not in (1, 3)):
            raise InputError(f"{path}: images have shape {stack.shape}; give (n, H, W[, 1 or 3])")
        for i, image in enumerate(stack):
            where = f"{path}, picture {i}"
            yield where, partial(_converted, image, where, mode)
    else:
        yield from _zipped(path, mode)


def _converted(image: NDArray[Any], where: str, mode: str) -> NDArray[np.uint8]:
    from PIL import Image

    pixels = np.rint(as_unit(image, where) * 255).astype(np.uint8)
    grey = pixels.ndim == 3 and pixels.shape[2] == 1
    return np.asarray(Image.fromarray(pixels[..., 0] if grey else pixels).convert(mode), np.uint8)


def _image_files(folder: Path) -> list[Path]:
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        raise InputError(f"no images ({', '.join(sorted(IMAGE_SUFFIXES))}) below {folder}")
    return files


def _zipped(path: Path, mode: str) -> Iterator[tuple[str, Reader]]:
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"cannot read {path}: {error}; give a zip archive of images, an .npz file or a folder"
        ) from error
    names = sorted(n for n in archive.namelist() if Path(n).suffix.lower() in IMAGE_SUFFIXES)
    if not names:
        raise InputError(f"no images ({', '.join(sorted(IMAGE_SUFFIXES))}) in {path}")
    for name in names:
        yield f"{path}, {name}", partial(_unzipped, archive, name, mode)


def _unzipped(archive: zipfile.ZipFile, name: str, mode: str) -> NDArray[np.uint8]:
    where = f"{archive.filename}, {name}"
    entry = archive.getinfo(name)
    check_room(entry.file_size, entry.compress_size, where)
    try:
        raw = archive.read(entry)
    except (OSError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"cannot read {where}: {error}; fetch the archive again") from error
    return read_image(raw, where, mode)


def _fitted(pixels: NDArray[np.uint8], name: str, size: int) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    height, width = pixels.shape[:2]
    if (height, width) == (size, size):
        return pixels
    if min(height, width) < size:
        raise InputError(
            f"{name} has {height}x{width} pixels, fewer than the {size}x{size} asked for; choose a "
            "smaller size or larger photographs"
        )
    reduced = ImageOps.fit(Image.fromarray(pixels), (size, size), Image.Resampling.LANCZOS)
    return np.asarray(reduced, np.uint8)


def species_maps(
    paths: Paths,
    *,
    exclude: Sequence[str],
    count: int,
    only: Sequence[str] = (),
    plan: SpeciesPlan = PRIOR_PLAN,
    columns: Mapping[str, str] | None = None,
    years: Years | None = None,
    max_uncertainty: float | None = None,
    seed: int = 0,
) -> TrainingStack:
    """Maps of many species in random regions, on the content scale of the tasks.

    exclude : the target species, of which no record may be used (names as in ``of_species``)
    only    : use these species alone; empty = every other species with enough records

    A species is drawn with a chance that grows with the square root of its records, then a
    region (and a period) as for tasks, then one of the eight ways to turn or mirror the map.
    """
    if not exclude:
        raise InputError("name the target species to leave out with exclude (--exclude)")
    if count < 2:
        raise InputError(f"count={count}: a memory needs at least 2 maps")
    files = as_paths(paths)
    searches: dict[str, RegionSearch] = {}
    sizes: list[float] = []
    tables = [
        read_occurrences(path, columns).filtered(years=years, max_uncertainty=max_uncertainty)
        for path in files
    ]
    _check_spelling(exclude, tables)
    for path, table in zip(files, tables, strict=True):
        lattice = lattice_of(table, plan.layout)
        for name, records in _prior_species(table, exclude, only).items():
            search = RegionSearch(records, plan, lattice)
            enough = search.regions.total >= plan.min_records
            if enough and _drawn(search, task_rng("maps", seed)) is not None:
                searches[f"{name} ({path.name})"] = search
                sizes.append(float(len(records)))
    if not searches:
        raise InputError(
            f"no species but {', '.join(exclude)} has a region with {plan.min_records} records in "
            f"{', '.join(path.name for path in files)}"
        )
    names = list(searches)
    chance = np.sqrt(sizes) / np.sqrt(sizes).sum()
    images = np.empty((count, plan.size, plan.size), np.uint8)
    for i in range(count):
        rng, content = task_rng("maps", seed, i), None
        while content is None:
            content = _drawn(searches[names[int(rng.choice(len(names), p=chance))]], rng)
        turned = np.rot90(content, int(rng.randint(4)))
        images[i] = np.rint(255 * (turned.T if rng.randint(2) else turned)).astype(np.uint8)
    description = (
        f"{count} maps of {plan.degrees:g} degrees of {len(names)} species: {', '.join(names)}; "
        f"without {', '.join(exclude)}"
    )
    return TrainingStack(images, description, sha256_of(files))


def _check_spelling(exclude: Sequence[str], tables: Sequence[Occurrences]) -> None:
    """Refuse a species to leave out that is in no table while one of nearly that name is."""
    present = {name for table in tables for name in table.names()}
    for name in exclude:
        if any(table.matching(name).any() for table in tables):
            continue
        close = get_close_matches(name, sorted(present), n=3, cutoff=0.8)
        if close:
            raise InputError(
                f"exclude={name!r} is in none of the tables, but {', '.join(close)} is; check the "
                "spelling, or the memory would be trained on its target"
            )


def _prior_species(
    table: Occurrences, exclude: Sequence[str], only: Sequence[str]
) -> dict[str, Occurrences]:
    """Records of each species that may be learnt from, in the order of their number.

    An identification left open ('Poecile carolinensis/atricapillus') may be the target species
    and is never used.
    """
    allowed = np.char.find(table.species, "/") < 0
    for name in exclude:
        allowed &= ~table.matching(name)
    if only:
        allowed &= np.any([table.matching(name) for name in only], axis=0)
    rest = table.take(allowed)
    return {name: rest.take(rest.species == name) for name in rest.most_common()}


def _drawn(search: RegionSearch, rng: np.random.RandomState) -> NDArray[np.float32] | None:
    """Content of a region near the records of a species, None when it has hardly any."""
    try:
        return log_counts(search.draw(rng, anywhere=0, around=300)[2].counts, search.cap)
    except InputError:
        return None
