from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engram import InputError
from engram.tasks.cutting import Cut
from engram.tasks.raster import raster_task
from engram.tasks.strips import cells_of


def _image(path: Path, array: Any, mode: str | None = None) -> Path:
    picture = Image.fromarray(np.asarray(array))
    (picture if mode is None else picture.convert(mode)).save(path)
    return path


@pytest.fixture
def square(tmp_path: Path) -> Path:
    """A grey image of 24x20 with a bright block."""
    pixels = np.full((24, 20), 40, np.uint8)
    pixels[4:10, 6:12] = 200
    return _image(tmp_path / "area.png", pixels)


def test_png_and_threshold(square: Path) -> None:
    raster = raster_task(square, above=100)
    task = raster.task
    assert (task.grid.height, task.grid.width, task.grid.channels) == (24, 20, 1)
    assert task.target.sum() == 36
    assert task.content.max() == pytest.approx(200 / 255)
    assert task.name == "area"
    assert any("brighter than 100" in note for note in raster.notes)


def test_mask_files_of_every_kind_agree(square: Path, tmp_path: Path) -> None:
    mask = np.zeros((24, 20), np.uint8)
    mask[4:10, 6:12] = 1
    np.save(tmp_path / "m.npy", mask.astype(bool))
    np.savez(tmp_path / "m.npz", target=mask, other=np.ones(3))
    files = [
        _image(tmp_path / "m1.png", mask),
        _image(tmp_path / "m255.png", mask * 255),
        _image(tmp_path / "m1bit.png", mask * 255, "1"),
        _image(tmp_path / "rgb.png", np.repeat(mask[..., None] * 255, 3, 2)),
        tmp_path / "m.npy",
        tmp_path / "m.npz",
    ]
    for file in files:
        target = raster_task(square, target=file).task.target
        np.testing.assert_array_equal(target, mask.astype(bool), err_msg=file.name)


def test_colours_become_brightness_and_grey_becomes_colours(tmp_path: Path) -> None:
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4, :, 1] = 255
    path = _image(tmp_path / "colour.png", pixels)
    grey = raster_task(path, above=100)
    assert grey.task.content.max() == pytest.approx(0.587, abs=1e-3)
    assert grey.task.target.sum() == 32
    assert any("brightness" in note for note in grey.notes)
    colour = raster_task(path, above=100, channels=3)
    assert colour.task.content.shape == (3, 8, 8)
    assert colour.task.content[1].max() == 1.0
    plain = _image(tmp_path / "grey.png", pixels[..., 1])
    three = raster_task(plain, above=100, channels=3)
    assert three.task.content.shape == (3, 8, 8)
    assert any("repeated" in note for note in three.notes)
    clear = np.dstack([pixels, np.full((8, 8), 255, np.uint8)])
    with_alpha = raster_task(_image(tmp_path / "alpha.png", clear), above=100)
    assert any("Transparency" in note for note in with_alpha.notes)
    assert not any("Transparency" in note for note in grey.notes)


def test_arrays_in_every_layout(tmp_path: Path) -> None:
    base = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    colour = np.stack([base, base**2, 1 - base])
    np.save(tmp_path / "hw.npy", base)
    np.save(tmp_path / "chw.npy", colour)
    np.save(tmp_path / "hwc.npy", colour.transpose(1, 2, 0))
    np.savez(tmp_path / "only.npz", whatever=base)
    one = raster_task(tmp_path / "hw.npy", above=0.5).task
    np.testing.assert_array_equal(one.content[0], base)
    np.testing.assert_array_equal(
        raster_task(tmp_path / "only.npz", above=0.5).task.content[0], base
    )
    planes = [
        raster_task(tmp_path / name, above=0.4, channels=3).task.content
        for name in ("chw.npy", "hwc.npy")
    ]
    np.testing.assert_array_equal(planes[0], planes[1])
    np.testing.assert_array_equal(planes[0], colour)
    np.save(tmp_path / "four.npy", np.stack([base] * 4))
    with pytest.raises(InputError, match="1 or 3 channels"):
        raster_task(tmp_path / "four.npy", above=0.5)


def test_other_ranges_are_rescaled_and_thresholds_stay_in_their_units(tmp_path: Path) -> None:
    values = np.linspace(-20, 300, 64).reshape(8, 8)
    np.save(tmp_path / "t.npy", values)
    raster = raster_task(tmp_path / "t.npy", above=250)
    assert (raster.task.content.min(), raster.task.content.max()) == (0.0, 1.0)
    assert raster.task.target.sum() == (values > 250).sum()
    assert any("-20 to 300" in note for note in raster.notes)
    sixteen = _image(
        tmp_path / "deep.png", np.linspace(0, 60000, 64).reshape(8, 8).astype(np.uint16)
    )
    assert raster_task(sixteen, above=30000).task.target.sum() == 32


def test_large_images_of_one_pixel_cells_are_reduced_and_lose_no_target(tmp_path: Path) -> None:
    pixels = np.zeros((300, 200), np.uint8)
    pixels[17, 33] = 255
    path = _image(tmp_path / "large.png", pixels)
    raster = raster_task(path, above=100, limit=(64, 64))
    grid = raster.task.grid
    assert (grid.height, grid.width) == (64, 43)
    assert raster.task.targets == 1
    assert any("from 300x200 to 64x43" in note for note in raster.notes)


def test_cells_are_of_the_images_own_pixels(tmp_path: Path) -> None:
    """What is kept follows the cells, what was found stays exact."""
    pixels = np.zeros((300, 410, 3), np.uint8)
    pixels[:, :205] = (90, 60, 30)
    pixels[117:120, 230:232] = 255
    path = _image(tmp_path / "large.png", pixels)
    raster = raster_task(path, above=200, cell=(100, 10), limit=(64, 64), channels=3)
    task, grid = raster.task, raster.task.grid
    assert (grid.rows, grid.cols, grid.cell) == (3, 41, (8, 8))
    assert (raster.cut.size, raster.cut.cell) == ((300, 410), (100, 10))
    assert task.targets == 1
    assert task.outcomes[grid.index((1, 23))] == pytest.approx(6 / 1000)
    assert task.measure((1, 23)).outcome == pytest.approx(6 / 1000)
    assert task.target[grid.block((1, 23))].sum() == task.target.sum() == 2
    left = np.array([90, 60, 30]) / 255
    np.testing.assert_allclose(task.measure((2, 3)).content.mean(axis=(1, 2)), left, atol=1e-6)
    assert "Cells of 100x10 pixels of the image: 3x41 cells." in raster.notes
    assert "Of each cell 8x8 averages are kept." in raster.notes


def test_size_is_taken_at_its_word(square: Path) -> None:
    raster = raster_task(square, above=100, size=(48, 40), limit=(8, 8))
    assert (raster.task.grid.height, raster.task.grid.width) == (48, 40)
    assert 100 < raster.task.target.sum() < 180
    cells = raster_task(square, above=100, size=(48, 40), cell=(24, 20)).task.grid
    assert (cells.rows, cells.cols) == (2, 2)


def test_cells_that_stick_out_are_filled_up_and_named(square: Path) -> None:
    """24x20 pixels in cells of 5x6; the target ends in column 12, so make one at the edge."""
    pixels = np.asarray(Image.open(square)).copy()
    pixels[20:, 18:] = 200
    raster = raster_task(_image(square, pixels), above=100, cell=(5, 6))
    task = raster.task
    assert (task.grid.rows, task.grid.cols) == (5, 4)
    assert (task.grid.height, task.grid.width) == (25, 24)
    assert task.outcomes[-1] == 1.0  # all of the picture's own pixels in it
    assert task.target[:24, :20].sum() == task.target.sum() == 36 + 8
    assert task.content[0, -1, -1] == pytest.approx(200 / 255)
    assert any("1 rows and 4 columns beyond the image" in note for note in raster.notes)


@pytest.mark.parametrize(
    ("cell", "kept"), [((7, 9), (7, 8)), ((13, 4), (8, 4)), ((50, 60), (8, 8))]
)
def test_what_is_kept_agrees_with_the_pixels(
    tmp_path: Path, cell: tuple[int, int], kept: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((97, 120)) < 0.002
    cut = Cut((97, 120), cell)
    assert cut.kept == kept
    shares = cut.shares(mask).reshape(cut.rows, cut.cols)
    small = cut.target(mask)
    assert small.shape == (cut.rows * kept[0], cut.cols * kept[1])
    for row in range(cut.rows):
        for col in range(cut.cols):
            own = mask[row * cell[0] : (row + 1) * cell[0], col * cell[1] : (col + 1) * cell[1]]
            assert shares[row, col] == own.mean()
            shown = small[row * kept[0] : (row + 1) * kept[0], col * kept[1] : (col + 1) * kept[1]]
            assert shown.any() == own.any()


def test_of_very_many_cells_fewer_averages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values follow the cells, whatever they hold; strips of a picture are kept alike."""
    assert Cut((8000, 10000), (40, 40)).kept == (8, 8)
    assert Cut((8000, 10000), (16, 16)).kept == (3, 3)
    assert Cut((8000, 10000), (2, 2)).kept == (1, 1)
    assert Cut((8000, 10000), (1, 1)).kept == (1, 1)
    monkeypatch.setattr("engram.tasks.strips.AT_ONCE", 30 * 16)
    monkeypatch.setattr("engram.tasks.cutting.VALUES", 200)
    plane = np.random.default_rng(0).random((48, 30), dtype=np.float32)
    cut = Cut((48, 30), (8, 6))
    assert cut.kept == (2, 2)
    np.testing.assert_allclose(cells_of(lambda rows: plane[rows], cut), cut.content(plane))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "say what the targets are"),
        ({"above": 250}, "no pixel is; .* from 40 to 200"),
        ({"above": 3}, "every pixel is"),
        ({"above": 100, "cell": (30, 1)}, "larger than the image"),
        ({"above": 100, "cell": (0, 1)}, "cell=0,1"),
    ],
)
def test_bad_requests_are_named(square: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        raster_task(square, **options)


def test_both_kinds_of_target_at_once_are_refused(square: Path) -> None:
    with pytest.raises(InputError, match="say what the targets are"):
        raster_task(square, target=square, above=1)


def test_wrong_masks_are_named(square: Path, tmp_path: Path) -> None:
    small = _image(tmp_path / "small.png", np.full((5, 6), 255, np.uint8))
    with pytest.raises(InputError, match=r"shape \(5, 6\), the image is 24x20"):
        raster_task(square, target=small)
    empty = _image(tmp_path / "empty.png", np.zeros((24, 20), np.uint8))
    with pytest.raises(InputError, match="marks no target"):
        raster_task(square, target=empty)
    with pytest.raises(InputError, match="no file"):
        raster_task(square, target=tmp_path / "absent.png")
    np.save(tmp_path / "text.npy", np.full((24, 20), "x"))
    with pytest.raises(InputError, match="not numbers"):
        raster_task(square, target=tmp_path / "text.npy")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.npy", "a.npz", "a.txt"])
def test_unreadable_files_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for content in (b"", b"not an image at all", b"PK\x03\x04 broken", b"\x89PNG\r\n\x1a\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="cannot read"):
            raster_task(path, above=1)
    with pytest.raises(InputError, match="no file"):
        raster_task(tmp_path / "absent" / name, above=1)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.full((8, 8), np.nan), "NaN or infinite"),
        (np.full((8, 8), np.inf), "NaN or infinite"),
        (np.zeros((8, 8, 7)), "is not an image"),
        (np.zeros(8), "is not an image"),
        (np.zeros((0, 8)), "is empty"),
        (np.full((8, 8), "x"), "not numbers"),
        (np.zeros((8, 8), np.complex64), "not numbers"),
    ],
)
def test_arrays_that_are_no_image_are_named(tmp_path: Path, array: Any, complaint: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=complaint):
        raster_task(tmp_path / "a.npy", above=0.5)


def test_npz_files_need_a_name_to_choose_by(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=np.eye(8), b=np.eye(8))
    with pytest.raises(InputError, match=r"\(a, b\); name the one to use 'image'"):
        raster_task(tmp_path / "two.npz", above=0.5)
    np.savez(tmp_path / "named.npz", image=np.eye(8), b=np.ones(3))
    assert raster_task(tmp_path / "named.npz", above=0.5).task.targets == 8


def test_a_cut_image_is_refused(square: Path) -> None:
    square.write_bytes(square.read_bytes()[:60])
    with pytest.raises(InputError, match="cannot read image"):
        raster_task(square, above=1)
