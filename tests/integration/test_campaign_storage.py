"""The contract of the storage, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engram import Layers
from engram.campaign import (
    StaleError,
    Storage,
    StorageError,
    create_campaign,
    history,
    open_campaign,
    status,
    verify,
)
from engram.campaign.contract import LogStoreContract, MemoryStore
from engram.campaign.events import Event
from engram.campaign.model import canonical
from engram.campaign.place import parse_url
from engram.campaign.sql_store import SqlStore
from engram.campaign.status import overview
from engram.errors import InputError
from engram.grid import Grid
from engram.observation import Observation
from engram.testing import tiny_memory


def _first(seq=1, kind="create", key="first"):
    return Event(seq, kind, 5.5, "anna", key, {"b": [1.5, None], "a": "é"})


class TestSqlStore(LogStoreContract):
    """What every store promises, by SQLite and by PostgreSQL."""

    @pytest.fixture(autouse=True)
    def _place(self, url):
        self.url = url

    def store(self):
        return SqlStore(self.url, create=True)


class TestLingeringStore(TestSqlStore):
    """The same with connections that linger, as a server's do."""

    def store(self):
        return SqlStore(self.url, create=True, lingers=True)


class TestMemoryStore(LogStoreContract):
    """The same by a store that was written in an afternoon."""

    @pytest.fixture(autouse=True)
    def _place(self):
        self.memory = MemoryStore()

    def store(self):
        return self.memory


class TestChain:
    """What the chain of hashes adds, on any store."""

    def test_events_come_back_as_they_were(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        assert storage.campaign(unique("c")) == row
        (event,) = storage.events(row)
        assert (event.payload, event.at, event.who) == ({"b": [1.5, None], "a": "é"}, 5.5, "anna")
        assert event.hash == event.chained("", canonical(event.payload))
        storage.write(row, lambda w: w.append(_first(2, "x", "k2"), event.hash, [{"x": 1.5}]))
        assert [e.seq for e in storage.events(row)] == [1, 2]
        assert [e.seq for e in storage.events(row, 1, event.hash)] == [2]
        assert storage.page(row, 0, 1) == [event]
        assert storage.find(row, "k2") == storage.event(row, 2) == storage.events(row)[1]
        assert storage.find(row, "k3") is storage.event(row, 3) is None
        assert storage.event(row, 2).hash == _first(2, "x", "k2").chained(
            event.hash, canonical(event.payload)
        )
        assert storage.detail(row, 2) == [{"x": 1.5}]
        assert storage.detail(row, 1) is None

    @pytest.mark.parametrize("policy", ["gp", "em-ptdm"])
    def test_layers_and_repeated_visits_are_replayed(self, url, unique, policy, tmp_path):
        grid, name = Grid(8, 8), unique("known")
        values = np.random.RandomState(2).uniform(size=64)
        layers = Layers.of(grid, {"height": values, "rock": ["a", "b"] * 32})
        terms = {"layers": layers, "detection": 0.6, "seed": 1}
        if policy == "em-ptdm":
            tiny_memory(1, conditioned=True).save(tmp_path / "tiny.safetensors")
            terms["prior"] = str(tmp_path / "tiny.safetensors")
        campaign = create_campaign(name, grid, 30, db=url, policy=policy, **terms)
        luck = np.random.RandomState(3)
        for _ in range(12):
            (query,) = campaign.ask(1)
            there = values[grid.index(query.cell)] > 0.6
            campaign.tell(query.cell, float(there and luck.uniform() < 0.6))
        campaign.tell_many([Observation.checked(grid, (7, 7), 0.0, 0.0)] * 3)
        again = open_campaign(name, db=url)
        assert again.state.spec.layers.sha256 == layers.sha256
        assert len(again.state.visits) == 15 > len(set(again.policy().observations.cells))
        assert again.peek(3) == campaign.peek(3)
        assert verify(again).ok

    @pytest.mark.parametrize("kept", ["database", "memory"])
    def test_a_whole_campaign(self, url, unique, kept):
        url = MemoryStore() if kept == "memory" else url
        name = unique("whole")
        campaign = create_campaign(name, Grid(8, 8), 20, db=url, policy="random", seed=2)
        asked = campaign.ask(3, by="anna")
        campaign.tell(asked[1].cell, 1.0, key="a")
        campaign.tell(asked[1].cell, 1.0, key="a")
        campaign.fail(query=asked[0].query, retry=None)
        campaign.correct(asked[1].cell, outcome=0.5)
        campaign.extend(2)
        again = open_campaign(name, db=url)
        assert len(history(again)) == 6
        facts = status(again).to_dict()
        assert (facts["told"], facts["asked"], facts["failed"]) == (1, 1, 1)
        assert facts["budget_left"] == 20
        assert again.explain(asked[2].query).rank >= 1
        assert verify(again).ok
        assert name in [line.name for line in overview(url)]


def test_urls():
    assert parse_url("some/file.db").get_backend_name() == "sqlite"
    assert parse_url("postgresql://u@h/d").drivername == "postgresql+psycopg"
    for wrong in ("mysql://h/d", "sqlite://", "sqlite:///:memory:", "://"):
        with pytest.raises(InputError):
            parse_url(wrong)


def test_looking_creates_no_database(tmp_path):
    url = str(tmp_path / "absent.db")
    assert overview(url) == []
    with pytest.raises(InputError, match="none yet"):
        open_campaign("x", db=url)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path):
    from engram.campaign import StorageError

    path = tmp_path / "photo.db"
    path.write_bytes(b"\x89PNG and so on" * 100)
    with pytest.raises(StorageError, match="not a database"):
        Storage(str(path))


def test_sqlite_is_as_durable_as_promised(tmp_path):
    import sqlalchemy as sa

    storage = Storage(str(tmp_path / "c.db"), create=True)
    with storage.store._engine.connect() as connection:
        assert connection.execute(sa.text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(sa.text("PRAGMA synchronous")).scalar() == 2  # FULL
        assert connection.execute(sa.text("PRAGMA busy_timeout")).scalar() == 60_000


class TestStaleHandles:
    """A database that does not have what was read from it gets nothing more."""

    def test_a_log_that_was_cut_back(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        one = storage.events(row)[0]
        two = storage.write(row, lambda w: w.append(_first(2, "x", "k2"), one.hash))
        _raw(storage, "DELETE FROM engram_events WHERE seq = 2 AND campaign = :id", row)
        for request in (
            lambda: storage.write(row, lambda w: w.append(_first(3, "x", "k3"), two.hash)),
            lambda: storage.write(row, lambda w: w.events(2, two.hash)),
            lambda: storage.events(row, 2, two.hash),
        ):
            with pytest.raises(StaleError, match=r"up to event 2, .*ends at event 1"):
                request()
        assert [e.seq for e in storage.events(row)] == [1]

    def test_a_log_with_another_past(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        for wrong in ("", "0" * 64):
            with pytest.raises(StaleError, match="event 1 in the database is not the one"):
                storage.write(row, lambda w, h=wrong: w.append(_first(2, "x", "k2"), h))
        assert len(storage.events(row)) == 1

    def test_another_campaign_in_the_same_row(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        head = storage.events(row)[0].hash
        _raw(
            storage,
            f"UPDATE engram_campaigns SET uid = '{unique('')[1:]:0>32}' WHERE id = :id",
            row,
        )
        with pytest.raises(StaleError, match="not in this database any more"):
            storage.write(row, lambda w: w.append(_first(2, "x", "k2"), head))
        with pytest.raises(StaleError, match="not in this database any more"):
            storage.events(row)


def _raw(storage, statement, row):
    import sqlalchemy as sa

    with storage.store._begin(write=True) as connection:
        connection.execute(sa.text(statement), {"id": row.id})


def test_time_is_the_servers(postgres_url, unique, monkeypatch):
    """A crew's own clock does not count where there is a server."""
    campaign = create_campaign(unique("c"), Grid(8, 8), 20, db=postgres_url, policy="random")
    before = campaign.state.at
    monkeypatch.setattr("time.time", lambda: 4e9)
    receipt = campaign.tell((0, 0), 1.0)
    assert before <= receipt.at < before + 600
    assert before <= campaign.now() < before + 600


def test_a_writer_that_hangs_is_not_waited_for_forever(url, unique, monkeypatch):
    monkeypatch.setattr("engram.campaign.connect.BUSY_SECONDS", 0.3)
    storage = Storage(url, create=True)
    row = storage.create_campaign(unique("c"), _first())
    inside, done = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=storage.write, args=(row, lambda writer: (inside.set(), done.wait(60)))
    )
    thread.start()
    try:
        assert inside.wait(60)
        with pytest.raises(StorageError, match="lock"):
            storage.write(row, lambda writer: None)
    finally:
        done.set()
        thread.join()


def test_a_server_that_refuses_is_not_asked_again(postgres_url):
    wrong = postgres_url.replace("postgres:@", "nobody-we-know:secret@")
    assert wrong != postgres_url
    with pytest.raises(StorageError, match="nobody-we-know"):
        Storage(wrong)


def test_what_passes_by_itself_and_what_does_not():
    from psycopg import OperationalError as ServerError
    from sqlalchemy.exc import OperationalError

    from engram.campaign.connect import may_pass

    def failed(words, statement=None):
        return OperationalError(statement, None, ServerError(words))

    assert may_pass(failed("connection refused: is the server running?"))
    assert may_pass(failed("FATAL: the database system is starting up"))
    assert may_pass(failed("FATAL: sorry, too many clients already"))
    assert not may_pass(failed('FATAL: password authentication failed for user "u"'))
    assert not may_pass(failed("fe_sendauth: no password supplied"))
    assert not may_pass(failed("canceling statement due to lock timeout", "SELECT 1"))
