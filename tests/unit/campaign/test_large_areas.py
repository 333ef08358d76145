"""What keeps campaigns of large areas cheap gives what the plain computation gives."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from engram.campaign import kriging, missed
from engram.campaign.decide import Standing
from engram.campaign.remaining import SearchSoFar
from engram.geometry import Geometry
from engram.grid import Grid
from engram.policies.base import Answer, best_apart, flat_scores
from engram.scores import best_cells

prospect = import_module("engram.campaign.prospect")  # functions of these names hide the modules
remaining = import_module("engram.campaign.remaining")


@pytest.mark.parametrize("kind", ["scattered", "in patches"])
def test_kriging_by_neighbours_is_kriging(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, rng = Grid(60, 80), np.random.default_rng(3)
    if kind == "scattered":
        cells = rng.choice(grid.n_cells, 400, replace=False)
    else:
        rows, cols = np.divmod(np.arange(grid.n_cells), grid.cols)
        cells = np.flatnonzero((rows // 12 + cols // 12) % 5 == 0)[:400]
    rows, cols = np.divmod(cells, grid.cols)
    hits = ((rows // 9 + cols // 9) % 4 == 0).astype(float)
    open_cells = np.ones(grid.n_cells, bool)
    open_cells[cells] = False
    whole = kriging.moments(grid, open_cells, cells, hits)
    monkeypatch.setattr(kriging, "EXACT", 0)
    mean, variance = kriging.moments(grid, open_cells, cells, hits)
    assert mean == pytest.approx(whole[0], rel=0.005)
    assert np.sqrt(variance) == pytest.approx(np.sqrt(whole[1]), rel=0.05)


def test_far_cells_add_nothing_to_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid(90, 70)
    searchable = np.random.default_rng(0).random(grid.n_cells) < 0.7
    near = kriging.sum_over(grid, searchable, 1.5)  # reaches 60 cells of 90
    monkeypatch.setattr(kriging, "FAR", 1e6)
    assert np.allclose(near, kriging.sum_over(grid, searchable, 1.5), rtol=1e-12)


def test_offsets_within_a_radius_are_those_of_all_in_the_middle() -> None:
    geometry = Geometry.of(9, 7, (2.0, 1.0))
    near, every = geometry.offsets(2.5), geometry.offsets()
    assert near.shape == (5, 9)  # two rows of 1.41 up and down, four columns of 0.71 left and right
    assert (near == every[6:11, 2:11]).all()


def test_counts_are_added_alike_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = np.random.default_rng(1).random(300) * 0.4
    plain = missed.poisson_binomial(chances)
    monkeypatch.setattr(missed, "MANY", 10)
    assert np.allclose(missed.poisson_binomial(chances), plain, atol=1e-14)


@pytest.mark.parametrize("led", [True, False])
def test_prospects_do_not_depend_on_the_size_of_tables(
    led: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid, rng = Grid(20, 20), np.random.default_rng(2)
    cells = rng.choice(grid.n_cells, 60, replace=False)
    searchable = np.ones(grid.n_cells, bool)
    searchable[cells] = False
    probability = rng.random(grid.n_cells) * 0.5 if led else np.full(grid.n_cells, 0.2)
    hits = (rng.random(60) < 0.3).astype(float)
    seen = SearchSoFar(grid, searchable, cells, hits, probability[cells], probability)
    left = remaining.distribution(seen)
    plain = prospect.finds(seen, left, 100)
    monkeypatch.setattr(prospect, "TABLE", 1000)
    assert np.allclose(prospect.finds(seen, left, 100), plain, atol=1e-9)


def test_misses_thin_blocks_of_counts_as_they_thin_single_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = np.arange(601)
    masses = np.exp(-((counts - 300) ** 2) / (2 * 40.0**2))
    masses /= masses.sum()
    plain = prospect.seen_of(masses, 0.7)
    monkeypatch.setattr(prospect, "MANY", 100)
    blocks = prospect.seen_of(masses, 0.7)
    assert blocks @ counts == pytest.approx(plain @ counts, rel=1e-3)
    assert np.abs(np.cumsum(blocks) - np.cumsum(plain)).max() < 0.02


def test_a_place_is_that_of_the_whole_order() -> None:
    rng, grid = np.random.default_rng(4), Grid(12, 9)
    worth = rng.normal(size=grid.n_cells).round(1)  # many are equal
    available = rng.random(grid.n_cells) < 0.6
    stand = Standing(Answer(flat_scores(grid, worth, worth)), worth, available)
    order = best_cells(worth, available, grid.n_cells)
    assert stand.order() == order
    assert [stand.place(i) for i in order] == list(range(1, len(order) + 1))
    assert stand.best(7) == order[:7]


def test_few_best_cells_are_the_first_of_all() -> None:
    rng = np.random.default_rng(5)
    total = rng.integers(0, 4, 200).astype(float)
    available = rng.random(200) < 0.5
    candidates = np.flatnonzero(available)
    order = candidates[np.argsort(-total[candidates], kind="stable")]
    for n in (1, 2, 30, len(order)):
        assert best_cells(total, available, n) == order[:n].tolist()


def test_cells_far_from_a_taken_one_are_not_damped_and_near_ones_are_as_ever() -> None:
    """The factor 1 - exp(-d^2 / 8), cell by cell over the whole area, picks the same cells."""
    grid, rng = Grid(60, 60), np.random.default_rng(6)
    total = rng.random(grid.n_cells)
    taken = [int(i) for i in rng.choice(grid.n_cells, 5, replace=False)]
    damped = total - total.min() + 1e-6 * np.ptp(total)
    for index in taken:
        damped = damped * (1 - np.exp(-grid.geometry.squares(grid.at(index)) / 8.0))
    available = np.ones(grid.n_cells, bool)
    for _ in range(40):
        best = best_apart(grid, total, available, taken)
        assert best == int(np.argmax(np.where(available, damped, -1.0)))
        available[best] = False
