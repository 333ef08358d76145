"""Windows of one mapped area."""

from pathlib import Path

import numpy as np
import pytest

from engram.errors import InputError
from engram.tasks.windows import window_tasks


@pytest.fixture
def area(tmp_path: Path) -> Path:
    rng = np.random.RandomState(0)
    rock = rng.uniform(size=(26, 30))
    rock[3, 4] = np.nan
    path = tmp_path / "area.npz"
    gold = (rng.uniform(size=(26, 30)) < 0.1).astype(int)
    np.savez(path, gold=gold, rock=rock, slope=rock[:, ::-1], bad=np.zeros((2, 2)))
    return path


def test_a_window_is_a_part_of_the_area_with_its_layers(area: Path) -> None:
    tasks = window_tasks(area, "gold", "rock;slope", cell=4, spare=4)
    arrays = np.load(area)
    places = set()
    for k in range(5):
        task = tasks.task(k)
        top, left = task.facts["top"], task.facts["left"]
        places.add((top, left))
        assert (task.grid.rows, task.grid.cols) == (5, 6)
        assert task.layers is not None
        cut = (slice(top, top + 20), slice(left, left + 24))
        for name in ("rock", "slope"):
            blocks = arrays[name][cut].reshape(5, 4, 6, 4).swapaxes(1, 2).reshape(30, 16)
            expected = np.nanmean(blocks, axis=1)
            np.testing.assert_allclose(task.layers.get(name).values, expected)
        held = arrays["gold"][cut].reshape(5, 4, 6, 4).any(axis=(1, 3)).ravel()
        np.testing.assert_array_equal(task.outcomes, held.astype(float))
    assert len(places) > 1
    assert tasks.task(3).facts == window_tasks(area, "gold", cell=4, spare=4).task(3).facts


def test_what_is_expected_of_a_layer_is_told_with_it(area: Path) -> None:
    tasks = window_tasks(area, "gold", "rock:more; slope:less")
    layers = tasks.task(0).layers
    assert layers is not None
    assert {layer.name: layer.expected for layer in layers} == {"rock": "more", "slope": "less"}
    assert tasks.options["layers"] == ["rock:more", "slope:less"]


@pytest.mark.parametrize(
    ("target", "layers", "options", "words"),
    [
        ("lead", "", {}, "no array 'lead'"),
        ("gold", "rock;tin", {}, "no array 'tin'"),
        ("gold", "rock:much", {}, "say more, less or nothing"),
        ("gold", "bad", {}, r"'bad' has shape \(2, 2\), 'gold' \(26, 30\)"),
        ("gold", "", {"cell": 20}, "fewer than 2x2 cells"),
        ("gold", "", {"spare": -1}, "spare=-1"),
    ],
)
def test_faults_are_named(area: Path, target: str, layers: str, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        window_tasks(area, target, layers, **options)
