"""Events are typed; their JSON is what was hashed, and nothing in it is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import open_campaign, verify
from engram.campaign.contract import MemoryStore
from engram.campaign.events import KINDS, Ask, Event, Extend, Fail, Measured
from engram.campaign.model import canonical
from engram.campaign.storage import Storage
from engram.errors import DamagedError, NewerError
from engram.grid import Grid
from engram.observation import Observation

FIXTURE = Path(__file__).parents[2] / "integration" / "data" / "campaigns-v1.db"


def test_every_event_of_the_first_version_gives_back_its_bytes(tmp_path):
    """Also bodies made anew say exactly what was hashed then."""
    db = str(shutil.copy(FIXTURE, tmp_path / "v1.db"))
    with sqlite3.connect(db) as raw:
        rows = raw.execute("SELECT seq, payload, hash FROM engram_events ORDER BY seq").fetchall()
    storage = Storage(db)
    events, previous = storage.events(storage.campaign("fixture")), ""
    assert {event.kind for event in events} == set(KINDS) - {"merge"}  # came later
    for event, (seq, text, hash) in zip(events, rows, strict=True):
        assert canonical(event.body.plain()) == text
        again = Event.saying(seq, event.at, event.who, event.key, event.body)
        assert again.chained(previous, text) == hash
        previous = hash


def _at(event, **fields):
    return replace(event, payload={**event.payload, **fields})


def test_what_a_later_version_adds_is_kept(create):
    campaign = create()
    campaign.ask(1)
    campaign.tell((0, 0), 1.0)
    for event in campaign.events:
        later = _at(event, colour={"deep": [1, 2]})
        assert later.body.plain() == later.payload
        assert later.body.more == {"colour": {"deep": [1, 2]}}
        assert type(later.body) is KINDS[event.kind]
    item = {**campaign.events[2].payload["items"][0], "detection": 0.9}
    later = _at(campaign.events[2], items=[item])
    assert later.body.items[0].more == {"detection": 0.9}
    assert later.body.plain() == later.payload


def test_a_log_with_fields_of_a_later_version_opens_and_verifies(create, clock, db):
    campaign = create()
    query = campaign.ask(1)[0]
    campaign.tell(query.cell, 1.0)
    storage, store = Storage(db), MemoryStore()
    events = storage.events(storage.campaign("pond"))
    details = [storage.detail(storage.campaign("pond"), event.seq) for event in events]
    other = Storage(store)
    row = other.create_campaign("pond", _at(events[0], later="terms"))
    for event, detail in zip(events[1:], details[1:], strict=True):
        head = other.events(row)[-1].hash
        extra = _at(event, later=[event.seq])
        other.write(row, lambda w, e=extra, h=head, d=detail: w.append(e, h, d))
    again = open_campaign("pond", db=store, clock=clock)
    assert verify(again).ok
    assert [event.payload["later"] for event in again.events] == ["terms", [2], [3]]


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("extend", {}, "KeyError 'by'"),
        ("fail", {"cell": [1], "query": None, "wait": None, "reason": ""}, "ValueError"),
        ("tell", {"items": 3, "queries": []}, "TypeError"),
        ("correct", {"cell": [0, 0], "change": {}, "reason": "", "old": 1, "new": 1}, "Error"),
    ],
)
def test_bodies_that_cannot_have_been_written_are_named(kind, payload, words):
    with pytest.raises(DamagedError, match=rf"event 7 \({kind}\) is damaged: .*{words}"):
        _ = Event(7, kind, 0.0, "", "k", payload).body


def test_a_kind_of_a_later_version_is_named():
    with pytest.raises(NewerError, match="kind 'split', which this version"):
        _ = Event(7, "split", 0.0, "", "k", {}).body


def test_numbers_stay_as_they_were_written():
    for value in (60, 60.0):
        body = Fail((1, 2), None, value, "")
        text = canonical(body.plain())
        assert f'"wait":{json.dumps(value)}' in text
        assert canonical(Fail.of(json.loads(text)).plain()) == text
    content = np.array([0.1, 1 / 3], np.float32).reshape(1, 1, 2)
    told = Measured.told(Observation((0, 1), content, 0.5, 0.0))
    again = Measured.of(json.loads(canonical(told.plain()))).observation(Grid(2, 4, cell=(1, 2)))
    assert (again.content == content).all()


def test_cells_an_event_is_about():
    assert Extend(2.0).places == ()
    assert Fail((1, 2), None, None, "").places == ((1, 2),)
    ask = {"n": 1, "rank": "score", "start": [0, 1], "lease": None, "basis": 1, "at": 0.0}
    queries = [{"query": 1, "cell": [3, 4], "terms": {}}]
    body = Ask.of({**ask, "queries": queries, "detail_sha256": ""})
    assert (body.start, body.places) == ((0, 1), ((3, 4),))


def test_events_need_neither_pydantic_nor_a_database():
    code = (
        "import engram.campaign.events, sys; "
        "print([m for m in ('pydantic', 'cattrs', 'attrs', 'sqlalchemy', 'torch') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
