"""Layers from rasters of any resolution and from tables of cells."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from engram.errors import InputError
from engram.grid import Grid
from engram.layer_files import parsed, read_belief, read_layer, read_layers

GRID = Grid(4, 6, cell=(2, 2))  # 2x3 cells


def saved(folder: Path, array: np.ndarray, name: str = "layer.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def test_pixels_are_averaged_into_cells_whatever_their_number(tmp_path: Path) -> None:
    cells = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for factor in (1, 2, 7):
        fine = np.kron(cells, np.ones((factor, factor)))
        layer = read_layer("z", saved(tmp_path, fine), GRID)
        np.testing.assert_allclose(layer.values, cells.ravel())


def test_pixels_that_lie_in_two_cells_count_in_both(tmp_path: Path) -> None:
    grid = Grid(2, 2)
    layer = read_layer("z", saved(tmp_path, np.arange(9.0).reshape(3, 3)), grid)
    weights = np.array([[2, 1, 0], [0, 1, 2]]) / 3
    expected = weights @ np.arange(9.0).reshape(3, 3) @ weights.T
    np.testing.assert_allclose(layer.values, expected.ravel())


def test_missing_pixels_leave_the_known_part_of_a_cell(tmp_path: Path) -> None:
    fine = np.kron(np.arange(6.0).reshape(2, 3), np.ones((2, 2)))
    fine[:2, :2] = np.nan
    fine[2, 2], fine[3, 3] = np.nan, 100.0
    layer = read_layer("z", saved(tmp_path, fine), GRID)
    assert np.isnan(layer.values[0])
    assert layer.values[4] == pytest.approx((4 + 4 + 100) / 3)


def test_last_cells_may_stick_out_over_the_edge(tmp_path: Path) -> None:
    pixels = np.arange(25.0).reshape(5, 5)  # an image of 5x5 in cells of 2x2
    found = read_layers(Grid(6, 6, cell=(2, 2)), [f"z={saved(tmp_path, pixels)}"], span=(2.5, 2.5))
    assert found is not None
    assert found.get("z").values[8] == 24
    assert found.get("z").values[0] == pixels[:2, :2].mean()


def test_nodata_and_transparency_are_missing(tmp_path: Path) -> None:
    tags = ImageFileDirectory_v2()
    tags[42113] = "-9999"
    heights = np.array([[-9999, 2, 3], [4, 5, 6]], np.float32)
    Image.fromarray(heights).save(tmp_path / "dem.tif", tiffinfo=tags)
    layer = read_layer("dem", tmp_path / "dem.tif", GRID, "less")
    np.testing.assert_array_equal(layer.values, [np.nan, 2, 3, 4, 5, 6])
    assert layer.expected == "less"
    grey = np.array([[10, 20, 30], [40, 50, 60]], np.uint8)
    alpha = np.array([[255, 0, 255], [255, 255, 255]], np.uint8)
    Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha)]).save(tmp_path / "a.png")
    assert np.isnan(read_layer("a", tmp_path / "a.png", GRID).values[1])


def test_of_categories_the_one_that_covers_most_counts(tmp_path: Path) -> None:
    codes = np.kron(np.array([[3, 3, 7], [7, 7, 3]]), np.ones((3, 3), int))
    codes[0, 0] = 7
    layer = read_layer("cover", saved(tmp_path, codes), GRID, "kinds")
    assert layer.categories == ("3", "7")
    np.testing.assert_array_equal(layer.values, [0, 0, 1, 1, 1, 0])


def test_a_table_names_its_cells_or_has_one_row_for_each(tmp_path: Path) -> None:
    table = tmp_path / "cells.csv"
    table.write_text("row,col,z,rock\n1,2,6,a\n0,0,1,b\n0,1,,b\n0,2,3,\n1,0,4,a\n1,1,5,a\n")
    layer = read_layer("z", table, GRID)
    np.testing.assert_array_equal(layer.values, [1, np.nan, 3, 4, 5, 6])
    rock = read_layer("rock", table, GRID)
    assert rock.categories == ("a", "b")
    assert np.isnan(rock.values[2])
    plain = tmp_path / "plain.csv"
    plain.write_text("height\n" + "\n".join("123456") + "\n")
    np.testing.assert_array_equal(read_layer("z", plain, GRID).values, [1, 2, 3, 4, 5, 6])


def test_a_grey_belief_runs_from_0_to_1(tmp_path: Path) -> None:
    grey = np.array([[0, 51, 255], [102, 0, 0]], np.uint8)
    Image.fromarray(grey).save(tmp_path / "b.png")
    np.testing.assert_allclose(read_belief(tmp_path / "b.png", GRID), grey.ravel() / 255)
    table = tmp_path / "b.csv"
    table.write_text("row,col,chance\n" + "".join(f"{i // 3},{i % 3},0.{i}\n" for i in range(6)))
    np.testing.assert_allclose(read_belief(table, GRID), np.arange(6) / 10)


def test_how_a_layer_is_written() -> None:
    assert parsed("a=b.tif:more") == ("a", Path("b.tif"), "more")
    assert parsed("a=b:c.tif") == ("a", Path("b:c.tif"), "")
    for text in ("a", "=b.tif", "a="):
        with pytest.raises(InputError, match="not of the form NAME=FILE"):
            parsed(text)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 40)), "'z': .* has 5x40 pixels, which do not have the proportions"),
        (np.zeros((2, 3, 4)), r"'z': .* has shape \(2, 3, 4\); give one value per pixel"),
        (np.array([[np.inf, 1, 2], [3, 4, 5]]), "'z': .* has 1 infinite pixel"),
        (np.ones((2, 3)), "'z' is 1 in every open cell"),
        (np.full((2, 3), np.nan), "'z' is missing in every open cell"),
        (np.array(["a", "b"]), "'z': .* holds <U1, not numbers"),
    ],
)
def test_a_raster_that_does_not_fit_is_named(tmp_path: Path, array: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_layers(GRID, [f"z={saved(tmp_path, array)}"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,col,z\n0,0,1\n0,0,2\n", "line 3: cell .0, 0. is there twice"),
        ("row,col,z\n5,0,1\n", "line 2: cell"),
        ("row,col,z\nx,0,1\n", "line 2: row 'x' and col '0' are not whole numbers"),
        ("row,col,a,b\n0,0,1,2\n", "has no column 'z'; its columns are row, col, a, b"),
        ("z\n1\n2\n", "has 2 rows; give one for each of the 2x3 cells"),
        ("row,col,z\n0,0\n", "line 2 has 2 fields where the header has 3"),
        ("row,col,z\n0,0,inf\n0,1,2\n", "'z' is infinite in 1 cell"),
        ("", "has no column 'z'; its columns are none"),
    ],
)
def test_a_table_that_does_not_fit_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_layers(GRID, [f"z={tmp_path / 't.csv'}"])


def test_other_bad_input_in_one_line(tmp_path: Path) -> None:
    file = saved(tmp_path, np.arange(6.0).reshape(2, 3))
    cases = [
        ([f"z={file}", f"z={file}"], None, "layer 'z' is given twice"),
        ([f"z={tmp_path}/none.tif"], None, "no file at"),
        ([f"z={file}:most"], None, "'most' is none of more, less, kinds"),
        ([], file, "belief runs from 0 to 5"),
        ([f"belief={file}"], None, "kept for the belief map"),
    ]
    for layers, belief, words in cases:
        with pytest.raises(InputError, match=words) as caught:
            read_layers(GRID, layers, belief)
        assert "\n" not in str(caught.value)
    assert read_layers(GRID) is None
