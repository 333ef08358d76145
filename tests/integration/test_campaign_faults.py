"""Crashes, crowds, full disks, restarts and databases of other versions."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import (
    StorageError,
    create_campaign,
    history,
    open_campaign,
    status,
    verify,
)
from engram.grid import Grid

HERE = Path(__file__).parent
FIXTURE = HERE / "data" / "campaigns-v1.db"
KILLS = int(os.environ.get("ENGRAM_TEST_KILLS", "12"))


def _program(name, *arguments):
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_small_storm(postgres_url):
    """``make storm`` with few kills and rounds."""
    found = _program(
        "campaign_storm.py", "--kills", KILLS, "--pg-kills", 4, "--rounds", 2,
        "--postgres", postgres_url,
    )  # fmt: skip
    assert found["faults"] == 0
    kills = found["storms"]["kill -9, SQLite"]
    assert kills["kills"] == KILLS
    assert kills["asks"] > 0
    assert found["storms"]["stale handles, PostgreSQL"]["refused"] == 4
    assert found["storms"]["disk full"]["stopped"] >= 1


def test_eight_crews_at_once(url, unique):
    name = unique("crowd")
    create_campaign(name, Grid(12, 12), 30, db=url, policy="random")
    found = _program("campaign_crew.py", url, name, 8, 4)
    assert found["faults"] == []
    assert found["codes"] == [0] * 8
    assert found["told"] == found["in_log"] == found["asked"] == found["queries"]
    assert found["told"] >= 24


def test_server_restarted_in_the_middle(postgres_server, unique):
    pytest.importorskip("psycopg")
    name = unique("restart")
    campaign = create_campaign(name, Grid(8, 8), 40, db=postgres_server.url, policy="random")
    half, errors = threading.Event(), []

    def work():
        try:
            for i in range(12):
                query = campaign.ask(1, key=f"ask{i}")[0]
                campaign.tell(query.cell, float(i % 2), key=f"tell{i}")
                if i == 3:
                    half.set()
        except Exception as error:  # shown by the assertion below
            errors.append(error)
            half.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert half.wait(120)
    postgres_server.crash_and_restart()
    thread.join(120)
    assert errors == []
    again = open_campaign(name, db=postgres_server.url)
    assert len(again.state.measurements) == 12
    assert len(again.state.queries) == 12
    assert verify(again).ok


def test_server_that_stays_away(unique, tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.setattr("engram.campaign.sql_store.PATIENCE", 0.1)
    with pytest.raises(StorageError, match="nothing of this request was kept"):
        open_campaign("x", db=f"postgresql://u@/d?host={tmp_path}")


def _tell_until_it_fails(campaign, cells):
    """Cells whose measurement was acknowledged before the storage gave up."""
    content = np.random.default_rng(0).random(campaign.grid.cell)
    for told, cell in enumerate(cells):
        try:
            campaign.tell(cell, 1.0, content)
        except StorageError:
            return cells[:told]
    pytest.fail("the storage never gave up")


def test_disk_full_during_tell(tmp_path):
    """SQLite itself refuses further pages: the tell fails whole, and succeeds with more room."""
    import sqlalchemy as sa

    grid = Grid(16, 16, cell=(4, 4))
    campaign = create_campaign("full", grid, 16, db=str(tmp_path / "c.db"), policy="random")
    engine, limit = campaign.storage.store._engine, [0]

    @sa.event.listens_for(engine, "connect")
    def small(connection, record):
        connection.execute(f"PRAGMA max_page_count={limit[0]}") if limit[0] else None

    with engine.connect() as connection:
        limit[0] = connection.execute(sa.text("PRAGMA page_count")).scalar()
    acknowledged = _tell_until_it_fails(campaign, [(i // 4, i % 4) for i in range(16)])
    again = open_campaign("full", db=str(tmp_path / "c.db"))
    assert [o.cell for o in again.state.observations] == acknowledged
    limit[0] = 0
    campaign.tell((3, 3), 1.0, [[0.5] * 4] * 4)
    assert len(campaign.refresh().measurements) == len(acknowledged) + 1
    assert verify(campaign).ok


def test_file_that_may_not_grow(tmp_path):
    """The operating system refuses to write: the same, one level below."""
    path = tmp_path / "c.db"
    grid = Grid(64, 64, cell=(8, 8))
    campaign = create_campaign("full", grid, 60, db=str(path), policy="random")
    campaign.tell((0, 0), 1.0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(p.stat().st_size for p in tmp_path.iterdir() if p.is_file())
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 20_000, before[1]))
        told = _tell_until_it_fails(campaign, [(i // 8, i % 8) for i in range(1, 60)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    again = open_campaign("full", db=str(path))
    assert [o.cell for o in again.state.observations] == [(0, 0), *told]
    again.tell((7, 7), 1.0)
    assert verify(again).ok


def test_artifacts_on_a_full_disk_are_done_without(tmp_path, monkeypatch):
    campaign = create_campaign("x", Grid(8, 8), 20, db=str(tmp_path / "c.db"), policy="random")
    campaign.tell((0, 0), 1.0)
    monkeypatch.setattr(Path, "replace", _no_space)
    assert campaign.ask(1)
    folder = tmp_path / "c.artifacts"
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def _no_space(*anything):
    raise OSError(28, "No space left on device")


@pytest.fixture
def first_version(tmp_path):
    """A copy of the database that the first version of the schema wrote."""
    return str(shutil.copy(FIXTURE, tmp_path / "campaigns-v1.db"))


def test_databases_of_the_first_version_open(first_version):
    campaign = open_campaign("fixture", db=first_version)
    kinds = {line.kind for line in history(campaign)}
    assert kinds == {
        "create", "ask", "tell", "fail", "correct", "retract", "close", "open", "extend",
    }  # fmt: skip
    facts = status(campaign).to_dict()
    assert (facts["told"], facts["failed"], facts["found"]) == (4, 1, 2)
    assert facts["budget"] == 15
    assert campaign.explain(1).picture["probability"]
    assert verify(campaign).ok
    campaign.ask(1)
    assert verify(campaign).ok
