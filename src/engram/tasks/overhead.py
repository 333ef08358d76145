"""Overhead tasks (appendix N): find vehicles, planes or ships in an image from above.

128x128 pixels of three channels, queries of 4x4; the outcome of a query is its share of
target pixels. Read from

* ``.npz`` files with ``images`` (n, 128, 128, 3), ``masks`` (n, 128, 128) and ``target`` (n,)
* a folder with ``images/`` and ``masks/``, where an image and its mask have the same stem
  (a mask's may end in ``_mask``), or with images and ``*_mask`` files side by side
* a DOTA folder with ``images/`` and ``labelTxt*/``, cut into tiles (``engram.tasks.dota``)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._files import IMAGE_SUFFIXES, Paths, as_mask, as_paths, as_unit, read_image
from engram.errors import InputError
from engram.tasks.dota import TilePlan, dota_pictures, label_folder
from engram.tasks.pictures import Picture, Pixels, picture_tasks, read_stack, stacked_pictures
from engram.tasks.sets import TaskSet

ALL = "all"


def overhead_tasks(
    paths: Paths,
    target: str = ALL,
    *,
    seed: int = 0,
    size: int = 128,
    cell: int = 4,
    tiles: TilePlan | None = None,
    coarse: bool = False,
    mosaic: int = 1,
) -> TaskSet:
    """Tasks of files and folders, all pooled; ``target`` is vehicle, plane, ship or all.

    With 'all', each picture of an .npz file keeps its own target; in DOTA folders a pixel of
    any of the three counts. With ``coarse`` the picture reduced to one grey pixel per cell is known
    beforehand, as a layer; with ``mosaic`` so many pictures a side are one area. Image + mask
    folders do not say what their target is: 'all' only.
    """
    pictures: list[Picture] = []
    files: list[Path] = []
    options: dict[str, Any] = {"target": target}
    given = as_paths(paths)
    for path in given:
        if path.is_file():
            found, used = _npz_pictures(path, target), [path]
        elif (labels := label_folder(path)) is not None:
            tiles = tiles or TilePlan()
            found, used = dota_pictures(path, labels, target, size, tiles)
            options["tiles"] = vars(tiles)
        else:
            found, used = _folder_pictures(path, target)
        pictures += found
        files += used
    return picture_tasks(
        "overhead",
        pictures,
        origin=given,
        files=files,
        shape=(size, size, 3),
        cell=cell,
        seed=seed,
        label=target,
        options=options,
        coarse=coarse,
        mosaic=mosaic,
    )


def _npz_pictures(path: Path, target: str) -> list[Picture]:
    arrays, images, masks = read_stack(path)
    named = arrays.get("target")
    if named is not None and named.shape != (len(images),):
        raise InputError(f"{path}: target has shape {named.shape}; give one name per picture")
    keep: NDArray[np.intp] = np.arange(len(images))
    if target != ALL:
        if named is None:
            raise InputError(
                f"{path} has no array 'target' that says what each mask is; choose --target all"
            )
        keep = np.flatnonzero(named.astype(str) == target)
        if not len(keep):
            present = ", ".join(sorted({str(t) for t in named}))
            raise InputError(f"no target {target!r} in {path}; choose one of {present} or all")
    pictures = stacked_pictures(path, images, masks, [int(i) for i in keep])
    if named is not None:
        for picture in pictures:
            picture.facts["target"] = str(named[picture.facts["index"]])
    return pictures


def _folder_pictures(path: Path, target: str) -> tuple[list[Picture], list[Path]]:
    """Images and masks of the same stem below ``images/`` and ``masks/``, or side by side."""
    if target != ALL:
        raise InputError(
            f"{path}: masks of a folder do not say what their target is; choose --target all and "
            f"give a folder with the masks of {target!r}"
        )
    apart = (path / "masks").is_dir()
    image_folder, mask_folder = (path / "images", path / "masks") if apart else (path, path)
    masks = {stem: file for stem, file, marked in _images(mask_folder) if marked or apart}
    images = {stem: file for stem, file, marked in _images(image_folder) if apart or not marked}
    if not images:
        raise InputError(
            f"no images in {image_folder}; give an .npz file, a folder with images/ and masks/ (or "
            "images and *_mask files), or a DOTA folder with images/ and labelTxt/"
        )
    pairs = sorted(set(images) & set(masks))
    alone = sorted(set(images) ^ set(masks))
    if alone:
        which = "mask" if alone[0] in images else "image"
        raise InputError(
            f"{path}: {alone[0]!r} has no {which} of that name ({len(alone)} files are alone, "
            f"{len(pairs)} pairs fit); add it or remove the file"
        )
    pictures = [
        Picture(str(images[stem]), _pair_reader(images[stem], masks[stem]), {"file": stem})
        for stem in pairs
    ]
    return pictures, [file for stem in pairs for file in (images[stem], masks[stem])]


def _images(folder: Path) -> list[tuple[str, Path, bool]]:
    """(stem without '_mask', file, whether it had it) of the images of a folder."""
    if not folder.is_dir():
        return []
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)
    return [(p.stem.removesuffix("_mask"), p, p.stem.endswith("_mask")) for p in files]


def _pair_reader(image: Path, mask: Path) -> Callable[[], Pixels]:
    def read() -> Pixels:
        pixels = as_unit(read_image(image, str(image), "RGB"), str(image))
        return pixels, as_mask(read_image(mask, str(mask), "mask"), str(mask))

    return read
