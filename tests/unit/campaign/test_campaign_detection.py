"""Campaigns whose visits may miss a target: every visit is an event, cells can be seen again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.campaign import Campaign, status, verify
from engram.campaign import snapshot as snapshots
from engram.campaign.remaining import SearchSoFar, distribution
from engram.campaign.state import State
from engram.detection import Detection
from engram.errors import ConflictError, InputError
from engram.grid import Grid
from engram.observation import Observation, Observations

Create = Callable[..., Campaign]


def test_a_blank_leaves_the_cell_open_and_every_visit_is_a_query(create: Create) -> None:
    campaign = create(policy="gp", detection=0.7, grid=Grid(3, 3), budget=9)
    for _ in range(6):
        (query,) = campaign.ask(1)
        campaign.tell(query.cell, 0)
    state = campaign.state
    assert len(state.visits) == 6 == len(state.queries)
    assert all(query.state == "told" for query in state.queries.values())
    assert state.budget_left(campaign.now()) == 3
    assert state.searchable().all()
    campaign.tell((1, 1), 1)
    assert not campaign.state.searchable()[4]
    with pytest.raises(ConflictError, match="measured already"):
        campaign.tell((1, 1), 0)
    assert campaign.state.found == 1
    report = status(campaign)
    assert (report.told, report.found, report.closed) == (7, 1, 0)


def test_the_log_is_replayed_with_repeated_visits(create: Create, reopen: Create) -> None:
    campaign = create(policy="gp", detection=0.6, false_alarm=0.02, grid=Grid(4, 4), budget=14)
    rng = np.random.default_rng(1)
    for t in range(9):
        (query,) = campaign.ask(1)
        campaign.tell(query.cell, float(rng.random() < 0.3), detection=0.9 if t % 4 == 3 else None)
    campaign.tell_many(
        [Observation.checked(campaign.grid, (0, 0), 0.0, 0.0, detection=Detection(0.5))] * 2
    )
    campaign.correct((0, 0), outcome=0.0, noise=0.1)
    campaign.retract((0, 0))
    campaign.ask(2)
    assert verify(campaign).ok
    again = reopen()
    assert again.state.policy_keys() == campaign.state.policy_keys()
    assert [m.observation.cell for m in again.state.visits] == again.policy().observations.cells


def test_a_visit_that_is_withdrawn_leaves_the_one_before(create: Create) -> None:
    campaign = create(detection=0.5)
    campaign.tell((2, 2), 0)
    campaign.tell((2, 2), 1)
    assert not campaign.state.searchable()[campaign.grid.index((2, 2))]
    campaign.retract((2, 2))
    assert [o.outcome for o in campaign.state.observations] == [0.0]
    assert campaign.state.searchable()[campaign.grid.index((2, 2))]
    campaign.retract((2, 2))
    assert campaign.state.observations == []


def test_snapshots_keep_visits(
    create: Create, reopen: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 3)
    campaign = create(detection=0.5)
    for outcome in (0, 0, 1):
        campaign.tell((2, 2), outcome, detection=0.4 if outcome else None)
    campaign.tell((3, 3), 0)
    again = reopen()
    assert again.state.policy_keys() == State.replay(campaign.events).policy_keys()
    assert verify(again).ok


def test_a_perfect_campaign_says_nothing_of_detection(create: Create) -> None:
    campaign = create()
    assert "detection" not in campaign.state.spec.to_dict()
    campaign.tell((1, 1), 0)
    assert "detection" not in campaign.events[-1].payload["items"][0]
    other = create("other", detection=1.0)
    assert campaign.state.policy_keys()[:1] == other.state.policy_keys()
    with pytest.raises(ConflictError, match="measured already"):
        campaign.tell((1, 1), 0)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"detection": 0}, "detection=0"),
        ({"detection": 1.5}, "detection=1.5"),
        ({"detection": 0.5, "false_alarm": 0.5}, "not below detection"),
        ({"detection": 0.7, "policy": "gp[detection=1]"}, "leave it out of the policy"),
    ],
)
def test_what_cannot_be_creates_nothing(
    create: Create, db: str, terms: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        create(**terms)
    assert not Path(db).exists()


def test_a_tell_that_cannot_be_writes_nothing(create: Create) -> None:
    campaign = create(detection=0.5)
    for bad in ({"detection": 0.0}, {"detection": 2}, {"false_alarm": 0.6}):
        with pytest.raises(InputError):
            campaign.tell((0, 0), 0, **bad)
    assert campaign.state.seq == 1


def test_what_is_left_counts_targets_that_may_have_been_missed() -> None:
    grid = Grid(4, 4)
    seen = Observations(grid, detection=Detection(0.5))
    for cell in ((0, 0), (0, 0), (1, 1), (2, 2)):
        seen.add(Observation.checked(grid, cell, 0.0, 0.0))
    p = np.full(16, 0.3)
    found = SearchSoFar.of(seen, seen.available, np.full(4, 0.4), p)
    assert found.cells.tolist() == [0, 5, 10]
    assert found.unsure.sum() == 3
    masses = distribution(found)
    assert len(masses) == 17
    assert masses.sum() == pytest.approx(1)
    open_cells = seen.available & ~found.unsure
    never = distribution(
        SearchSoFar(grid, open_cells, found.cells, found.hits, found.forecast, p, found.chance)
    )
    assert found.misses is not None
    mean = never @ np.arange(len(never)) + found.misses.expected.sum()
    assert masses @ np.arange(17) == pytest.approx(mean)


# -- earlier surveys -----------------------------------------------------------------------------

SURVEY = """row,col,outcome,detection,date
0,0,1,,2019-06-01
0,1,0,0.5,2009-06-01
0,1,0,0.5,2009-06-01
2,2,0,,2019-06-01
"""
TWO_YEARS = 2 * 365.25 * 86400


def survey(tmp_path: Path, text: str = SURVEY) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text(text)
    return path


def test_rows_of_a_survey_say_how_far_they_can_be_trusted(create: Create, tmp_path: Path) -> None:
    campaign = create(policy="gp")
    told = campaign.tell_file(survey(tmp_path))
    assert len(told.cells) == 4
    state = campaign.state
    assert [o.detection for o in state.observations] == [None, Detection(0.5), Detection(0.5), None]
    assert state.searchable()[:2].tolist() == [False, True]
    again = campaign.tell_file(survey(tmp_path))
    assert (again.skipped, len(again.cells)) == (4, 0)
    more = survey(tmp_path, SURVEY + "0,1,0,0.5,2009-06-01\n")
    assert len(campaign.tell_file(more).cells) == 1
    campaign.ask(2)
    assert verify(campaign).ok


def test_old_rows_count_less(create: Create, clock: Any, tmp_path: Path) -> None:
    clock.now = 1_600_000_000.0  # September 2020
    campaign = create(policy="gp")
    campaign.tell_file(survey(tmp_path), half_life=TWO_YEARS)
    find, old, _, blank = (o.detection for o in campaign.state.observations)
    assert find is not None
    assert old is not None
    assert blank is not None
    assert find == blank
    assert 0 < find.false_alarm < 0.2 < 0.6 < find.chance < 1
    assert old.chance - old.false_alarm < 0.02
    assert campaign.state.searchable().all()
    chance = campaign.policy().current_scores().probability
    assert chance[0] > 0.5 > chance[campaign.grid.index((2, 2))]
    clock.sleep(1e7)
    assert campaign.tell_file(survey(tmp_path), half_life=TWO_YEARS).skipped == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,col,outcome\n0,0,1\n", "line 2: field date"),
        ("row,col,outcome,date\n0,0,1,soon\n", "'soon' is not a date"),
        ("row,col,outcome,date,detection\n0,0,1,2019,1.5\n", r"line 2: detection=1\.5"),
        ("row,col,outcome,date,detection\n0,0,1,2019,often\n", "field detection: 'often'"),
        ("row,col,outcome,date,false_alarm\n0,0,1,2019,1\n", r"line 2: false alarm=1\.0"),
    ],
)
def test_a_survey_with_a_fault_is_not_told(
    create: Create, tmp_path: Path, text: str, words: str
) -> None:
    campaign = create(policy="gp")
    with pytest.raises(InputError, match=words):
        campaign.tell_file(survey(tmp_path, text), half_life=TWO_YEARS)
    assert campaign.state.seq == 1


def test_policies_that_take_visits_for_truth_refuse_doubtful_ones(create: Create) -> None:
    campaign = create(policy="em-ptdm", preset="paper", prior="universal")
    with pytest.raises(InputError, match="takes every visit for the truth"):
        campaign.tell((0, 0), 0, detection=0.5)
    assert campaign.state.seq == 1
