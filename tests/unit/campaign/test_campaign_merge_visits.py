"""Copies of a campaign whose visits may miss a target: those of both count."""

from __future__ import annotations

import shutil

import pytest

from engram.campaign import create_campaign, open_campaign, verify
from engram.campaign.merging import merge
from engram.errors import ConflictError
from engram.grid import Grid


@pytest.fixture
def pair(tmp_path):
    """A campaign with one blank visit, and a copy of it."""
    first = create_campaign(
        "c",
        Grid(6, 6),
        20,
        db=str(tmp_path / "here.db"),
        policy="gp",
        detection=0.6,
        clock=lambda: 1000.0,
    )
    first.tell((0, 0), 0.0, by="base")
    del first
    shutil.copy(tmp_path / "here.db", tmp_path / "there.db")

    def opened(name, at):
        return open_campaign("c", db=str(tmp_path / f"{name}.db"), clock=lambda: at)

    return opened("here", 2000.0), opened("there", 3000.0), tmp_path / "there.db"


def visits(campaign, cell):
    found = campaign.state.visits_of(campaign.grid.index(cell))
    return [(m.observation.outcome, m.who) for m in found]


def test_blanks_of_both_copies_count(pair):
    here, there, path = pair
    here.tell((0, 0), 0.0, by="north")
    there.tell((0, 0), 0.0, by="south", detection=0.9)
    there.tell((0, 0), 0.0, by="south")
    there.tell((2, 2), 0.0, by="south")
    done = merge(here, path)
    assert (done.told, done.conflicts) == (3, [])
    told = [(0.0, "base"), (0.0, "north"), (0.0, "south"), (0.0, "south")]
    assert visits(here, (0, 0)) == told
    seen = here.state.visits_of(0)[2].observation.detection
    assert seen is not None
    assert seen.chance == 0.9
    assert not here.state.is_settled(0)
    report = verify(here)
    assert report.ok, report.faults
    again = open_campaign("c", db=here.storage.store.path)
    assert [o.cell for o in again.state.observations] == [o.cell for o in here.state.observations]


def test_a_find_of_the_other_copy_settles_a_cell_that_was_blank_here(pair):
    here, there, path = pair
    here.tell((0, 0), 0.0, by="north")
    there.tell((0, 0), 1.0, by="south")
    assert merge(here, path).conflicts == []
    assert visits(here, (0, 0)) == [(0.0, "base"), (0.0, "north"), (1.0, "south")]
    assert here.state.is_settled(0)
    assert here.state.found == 1
    assert verify(here).ok


def test_a_blank_of_the_other_copy_does_not_contradict_a_find(pair):
    here, there, path = pair
    here.tell((0, 0), 1.0, by="north")
    there.tell((0, 0), 0.0, by="south")
    there.tell((0, 0), 1.0, by="south")
    done = merge(here, path)
    assert (done.told, done.conflicts) == (0, [])
    assert visits(here, (0, 0)) == [(0.0, "base"), (1.0, "north")]
    assert verify(here).ok


def test_what_was_sure_in_both_copies_is_a_conflict(pair):
    here, there, path = pair
    here.tell((1, 1), 1.0, by="north")
    there.tell((1, 1), 0.0, by="south", detection=1.0)
    with pytest.raises(ConflictError, match="1 cell"):
        merge(here, path)
    merge(here, path, rule="there")
    assert visits(here, (1, 1)) == [(0.0, "south")]
    assert verify(here).ok


def test_a_correction_there_replaces_the_visits_here(pair):
    here, there, path = pair
    there.tell((0, 0), 0.0, by="south")
    there.correct((0, 0), outcome=1.0, reason="a photo")
    there.retract((0, 0))
    there.correct((0, 0), outcome=1.0, reason="a photo")
    merge(here, path)
    assert visits(here, (0, 0)) == [(1.0, "base")]
    assert verify(here).ok


def test_visits_that_were_changed_in_both_copies_are_a_conflict(pair):
    here, there, path = pair
    here.retract((0, 0))
    there.tell((0, 0), 0.0, by="south")
    with pytest.raises(ConflictError, match="none here, 0 there"):
        merge(here, path)
    merge(here, path, rule="there")
    assert visits(here, (0, 0)) == [(0.0, "base"), (0.0, "south")]
    assert verify(here).ok
