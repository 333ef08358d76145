"""The loaders on real files; skipped where those are not at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engram.memory.datasets import photographs, species_maps
from engram.metrics import expected_random_rate
from engram.tasks.digits import digit_tasks
from engram.tasks.overhead import overhead_tasks
from engram.tasks.sets import TaskSet
from engram.tasks.species import species_tasks
from engram.tasks.tumour import tumour_tasks

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")


def target_cells(tasks: TaskSet, count: int) -> list[int]:
    return [tasks.task(k).targets for k in range(count)]


def random_rate(tasks: TaskSet, budget: int, count: int = 16) -> float:
    return float(np.mean([expected_random_rate(tasks.task(k), budget) for k in range(count)]))


def test_chickadees() -> None:
    path = DATA / "species" / "feederwatch_2021.csv.gz"
    tasks = species_tasks(path, "Poecile atricapillus")
    assert target_cells(tasks, 6) == [121, 213, 26, 62, 289, 66]
    named = species_tasks(path, "Black-capped Chickadee")
    np.testing.assert_array_equal(named.task(3).content, tasks.task(3).content)
    for budget, paper in ((150, 0.16), (200, 0.23), (250, 0.28)):
        assert random_rate(tasks, budget) == pytest.approx(paper, abs=0.05)


def test_caterpillars() -> None:
    tasks = species_tasks(DATA / "species" / "inat_caterpillars.csv.gz")
    assert target_cells(tasks, 6) == [340, 373, 114, 232, 78, 337]


def test_waxwings_as_points() -> None:
    path = DATA / "species" / "points_other.csv.gz"
    points = species_tasks(path, "Bombycilla cedrorum")
    assert points.options["layout"] == "points"
    assert target_cells(points, 6) == [16, 38, 19, 74, 27, 25]


def test_waxwings_as_gridded_counts() -> None:
    path = DATA / "species" / "ebird_fine_grid_monthly.csv.gz"
    cells = species_tasks(path, "Bombycilla cedrorum", years=(2014, 2016))
    assert cells.options["layout"] == "cells"
    assert cells.options["period"] == "month"
    for k in range(4):
        task = cells.task(k)
        assert task.facts["period"][:4] in ("2014", "2015", "2016")
        assert 1 < len(np.unique(task.content)) < 45  # a few dozen hexagons, not 4096 pixels


def test_lanternflies_with_true_absences() -> None:
    tasks = species_tasks(DATA / "species" / "lanternfly_10km.csv.gz")
    assert tasks.options["layout"] == "cells"
    for k in range(4):
        task = tasks.task(k)
        assert 512 <= len(task.grid.open_cells) < 1024
        assert 0 < task.targets < len(task.grid.open_cells)


@pytest.mark.parametrize(
    ("name", "count"), [("overhead_tiles.npz", 193), ("overhead_patches.npz", 315)]
)
def test_overhead(name: str, count: int) -> None:
    path = DATA / "overhead" / name
    tasks = overhead_tasks(path)
    assert len(tasks) == count
    parts = [len(overhead_tasks(path, target)) for target in ("vehicle", "plane", "ship")]
    assert sum(parts) == count
    for budget, paper in ((250, 0.23), (300, 0.29), (350, 0.32)):
        assert random_rate(tasks, budget) == pytest.approx(paper, abs=0.035)


def test_the_official_sample() -> None:
    tasks = overhead_tasks(DATA / "overhead" / "official_sample")
    assert len(tasks) == 1
    assert 0.1 < tasks.task(0).target.mean() < 0.21  # 21 % of the mask's pixels are not black


def test_tumours_and_digits() -> None:
    slices = tumour_tasks(DATA / "extra" / "brain_tumour_128.npz")
    assert len(slices) == 48
    assert all(0 < slices.task(k).targets < 100 for k in range(48))
    digits = digit_tasks(DATA / "mnist" / "t10k-images-idx3-ubyte.gz", digit=8)
    assert len(digits) == 974
    assert 50 < digits.task(0).targets < 250


def test_training_images() -> None:
    photos = photographs(DATA / "natural" / "imagenet1000_64.npz", 32, limit=50)
    assert photos.images.shape == (50, 32, 32, 3)
    zipped = photographs(DATA / "natural" / "imagenet1000_128.zip", 128, limit=5)
    assert zipped.images.std() > 20
    maps = species_maps(
        DATA / "species" / "points_other.csv.gz",
        exclude=["Bombycilla cedrorum", "Strymon melinus"],
        count=20,
    )
    assert "Papilio cresphontes" in maps.description
