"""Two copies of a campaign that were used apart become one log."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from engram.campaign import create_campaign, history, open_campaign, verify
from engram.campaign.merging import check_merge, merge
from engram.cli.main import main
from engram.errors import ConflictError, InputError
from engram.grid import Grid


@pytest.fixture
def pair(tmp_path):
    """A campaign and a copy of it, with a common beginning of three events."""
    here = create_campaign(
        "c", Grid(6, 6), 20, db=str(tmp_path / "here.db"), policy="gp", seed=1, clock=lambda: 1000.0
    )
    here.tell((0, 0), 1.0, by="base")
    here.ask(2, by="base")
    del here
    shutil.copy(tmp_path / "here.db", tmp_path / "there.db")

    def opened(name, at):
        return open_campaign("c", db=str(tmp_path / f"{name}.db"), clock=lambda: at)

    return opened("here", 2000.0), opened("there", 3000.0), tmp_path / "there.db"


def outcomes(campaign):
    return {m.observation.cell: m.observation.outcome for m in campaign.state.measurements.values()}


def test_what_only_one_side_did_is_taken(pair):
    here, there, path = pair
    asked = [q.cell for q in here.state.queries.values()]
    here.tell(asked[0], 0.0, by="north")
    new = there.ask(2, by="south")
    there.tell(new[0].cell, 1.0, by="south", key="k1")
    there.tell(asked[1], 1.0, by="south")
    there.correct((0, 0), outcome=0.5, reason="again")
    there.close([(5, 5)])
    there.extend(3)
    done = merge(here, path, by="base")
    assert (done.events, done.told, done.conflicts) == (6, 3, [])
    assert outcomes(here) == {asked[0]: 0.0, new[0].cell: 1.0, asked[1]: 1.0, (0, 0): 0.5}
    assert here.state.budget == 23
    assert here.state.is_closed(35)
    states = {n: (q.cell, q.state) for n, q in here.state.queries.items()}
    assert states[1][1] == states[2][1] == "told"
    assert sorted((c, s) for c, s in list(states.values())[2:]) == sorted(
        [(new[0].cell, "told"), (new[1].cell, "asked")]
    )
    assert here.explain(3).cell == new[0].cell
    assert "6 events of another copy, 3 measurements taken over" in history(here)[-1].text
    report = verify(here)
    assert report.ok, report.faults
    assert report.suggestions == 4
    assert here.ask(1)
    assert verify(here).ok
    with pytest.raises(InputError, match="has nothing that is not here"):
        merge(here, path)


def test_conflicts_are_listed_and_decided(pair):
    here, there, path = pair
    for cell in ((3, 3), (4, 4), (2, 2)):
        here.tell(cell, 0.0)
        there.tell(cell, 1.0 if cell != (2, 2) else 0.0)
    there.retract((0, 0))
    here.correct((0, 0), outcome=0.25)
    seq = here.state.seq
    with pytest.raises(
        ConflictError, match=r"3 cell\(s\) were measured differently: .*\(3, 3\): 0 here, 1 there"
    ):
        merge(here, path)
    listed = merge(here, path, only_list=True)
    assert not listed.written
    assert here.refresh().seq == seq
    assert {tuple(c["cell"]): c["there"] for c in listed.conflicts} == {
        (3, 3): 1,
        (4, 4): 1,
        (0, 0): None,
    }
    merge(here, path, rule="first", by_hand={(4, 4): "there"})
    assert outcomes(here) == {(0, 0): 0.25, (3, 3): 0.0, (4, 4): 1.0, (2, 2): 0.0}
    assert verify(here).ok


@pytest.mark.parametrize(
    ("rule", "left"), [("here", 0.0), ("there", 1.0), ("first", 0.0), ("last", 1.0)]
)
def test_rules(pair, rule, left):
    here, there, path = pair
    here.tell((3, 3), 0.0)
    there.tell((3, 3), 1.0)
    merge(here, path, rule=rule)
    assert outcomes(here)[3, 3] == left
    assert verify(here).ok


def test_a_copy_that_goes_on_is_merged_again_and_back(pair):
    here, there, path = pair
    there.tell((3, 3), 1.0)
    there.extend(1, key="e")
    here.extend(1, key="e")
    merge(here, path)
    assert here.state.budget == 21
    there.tell((4, 4), 0.0)
    there.ask(1, by="south")
    here.tell((1, 1), 0.0)
    done = merge(here, path)
    assert (done.events, done.told, done.queries) == (2, 1, 1)
    back = merge(there, here.storage.place)
    assert back.told == 1
    assert outcomes(there) == outcomes(here)
    assert there.state.budget == here.state.budget == 21
    assert sorted(q.cell for q in there.state.queries.values()) == sorted(
        q.cell for q in here.state.queries.values()
    )
    for one in (here, there):
        report = verify(one)
        assert report.ok, report.faults


def test_a_merge_that_was_changed_is_found(pair):
    here, there, path = pair
    new = there.ask(1, by="south")
    there.tell(new[0].cell, 1.0)
    merge(here, path)
    *ours, event = here.events
    assert check_merge(ours, event, lambda events, after: None) == []
    changes = {
        "what the two logs do not say": lambda p: p["told"][0].update(outcome=0.0),
        "was changed": lambda p: p["events"][1]["payload"]["items"][0].update(outcome=0.0),
    }
    for words, change in changes.items():
        payload = json.loads(json.dumps(event.payload))
        change(payload)
        changed = replace(event, payload=payload)
        assert words in check_merge(ours, changed, lambda events, after: None)[0]


def test_what_is_no_copy_is_refused(pair, tmp_path):
    here, _, _ = pair
    create_campaign("c", Grid(6, 6), 20, db=str(tmp_path / "x.db"), policy="gp")
    with pytest.raises(InputError, match="is another one, not a copy"):
        merge(here, tmp_path / "x.db")
    with pytest.raises(InputError, match="this very database"):
        merge(here, here.storage.place)
    with pytest.raises(InputError, match="--rule 'loudest'"):
        merge(here, tmp_path / "x.db", rule="loudest")


def test_on_the_command_line(pair, capsys):
    here, there, path = pair
    here.tell((3, 3), 0.0)
    there.tell((3, 3), 1.0)
    line = ["campaign", "merge", str(path), "c", "--db", here.storage.place]
    assert main(line) == 2
    assert "decide by --rule" in capsys.readouterr().err
    assert main([*line, "--list"]) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert main([*line, "--take", "3,3=there", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conflicts"][0]["take"] == "there"
    assert main(["campaign", "verify", "c", "--db", here.storage.place]) == 0
    assert main([*line, "--take", "3,3"]) == 2
    assert main(["campaign", "merge", "absent.db", "c", "--db", here.storage.place]) == 2
