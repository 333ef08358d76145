"""Connections that linger: used again, closed when nobody works, dropped with a replaced file."""

from __future__ import annotations

import shutil
import time

import pytest

from engram.campaign import Storage, create_campaign, open_campaign
from engram.campaign.sql_store import SqlStore
from engram.grid import Grid

PATIENCE = 20.0


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "c.db"
    create_campaign("pond", Grid(4, 4), 10, db=str(path), policy="random")
    return path


@pytest.fixture
def store(file):
    made = SqlStore(str(file), lingers=True)
    yield made
    made.close()


def _log_of(file):
    return file.with_name(f"{file.name}-wal")


def test_a_connection_is_used_again(store):
    first = store.look(lambda connection: connection.connection.dbapi_connection)
    assert store.look(lambda connection: connection.connection.dbapi_connection) is first


def test_the_file_is_whole_again_soon_after_the_last_block(store, file):
    campaign = open_campaign("pond", db=store)
    campaign.tell((0, 0), 1.0)
    assert _log_of(file).exists()
    deadline = time.monotonic() + PATIENCE
    while _log_of(file).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _log_of(file).exists()
    copy = file.with_name("copy.db")
    shutil.copyfile(file, copy)
    assert open_campaign("pond", db=str(copy)).state.found == 1


def test_a_block_that_takes_long_keeps_its_connection(file):
    store = SqlStore(str(file), lingers=True)
    assert store._closing is not None
    store._closing._seconds = 0.01

    def slowly(connection):
        time.sleep(0.1)
        return connection.exec_driver_sql("SELECT 1").scalar_one()

    assert store.look(slowly) == 1
    store.close()


def test_another_file_in_its_place_is_read(store, file, tmp_path):
    names = [row.name for row in Storage(store).campaigns()]
    other = tmp_path / "other.db"
    create_campaign("lake", Grid(3, 3), 5, db=str(other), policy="random")
    other.replace(file)
    assert names == ["pond"]
    assert [row.name for row in Storage(store).campaigns()] == ["lake"]
