"""Tumour tasks: find the tumour in a slice of a magnetic-resonance scan."""

from __future__ import annotations

from engram._files import Paths, as_paths
from engram.tasks.pictures import Picture, picture_tasks, read_stack, stacked_pictures
from engram.tasks.sets import TaskSet


def tumour_tasks(paths: Paths, *, seed: int = 0, size: int = 128, cell: int = 4) -> TaskSet:
    """Slices of .npz files: ``images`` (n, H, W) grey and ``masks`` (n, H, W), 1 = tumour.

    Content is the grey level in [0, 1], the outcome of a cell its share of tumour pixels.
    """
    files = as_paths(paths)
    pictures: list[Picture] = []
    for path in files:
        _, images, masks = read_stack(path)
        pictures += stacked_pictures(path, images, masks, range(len(images)))
    return picture_tasks(
        "tumour", pictures, origin=files, files=files, shape=(size, size, 1), cell=cell, seed=seed
    )
