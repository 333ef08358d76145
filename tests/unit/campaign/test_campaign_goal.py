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
    size = f"finds in 2 group(s), about {facts['extent']:.1f} cells across"
    assert facts["words"].startswith(f"about {facts['apart']:.1f} touched ({size}); not touched: ")


def test_status_says_how_many_targets_nobody_has_touched(create: Create) -> None:
    campaign = create(policy="gp[goal=objects]", grid=Grid(12, 12), budget=60)
    for row in range(0, 12, 3):
        for col in range(0, 12, 3):
            campaign.tell((row, col), float((row, col) in {(0, 0), (6, 9)}))
    facts = status(campaign).to_dict()
    targets = facts["targets"]
    left, wide = targets["untouched"], targets["wide"]
    assert (left["level"], wide["level"]) == (0.8, 0.95)
    assert 0 < left["low"] + left["expected"] <= 2 * left["expected"]
    assert wide["low"] <= left["low"] <= left["expected"] <= left["high"] <= wide["high"]
    assert 1.5 < targets["apart"] < 2.5
    ends = f"({left['low']} to {left['high']} at 80%, {wide['low']} to {wide['high']} at 95%)"
    assert f"not touched: about {left['expected']:.1f} {ends}, chance of any: " in targets["words"]
    # a target has a cell at least, and measurements touch no more than there are
    assert left["expected"] <= facts["remaining"]["expected"]
    assert targets["next"]["expected"] <= targets["prospect"]["expected"] <= left["expected"]
    assert (targets["prospect"]["measurements"], targets["next"]["measurements"]) == (44, 10)
    same = status(campaign, level=0.95).to_dict()["targets"]
    assert same["untouched"] == wide == same["wide"]
    assert same["words"].count(" at 95%") == 1


def test_targets_that_visits_may_have_missed_are_untouched(create: Create) -> None:
    left = []
    for name, chance in (("sure", 1.0), ("unsure", 0.5)):
        campaign = create(
            name=name, policy="gp[goal=objects]", grid=Grid(8, 8), budget=60, detection=chance
        )
        for row in range(0, 8, 2):
            for col in range(0, 8, 2):
                campaign.tell((row, col), float((row, col) == (4, 4)))
        targets = status(campaign).targets
        assert targets is not None
        left.append(targets.untouched.expected)
    assert left[0] < left[1]


def test_the_advice_counts_separate_targets(create: Create) -> None:
    """Large targets, all touched: cells are left to find, but nothing that nobody has touched."""
    campaign = create(policy="gp[goal=objects]", grid=Grid(16, 16), budget=250, stop_yield=0.05)
    plain = create(name="cells", policy="gp", grid=Grid(16, 16), budget=250, stop_yield=0.05)
    begun = status(campaign)
    assert begun.targets is not None
    assert begun.advice.words.startswith("Go on: the 250 measurement(s) left should touch about ")
    assert f"{begun.targets.prospect.expected:.1f} more separate targets" in begun.advice.words
    for row in range(16):
        for col in range(row % 2, 16, 2):
            hit = float((row - 4) ** 2 + (col - 4) ** 2 < 12)
            for one in (campaign, plain):
                one.tell((row, col), hit)
    done, cells = status(campaign), status(plain)
    assert done.targets is not None
    assert done.targets.untouched.expected < 0.5 < cells.remaining.expected
    assert done.advice.stop
    assert "bring 6.1 more separate targets (a yield of 0.05) is" in done.advice.words
    assert not cells.advice.stop
    assert "separate" not in cells.advice.words


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
    shown = capsys.readouterr().out
    assert "targets       about 1.0 touched (finds in 1 group(s)" in shown
    assert "still to find about " in shown
    assert " cells (" in shown
    assert "more separate targets" in shown
    assert main(["campaign", "status", "bay", "--json"]) == 0
    targets = json.loads(capsys.readouterr().out)["targets"]
    assert targets["touched"] == 1
    assert 0 <= targets["untouched"]["low"] <= targets["untouched"]["expected"]
    assert main([*create.split(), "ships"]) == 2
    assert "goal='ships': choose one of cells, objects" in capsys.readouterr().err
    twice = "campaign create sea --size 8,8 --budget 9 --policy gp[goal=cells] --goal objects"
    assert main(twice.split()) == 2
    assert "'goal' is given twice" in capsys.readouterr().err
