"""A memory of one pixel per cell searches any area, and loses nothing on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engram import Grid, InputError, Observation, Task, make_policy, simulate
from engram.memory.layers import MAP, PHOTO, PRESENCE, LayerSet
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.lens import Lens, Lensed, lens_for
from engram.testing import tiny_memory


def colour_task() -> Task:
    rng = np.random.default_rng(0)
    grid = Grid(24, 24, 3, (4, 4), closed=np.eye(6, dtype=bool))
    target = np.zeros((24, 24), bool)
    target[6:15, 2:14] = True
    return Task("colour", grid, rng.random((3, 24, 24)).astype(np.float32), target)


def cells_memory(layers: tuple[str, ...] = PHOTO) -> PermanentMemory:
    memory = tiny_memory(len(layers))
    return PermanentMemory(memory.denoiser, replace(memory.card, layers=layers))


def test_layers_of_a_cell() -> None:
    contents = np.zeros((2, 3, 2, 2), np.float32)
    contents[0, 0], contents[0, 2] = 0.5, 1.0
    contents[1, :, 0] = 0.5
    table = PHOTO.seen(contents, np.array([0.25, 0.0], np.float32))
    assert table[0].tolist() == [0.5, 0.0, 1.0, 0.0, 0.25, 1.0]
    assert table[1].tolist() == pytest.approx([0.25, 0.25, 0.25, 1.0, 0.0, 0.0])
    grey = PHOTO.seen(contents[:, :1], np.zeros(2, np.float32))
    assert grey[0, :3].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("names", [("red", "colour", "presence"), ("presence", "red")])
def test_unknown_or_unordered_layers_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="layer"):
        LayerSet.checked(names)


def test_a_memory_looks_through_a_lens_only_where_it_must() -> None:
    one, cells = tiny_memory(1).card, cells_memory().card
    assert lens_for(one, Grid(20, 30)) is None
    assert lens_for(one, Grid(one.height, one.width, cell=(2, 2))) is None
    for grid in (Grid(20, 30, cell=(2, 2)), Grid(20, 30, 3)):
        lens = lens_for(one, grid)
        assert lens is not None
        assert lens.layers == ("presence",)
    lens = lens_for(cells, Grid(20, 30))
    assert lens is not None
    assert lens.grid.channels == len(PHOTO)
    assert lens_for(tiny_memory(3).card, Grid(20, 30, 3, (2, 2))) is None


def test_cells_keep_their_numbers_costs_and_closures() -> None:
    grid = colour_task().grid
    seen = Lens(grid, PHOTO).grid
    assert (seen.rows, seen.cols) == (grid.rows, grid.cols)
    assert np.array_equal(seen.closed, grid.closed)
    assert np.array_equal(seen.cost, grid.cost)


@pytest.mark.parametrize("layers", [PRESENCE, MAP, PHOTO])
def test_pictures_have_the_shape_and_range_of_the_area(layers: LayerSet) -> None:
    grid = Grid(12, 8, 3, (4, 2), range=(-2.0, 6.0))
    lens = Lens(grid, layers)
    image = lens.shown(np.random.default_rng(0).random((5, len(layers), 3, 4), np.float32) * 2)
    assert image.shape == (5, 3, 12, 8)
    assert image.min() >= -2
    assert image.max() <= 6
    assert layers.shows == ("target" if layers == ("presence",) else "content")


@pytest.mark.parametrize("name", ["em-ptdm", "diffatd", "greedy"])
@pytest.mark.parametrize("layers", [(), PHOTO])
def test_colour_areas_are_searched(name: str, layers: tuple[str, ...]) -> None:
    task = colour_task()
    memory = cells_memory(layers) if layers else tiny_memory(1)
    policy = make_policy(name, task.grid, 12, memory=memory)
    trace = simulate(policy, task, snapshots=(6,))
    assert len(set(trace.cells)) == len(trace.forecast) == len(trace.evidence) == 12
    view = policy.view()
    assert view.mean is None or view.mean.shape == (3, 24, 24)
    assert view.shows == ("content" if layers else "target")
    assert policy.log.evaluations > 0


def test_a_lensed_search_goes_on_from_its_state() -> None:
    task = colour_task()
    memory = cells_memory()
    one = make_policy("em-ptdm", task.grid, 30, memory=memory)
    for cell in [(0, 1), (2, 1), (3, 2), (5, 0)]:
        one.observe(task.measure(cell))
    two = make_policy("em-ptdm", task.grid, 30, memory=memory)
    assert isinstance(two, Lensed)
    two.restore(Observations(task.grid, one.observations), one.state())
    assert one.suggest(3) == two.suggest(3)


def test_outcomes_inside_are_presence_and_shares_are_a_layer() -> None:
    grid = Grid(4, 4, cell=(2, 2))
    item = Observation((1, 0), np.full((1, 2, 2), 0.5, np.float32), 0.25)
    seen = Lens(grid, LayerSet(("density", "share", "presence"))).seen(item)
    assert seen.outcome == 1.0
    assert seen.content.ravel().tolist() == [0.5, 0.25, 1.0]


def test_content_is_seen_in_the_units_of_the_memory() -> None:
    """The range of the area becomes 0 to 1, and goes back the same way."""
    grid = Grid(4, 4, cell=(2, 2), range=(-3.0, 5.0))
    item = Observation((1, 0), np.full((1, 2, 2), 3.0, np.float32), 0.25)
    lens = Lens(grid, LayerSet(("density", "share", "presence")))
    seen = lens.seen(item)
    assert seen.content.ravel().tolist() == [0.75, 0.25, 1.0]
    image = np.zeros((3, 2, 2), np.float32)
    image[:, 1, 0] = seen.content.ravel()
    shown = lens.shown(image)
    assert shown[0, 2:, :2].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert shown.min() == -3.0


def test_a_faulty_measurement_changes_nothing() -> None:
    task = colour_task()
    policy = make_policy("em-ptdm", task.grid, 10, memory=cells_memory())
    policy.observe(task.measure((0, 1)))
    with pytest.raises(InputError, match="measured already"):
        policy.observe([task.measure((0, 2)), task.measure((0, 1))])
    assert len(policy.observations) == len(policy.log.forecast) == 1
    policy.observe(task.measure((0, 2)))
