"""The commands of docs/detection.md, run on small data, and repeated visits on both databases."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engram import Grid
from engram.campaign import create_campaign, open_campaign, verify
from engram.campaign.explain import in_words
from engram.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "detection.md"
BLOCKS = re.findall(r"<!-- run -->\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGRAM_DB", str(tmp_path / "campaigns.db"))
    visits = ["row,col,outcome", "1,1,0", "1,1,0", "1,1,yes", "2,2,0", "2,2,0", "5,5,0"]
    Path("visits.csv").write_text("\n".join(visits) + "\n")
    survey = ["row,col,found,date", "0,0,yes,2019", "0,5,no,2021-04-02", "7,7,no,1998-01-01"]
    Path("survey.csv").write_text("\n".join(survey) + "\n")
    return tmp_path


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_command_runs(number: int, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line in BLOCKS[number].strip().splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
    said = capfd.readouterr().out
    if "status" in BLOCKS[number]:
        assert "a visit finds a target that is there with" in said
        assert "may still hold about" in said


def test_there_are_three_blocks() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("create a --size 4,4 --budget 4 --detection 0", "detection=0"),
        ("create a --size 4,4 --budget 4 --detection 1.01", "detection=1.01"),
        ("create a --size 4,4 --budget 4 --detection often", "detection='often'"),
        ("create a --size 4,4 --budget 4 --detection 0.5 --false-alarm 0.5", "not below detection"),
        ("create a --size 4,4 --budget 4 --policy gp[detection=1]", "leave it out of the policy"),
        ("create a --size 4,4 --budget 4 --policy diffatd --detection 0.5", "takes every visit"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    line: str, words: str, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["campaign", *shlex.split(line)]) == 2
    said = capfd.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
    assert not (data / "campaigns.db").exists()


def test_replay_and_verify_with_repeated_visits(url: str, unique: Callable[[str], str]) -> None:
    grid, name, rng = Grid(4, 4), unique("visits"), np.random.RandomState(2)
    campaign = create_campaign(name, grid, 16, db=url, policy="gp", detection="learn")
    for t in range(12):
        cell = campaign.ask()[0].cell
        there = grid.index(cell) % 3 == 0
        campaign.tell(cell, float(there and rng.rand() < 0.5), detection=0.9 if t == 5 else None)
    campaign.ask(2)
    again = open_campaign(name, db=url)
    assert len(again.state.visits) == 12 > len(again.state.measurements)
    assert again.peek(2) == campaign.peek(2)
    found = verify(again)
    assert found.ok, found.faults
    told = [in_words(campaign.explain(query)) for query in campaign.state.queries]
    assert any("before; a visit may miss" in text for text in told)
