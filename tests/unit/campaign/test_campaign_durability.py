"""A database that was put back or replaced, keys, access, and requests that cannot be met."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import (
    StaleError,
    create_campaign,
    verify,
)
from engram.campaign.status import overview
from engram.errors import InputError
from engram.grid import Grid


def test_a_handle_that_knows_more_than_the_database_is_refused(create, reopen, db, tmp_path):
    campaign = create()
    for i in range(3):
        campaign.tell((0, i), 1.0)
    shutil.copy(db, tmp_path / "copy.db")
    for i in range(3):
        campaign.tell((1, i), 1.0)
    shutil.copy(tmp_path / "copy.db", db)
    with pytest.raises(StaleError, match=r"read up to event 7, .* ends at event 4.*put back"):
        campaign.tell((2, 0), 1.0)
    with pytest.raises(StaleError, match="ends at event 4"):
        campaign.refresh()
    again = reopen()
    assert [o.cell for o in again.state.observations] == [(0, 0), (0, 1), (0, 2)]
    assert again.tell((2, 0), 1.0).seq == 5
    assert verify(again).ok


def test_a_log_that_went_on_after_it_was_put_back(create, reopen, db, tmp_path):
    campaign = create()
    shutil.copy(db, tmp_path / "copy.db")
    campaign.tell((1, 0), 1.0)
    shutil.copy(tmp_path / "copy.db", db)
    other = reopen()
    other.tell((5, 5), 0.0)
    other.tell((5, 6), 0.0)
    with pytest.raises(StaleError, match="event 2 in the database is not the one"):
        campaign.tell((2, 0), 1.0)
    assert verify(reopen()).ok


def test_a_replaced_database_gets_nothing(create, reopen, db, tmp_path, clock):
    campaign = create("ours")
    other = str(tmp_path / "other.db")
    create_campaign("theirs", Grid(8, 8), 20, db=other, policy="random", clock=clock)
    shutil.copy(other, db)
    for request in (lambda: campaign.tell((0, 0), 1.0), lambda: campaign.ask(1), campaign.refresh):
        with pytest.raises(StaleError, match="'ours' is not in this database any more"):
            request()
    assert reopen("theirs").state.seq == 1


def test_a_key_hands_cells_to_who_asked_for_them(create):
    campaign = create(lease=50.0)
    campaign.ask(1, by="north", key="k")
    for other in ({"by": "south"}, {"by": "north", "lease": 60.0}, {}):
        with pytest.raises(InputError, match=r"another request \(event 2, ask by 'north'\)"):
            campaign.ask(1, key="k", **other)
    assert [q.query for q in campaign.ask(1, by="north", key="k")] == [1]
    assert [q.query for q in campaign.ask(1, by="north", lease=50.0, key="k")] == [1]


@pytest.mark.parametrize("uid", ["../../elsewhere", "/tmp/elsewhere-{}", "."])
def test_a_crafted_uid_reaches_no_other_folder(create, reopen, db, tmp_path, uid):
    create().tell((0, 0), 1.0)
    uid = uid.format(tmp_path.name)
    target = (tmp_path / "campaigns.artifacts" / uid).resolve()
    target.mkdir(parents=True, exist_ok=True)
    foreign = [target / f"{i:064x}.safetensors" for i in range(40)]
    for path in foreign:
        path.write_text("somebody's weights")
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_campaigns SET uid = ?", (uid,))
    campaign = reopen()
    for i in range(1, 12):
        campaign.tell((1, i % 8) if i < 8 else (2, i % 8), 1.0)
        campaign.peek(1)
    assert all(path.read_text() == "somebody's weights" for path in foreign)
    assert campaign.folder.parent == tmp_path / "campaigns.artifacts"
    assert list(campaign.folder.glob("*.safetensors"))
    shutil.rmtree(target)


def test_new_databases_are_for_their_owner_alone(create, db):
    create().tell((0, 0), 1.0)
    assert stat.S_IMODE(Path(db).stat().st_mode) == 0o600


def test_budgets_that_overflow_are_refused(create, reopen):
    for terms in ({"budget": 1e308}, {"budget": 2, "travel": 1e308}, {"budget": 2, "lease": 1e300}):
        with pytest.raises(InputError, match=r"1e\+12|hundred years"):
            create("x", budget_kind="cost", **terms)
    with pytest.raises(InputError, match="cost of all cells"):
        create("x", grid=Grid(2, 2, cost=np.full((2, 2), 1e12)), budget=1, budget_kind="cost")
    campaign = create(budget=5e11, budget_kind="cost")
    with pytest.raises(InputError, match=r"a budget of 1\.4e\+12"):
        campaign.extend(9e11)
    for wrong in (
        lambda: campaign.ask(1, lease=1e300),
        lambda: campaign.fail(cell=(0, 0), retry=1e300),
    ):
        with pytest.raises(InputError, match="hundred years"):
            wrong()
    assert reopen().state.seq == 1


def test_one_bad_campaign_does_not_hide_the_others(create, db):
    for name in ("good", "bad", "worse", "late"):
        create(name).tell((0, 0), 1.0)
    with sqlite3.connect(db) as raw:

        def harm(name, text):
            raw.execute(
                "UPDATE engram_events SET payload = ? WHERE seq = 2 AND campaign = "
                "(SELECT id FROM engram_campaigns WHERE name = ?)",
                (text, name),
            )

        harm("bad", '{"items": [{"cell": [0, 99]}], "queries": [null]}')
        harm("worse", "{not json")
        raw.execute("UPDATE engram_campaigns SET created = 'x' WHERE name = 'late'")
    lines = {line.name: line for line in overview(db)}
    assert lines["good"].told == lines["late"].told == 1
    assert "event 2 (tell) is damaged" in lines["bad"].problem
    assert "is not JSON" in lines["worse"].problem


def test_a_campaign_whose_budget_overflowed_before_opens(create, reopen, db):
    """Earlier versions took any finite budget, and their sum became infinite."""
    import json

    from engram.campaign.model import LARGEST, canonical

    campaign = create(budget=5, budget_kind="cost")
    campaign.extend(7)
    with sqlite3.connect(db) as raw:
        for seq, name in ((1, "budget"), (2, "by")):
            row = raw.execute("SELECT payload FROM engram_events WHERE seq = ?", (seq,))
            payload = {**json.loads(row.fetchone()[0]), name: 1e308}
            raw.execute(
                "UPDATE engram_events SET payload = ? WHERE seq = ?", (canonical(payload), seq)
            )
    again = reopen()
    assert again.state.budget == LARGEST
    assert again.ask(1)
    assert np.isfinite(overview(db)[0].budget_left)


def test_what_cannot_be_met_is_refused_before_any_work(create, monkeypatch):
    campaign = create(budget=9)
    campaign.tell((0, 0), 1.0)
    monkeypatch.setattr(campaign, "policy", lambda: pytest.fail("the policy was asked"))
    for request in (campaign.ask, campaign.peek):
        with pytest.raises(InputError, match="enough for 8"):
            request(9)
        with pytest.raises(InputError, match="n=1000000000"):
            request(10**9)
    small = create("small", grid=Grid(2, 2), budget=4)
    small.close([(0, 0)])
    with pytest.raises(InputError, match="only 3 cell"):
        small.ask(4)
    cost = np.arange(1.0, 65.0).reshape(8, 8)
    dear = create("dear", grid=Grid(8, 8, cost=cost), budget=6.5, budget_kind="cost")
    monkeypatch.setattr(dear, "policy", lambda: pytest.fail("the policy was asked"))
    with pytest.raises(InputError, match="enough for 3"):
        dear.ask(4)


def test_areas_that_do_not_fit_in_memory_are_refused(create, db, monkeypatch):
    monkeypatch.setattr("engram.campaign.fits.memory", lambda: 2_000_000_000)
    for policy in ("gp", "auto"):
        with pytest.raises(InputError, match="GB for policy"):
            create(grid=Grid(4000, 4000), budget=100, policy=policy)
    with pytest.raises(InputError, match="that can be searched"):
        Grid(1_000_000, 1_000_000)
    assert not Path(db).exists()
    create(grid=Grid(64, 64), budget=100, policy="gp")
