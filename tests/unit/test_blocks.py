"""Fields: arrays by blocks, and the best cells found without looking at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engram import Grid
from engram.blocks import Field, Stored, largest, total_of
from engram.layout import TIE, Blocks
from engram.policies.base import _damped, best_apart
from engram.policies.spread import spread_blocks, spread_order
from engram.scores import best_cells

GRID = Grid(50, 70)
LAYOUT = spread_blocks(GRID, 16, 0)
EVERY = np.ones(GRID.n_cells, bool)


def stored(table: NDArray[np.float64], known: set[int], layout: Blocks = LAYOUT) -> Stored:
    """A table of which all blocks but the known ones are flat."""
    sizes = np.array([len(layout.cells(b)) for b in range(layout.count)])
    kinds, label = np.unique(sizes, return_inverse=True)
    blank = Stored.shared(label, [np.full(n, 0.25) for n in kinds])
    new = {b: layout.taken(b, table) for b in known}
    return blank.replaced(new, {b: np.ones(len(new[b]), bool) for b in known})


def example(seed: int, share: float = 0.5) -> tuple[Field, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    fields = []
    for _ in range(2):
        table = rng.random(GRID.n_cells)
        known = {b for b in range(LAYOUT.count) if rng.random() < share}
        fields.append(Field(LAYOUT, (stored(table, known),)))
    mixed = total_of(fields, [0.7, 0.3]).mapped(lambda a: np.asarray(np.clip(a, 0, 0.9)))
    return mixed, np.clip(0.7 * fields[0].dense + 0.3 * fields[1].dense, 0, 0.9)


@pytest.mark.parametrize("seed", range(4))
def test_a_field_is_the_array_of_its_values(seed: int) -> None:
    field, dense = example(seed)
    np.testing.assert_allclose(np.asarray(field), dense)
    assert field[77] == pytest.approx(dense[77])
    assert field[np.int64(3499)] == pytest.approx(dense[-1])
    np.testing.assert_allclose(field[EVERY][:9], dense[:9])
    np.testing.assert_allclose(field / 2 - 1, dense / 2 - 1)
    np.testing.assert_allclose(0.5 * field + field, 1.5 * dense)
    np.testing.assert_allclose(
        field.region(slice(5, 40), slice(30, 70)), dense.reshape(50, 70)[5:40, 30:]
    )
    assert field.max() == pytest.approx(dense.max())
    assert field.shape == (3500,)
    with pytest.raises(IndexError):
        field.at(3500)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_best_cells_are_those_of_the_whole_area(seed: int, share: float) -> None:
    field, _ = example(seed, share)
    field = field.with_ties({70: 0.91, 71: -5.0} if seed % 2 else None)
    available = np.random.default_rng(seed + 9).random(GRID.n_cells) < 0.4
    for n in (1, 7, 60):
        assert [i for i, _ in field.best(available, n)] == best_cells(field.dense, available, n)
    assert largest(field, available) == field.dense[available].max()  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_cells_around_taken_ones_come_later_as_in_a_whole_area(share: float) -> None:
    field, _ = example(1, share)
    field = field.with_ties()
    taken = [i for i, _ in field.best(EVERY, 2)]
    free = EVERY.copy()
    free[taken] = False
    total: Any = field
    got = best_apart(GRID, total, free, taken)
    damped = _damped(GRID, field.dense, taken)
    if share:  # the least is bounded by blocks, so damped values differ by the bound's slack
        assert damped[got] >= damped[free].max() - 0.05
    apart = GRID.geometry.distances(GRID.at(got), np.array(taken))
    assert apart.min() > 2


def test_equal_cells_are_visited_in_a_spread_order() -> None:
    flat = Field(LAYOUT, (stored(np.zeros(GRID.n_cells), set()),)).with_ties()
    order = [i for i, _ in flat.best(EVERY, GRID.n_cells)]
    assert order == best_cells(flat.dense, EVERY, GRID.n_cells)
    assert sorted(order) == list(range(GRID.n_cells))
    first = {LAYOUT.find(i)[0] for i in order[: LAYOUT.count]}
    assert len(first) >= LAYOUT.count - 9  # cut blocks at the far ends may lack the first position
    assert np.ptp(flat.dense) < 1e-9 + TIE


def test_few_blocks_are_looked_into() -> None:
    looked: list[int] = []

    def seen(a: NDArray[np.float64]) -> NDArray[np.float64]:
        looked.append(a.size)
        return a

    grid = Grid(640, 640)
    layout = spread_blocks(grid, 16, 0)
    table = np.random.default_rng(0).random(grid.n_cells)
    field = Field(layout, (stored(table, {5, 800}, layout),), seen).with_ties()
    field.best(np.ones(grid.n_cells, bool), 3)
    assert sum(looked) < 0.02 * grid.n_cells


def test_the_order_of_a_large_area_is_a_design_of_every_open_cell() -> None:
    closed = np.zeros((90, 80), bool)
    closed[:20, :33] = True
    grid = Grid(90, 80, closed=closed)
    order = spread_order(grid, 3)
    assert sorted(order) == sorted(grid.open_cells)
    places = grid.geometry.places(order[:20])
    apart = np.hypot(*(places[:, None] - places).transpose(2, 0, 1)) + 1e3 * np.eye(20)
    assert apart.min() > 8
    assert not np.array_equal(order, spread_order(grid, 4))


def test_a_bound_never_hides_a_settled_cell_nor_shows_it() -> None:
    table = np.zeros(GRID.n_cells)
    table[0] = 1.0
    block = LAYOUT.find(0)[0]
    free = LAYOUT.taken(block, EVERY).copy()
    free[0] = False
    base = stored(np.zeros(GRID.n_cells), set())
    kept = base.replaced({block: LAYOUT.taken(block, table)}, {block: free})
    assert kept.high[block] == 0
    assert kept.low[block] == 0
    assert kept.label[block] == -1
    assert base.label[block] >= 0
    assert kept.changed(base) == [block]
