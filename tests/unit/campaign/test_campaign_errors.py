"""What kind of error a request meets: the command line and a server answer by it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from engram import errors
from engram.campaign import StaleError, Storage, create_campaign, open_campaign
from engram.cli.main import main
from engram.errors import REPLIES, EngramError
from engram.grid import Grid

REQUESTS = {
    "a cell outside": (lambda c: c.tell((9, 9), 1.0), "input"),
    "no cell asked for": (lambda c: c.ask(0), "input"),
    "a query nobody made": (lambda c: c.explain(9), "not found"),
    "a failure of no query": (lambda c: c.fail(query=9), "not found"),
    "no measurement to correct": (lambda c: c.correct((5, 5), outcome=1.0), "not found"),
    "no measurement to retract": (lambda c: c.retract((5, 5)), "not found"),
    "measured already": (lambda c: c.tell((0, 0), 1.0), "conflict"),
    "a closed cell": (lambda c: c.tell((7, 7), 1.0), "conflict"),
    "closed already": (lambda c: c.close([(7, 7)]), "conflict"),
    "open already": (lambda c: c.open([(5, 5)]), "conflict"),
    "failed although measured": (lambda c: c.fail(cell=(0, 0)), "conflict"),
    "a key of another request": (lambda c: c.tell((5, 5), 1.0, key="k"), "conflict"),
    "more cells than budget": (lambda c: c.ask(5), "exhausted"),
    "more cells than there are": (lambda c: c.ask(99), "exhausted"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_refused_by_kind(create, name):
    campaign = create(budget=4)
    campaign.tell((0, 0), 1.0, key="k")
    campaign.close([(7, 7)])
    request, kind = REQUESTS[name]
    with pytest.raises(errors.InputError) as caught:
        request(campaign)
    assert caught.value.kind == kind
    assert campaign.refresh().seq == 3


def test_a_measurement_beyond_the_budget_is_exhausted(create):
    campaign = create(budget=1)
    campaign.tell((0, 0), 1.0)
    with pytest.raises(errors.ExhaustedError):
        campaign.tell((0, 1), 1.0)


def test_names_that_are_taken_or_unknown(create, reopen):
    create()
    with pytest.raises(errors.ConflictError):
        create()
    with pytest.raises(errors.NotFoundError):
        reopen("lake")


def test_what_the_database_can_be(create, db, tmp_path):
    create().tell((0, 0), 1.0)
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_events SET payload = '{}' WHERE seq = 2")
    assert _kind(lambda: open_campaign("pond", db=db)) == "damaged"
    with sqlite3.connect(db) as raw:
        newer = """replace(payload, '"format":1', '"format":99')"""
        raw.execute(f"UPDATE engram_events SET payload = {newer} WHERE seq = 1")
    assert _kind(lambda: open_campaign("pond", db=db)) == "unavailable"
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_schema SET version = 99")
    assert _kind(lambda: Storage(db)) == "unavailable"
    (tmp_path / "no.db").write_text("no database at all, only words " * 50)
    assert _kind(lambda: Storage(str(tmp_path / "no.db"))) == "damaged"
    assert _kind(lambda: Storage(str(tmp_path))) == "unavailable"
    assert StaleError.kind == "conflict"


def _kind(request):
    with pytest.raises(EngramError) as caught:
        request()
    return caught.value.kind


def test_every_kind_has_an_exit_code_and_a_status():
    kinds = {error.kind for error in _family(EngramError)}
    assert kinds == set(REPLIES)
    assert {kind: reply.status for kind, reply in REPLIES.items()} == {
        "input": 422,
        "not found": 404,
        "conflict": 409,
        "exhausted": 409,
        "damaged": 500,
        "unavailable": 503,
        "failed": 500,
    }


def _family(root):
    return [root, *(error for child in root.__subclasses__() for error in _family(child))]


def test_the_command_line_exits_with_the_code_of_the_kind(tmp_path: Path, capsys, monkeypatch):
    db = str(tmp_path / "c.db")
    create_campaign("pond", Grid(4, 4), 2, db=db, policy="random")
    for number, kind in enumerate(REPLIES, 11):
        monkeypatch.setitem(REPLIES, kind, errors.Reply(number, 0))
    codes = [errors.REPLIES[kind].exit_code for kind in ("not found", "exhausted", "conflict")]
    assert main(["campaign", "status", "lake", "--db", db]) == codes[0]
    assert main(["campaign", "ask", "pond", "-n", "3", "--db", db]) == codes[1]
    assert main(["campaign", "open", "pond", "--cell", "1,1", "--db", db]) == codes[2]
    assert capsys.readouterr().err.count("error: ") == 3
