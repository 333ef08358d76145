"""Visits that may miss a target: Bayes' rule, and policies that understand it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram import Grid, InputError, Observation, Observations, Task, make_policy, simulate
from engram.detection import (
    EXPECTED,
    PRIOR,
    Detection,
    after,
    learnt_chance,
    noise_of,
    updated,
    weight_of,
)
from engram.policies import POLICIES, Policy, takes_detection
from engram.spatial import Hyperparameters, SpatialModel
from engram.testing import tiny_memory

GRID = Grid(8, 8)
TELLING = [name for name in POLICIES if takes_detection(name)]
chances = st.floats(0.01, 1.0)


def task(chance: float = 0.7, false_alarm: float = 0.0, side: int = 8) -> Task:
    target = np.zeros((side, side), bool)
    target[2:5, 3:6] = True
    seen = Detection(chance, false_alarm)
    return Task("square", Grid(side, side), target.astype(np.float32)[None], target, detection=seen)


def made(name: str, grid: Grid, budget: int, **options: Any) -> Policy:
    memory = tiny_memory() if POLICIES[name].needs_memory else None
    return make_policy(name, grid, budget, seed=3, memory=memory, **options)


def visit(cell: tuple[int, int], outcome: float, seen: Detection | None = None) -> Observation:
    return Observation.checked(GRID, cell, outcome, outcome, detection=seen)


# -- Bayes' rule ---------------------------------------------------------------------------------


@given(st.floats(0.001, 0.999), chances, st.integers(0, 6))
def test_blanks_lower_the_chance_by_the_closed_form(p: float, d: float, blanks: int) -> None:
    odds = sum(Detection(d).log_odds(False) for _ in range(blanks))
    missed = (1 - d) ** blanks
    assert after(p, odds) == pytest.approx(p * missed / (p * missed + 1 - p), abs=1e-12)


@given(st.floats(0.001, 0.999), st.floats(0.3, 0.99), st.floats(0.01, 0.25), st.data())
def test_reports_that_may_be_false_count_by_the_closed_form(
    p: float, d: float, f: float, data: st.DataObject
) -> None:
    seen, reports = Detection(d, f), data.draw(st.lists(st.booleans(), max_size=5))
    there = np.prod([d if r else 1 - d for r in reports])
    nothing = np.prod([f if r else 1 - f for r in reports])
    odds = sum(seen.log_odds(r) for r in reports)
    wanted = p * there / (p * there + (1 - p) * nothing)
    assert after(p, odds) == pytest.approx(wanted, rel=1e-9)


def test_certain_reports_settle() -> None:
    assert Detection(0.4).log_odds(True) == np.inf
    assert after([0.2, 0.2], [np.inf, -np.inf]).tolist() == [1.0, 0.0]
    assert updated(np.array([0.3, 0.4]), np.array([np.inf, 0.0])).tolist() == [0.3, 0.4]


@given(st.floats(-6.0, 6.0).filter(lambda odds: abs(odds) > 1e-3))
def test_the_noise_moves_the_expectation_as_bayes_rule_does(odds: float) -> None:
    spread = EXPECTED * (1 - EXPECTED)
    gain = spread / (spread + float(noise_of(odds)))
    moved = EXPECTED + gain * (float(odds > 0) - EXPECTED)
    assert moved == pytest.approx(float(after(EXPECTED, odds)), rel=1e-6)
    assert 0 < float(weight_of(odds)) < 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0.0, None), "detection=0.0"),
        ((1.2, None), "detection=1.2"),
        (("often", None), "detection='often'"),
        ((True, None), "detection=True"),
        ((0.7, 1.0), "false alarm=1.0"),
        ((0.7, -0.1), "false alarm=-0.1"),
        ((0.3, 0.3), "false alarm=0.3 is not below detection=0.3"),
        ((float("nan"), None), "detection=nan"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given: tuple[Any, Any], words: str) -> None:
    with pytest.raises(InputError, match=words.replace(".", r"\.")) as raised:
        Detection.read(*given)
    assert "\n" not in str(raised.value)


# -- visits --------------------------------------------------------------------------------------


def test_a_blank_that_may_be_a_miss_leaves_the_cell_open_and_a_find_settles_it() -> None:
    seen = Observations(GRID, detection=Detection(0.7))
    seen.add(visit((1, 1), 0))
    seen.add(visit((1, 1), 0))
    assert seen.available[GRID.index((1, 1))]
    assert seen.visits[GRID.index((1, 1))] == 2
    assert seen.log_odds[GRID.index((1, 1))] == pytest.approx(2 * np.log(0.3))
    assert 0 < seen.told_noise[1, 1] < 1
    seen.add(visit((1, 1), 1))
    assert not seen.available[GRID.index((1, 1))]
    assert seen.told_noise[1, 1] == 0
    assert seen.found == 1
    with pytest.raises(InputError, match="measured already"):
        seen.add(visit((1, 1), 0))


def test_finds_that_may_be_false_settle_when_they_are_sure_enough() -> None:
    seen = Observations(GRID, detection=Detection(0.7, 0.05))
    seen.add(visit((1, 1), 1))
    assert seen.available[GRID.index((1, 1))]
    assert seen.found == 0
    seen.add(visit((1, 1), 1))
    assert not seen.available[GRID.index((1, 1))]
    assert seen.found == 1


def test_a_visit_may_say_itself_how_far_it_can_be_trusted() -> None:
    seen = Observations(GRID, [visit((0, 0), 0, Detection(0.5)), visit((0, 1), 0)])
    assert seen.log_odds[0] == pytest.approx(np.log(0.5))
    assert seen.available[:2].tolist() == [True, False]


def test_luck_depends_on_cell_and_visit_alone() -> None:
    one, other = task(), task()
    reports = [one.measure((3, 4), n).outcome for n in range(200)]
    assert reports == [other.measure((3, 4), n).outcome for n in range(200)]
    assert 0.6 < np.mean(reports) < 0.8
    assert {one.measure((0, 0), n).outcome for n in range(50)} == {0.0}
    missed = one.measure((3, 4), reports.index(0.0))
    assert missed.content.max() == 0
    alarms = [task(0.7, 0.3).measure((0, 0), n) for n in range(50)]
    assert 5 < sum(o.outcome for o in alarms) < 30
    assert all((o.content == o.outcome).all() for o in alarms)


# -- forecasters ---------------------------------------------------------------------------------


def test_the_process_applies_bayes_rule_to_what_all_others_say() -> None:
    model = SpatialModel(GRID, hyperparameters=Hyperparameters(0.2, 1e-3, 0.01))
    cells, blank = [(2, 2), (2, 2), (6, 6)], Detection(0.7).log_odds(False)
    model.fit(cells, [0.0, 0.0, 1.0], np.array([blank, blank, np.inf]))
    alone = SpatialModel(GRID, hyperparameters=model.hyperparameters).fit([(6, 6)], [1.0])
    here = GRID.index((2, 2))
    for ours, wanted in zip(model.others(), alone.predict(), strict=True):
        assert ours[here] == pytest.approx(wanted[here], rel=1e-6)
    policy = make_policy("gp", GRID, 20, detection=0.7)
    before = policy.current_scores().probability[here]
    policy.observe(visit((2, 2), 0))
    now = policy.current_scores().probability
    assert now[here] == pytest.approx(before * 0.3 / (before * 0.3 + 1 - before), rel=1e-6)
    near, far = now[GRID.index((2, 3))], now[GRID.index((7, 7))]
    assert now[here] < near < far <= before + 1e-9


def test_the_memory_is_told_of_a_miss_with_noise_and_its_own_cell_by_bayes_rule() -> None:
    policy = made("em-ptdm", GRID, 20, detection=0.7, h=False, guard=False, views=1)
    here = GRID.index((2, 2))
    before = policy.current_scores().probability[here]
    policy.observe(visit((2, 2), 0))
    now = policy.current_scores().probability[here]
    # the affine reward has learnt from the blank, so that the memory is asked once more
    without = policy.memory.target(  # type: ignore[attr-defined]
        policy.memory.posterior_mean(policy.memory.frozen, Observations(GRID))  # type: ignore[attr-defined]
    )[here]
    assert now == pytest.approx(float(after(without, np.log(0.3))), rel=1e-3)
    assert now < before


@pytest.mark.parametrize("name", TELLING)
@pytest.mark.parametrize("told", [0.7, "learn"])
def test_a_search_with_misses_that_is_put_away_goes_on_the_same(name: str, told: Any) -> None:
    where = task(side=8)
    policy = made(name, where.grid, 40, detection=told)
    for t in range(24):
        cell = policy.suggest()[0].cell
        policy.observe(where.measure(cell, policy.observations.cells.count(cell)))
        if t in (9, 23):
            again = made(name, where.grid, 40, detection=told)
            seen = Observations(where.grid, policy.observations, policy.observations.detection)
            again.restore(seen, policy.state())
            assert again.observations.detection == policy.observations.detection
            np.testing.assert_allclose(
                again.current_scores().total, policy.current_scores().total, rtol=1e-6, atol=1e-9
            )


@pytest.mark.parametrize("name", TELLING)
def test_each_target_counts_once_and_nothing_found_is_visited_again(name: str) -> None:
    where = task(0.5)
    trace = simulate(made(name, where.grid, 64, detection=0.5), where)
    found = [cell for cell, y in zip(trace.cells, trace.outcomes, strict=True) if y > 0]
    assert len(found) == len(set(found)) == trace.found
    assert trace.success_rate() == trace.found / 9
    assert np.isfinite(trace.evidence).all()


@pytest.mark.parametrize("name", TELLING)
def test_a_search_that_takes_blanks_for_truth_visits_no_cell_twice(name: str) -> None:
    trace = simulate(made(name, GRID, 40, detection=1), task(0.5))
    assert len(set(trace.cells)) == 40


@settings(max_examples=10)
@given(st.sampled_from([n for n in TELLING if not POLICIES[n].needs_memory]), st.integers(0, 99))
def test_a_detection_of_one_changes_nothing(name: str, seed: int) -> None:
    where = replace(task(1.0), detection=Detection())
    plain = simulate(make_policy(name, where.grid, 20, seed=seed), where)
    told = simulate(make_policy(name, where.grid, 20, seed=seed, detection=1.0), where)
    assert plain.cells == told.cells
    assert plain.terms == told.terms
    assert plain.evidence == told.evidence


@pytest.mark.parametrize("name", [n for n in TELLING if POLICIES[n].needs_memory])
def test_a_detection_of_one_changes_no_bit_of_a_search_with_memory(name: str) -> None:
    where = replace(task(1.0), detection=Detection())
    searches = [made(name, where.grid, 20, **told) for told in ({}, {"detection": 1.0})]
    plain, told = (simulate(search, where) for search in searches)
    assert plain.cells == told.cells
    assert plain.evidence == told.evidence
    assert plain.forecast == told.forecast
    assert plain.updates == told.updates
    states = [search.state() for search in searches]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_several_visits_of_one_cell_are_taken_one_after_the_other() -> None:
    one, two = (make_policy("gp", GRID, 20, detection=0.6) for _ in range(2))
    visits = [visit((1, 1), 0), visit((2, 2), 0), visit((1, 1), 0)]
    one.observe(visits)
    two.observe(visits[:2])
    two.observe(visits[2])
    assert one.log.forecast == two.log.forecast
    with pytest.raises(InputError, match="given twice"):
        one.observe([visit((3, 3), 1), visit((3, 3), 0)])
    assert one.t == 3


def test_the_evidence_is_the_probability_of_the_report() -> None:
    policy = make_policy("gp", GRID, 20, detection=0.6, false_alarm=0.1)
    for outcome in (0, 1):
        policy.observe(visit((1, 1 + outcome), outcome))
        p, told = policy.log.forecast[-1], policy.log.evidence[-1]
        report = 0.6 * p + 0.1 * (1 - p)
        assert told == pytest.approx(np.log(report if outcome else 1 - report))


def test_policies_that_take_visits_for_truth_say_so() -> None:
    with pytest.raises(InputError, match="takes every visit for the truth"):
        make_policy("greedy", GRID, 5, memory=tiny_memory(), detection=0.7)
    with pytest.raises(InputError, match="paper preset takes every visit"):
        make_policy("em-ptdm", GRID, 5, memory=tiny_memory(), preset="paper", detection=0.7)


# -- learning d ----------------------------------------------------------------------------------


def test_without_visits_the_chance_is_the_priors() -> None:
    none = np.zeros(0)
    d = learnt_chance(none.astype(np.intp), none > 0, none, 0.0)
    assert d == pytest.approx(PRIOR[0] / sum(PRIOR), abs=1e-3)


def test_repeated_visits_teach_the_chance() -> None:
    rng = np.random.default_rng(0)
    cells, found, p = [], [], []
    for cell in range(200):
        there = cell % 2 == 0
        for _ in range(4):
            hit = bool(there and rng.random() < 0.4)
            cells.append(cell)
            found.append(hit)
            p.append(0.5)
            if hit:
                break
    d = learnt_chance(np.array(cells), np.array(found), np.array(p), 0.0)
    assert 0.33 < d < 0.47


# -- old visits ----------------------------------------------------------------------------------


@given(st.floats(0.3, 1.0), st.floats(0.0, 0.25), st.floats(0.0, 1.0))
def test_an_old_visit_says_less(d: float, f: float, weight: float) -> None:
    seen = Detection(d, f)
    old = seen.aged(weight)
    assert old.false_alarm + (1 - weight) + f > 0
    assert old.false_alarm < old.chance
    for found in (True, False):
        assert abs(old.log_odds(found)) <= abs(seen.log_odds(found)) + 1e-9
    assert Detection(d).aged(1.0) == Detection(d)
