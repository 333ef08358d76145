"""The goal ``objects``: a target that was touched is left, another one is looked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engram import Grid, InputError, Task, make_policy, simulate
from engram.memory.layers import PRESENCE
from engram.observation import Observation, Observations
from engram.policies.forecast import Belief
from engram.policies.lens import Lens
from engram.policies.ranking import Progress
from engram.policies.separate import NewTargets, Separate, extent_of, groups_of, unlike
from engram.policies.spec import with_goal
from engram.policies.spread import spread_order
from engram.tasks.balls import ball_task
from engram.testing import tiny_memory

GRID = Grid(12, 12)


def told(*visits: tuple[int, int, float], grid: Grid = GRID) -> Observations:
    """Visits (row, col, share)."""
    content = np.zeros(grid.content_shape)
    return Observations(grid, [Observation.checked(grid, (r, c), content, y) for r, c, y in visits])


def believed(*blobs: tuple[slice, slice], elsewhere: float = 0.05) -> Belief:
    p = np.full((12, 12), elsewhere)
    for blob in blobs:
        p[blob] = 0.9
    return Belief(probability=p.ravel(), doubt=np.zeros(144))


def ranked(belief: Belief, seen: Observations, extent: float = 0.0) -> tuple[str, tuple[int, int]]:
    """Which part of the rule decides, and the best cell."""
    rule = Separate(seen.grid, 0, extent).rule(seen)
    ranking = rule.order(belief, seen.available, Progress.of(seen, 40))
    best = np.where(seen.available, ranking.total, -np.inf).argmax()
    return ranking.why, seen.grid.at(int(best))


FIRST, SECOND = (slice(1, 4), slice(1, 4)), (slice(8, 11), slice(7, 10))


def test_of_two_targets_the_one_nobody_has_touched_comes_first() -> None:
    why, (row, col) = ranked(believed(FIRST, SECOND), told((2, 2, 0.4), (6, 6, 0.0)))
    assert why == "new-target"
    assert row in range(8, 11)
    assert col in range(7, 10)
    _, (row, col) = ranked(believed(FIRST, SECOND), told((9, 8, 0.4), (6, 6, 0.0)))
    assert row in range(1, 4)
    assert col in range(1, 4)


def test_a_target_that_was_touched_is_not_followed() -> None:
    """Its cells promise less than one where target is half as likely and nobody was near."""
    p = believed(FIRST).probability.reshape(12, 12)
    p[9, 9] = 0.4
    belief = Belief(probability=p.ravel(), doubt=np.zeros(144))
    assert ranked(belief, told((2, 2, 0.4), (6, 6, 0.0))) == ("new-target", (9, 9))


def test_what_is_in_doubt_is_looked_at_before_what_is_known() -> None:
    doubt = np.zeros((12, 12))
    doubt[9, 2] = 0.4
    belief = Belief(probability=np.full(144, 0.1), doubt=doubt.ravel())
    seen = told((2, 9, 0.2), (6, 6, 0.0))
    assert ranked(belief, seen) == ("new-target", (9, 2))
    rate = Progress.of(seen, 40).rate
    rule = Separate(GRID, 0).rule(seen)
    total = rule.order(belief, seen.available, Progress.of(seen, 40)).total
    cell = GRID.index((9, 2))
    new = rule.untouched(belief.probability)[cell]
    assert total[cell] == pytest.approx(new * (0.1 + 0.5 * rate * 0.4))


@pytest.mark.parametrize(("extent", "why"), [(7.9, "new-target"), (8.1, "gap")])
def test_large_targets_are_looked_for_in_the_largest_gap(extent: float, why: str) -> None:
    """Nine measurements of 144 cells lie four cells apart; twice as much is large."""
    visits = [(r, c, float(r == c == 1)) for r in (1, 5, 9) for c in (1, 5, 9)]
    seen, belief = told(*visits), believed(SECOND)
    reason, cell = ranked(belief, seen, extent)
    assert reason == why
    gaps = Separate(GRID, 0).gaps(seen.indices)
    gap = GRID.at(int(np.where(seen.available, gaps, -np.inf).argmax()))
    assert (cell == gap) == (why == "gap")


def test_before_anything_was_found_gaps_are_filled() -> None:
    assert ranked(believed(SECOND), told((6, 6, 0.0)), extent=0.5)[0] == "gap"
    assert ranked(believed(SECOND), told((6, 6, 0.0), (2, 2, 0.1)), extent=0.5)[0] == "new-target"


def test_a_blank_in_between_separates() -> None:
    """A corridor of three rows: with blanks across it, its far end is rather another target."""
    grid = Grid(3, 9)
    p = np.full(27, 0.9)
    room = Separate(grid, 0, extent=2.0)
    alone = told((1, 0, 1.0), grid=grid)
    cut = told((1, 0, 1.0), (0, 3, 0.0), (1, 3, 0.0), (2, 3, 0.0), grid=grid)
    far = grid.index((1, 5))
    ways = [NewTargets(room, seen).ways(p)[far] for seen in (alone, cut)]
    # a step off the find counts 1, off a cell of probability 0.9 1.1, off a blank 2
    assert ways == pytest.approx([1 + 4 * 1.1, 1 + 3 * 1.1 + 2.0])
    new = [NewTargets(room, seen).untouched(p)[far] for seen in (alone, cut)]
    assert new[0] < new[1]
    assert NewTargets(room, told(grid=grid)).untouched(p).tolist() == [1.0] * 27


def test_the_way_follows_the_shape_of_cells() -> None:
    tall = Grid(8, 2, cell=(4, 1))
    room = Separate(tall, 0, extent=1.0)
    ways = NewTargets(room, told((0, 0, 1.0), grid=tall)).ways(np.ones(tall.n_cells))
    assert ways[tall.index((1, 0))] == pytest.approx(2.0)
    assert ways[tall.index((0, 1))] == pytest.approx(0.5)
    assert ways[tall.index((1, 1))] == pytest.approx(math.hypot(2.0, 0.5))


@pytest.mark.parametrize("side", [0.5, 1.0, 3.0])
def test_shares_of_squares_tell_their_side(side: float) -> None:
    """Squares that lie and are turned at random, cell by cell."""
    rng, shares = np.random.default_rng(4), []
    points = (np.stack(np.meshgrid(*[np.arange(60)] * 2)).reshape(2, -1).T + 0.5) / 60 - 0.5
    for _ in range(60):
        turn, (y, x) = rng.random() * np.pi / 2, rng.random(2)
        place = np.stack(
            [points @ [math.cos(turn), math.sin(turn)], points @ [-math.sin(turn), math.cos(turn)]]
        )
        _, count = np.unique(np.floor(place.T * side + [y, x]), axis=0, return_counts=True)
        shares += (count / 3600 * side**2).tolist()
    assert extent_of(np.array(shares)) == pytest.approx(side, rel=0.15)


def test_finds_that_are_target_wholly_are_of_large_targets() -> None:
    sides = [extent_of(np.full(n, 1.0)) for n in (0, 1, 10, 1000)]
    assert sides == sorted(sides)
    assert sides[-1] > 50
    assert extent_of(np.full(20, 0.2)) < 1.5


def test_two_cells_are_of_one_target_within_its_extent() -> None:
    way = np.array([0.0, 1.0, 3.0, 30.0])
    small, large = unlike(way, 1.0), unlike(way, 10.0)
    assert small[0] == large[0] == 0.0
    assert unlike(np.array([1.3, 13.0]), 1.0)[0] == pytest.approx(0.5)
    assert unlike(np.array([1.3, 13.0]), 10.0)[1] == pytest.approx(0.5)
    assert small[1] == pytest.approx(1 / (1 + 1.3**1.85))
    assert (large[1:] < small[1:]).all()
    assert small[3] > 0.99


def test_large_targets_are_searched_by_the_space_filling_design() -> None:
    task = ball_task(0)
    trace = simulate(make_policy("gp", task.grid, 60, seed=5, goal="objects", extent=64), task)
    assert [task.grid.index(cell) for cell in trace.cells] == spread_order(task.grid, 5)[
        :60
    ].tolist()
    assert set(trace.rules) == {"gap"}
    learnt = simulate(make_policy("gp", task.grid, 60, seed=5, goal="objects"), task)
    assert set(learnt.rules[20:]) == {"gap"}
    assert learnt.objects() == trace.objects()


def _specks() -> Task:
    """Specks of one pixel, in every second cell of the upper left quarter of an area."""
    target = np.zeros((48, 48), bool)
    target[1:24:6, 1:24:6] = True
    return Task("specks", Grid(48, 48, cell=(3, 3)), target[None].astype(np.float32), target)


def test_small_targets_that_lie_together_are_touched_before_the_design_would() -> None:
    task = _specks()
    touched = {
        name: np.mean(
            [
                simulate(make_policy(name, task.grid, 60, seed=s, **o), task).objects()
                for s in range(3)
            ]
        )
        for name, o in (("spread", {}), ("gp", {"goal": "objects"}))
    }
    assert touched["gp"] >= touched["spread"] + 2


def test_through_a_lens_the_share_of_a_find_stays_known() -> None:
    area = Grid(8, 8, cell=(2, 2))
    seen = Lens(area, PRESENCE).seen(Observation.checked(area, (0, 0), np.zeros((2, 2)), 0.25))
    assert (seen.outcome, seen.share) == (1.0, 0.25)
    lens = Lens(area, PRESENCE)
    assert Observations(lens.grid, [seen]).shares.tolist() == [0.25]
    assert told((0, 0, 0.5), (1, 1, 0.0)).shares.tolist() == [0.5, 0.0]


def test_the_default_engine_takes_the_goal_and_the_other_goal_changes_nothing() -> None:
    task, memory = _specks(), tiny_memory(1, conditioned=True)
    traces = [
        simulate(make_policy("em-ptdm", task.grid, 20, memory=memory, **options), task)
        for options in (
            {},
            {"goal": "cells"},
            {"goal": "objects"},
            {"goal": "objects", "extent": 40.0},
        )
    ]
    assert traces[0].cells == traces[1].cells
    assert traces[0].terms == traces[1].terms
    assert set(traces[2].rules) <= {"gap", "new-target"}
    assert not {"gap", "new-target"} & set(traces[0].rules)
    assert set(traces[3].rules) == {"gap"}


def test_groups_touch_by_a_side_or_a_corner() -> None:
    cells = [(0, 0), (1, 1), (1, 3), (5, 5), (5, 6)]
    assert groups_of(GRID, np.array([GRID.index(c) for c in cells])) == 3
    assert groups_of(GRID, np.array([], np.intp)) == 0


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("gp", {"goal": "ships"}, "goal='ships': choose one of cells, objects"),
        ("gp", {"goal": "objects", "extent": -1.0}, "extent=-1.0: give the cells across"),
        ("em-ptdm", {"goal": "ships"}, "goal='ships': choose one of cells, objects"),
        ("em-ptdm", {"goal": "objects", "rule": "paper"}, "goal=objects has its own"),
        ("em-ptdm", {"extent": math.inf}, "extent=inf"),
        ("random", {"goal": "objects"}, "'goal'"),
    ],
)
def test_goals_that_cannot_be_are_refused(
    name: str, options: dict[str, object], words: str
) -> None:
    memory = tiny_memory(1, conditioned=True) if name == "em-ptdm" else None
    with pytest.raises(InputError, match=words):
        make_policy(name, Grid(8, 8), 5, memory=memory, **options)


def test_an_area_that_is_not_looked_at_as_a_whole_is_refused() -> None:
    with pytest.raises(InputError, match="goal='objects' in 65x8 cells"):
        make_policy("gp", Grid(65, 8), 5, goal="objects")


def test_a_goal_is_put_into_the_text_of_a_policy() -> None:
    assert with_goal("gp", None) == "gp"
    assert with_goal("gp", "objects") == "gp[goal=objects]"
    assert with_goal("gp[nu=1]", "cells") == "gp[nu=1,goal=cells]"
    with pytest.raises(InputError, match="goal='all'"):
        with_goal("gp", "all")
