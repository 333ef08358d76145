from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram import InputError
from engram.memory.datasets import photographs, species_maps
from engram.memory.sources import ArraySource
from engram.tasks.species_plan import SpeciesPlan

BOX = (40.0, 50.0, -100.0, -90.0)


def picture(value: int, size: tuple[int, int] = (16, 16)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (value, 0, 255 - value)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as file:
        for i in (3, 1, 2, 0):
            file.writestr(f"class/{i}.PNG", picture(50 * i, (24, 16)))
        file.writestr("classes.tsv", "n1\tdog\n")
    return path


def test_photographs_of_archives_stacks_and_folders_are_the_same(
    archive: Path, tmp_path: Path
) -> None:
    zipped = photographs(archive, 16)
    assert zipped.images.shape == (4, 16, 16, 3)
    assert zipped.description == "4 photographs of photos.zip"
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "folder")
    folder = photographs(tmp_path / "folder", 16)
    np.testing.assert_array_equal(zipped.images, folder.images)
    in_order = np.stack(
        [np.full((16, 16, 3), (50 * i, 0, 255 - 50 * i), np.uint8) for i in range(4)]
    )
    np.savez(tmp_path / "stack.npz", images=in_order)
    np.testing.assert_array_equal(zipped.images, photographs(tmp_path / "stack.npz", 16).images)
    assert ArraySource(zipped.images, description="photographs").shape == (3, 16, 16)


def test_a_subset_and_another_order(archive: Path) -> None:
    every = photographs(archive, 8, channels=1).images
    assert every.shape == (4, 8, 8)
    np.testing.assert_array_equal(photographs(archive, 8, channels=1, limit=2).images, every[:2])
    other = photographs(archive, 8, channels=1, seed=5).images
    assert other.tolist() != every.tolist()
    assert sorted(other.mean((1, 2))) == sorted(every.mean((1, 2)))


def test_faulty_photographs(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fewer than the 32x32 asked for"):
        photographs(archive, 32)
    with pytest.raises(InputError, match="channels=2"):
        photographs(archive, 8, channels=2)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-30])
    with pytest.raises(InputError, match="give a zip archive"):
        photographs(archive, 8)
    archive.write_bytes(whole.replace(b"IDAT", b"IDOT", 1))
    with pytest.raises(InputError, match=r"cannot read .*class/"):
        photographs(archive, 8)
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as file:
        file.writestr("readme.txt", "no pictures")
    with pytest.raises(InputError, match="no images"):
        photographs(tmp_path / "text.zip", 8)
    np.savez(tmp_path / "flat.npz", images=np.zeros((4, 9)))
    with pytest.raises(InputError, match=r"give \(n, H, W"):
        photographs(tmp_path / "flat.npz", 8)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.RandomState(0)
    lines = ["species,latitude,longitude"]
    for name, count, hub in (
        ("Poecile atricapillus", 200, (43, -97)),
        ("Poecile carolinensis/atricapillus", 200, (43, -97)),
        ("Sitta carolinensis", 200, (46, -94)),
        ("Lynx rufus", 5, (46, -94)),
    ):
        places = rng.normal(hub, 0.8, (count, 2))
        lines += [f"{name},{a:.4f},{b:.4f}" for a, b in places]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    return path


def test_maps_never_show_the_target_species(table: Path) -> None:
    plan = SpeciesPlan(box=BOX, min_records=30, max_share=1.0)
    stack = species_maps(table, exclude=["Poecile atricapillus"], count=20, plan=plan)
    assert stack.images.shape == (20, 64, 64)
    assert "of 1 species: Sitta carolinensis (table.csv); without Poecile" in stack.description
    assert set(np.unique(stack.images)) == {0, 128, 202, 255}  # 0, 1, 2, 3 or more records
    again = species_maps(table, exclude=["Poecile atricapillus"], count=20, plan=plan)
    np.testing.assert_array_equal(stack.images, again.images)
    assert stack.sha256 == again.sha256


def test_a_misspelt_target_is_not_trained_on(table: Path) -> None:
    plan = SpeciesPlan(box=BOX, min_records=30, max_share=1.0)
    with pytest.raises(InputError, match="'Poecile atricapilus' is in none of the tables, but P"):
        species_maps(table, exclude=["Poecile atricapilus"], count=2, plan=plan)
    absent = species_maps(table, exclude=["Lynx rufus"], count=2, plan=plan)
    assert "of 2 species" in absent.description


def test_maps_of_chosen_species_only(table: Path) -> None:
    plan = SpeciesPlan(box=BOX, min_records=30, max_share=1.0)
    stack = species_maps(table, exclude=["Sitta"], only=["Poecile"], count=2, plan=plan)
    assert "of 1 species: Poecile atricapillus" in stack.description
    with pytest.raises(InputError, match="no species but Sitta has a region"):
        species_maps(table, exclude=["Sitta"], only=["Lynx"], count=2, plan=plan)
    with pytest.raises(InputError, match="--exclude"):
        species_maps(table, exclude=[], count=2)
    with pytest.raises(InputError, match="count=1"):
        species_maps(table, exclude=["Sitta"], count=1)
