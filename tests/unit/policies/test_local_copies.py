"""Copies and room in a large area: by tiles what the whole area would say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engram import Grid, Observation, load_memory, make_policy
from engram.blocks import Field, Stored, as_array, field_of
from engram.observation import Observations
from engram.policies.copies import Copied, Stamps, spoken, turn_odds
from engram.policies.emptdm import EmPtdm
from engram.policies.local.copies import CORE, SLOWLY, LocalCopies, renewed_at
from engram.policies.local.room import LocalRoom
from engram.policies.local.tiles import Tiles
from engram.policies.outlines import views
from engram.policies.room import Room
from engram.policies.spread import spread_blocks
from engram.policies.templates import CLEAR, Part

Mask = NDArray[np.bool_]
Cell = tuple[int, int]

GRID = Grid(100, 90)
L = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]], bool)
FIRST, SECOND, THIRD = (12, 14), (30, 29), (70, 60)
"""Corners of three Ls: in a tile, across four, and far away; the third lies on its side."""


def area() -> tuple[Mask, Mask]:
    """Truth and what was measured: the first L and all around it, a part of the others, and blanks
    here and there."""
    truth = np.zeros((GRID.rows, GRID.cols), bool)
    for (row, col), shape in ((FIRST, L), (SECOND, L), (THIRD, np.asarray(views(L)[1]))):
        truth[row : row + shape.shape[0], col : col + shape.shape[1]] |= shape
    seen = np.zeros_like(truth)
    seen[11:17, 13:18] = True
    seen[32:34, 29] = seen[33, 30] = True
    seen[70:72, 60:62] = True
    rng = np.random.default_rng(0)
    seen.ravel()[rng.choice(truth.size, 120, replace=False)] = True
    return truth, seen


def items(truth: Mask, seen: Mask) -> list[Observation]:
    return [
        Observation.checked(GRID, (int(r), int(c)), content=y, outcome=y)
        for r, c in np.argwhere(seen)
        for y in [float(truth[r, c])]
    ]


def others(p: float = 0.2) -> Field:
    """A field of one number."""
    layout = spread_blocks(GRID, 16, 0)
    sizes = np.array([len(layout.cells(b)) for b in range(layout.count)])
    kinds, label = np.unique(sizes, return_inverse=True)
    return Field(layout, (Stored.shared(label, [np.full(n, p) for n in kinds]),))


def told(batches: int = 1) -> tuple[LocalCopies, Copied, Observations]:
    """Copies that were told the area, in so many batches."""
    copies, plain = LocalCopies(GRID, others().layout), as_array(others())
    observations = Observations(GRID)
    for batch in np.array_split(np.array(items(*area()), object), batches):
        before = copies.belief(plain, observations)
        for item in batch:
            observations.add(item)
        copies.learn(before, list(batch))
    return copies, copies.belief(plain, observations), observations


def by_the_whole(copies: LocalCopies, p: float = 0.2) -> NDArray[np.float64]:
    """(rows, cols) what copies of the same templates say, all at once."""
    truth, seen = area()
    found, blank = truth & seen, ~truth & seen
    part = Part.whole(found)
    fit = Stamps(copies.known, part.shape).fit(found, blank, part)
    target, counts = spoken(fit, copies.straight)
    speak = (counts > CLEAR) & ~found & ~blank
    return np.asarray(np.where(speak, np.clip(target + (1 - counts) * p, 0, 1), p))


@pytest.mark.parametrize("batches", [1, 7])
def test_tiles_say_what_the_whole_area_would_say(batches: int) -> None:
    copies, said, _ = told(batches)
    assert [one.corner for one in copies.known] == [(11, 13)]
    assert said.heard
    table = np.asarray(said.copies).reshape(GRID.rows, GRID.cols)
    np.testing.assert_allclose(table, by_the_whole(copies), atol=2e-5)
    truth, seen = area()
    rest = truth & ~seen
    assert table[30:34, 29:32][rest[30:34, 29:32]].min() > 0.5  # the second, across four tiles
    assert (table != 0.2).sum() < 300


def test_how_far_copies_are_turned_is_judged_by_each_group_once() -> None:
    copies, _, _ = told()
    truth, seen = area()
    found = truth & seen
    part = Part.whole(found)
    fit = Stamps(copies.known, part.shape).fit(found, ~truth & seen, part)
    whole = turn_odds(fit, copies.known[0].place(part), found)
    assert abs(whole) > 0.1
    assert sum(copies._odds.values()) == pytest.approx(whole, abs=1e-4)


def test_copies_count_where_they_speak_as_far_as_they_predicted() -> None:
    copies, said, _ = told()
    w = copies.weight
    assert said.weight == w == pytest.approx(1 / (1 + np.exp(-1.0)))
    both, alone = np.asarray(said.probability), np.asarray(said.copies)
    np.testing.assert_allclose(both, w * alone + (1 - w) * 0.2, atol=1e-12)
    best = field_of(said.probability).best(np.ones(GRID.n_cells, bool), 3)
    assert [value for _, value in best] == sorted(both, reverse=True)[:3]


def test_what_was_kept_is_what_is_computed_anew() -> None:
    copies, said, observations = told(9)
    kept = np.asarray(said.copies)
    copies._said.clear()
    copies._new = [item.cell for item in observations]
    copies._anchor = len(observations)
    again = copies.belief(as_array(others()), observations)
    np.testing.assert_array_equal(np.asarray(again.copies), kept)


def test_an_object_across_tiles_is_found_once_and_whole() -> None:
    copies, before, observations = told()
    truth, seen = area()
    more = np.zeros_like(seen)
    more[29:35, 28:33] = True
    new = items(truth, more & ~seen)
    for item in new:
        observations.add(item)
    copies.learn(before, new)
    copies.belief(as_array(others()), observations)
    corners = [one.corner for each in copies.objects.values() for one in each]
    assert sorted(corners) == [(11, 13), (29, 28)]
    whole = [one for one in copies.objects[0] if one.corner == (29, 28)]
    np.testing.assert_array_equal(whole[0].target > 0.5, np.pad(L, 1))


def test_only_what_is_around_measurements_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, before, observations = told()
    asked: list[tuple[slice, slice]] = []
    monkeypatch.setattr(copies, "_fit", lambda core: asked.append(core))
    monkeypatch.setattr(copies, "_choose", lambda enough: False)
    several = [Observation.checked(GRID, (95, col), 0.0, 0.0) for col in (3, 4)]
    alone = [Observation.checked(GRID, (60, 20), 0.0, 0.0)]
    expected = [copies.tiles.box(n) for n in copies.tiles.near((95, 3), copies.margin)]
    wide = copies.margin
    for new, cores in (
        (several, expected),
        (alone, [(slice(60 - wide, 61 + wide), slice(20 - wide, 21 + wide))]),
        ([], []),
    ):
        for item in new:
            observations.add(item)
        copies._anchor = renewed_at(len(observations))  # templates stay
        copies.learn(before, new)
        asked.clear()
        copies.belief(as_array(others()), observations)
        assert asked == cores


def test_one_measurement_changes_what_is_around_it_and_the_rest_at_the_next_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies, before, observations = told()
    monkeypatch.setattr(copies, "_choose", lambda enough: False)
    copies._anchor = renewed_at(len(observations) + 1)
    item = Observation.checked(GRID, (32, 30), 0.0, 0.0)
    observations.add(item)
    copies.learn(before, [item])
    ours = np.asarray(copies.belief(as_array(others()), observations).copies)
    assert ours[GRID.index((33, 31))] < np.asarray(before.copies)[GRID.index((33, 31))] + 0.2
    assert np.abs(ours - np.asarray(before.copies)).max() > 0.05
    stale = set(copies._stale)
    assert stale == set(copies.tiles.near((32, 30), copies.margin))
    copies._compute(stale, observations.available)
    anew = np.asarray(copies.belief(as_array(others()), observations).copies)
    np.testing.assert_allclose(ours, anew, atol=0.02)
    assert not copies._stale


def test_a_search_goes_on_from_its_state() -> None:
    copies, said, observations = told(4)
    again = LocalCopies(GRID, copies.layout)
    again.restore(observations, copies.state())
    restored = again.belief(as_array(others()), observations)
    np.testing.assert_array_equal(np.asarray(restored.copies), np.asarray(said.copies))
    assert (restored.heard, restored.weight) == (said.heard, said.weight)
    more = [Observation.checked(GRID, (31, 29), 1.0, 1.0)]
    observations.add(more[0])
    ends = []
    for one, before in ((copies, said), (again, restored)):
        one.learn(before, more)
        ends.append(one)
    late = LocalCopies(GRID, copies.layout)  # kept before it was asked again
    late.restore(observations, ends[0].state())
    beliefs = [one.belief(as_array(others()), observations) for one in (*ends, late)]
    for belief in beliefs[1:]:
        np.testing.assert_array_equal(*(np.asarray(b.probability) for b in (beliefs[0], belief)))
    assert ends[0].straight == late.straight
    assert [one.corner for one in late.known] == [one.corner for one in ends[0].known]


def test_templates_are_chosen_seldom_where_much_was_measured() -> None:
    assert [renewed_at(n) for n in (0, 1, 19, 20, 21, 22, 24)] == [0, 1, 19, 20, 20, 22, 24]
    counts = {renewed_at(n) for n in range(20_001)}
    assert len(counts) < 2 * SLOWLY + SLOWLY * np.log(20_000 / 20) * 1.1
    assert all(renewed_at(n) == n for n in counts)


def test_templates_are_chosen_at_once_where_another_is_the_best() -> None:
    copies, before, observations = told()
    copies.belief(as_array(others()), observations)
    known = copies.known
    truth = np.zeros((GRID.rows, GRID.cols), bool)
    truth[81:86, 21:25] = True
    seen = np.zeros_like(truth)
    seen[80:87, 20:26] = True
    new = [item for item in items(truth, seen) if observations.available[GRID.index(item.cell)]]
    for item in new:
        observations.add(item)
    copies.learn(before, new)
    copies._anchor = renewed_at(len(observations))
    copies.belief(as_array(others()), observations)
    assert copies.known[0].corner == (80, 20)
    assert known[0].corner == (11, 13)


def test_tiles_cover_an_area_once() -> None:
    tiles = Tiles(100, 90, CORE)
    count = np.zeros((100, 90), int)
    numbers = {
        n for row in range(100) for col in (0, 31, 32, 89) for n in tiles.near((row, col), 0)
    }
    for number in numbers:
        count[tiles.box(number)] += 1
    assert (count == 1).all()
    for cell in ((0, 0), (40, 31), (99, 89)):
        around = {
            n for n in numbers for s in [tiles.box(n, 5)]
            if s[0].start <= cell[0] < s[0].stop and s[1].start <= cell[1] < s[1].stop
        }  # fmt: skip
        assert set(tiles.near(cell, 5)) == around


# -- room ------------------------------------------------------------------------------------------


def test_room_of_tiles_is_that_of_the_whole_area() -> None:
    copies, said, _ = told()
    truth, seen = area()
    whole = Room(copies.known, copies.straight, truth & seen, ~truth & seen, ~GRID.closed).share
    room = said.room
    assert isinstance(room, LocalRoom)
    for number in sorted(copies.near):
        box = copies.tiles.box(number)
        np.testing.assert_allclose(room.share(number), whole[box], atol=1e-4)
    assert whole[26:30, 20:40].max() > 0.9


def test_a_tile_full_of_blanks_has_little_room() -> None:
    copies, said, observations = told()
    number = next(copies.tiles.near((80, 10), 0))
    gaps = [(r, c) for r in range(52, 100) for c in range(48) if (r + c) % 2]
    free = observations.available
    blanks = [Observation.checked(GRID, at, 0.0, 0.0) for at in gaps if free[GRID.index(at)]]
    for item in blanks:
        observations.add(item)
    copies.learn(said, blanks)
    room = copies.belief(as_array(others()), observations).room
    assert isinstance(room, LocalRoom)
    assert room.share(number).max() < 0.05


def sown(copies: LocalCopies, said: Copied, observations: Observations, every: int) -> Copied:
    """Blanks everywhere, one in so many cells along rows and columns."""
    free = observations.available
    lattice = [
        (r, c)
        for r in range(1, GRID.rows, every)
        for c in range(1, GRID.cols, every)
        if free[GRID.index((r, c))] and not area()[0][r, c]
    ]
    blanks = [Observation.checked(GRID, at, 0.0, 0.0) for at in lattice]
    for item in blanks:
        observations.add(item)
    copies.learn(said, blanks)
    return copies.belief(as_array(others()), observations)


@pytest.mark.parametrize("relative", [True, False])
def test_where_all_land_was_measured_here_and_there_the_largest_gap_has_all_room(
    relative: bool,
) -> None:
    copies, said, observations = told()
    copies._relative_room = relative
    copies._room = None
    after = sown(copies, said, observations, 3)
    room = after.room
    assert isinstance(room, LocalRoom)
    found, blank = copies.found, copies.blank
    whole = Room(copies.known, copies.straight, found, blank, ~GRID.closed)
    open_land = ~(found | blank)
    flat = as_array(others(0.3))
    doubt = np.asarray(room.doubt(flat, 0.8)).reshape(GRID.rows, GRID.cols)
    by_the_whole = whole.doubt(np.full(GRID.n_cells, 0.3), 0.8).reshape(doubt.shape)
    best = max(float(room.share(number).max()) for number in copies.near)
    assert best < 0.7
    if relative:
        assert doubt.max() == pytest.approx(0.3, rel=1e-6)
        np.testing.assert_allclose(doubt[open_land], by_the_whole[open_land], atol=2e-3)
    else:
        assert doubt.max() == pytest.approx(0.3 * (0.2 + 0.8 * best), rel=1e-6)


def test_while_a_part_is_untouched_it_has_all_room() -> None:
    corner = np.zeros((GRID.rows, GRID.cols), bool)
    corner[:40, :40] = True
    grid = Grid(GRID.rows, GRID.cols, closed=~corner)
    for area_of, untouched in ((GRID, True), (grid, False)):
        copies, observations = LocalCopies(area_of, others().layout), Observations(area_of)
        plain = as_array(others())
        before = copies.belief(plain, observations)
        truth, seen = area()
        first = [one for one in items(truth, seen) if max(one.cell) < 36]
        for item in first:
            observations.add(item)
        copies.learn(before, first)
        room = copies.belief(plain, observations).room
        assert isinstance(room, LocalRoom)
        assert copies.untouched == untouched
        assert room.largest() == 1.0
        if untouched:
            assert not room._shares  # nothing had to be looked at to know that


def test_room_is_computed_where_the_best_cells_may_be() -> None:
    copies, said, observations = told()
    room = said.room
    assert isinstance(room, LocalRoom)
    layout, sizes = copies.layout, [len(one) for one in others().parts[0].values]
    chosen = layout.find(GRID.index((50, 50)))[0]
    plain = np.where(np.arange(layout.count) == chosen, 0.5, 0.1)
    parts = [np.full(n, value) for n, value in zip(sizes, plain, strict=True)]
    stored = Stored(parts, np.full(layout.count, -1), plain, plain)
    doubt = field_of(room.doubt(as_array(Field(layout, (stored,))), 0.8))
    free = observations.available
    best = doubt.best(free, 1)[0]
    assert 0 < len(room._shares) < len(copies.near) / 2
    assert layout.find(best[0])[0] == chosen
    dense = np.asarray(doubt)
    assert best[1] == dense[free].max()
    shares = np.ones((GRID.rows, GRID.cols))
    for number in copies.near:
        shares[copies.tiles.box(number)] = room.share(number)
    spread = np.asarray(Field(layout, (stored,)))
    np.testing.assert_allclose(dense, spread * (0.2 + 0.8 * shares.ravel()), atol=1e-12)


def test_room_is_forgotten_where_something_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, said, observations = told()
    monkeypatch.setattr(copies, "_choose", lambda enough: False)
    room = said.room
    assert isinstance(room, LocalRoom)
    number = next(copies.tiles.near((50, 50), 0))
    before = room.share(number)
    item = Observation.checked(GRID, (50, 50), 0.0, 0.0)
    observations.add(item)
    copies.learn(said, [item])
    after = copies.belief(as_array(others()), observations).room
    assert isinstance(after, LocalRoom)
    assert after.share(number).sum() < before.sum()


# -- the engine ------------------------------------------------------------------------------------


def engine(**options: Any) -> EmPtdm:
    memory = load_memory("universal")
    policy = make_policy("em-ptdm", GRID, budget=300, memory=memory, seed=0, **options)
    assert isinstance(policy, EmPtdm)
    policy.observe(items(*area()))
    return policy


def test_the_engine_hears_copies_in_large_areas() -> None:
    with_them, without = engine(), engine(local_copies=False)
    ours, theirs = with_them.suggest()[0], without.suggest()[0]
    assert "copies" in ours.weights
    assert "copies" not in theirs.weights
    assert sum(ours.weights.values()) == pytest.approx(1.0)
    truth, seen = area()
    rest = np.flatnonzero((truth & ~seen)[30:34, 29:32])
    p, q = (
        np.asarray(one.current_scores().probability).reshape(100, 90)[30:34, 29:32].ravel()[rest]
        for one in (with_them, without)
    )
    assert p.min() > q.min() + 0.1


def test_the_engine_looks_where_there_is_room_in_large_areas() -> None:
    ours, plain = (engine(frontier=1.0, room=room).believed() for room in (True, False))
    assert (ours.rule, plain.rule) == ("room", "frontier")
    total = ours.scores.total
    assert isinstance(total, Field)
    assert total.tied  # equal cells in the order of the design
    copied, mixed = ours.beliefs.copied, ours.beliefs.mixed
    assert copied is not None
    assert copied.room is not None
    assert copied.proven == 0.5
    limited = np.asarray(copied.room.doubt(mixed.doubt, 0.5))
    assert (limited <= np.asarray(mixed.doubt) + 1e-12).all()
    assert limited.sum() < 0.99 * np.asarray(mixed.doubt).sum()
    free = ~area()[1].ravel()
    gain = np.asarray(total) - np.asarray(mixed.probability)
    factor = gain[free] / limited[free]
    np.testing.assert_allclose(factor, factor[0], rtol=1e-6)


def test_an_engine_goes_on_from_its_state_in_large_areas() -> None:
    policy = engine()
    policy.suggest()
    policy.observe(Observation.checked(GRID, (30, 29), 1.0, 1.0))
    again = make_policy("em-ptdm", GRID, budget=300, memory=load_memory("universal"), seed=0)
    again.restore(policy.observations, policy.state())
    ours, theirs = policy.suggest(3), again.suggest(3)
    assert [one.cell for one in ours] == [one.cell for one in theirs]
    assert [one.weights for one in ours] == [one.weights for one in theirs]
