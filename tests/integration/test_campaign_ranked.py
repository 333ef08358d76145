"""Campaigns of before doubt had its name and cells that are out were known to the rules."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import Campaign, create_campaign, open_campaign, verify
from engram.campaign.model import RULES, Spec
from engram.errors import NewerError
from engram.grid import Grid
from engram.observation import Observation

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


def test_the_rules_of_a_campaign_stand_in_its_log(ranked: Campaign, tmp_path: Path) -> None:
    old = ranked.state.spec
    new = create_campaign("new", old.grid, 30, db=str(tmp_path / "new.db"), policy="random")
    assert (old.rules, new.state.spec.rules) == (1, RULES)
    beyond = f"rules {RULES + 1}; this version of engram knows rules up to {RULES}"
    with pytest.raises(NewerError, match=beyond):
        Spec.read({**old.to_dict(), "rules": RULES + 1})


@pytest.mark.parametrize(("rules", "why"), [(1, "likely"), (2, "frontier")])
def test_what_cannot_be_paid_does_not_keep_a_search_in_place(
    tmp_path: Path, rules: int, why: str
) -> None:
    """Only (0, 1) is likely, and costs more than is left; rules of before followed it all the
    same."""
    cost = np.ones((8, 8))
    cost[0, 1] = 45.0
    terms = {"policy": "gp[acquisition=foraging]", "budget_kind": "cost", "rules": rules}
    db = str(tmp_path / "dear.db")
    campaign = create_campaign("dear", Grid(8, 8, cost=cost), 60, db=db, **terms)
    blank = [(r, c) for r in range(8) for c in range(8) if (r + c) % 2 and r + c > 5]
    finds = [(0, 0), (0, 2)]
    known = [(cell, 0.0) for cell in blank] + [(cell, 1.0) for cell in finds]
    campaign.tell_many([Observation.checked(campaign.grid, c, [[v]], v) for c, v in known])
    free = {(0, 1), (3, 3), (7, 7), *blank, *finds}
    campaign.close([campaign.grid.at(i) for i in range(64) if campaign.grid.at(i) not in free])
    query = campaign.ask()[0]
    explanation = campaign.explain(query.query)
    assert query.cell != (0, 1)
    assert (explanation.rule, explanation.candidates) == (why, 3 if rules == 1 else 2)
    assert verify(campaign).faults == []
