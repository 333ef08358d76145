from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram import InputError
from engram.tasks.dota import TilePlan, read_labels, tile_mask
from engram.tasks.overhead import overhead_tasks

SIZE = 32


def stack(path: Path, n: int = 6, **arrays: np.ndarray) -> Path:
    rng = np.random.RandomState(1)
    masks = np.zeros((n, SIZE, SIZE), np.uint8)
    for i in range(n):
        masks[i, i : i + 4, 8:16] = 1
    content: dict[str, np.ndarray] = {
        "images": rng.randint(0, 256, (n, SIZE, SIZE, 3)).astype(np.uint8),
        "masks": masks,
        "target": np.array(["ship", "plane", "vehicle"] * (n // 3)),
    }
    np.savez_compressed(path, **{**content, **arrays})  # type: ignore[arg-type]
    return path


def message(path: Path, target: str = "all", size: int = SIZE) -> str:
    with pytest.raises(InputError) as caught:
        overhead_tasks(path, target, size=size)
    return str(caught.value)


def test_npz_tasks(tmp_path: Path) -> None:
    path = stack(tmp_path / "patches.npz")
    tasks = overhead_tasks(path, size=SIZE)
    assert len(tasks) == 6
    with np.load(path) as data:
        for k in range(6):
            task = tasks.task(k)
            i = task.facts["index"]
            np.testing.assert_allclose(
                task.content, data["images"][i].transpose(2, 0, 1) / 255, atol=1e-6
            )
            np.testing.assert_array_equal(task.target, data["masks"][i] == 1)
            assert task.facts["target"] == data["target"][i]
            assert task.grid.cell == (4, 4)
            assert task.outcomes.sum() * 16 == data["masks"][i].sum()
    assert {tasks.task(k).facts["index"] for k in range(6)} == set(range(6))


def test_the_target_filter(tmp_path: Path) -> None:
    path = stack(tmp_path / "patches.npz")
    ships = overhead_tasks(path, "ship", size=SIZE)
    assert {ships.task(k).facts["index"] for k in ships.numbers()} == {0, 3}
    assert "choose one of plane, ship, vehicle or all" in message(path, "tank")
    np.savez(tmp_path / "bare.npz", images=np.zeros((1, 4, 4, 3)), masks=np.ones((1, 4, 4)))
    assert "choose --target all" in message(tmp_path / "bare.npz", "ship")


def test_several_files_are_pooled(tmp_path: Path) -> None:
    paths = [stack(tmp_path / "b.npz"), stack(tmp_path / "a.npz", 3)]
    tasks = overhead_tasks(paths, size=SIZE)
    found = {(tasks.task(k).facts["file"], tasks.task(k).facts["index"]) for k in range(9)}
    assert len(found) == len(tasks) == 9
    assert [path.name for path in tasks.files] == ["a.npz", "b.npz"]


def test_faulty_npz_files(tmp_path: Path) -> None:
    path = stack(tmp_path / "patches.npz")
    assert "these tasks use 128x128 pixels of 3 channels" in message(path, size=128)
    short = stack(tmp_path / "short.npz", masks=np.ones((6, 16, 16)))
    assert "do not fit together" in message(short)
    empty = np.ones((6, SIZE, SIZE))
    empty[4] = 0
    assert "picture 4 is empty" in message(stack(tmp_path / "empty.npz", masks=empty))
    levels = stack(tmp_path / "levels.npz", masks=np.full((6, SIZE, SIZE), 7))
    assert "give 0 and 1, or 0 and 255" in message(levels)
    wide = stack(tmp_path / "wide.npz", images=np.full((6, SIZE, SIZE, 3), 255.0))
    assert "give bytes" in message(wide)
    few = stack(tmp_path / "few.npz", target=np.array(["ship"]))
    assert "one name per picture" in message(few)
    other = tmp_path / "other.npz"
    np.savez(other, pictures=np.zeros(3))
    assert "no array 'images', 'masks'; it has pictures" in message(other)
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "cannot read" in message(damaged)
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 0xFF
    damaged.write_bytes(bytes(flipped))
    assert "cannot read" in message(damaged)
    damaged.write_text("not a zip")
    assert "cannot read" in message(damaged)
    np.savez(other, images=np.array([{}], dtype=object), masks=np.zeros(1))
    assert "holds object" in message(other)  # pickled objects are never loaded


def save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        save(tmp_path / "images" / f"p{i}.png", np.full((SIZE, SIZE, 3), 40 * i, np.uint8))
        mask = np.zeros((SIZE, SIZE), np.uint8)
        mask[: 4 * (i + 1)] = 255
        save(tmp_path / "masks" / f"p{i}_mask.png" if i else tmp_path / "masks" / "p0.png", mask)
    return tmp_path


def test_image_and_mask_folders(folder: Path) -> None:
    tasks = overhead_tasks(folder, size=SIZE)
    assert len(tasks) == 3
    for k in range(3):
        task = tasks.task(k)
        i = int(task.facts["file"][1:])
        assert task.targets == 8 * (i + 1)
        np.testing.assert_allclose(task.content, 40 * i / 255)
    assert len(tasks.files) == 6


def test_images_and_masks_side_by_side(tmp_path: Path) -> None:
    save(tmp_path / "9036.png", np.zeros((SIZE, SIZE, 3), np.uint8))
    grey = np.zeros((SIZE, SIZE), np.uint8)
    grey[:4], grey[4:8] = 130, 120  # share of target in steps: from half upwards
    save(tmp_path / "9036_mask.png", grey)
    task = overhead_tasks(tmp_path, size=SIZE).task(0)
    assert task.targets == 8


def test_faulty_folders(folder: Path, tmp_path: Path) -> None:
    assert "choose --target all" in message(folder, "ship")
    (folder / "masks" / "p2_mask.png").rename(folder / "masks" / "q.png")
    assert "'p2' has no mask" in message(folder)
    (folder / "images" / "p2.png").unlink()
    assert "'q' has no image" in message(folder)
    (folder / "masks" / "q.png").unlink()
    save(folder / "masks" / "p0.png", np.zeros((8, 8), np.uint8))
    save(folder / "masks" / "p1_mask.png", np.zeros((8, 8), np.uint8))
    assert "the mask has 8x8 pixels, the image 32x32" in message(folder)
    for name in ("p0.png", "p1_mask.png"):
        save(folder / "masks" / name, np.zeros((SIZE, SIZE), np.uint8))
    assert "the mask is empty" in message(folder)
    for name in ("p0.png", "p1_mask.png"):
        save(folder / "masks" / name, np.full((SIZE, SIZE, 3), (255, 0, 0), np.uint8))
    assert "has colours" in message(folder)
    for name in ("p0.png", "p1.png"):
        (folder / "images" / name).write_bytes(b"no image")
    assert "cannot read image" in message(folder)
    (tmp_path / "void").mkdir()
    assert "no images in" in message(tmp_path / "void")


@pytest.fixture
def dota(tmp_path: Path) -> Path:
    """A 150x70 image with tiles of 64: two columns, one row."""
    pixels = np.zeros((70, 150, 3), np.uint8)
    pixels[:, 64:128] = 200
    save(tmp_path / "images" / "P0001.png", pixels)
    labels = tmp_path / "labelTxt"
    labels.mkdir()
    (labels / "P0001.txt").write_text(
        "imagesource:GoogleEarth\ngsd:0.14\n"
        "8.0 8.0 23.0 8.0 23.0 23.0 8.0 23.0 ship 0\n"
        "72 0 87 0 87 15 72 15 small-vehicle 0\n"
        "96 32 111 32 111 47 96 47 large-vehicle 1\n"
        "0 40 40 40 40 60 0 60 harbor 0\n"
    )
    return tmp_path


def test_dota_folders_are_cut_into_tiles(dota: Path) -> None:
    tiles = TilePlan(tile=64)
    tasks = overhead_tasks(dota, size=SIZE, tiles=tiles)
    assert len(tasks) == 2
    by_left = {task.facts["left"]: task for task in map(tasks.task, range(2))}
    assert by_left[0].target.sum() == 64  # 16x16 pixels reduced twice
    assert by_left[64].target.sum() == 128
    assert by_left[0].target[4:12, 4:12].all()
    assert by_left[64].target[0:8, 4:12].all()
    np.testing.assert_allclose(by_left[64].content, 200 / 255)
    ships = overhead_tasks(dota, "ship", size=SIZE, tiles=tiles)
    assert [ships.task(k).facts["left"] for k in ships.numbers()] == [0]
    easy = TilePlan(tile=64, difficult=False)
    vehicles = overhead_tasks(dota, "vehicle", size=SIZE, tiles=easy)
    assert vehicles.task(0).target.sum() == 64
    assert len(vehicles.files) == 2


def test_faulty_dota_folders(dota: Path) -> None:
    def fault(target: str = "all", **plan: object) -> str:
        with pytest.raises(InputError) as caught:
            overhead_tasks(dota, target, size=SIZE, tiles=TilePlan(**{"tile": 64, **plan}))  # type: ignore[arg-type]
        return str(caught.value)

    assert "choose one of vehicle, plane, ship or all" in fault("harbour")
    assert "Categories present: harbor, large-vehicle, ship, small-vehicle" in fault("plane")
    assert "the best had 0.125" in fault(share=(0.5, 0.9))
    assert "multiple of the task's size" in fault(tile=40)
    assert "0 < least < largest" in fault(share=(0.5, 0.1))
    (dota / "images" / "P0001.png").rename(dota / "images" / "P0002.png")
    assert "has no image P0001" in fault()
    (dota / "labelTxt" / "P0001.txt").write_text("1 2 3 4 5 6 7 ship 0\n")
    (dota / "images" / "P0002.png").rename(dota / "images" / "P0001.png")
    assert "line 1" in fault()
    (dota / "labelTxt-v1.5").mkdir()
    assert "several label folders" in fault()


def test_label_files_with_other_numbers_of_corners(tmp_path: Path) -> None:
    path = tmp_path / "label.txt"
    path.write_text("0 0 8 0 8 8 ship\n0 0 4 0 8 4 4 8 0 4 plane 2\n\n")
    triangle, pentagon = read_labels(path)
    assert triangle.corners.shape == (3, 2)
    assert not triangle.difficult
    assert pentagon.corners.shape == (5, 2)
    assert pentagon.difficult


def test_a_polygon_that_leaves_the_tile_is_cut() -> None:
    square = np.array([[-10.0, -10.0], [7.0, -10.0], [7.0, 7.0], [-10.0, 7.0]])
    mask = tile_mask([square], (0, 0), 8, 16)
    assert mask[:4, :4].all()
    assert mask.sum() == 16


def test_a_mosaic_is_pictures_side_by_side(tmp_path: Path) -> None:
    path = stack(tmp_path / "patches.npz", 9)
    single = overhead_tasks(path, size=SIZE)
    tasks = overhead_tasks(path, size=SIZE, mosaic=2, coarse=True)
    assert len(tasks) == 2  # the ninth picture is left over
    assert tasks.options["mosaic"] == 2
    assert "mosaic" not in single.options
    for k in range(2):
        area = tasks.task(k)
        assert (area.grid.rows, area.grid.cols) == (SIZE // 2, SIZE // 2)
        assert area.layers is not None
        for i in range(4):
            tile = single.task(4 * k + i)
            box = tuple(slice(n * SIZE, (n + 1) * SIZE) for n in divmod(i, 2))
            np.testing.assert_array_equal(area.content[(slice(None), *box)], tile.content)
            np.testing.assert_array_equal(area.target[box], tile.target)
    for wrong in (0, 4):
        with pytest.raises(InputError, match=f"mosaic={wrong}: give 1 to 3 pictures a side"):
            overhead_tasks(path, size=SIZE, mosaic=wrong)
