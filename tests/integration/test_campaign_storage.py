"""The contract of the storage, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import threading

import pytest

from engram.campaign import (
    Storage,
    create_campaign,
    history,
    open_campaign,
    status,
    verify,
)
from engram.campaign.model import Event
from engram.campaign.overview import overview
from engram.campaign.place import parse_url
from engram.errors import InputError
from engram.grid import Grid


def _first(seq=1, kind="create", key="first"):
    return Event(seq, kind, 5.5, "anna", key, {"b": [1.5, None], "a": "é"})


class TestContract:
    """What every backend promises."""

    def test_events_come_back_as_they_were(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        assert storage.campaign(unique("c")) == row
        (event,) = storage.events(row.id)
        assert (event.payload, event.at, event.who) == ({"b": [1.5, None], "a": "é"}, 5.5, "anna")
        storage.write(row.id, lambda w: w.append(_first(2, "x", "k2"), event.hash, [{"x": 1.5}]))
        assert [e.seq for e in storage.events(row.id)] == [1, 2]
        assert [e.seq for e in storage.events(row.id, 1)] == [2]
        assert storage.detail(row.id, 2) == [{"x": 1.5}]
        assert storage.detail(row.id, 1) is None

    def test_a_block_that_fails_leaves_nothing(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())

        def work(writer):
            writer.append(_first(2, "x", "k2"), "")
            raise InputError("changed my mind")

        with pytest.raises(InputError, match="changed my mind"):
            storage.write(row.id, work)
        assert len(storage.events(row.id)) == 1

    def test_keys_and_numbers_are_unique(self, url, unique):
        from sqlalchemy.exc import IntegrityError

        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        for event in (_first(2, "x", "first"), _first(1, "x", "other")):
            with pytest.raises(IntegrityError):
                storage.write(row.id, lambda w, e=event: w.append(e, ""))
        assert len(storage.events(row.id)) == 1

    def test_names_are_unique(self, url, unique):
        storage = Storage(url, create=True)
        storage.create_campaign(unique("c"), _first())
        with pytest.raises(InputError, match="exists already"):
            storage.create_campaign(unique("c"), _first())
        with pytest.raises(InputError, match="no campaign named"):
            storage.campaign(unique("other"))

    def test_readers_do_not_wait_for_a_writer(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())
        inside, done = threading.Event(), threading.Event()

        def slow(writer):
            writer.append(_first(2, "x", "k2"), "")
            inside.set()
            assert done.wait(60)

        thread = threading.Thread(target=storage.write, args=(row.id, slow))
        thread.start()
        assert inside.wait(60)
        other = Storage(url)
        assert len(other.events(row.id)) == 1  # at once, and without the unfinished block
        done.set()
        thread.join()
        assert len(other.events(row.id)) == 2

    def test_writers_wait_for_each_other(self, url, unique):
        storage = Storage(url, create=True)
        row = storage.create_campaign(unique("c"), _first())

        def add(n):
            own = Storage(url)

            def work(writer):
                seq = len(writer.events()) + 1
                writer.append(_first(seq, "x", f"k{n}"), "")

            own.write(row.id, work)

        threads = [threading.Thread(target=add, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [e.seq for e in storage.events(row.id)] == list(range(1, 8))

    def test_a_whole_campaign(self, url, unique):
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
        facts = status(again)
        assert (facts["told"], facts["asked"], facts["failed"]) == (1, 1, 1)
        assert facts["budget_left"] == 20
        assert again.explain(asked[2].query)["rank"] >= 1
        assert verify(again).ok
        assert name in [line["name"] for line in overview(url)]


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
    with storage._engine.connect() as connection:
        assert connection.execute(sa.text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(sa.text("PRAGMA synchronous")).scalar() == 2  # FULL
        assert connection.execute(sa.text("PRAGMA busy_timeout")).scalar() == 60_000
