"""Campaigns of before doubt had its name and cells that are out were known to the rules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engram.campaign import Campaign, open_campaign, verify

FIXTURE = Path(__file__).parent / "data" / "campaigns-ranked.db"


@pytest.fixture(params=["process", "foraging", "memory"])
def ranked(request: pytest.FixtureRequest, tmp_path: Path) -> Campaign:
    return open_campaign(request.param, db=str(shutil.copy(FIXTURE, tmp_path / "ranked.db")))


def test_suggestions_of_before_come_out_again(ranked: Campaign) -> None:
    report = verify(ranked)
    assert report.faults == []
    assert (report.asks, report.suggestions) == (13, 17)


def test_they_go_on(ranked: Campaign) -> None:
    for query in ranked.ask(2):
        ranked.tell(query.cell, 1.0)
    assert set(ranked.ask()[0].terms) - set(ranked.state.queries[1].terms) == {"doubt"}
    assert verify(ranked).faults == []
