"""Separate targets that nobody has touched: against exact sums, enumeration and simulation."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import nbinom

from engram.campaign import covering
from engram.campaign.covering import HOLES, Discs, Reports, covers
from engram.campaign.remaining import summary
from engram.campaign.untouched import NUMBERS, Untouched, disc_areas, lesser, untouched
from engram.detection import PERFECT, Detection
from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.separate import cells_touched

GRID = Grid(12, 12)


def told(*visits, grid=GRID, detection=PERFECT):
    """Visits (row, col, share)."""
    content = np.zeros(grid.content_shape)
    items = [Observation.checked(grid, (r, c), content, y) for r, c, y in visits]
    return Observations(grid, items, detection)


def reports(seen):
    return Reports.of(seen, seen.available)


def expected(seen, extent=0.0):
    masses = untouched(seen, seen.available, extent).masses(int(seen.available.sum()))
    return float(masses @ np.arange(len(masses)))


# -- discs and what visits leave of them ----------------------------------------------------------


def test_a_disc_holds_the_cells_whose_centres_are_near():
    values = np.arange(20.0) ** 2
    grid = Grid(4, 5)
    for radius, tall in ((0.9, grid), (1.5, grid), (2.3, Grid(4, 5, sides=(2.0, 0.5)))):
        sums = Discs(tall, radius).sums(values)
        for cell in range(20):
            near = tall.geometry.distances(tall.at(cell)) <= radius
            assert sums[cell] == pytest.approx(values[near].sum())


@pytest.mark.parametrize("chance", [1.0, 0.6])
def test_places_that_visits_left_are_those_of_all_ways_a_target_can_lie(chance):
    """Enumeration of the cells that a target of five covers, each with 1 - epsilon."""
    grid = Grid(3, 3)
    visits = [(0, 1), (1, 1), (2, 0)]
    if chance < 1:
        visits.append((1, 1))  # seen twice
    seen = told(*((r, c, 0.0) for r, c in visits), grid=grid, detection=Detection(chance))
    found, whole = 0.0, 0.0
    for place in range(9):
        disc = np.flatnonzero(grid.geometry.distances(grid.at(place)) <= 1.0)
        missed = there = 0.0
        for covered in product((0, 1), repeat=len(disc)):
            weight = np.prod([1 - HOLES if c else HOLES for c in covered]) * any(covered)
            held = {grid.at(int(cell)) for cell, c in zip(disc, covered, strict=True) if c}
            there += weight
            missed += weight * np.prod([1 - chance if v in held else 1.0 for v in visits])
        found += missed / there
        whole += 1
    assert covers(reports(seen), 1.0, 0).missed == pytest.approx(found)
    assert covers(reports(told(grid=grid)), 1.0, 0).missed == pytest.approx(whole)


def test_no_untouched_target_lies_at_a_find_and_none_where_all_is_measured():
    grid = Grid(3, 9)
    one = covers(reports(told((1, 1, 1.0), grid=grid)), 1.0, 0)
    assert one.missed == pytest.approx(27 - 5)
    cells = [(r, c, float((r, c) == (1, 1))) for r in range(3) for c in range(9)]
    everything = told(*cells, grid=grid)
    assert covers(reports(everything), 1.5, 0).missed == pytest.approx(0.0)
    ways = untouched(everything, everything.available)
    assert ways.masses(0).tolist() == [1.0]
    assert ways.masses(5)[0] == pytest.approx(1.0)


def test_closed_cells_are_no_places():
    closed = np.zeros((12, 12), bool)
    closed[:6] = True
    half = told(grid=Grid(12, 12, closed=closed))
    assert covers(reports(half), 0.9, 0).missed == pytest.approx(72)


# -- sets of discs that cover the finds -----------------------------------------------------------


def _exact(discs, left, finds):
    """Sum of products over all sets by number of discs: the first bare find is covered first."""
    if not finds:
        return {0: 1.0}
    out = {}
    for place in finds[0] + discs.offsets:
        inside = {*(place + discs.offsets).tolist()}
        rest = [f for f in finds if f not in inside]
        for count, weight in _exact(discs, left, rest).items():
            out[count + 1] = out.get(count + 1, 0.0) + left[place] * weight
    return out


def test_sets_that_are_drawn_weigh_what_all_sets_do(monkeypatch):
    monkeypatch.setattr(covering, "DRAWS", 4000)
    seen = told((2, 2, 1.0), (2, 4, 1.0), (4, 3, 1.0), (3, 3, 0.0), (8, 8, 1.0), (7, 8, 0.0))
    known = reports(seen)
    found = covers(known, 1.5, 0)
    discs = Discs(GRID, 1.5)
    left = discs.placed(np.exp(discs.sums(known.blank)))
    exact = _exact(discs, left, discs.cells[known.finds].tolist())
    assert {*found.touched.tolist()} <= {*map(float, exact)}
    assert logsumexp(found.log_weight) == pytest.approx(np.log(sum(exact.values())), abs=0.05)
    for count, log_weight in zip(found.touched, found.log_weight, strict=True):
        assert log_weight == pytest.approx(np.log(exact[int(count)]), abs=0.15)


def test_finds_that_lie_together_are_of_one_target_and_blanks_keep_them_apart():
    together = [(r, c, 1.0) for r in (4, 6, 8) for c in (4, 6, 8)]
    around = [(r, c, 0.0) for r in (0, 2, 10) for c in range(0, 12, 2)]
    sides = [(r, c, 0.0) for r in (4, 6, 8) for c in (0, 2, 10)]
    alone = told(*together, *around, *sides)
    one = untouched(alone, alone.available)
    assert one.apart < 3
    apart = [(r, c, float((r, c) in {(2, 2), (2, 8), (8, 2), (8, 8)})) for r, c in _lattice()]
    four = told(*apart)
    assert 3.5 < untouched(four, four.available).apart < 5


def _lattice():
    return [(r, c) for r in range(0, 12, 2) for c in range(0, 12, 2)]


# -- how many nobody has touched ------------------------------------------------------------------


def test_the_number_is_negative_binomial():
    ways = Untouched(np.array([1.0]), *(np.array([v]) for v in (4.0, 1.0, 30.0, 60.0)))
    mean = 5 * 30 / 60
    law = nbinom(5, 5 / (5 + mean))
    assert ways.masses(200) == pytest.approx(law.pmf(np.arange(201)))
    few = ways.masses(200, np.array([0.2]))
    assert few @ np.arange(201) == pytest.approx(0.2 * mean)
    assert few == pytest.approx(nbinom(5, 5 / (5 + 0.2 * mean)).pmf(np.arange(201)))


def test_single_cells_that_nobody_looked_at_hold_as_many_as_those_that_were():
    """Horvitz and Thompson: targets of one cell, a quarter of the cells measured."""
    rng = np.random.default_rng(3)
    grid = Grid(24, 24)
    cells = rng.permutation(576)[:144]
    seen = told(*((*grid.at(int(c)), float(i < 16)) for i, c in enumerate(cells)), grid=grid)
    one = covers(reports(seen), 0.9, 0)
    assert one.missed == pytest.approx(432)
    assert one.touched.tolist() == [16]
    met = 144 + 576 / NUMBERS[2]
    ways = Untouched(*(np.array([v]) for v in (1.0, 16.0, 1.0, one.missed, met)))
    assert ways.masses(432) @ np.arange(433) == pytest.approx(17 * 432 / met, rel=1e-3)


def test_intervals_hold_the_truth_of_targets_placed_at_random():
    """Discs placed at random, cells measured at random: nominal coverage, and little bias."""
    grid, rng = Grid(20, 20), np.random.default_rng(8)
    inside, error = {0.8: 0, 0.95: 0}, []
    for trial in range(40):
        radius, count = rng.uniform(1.0, 3.0), int(rng.integers(2, 14))
        places = rng.choice(400, count, replace=False)
        covered = [grid.geometry.distances(grid.at(int(p))) <= radius for p in places]
        target = np.any(covered, axis=0)
        cells = rng.permutation(400)[: (40, 80)[trial % 2]]
        seen = told(*((*grid.at(int(c)), float(target[c])) for c in cells), grid=grid)
        truth = sum(not some[cells].any() for some in covered)
        masses = untouched(seen, seen.available).masses(int(seen.available.sum()))
        for level in inside:
            ends = summary(masses, level)
            inside[level] += ends.low <= truth <= ends.high
        error.append(ends.expected - truth)
    assert 30 <= inside[0.8] <= 40
    assert inside[0.95] >= 36
    assert abs(np.mean(error)) < 1.5


def test_blanks_lower_it_and_finds_apart_raise_it():
    lattice = _lattice()
    chain = [expected(told(*((r, c, 0.0) for r, c in lattice[:n]))) for n in (0, 6, 18, 36)]
    assert all(more < less for less, more in pairwise(chain))
    finds = {(0, 0), (4, 4), (8, 8)}
    some = told(*((r, c, float((r, c) in finds)) for r, c in lattice))
    assert expected(some) > chain[-1]


def test_where_visits_miss_more_is_left():
    cells = [(r, c, float((r, c) == (4, 4))) for r, c in _lattice()]
    sure, unsure = (told(*cells, detection=Detection(d)) for d in (1.0, 0.5))
    assert expected(unsure) > expected(sure)


def test_an_extent_that_is_given_says_how_many_were_missed():
    cells = [(r, c, float((r, c) in {(0, 0), (4, 6), (8, 2)})) for r, c in _lattice()]
    left = [expected(told(*cells), extent) for extent in (0.5, 2.0, 4.0)]
    assert all(more > less for more, less in pairwise(left))
    ways = untouched(told(*cells), told(*cells).available, 2.0)
    middle = np.exp(ways.weight @ np.log(ways.area))
    assert middle == pytest.approx(cells_touched(2.0), rel=0.25)


def test_shares_of_target_in_finds_tell_the_size_however_the_finds_lie():
    """Finds side by side: one large target, or many small ones if they fill their cells partly."""
    block = {(r, c) for r in range(2, 8, 2) for c in range(2, 8, 2)}
    whole, partly = (
        told(*((r, c, share * ((r, c) in block)) for r, c in _lattice())) for share in (1.0, 0.2)
    )
    large, small = (untouched(seen, seen.available) for seen in (whole, partly))
    assert large.apart < 5 < small.apart
    assert small.weight @ small.area < large.weight @ large.area
    assert expected(partly) > 2 * expected(whole)


def test_sizes_differ_so_that_small_targets_are_missed():
    """A disc of the largest area that is touched everywhere still stands for smaller ones."""
    seen = told(*((r, c, 0.0) for r, c in _lattice()))
    ways = untouched(seen, seen.available)
    largest = ways.area == ways.area.max()
    alone = covers(reports(seen), float(np.sqrt(ways.area.max() / np.pi)), 0).missed
    assert (ways.missed[largest] > 1.5 * alone).all()


def test_the_same_measurements_give_the_same_answer():
    seen = told((2, 2, 1.0), (5, 9, 1.0), (9, 3, 0.0))
    one, other = (untouched(seen, seen.available) for _ in range(2))
    assert one.weight.tolist() == other.weight.tolist()
    turned = told((9, 3, 0.0), (5, 9, 1.0), (2, 2, 1.0))
    assert untouched(turned, turned.available).weight.tolist() == one.weight.tolist()


def test_areas_of_discs_reach_a_sixth_of_the_area():
    areas = disc_areas(1024)
    assert areas[0] == 1.6
    assert 1024 / 6 / 1.45 < areas[-1] <= 1024 / 6
    assert disc_areas(1).tolist() == [1.6]


def test_the_lesser_of_two_numbers_that_are_large_together():
    one, other = np.array([0.5, 0.1, 0.4]), np.array([0.2, 0.7, 0.1])
    assert lesser(one, other) == pytest.approx([0.5, 0.4, 0.1])
    assert lesser(one, one) == pytest.approx(one)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 63), st.sampled_from([0.0, 0.0, 0.3, 1.0])), max_size=30),
    st.sampled_from([0.0, 1.0, 3.0]),
)
def test_figures_agree_with_each_other(visits, extent):
    """No more targets than target cells, and no more touched than there are or measurements."""
    grid = Grid(8, 8)
    seen = told(*((*grid.at(c), y) for c, y in dict(visits).items()), grid=grid)
    ways, m = untouched(seen, seen.available, extent), int(seen.available.sum())
    assert ways.weight.sum() == pytest.approx(1.0)
    cells = np.zeros(m + 1)
    cells[min(m, 6)] = 1.0
    left = ways.left(cells)
    assert left.sum() == pytest.approx(1.0)
    assert left[7:].sum() == 0
    chain = [ways.prospect(left, n) for n in (0, 1, 5, m)]
    assert chain[0].masses.tolist() == [1.0]
    for few, many in pairwise(chain):
        assert few.expected <= many.expected + 1e-9
    assert chain[-1].expected <= left @ np.arange(m + 1) + 1e-9
    assert all(p.measurements == n for p, n in zip(chain, (0, 1, 5, m), strict=True))
