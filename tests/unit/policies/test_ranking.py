"""The search rules, each on beliefs of which the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from engram import Grid, InputError, Task, make_policy, simulate
from engram.observation import Observation
from engram.policies.forecast import Belief
from engram.policies.imagination import DrawPlan
from engram.policies.ranking import Foraging, Progress
from engram.testing import tiny_memory

OPEN = np.ones(4, bool)
DOUBT = np.array([0.0, 0.1, 0.2, 0.4])


def test_a_cell_is_followed_while_it_promises_more_than_the_search_finds() -> None:
    start = Progress(finds=0, t=0, budget=40)  # a rate of 1/2
    likely, unlikely = np.array([0.6, 0.1, 0.1, 0.1]), np.array([0.4, 0.1, 0.1, 0.1])
    followed = Foraging().order(Belief(probability=likely, doubt=DOUBT), OPEN, start)
    assert followed.why == "likely"
    assert np.array_equal(followed.total, likely)
    left = Foraging().order(Belief(probability=unlikely, doubt=DOUBT), OPEN, start)
    assert left.why == "frontier"
    assert np.allclose(left.total, unlikely + 2.5 * 0.5 * DOUBT)


@pytest.mark.parametrize(
    ("finds", "t", "rate"), [(0, 0, 0.5), (0, 90, 0.05), (36, 36, 0.85), (10, 20, 0.5)]
)
def test_the_rate_of_finds_is_drawn_to_a_half_and_bounded(finds: int, t: int, rate: float) -> None:
    assert Progress(finds, t, 100).rate == pytest.approx(rate)


def test_where_finds_are_rare_a_cell_beside_one_is_followed_all_the_same() -> None:
    """It promises little, and many times what the search finds elsewhere."""
    p, rare = np.array([0.15, 0.01, 0.01, 0.01]), Progress(finds=2, t=300, budget=500)
    assert Foraging().order(Belief(probability=p, doubt=DOUBT), OPEN, rare).why == "likely"
    before = Foraging(least_rate=0.3).order(Belief(probability=p, doubt=DOUBT), OPEN, rare)
    assert before.why == "frontier"
    assert np.allclose(before.total, p + 2.5 * 0.3 * DOUBT)
    barren = Progress(finds=0, t=900, budget=1000)
    left = Foraging().order(Belief(probability=p / 10, doubt=DOUBT), OPEN, barren)
    assert left.why == "frontier"
    assert np.allclose(left.total, p / 10 + 2.5 * 0.05 * DOUBT)


@pytest.mark.parametrize(("budget", "last"), [(100, False), (44, False), (43, True), (36, False)])
def test_the_last_seven_measurements_ignore_doubt(budget: int, last: bool) -> None:
    p = np.array([0.8, 0.1, 0.1, 0.1])  # below the rate of 0.85
    ranking = Foraging().order(
        Belief(probability=p, doubt=DOUBT), OPEN, Progress(finds=36, t=36, budget=budget)
    )
    assert ranking.why == ("last" if last else "frontier")
    assert np.array_equal(ranking.total, p) == last


def test_cells_nobody_can_visit_do_not_keep_a_search_in_place() -> None:
    p = np.array([0.9, 0.1, 0.1, 0.1])
    shut = np.array([False, True, True, True])
    assert (
        Foraging().order(Belief(probability=p, doubt=DOUBT), shut, Progress(0, 0, 40)).why
        == "frontier"
    )


@pytest.mark.parametrize(
    "options",
    [{"explore": -1.0}, {"frontier": 1.5}, {"explore": np.inf}, {"least_rate": 0.9}],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Foraging(**options)


@pytest.mark.parametrize("name", ["em-ptdm", "diffatd", "greedy"])
def test_every_policy_with_a_memory_takes_every_rule(name: str) -> None:
    memory, traces, target = tiny_memory(1, conditioned=True), {}, np.zeros((12, 12), bool)
    target[3:7, 4:8] = True
    task = Task("square", Grid(12, 12), target[None].astype(np.float32), target)
    options = {"guard": False} if name == "em-ptdm" else {}
    few = DrawPlan(particles=4, steps=2, refresh_steps=1)
    for rule in ("paper", "probability", "foraging"):
        policy = make_policy(name, task.grid, 12, memory=memory, rule=rule, draws=few, **options)
        traces[rule] = simulate(policy, task)
        totals = [terms["total"] for terms in traces[rule].terms]
        if rule == "probability":
            assert totals == [terms["probability"] for terms in traces[rule].terms]
            assert set(traces[rule].rules) == {"likely"}
        if rule == "paper":
            assert set(traces[rule].rules) == {"eq11" if name == "greedy" else "eq12"}
            for terms in traces[rule].terms:
                weight = terms["alpha"]
                eq12 = weight * terms["exploration"] + (1 - weight) * terms["exploitation"]
                assert terms["total"] == pytest.approx(eq12)
    assert set(traces["foraging"].rules) <= {"likely", "frontier", "last"}
    assert all(terms["doubt"] > 0 for terms in traces["foraging"].terms)
    assert traces["paper"].cells != traces["foraging"].cells
    with pytest.raises(InputError, match="rule='best': choose one of paper"):
        make_policy(name, Grid(8, 8), 5, memory=memory, rule="best")


def test_cells_that_are_out_are_known_before_cells_are_ranked() -> None:
    """One cell is likely; while a crew is there, no cell is worth following, so doubt counts."""
    grid = Grid(8, 8)
    policy = make_policy("gp", grid, 40, acquisition="foraging")
    zeros = [(r, c) for r in range(8) for c in range(8) if (r + c) % 2 and r + c > 5]
    policy.observe([Observation.checked(grid, cell, [[0.0]], 0.0) for cell in zeros])
    policy.observe([Observation.checked(grid, cell, [[1.0]], 1.0) for cell in ((0, 0), (0, 2))])
    first = policy.suggest()[0]
    assert (first.rule, first.cell) == ("likely", (0, 1))
    only = np.zeros(64, bool)
    only[[grid.index((0, 1)), grid.index((7, 7)), grid.index((3, 3))]] = True
    second = policy.suggest(1, pending=[(0, 1)], available=only)[0]
    assert second.rule == "frontier"
    both = policy.suggest(2, available=only)
    assert [pick.cell for pick in both] == [(0, 1), second.cell]
    assert [pick.rule for pick in both] == ["likely", "frontier"]
    assert policy.suggest()[0] == first  # asking changes nothing


def test_measurements_that_are_out_are_no_longer_to_be_decided_on() -> None:
    assert Progress(0, 10, 30, out=5).left == 15
    assert not Progress(0, 10, 30, out=5).last
    assert Progress(0, 10, 30, out=13).last
    policy = make_policy("gp", Grid(6, 6), 9, acquisition="foraging")
    assert policy.suggest()[0].rule == "frontier"
    assert policy.suggest(1, pending=[(0, 0), (5, 5)])[0].rule == "last"
