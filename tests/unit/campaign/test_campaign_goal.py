"""Campaigns whose goal are separate targets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.campaign import Campaign, in_words, open_campaign, status, verify
from engram.cli.main import main
from engram.errors import InputError
from engram.grid import Grid

Create = Callable[..., Campaign]


def test_status_counts_the_targets_that_were_touched(create: Create) -> None:
    campaign = create(policy="gp[goal=objects]", grid=Grid(16, 16, cell=(2, 2)), budget=30)
    before = status(campaign).targets
    assert before is not None
    assert (before.touched, before.extent) == (0, None)
    for cell, outcome in (((0, 0), 0.3), ((1, 1), 0.2), ((5, 5), 0.25), ((3, 3), 0.0)):
        campaign.tell(cell, outcome, content=[[0.0, 0.0], [0.0, 0.0]])
    facts = status(campaign).to_dict()["targets"]
    assert (facts["goal"], facts["touched"]) == ("objects", 2)
    assert 1 < facts["extent"] < 4
    assert facts["words"].startswith(f"2 touched, about {facts['extent']:.1f} cells across")
    assert "not estimated" in facts["words"]


def test_the_goal_is_kept_replayed_and_explained(create: Create) -> None:
    campaign = create(policy="gp[goal=objects,extent=1]", grid=Grid(9, 9), budget=30)
    words = []
    for _ in range(12):
        (query,) = campaign.ask(1)
        words.append(in_words(campaign.explain(query.query)))
        campaign.tell(query.cell, float(query.cell[0] < 4 and query.cell[1] < 4))
    assert campaign.state.spec.options == {"goal": "objects", "extent": 1}
    assert all("Rule of the score: gap (" in w or "score: new-target (" in w for w in words)
    assert any("the chance of a target that nobody has touched" in w for w in words)
    assert verify(campaign).ok
    targets = status(campaign).targets
    assert targets is not None
    assert targets.extent == 1


def test_cells_with_target_stay_the_goal_of_others(create: Create) -> None:
    facts = status(create(policy="gp", grid=Grid(6, 6), budget=9)).to_dict()
    assert "targets" not in facts
    same = status(create(name="cells", policy="gp[goal=cells]", grid=Grid(6, 6), budget=9))
    assert same.targets is None


def test_a_goal_that_is_none_is_refused_and_nothing_is_made(create: Create) -> None:
    with pytest.raises(InputError, match="goal='all': choose one of cells, objects"):
        create(policy="gp[goal=all]")


def test_the_command_line_takes_the_goal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENGRAM_DB", str(tmp_path / "c.db"))
    create = "campaign create bay --size 8,8 --budget 9 --policy gp --goal"
    assert main([*create.split(), "objects"]) == 0
    assert "policy gp[goal=objects]" in capsys.readouterr().out
    assert open_campaign("bay", db=str(tmp_path / "c.db")).state.spec.options == {"goal": "objects"}
    assert main(["campaign", "tell", "bay", "--cell", "2,2", "--outcome", "1"]) == 0
    capsys.readouterr()
    assert main(["campaign", "status", "bay"]) == 0
    assert "targets       1 touched" in capsys.readouterr().out
    assert main(["campaign", "status", "bay", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"]["touched"] == 1
    assert main([*create.split(), "ships"]) == 2
    assert "goal='ships': choose one of cells, objects" in capsys.readouterr().err
    twice = "campaign create sea --size 8,8 --budget 9 --policy gp[goal=cells] --goal objects"
    assert main(twice.split()) == 2
    assert "'goal' is given twice" in capsys.readouterr().err
