"""Damaged databases: whatever is wrong is named."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

import pytest

from engram.campaign import (
    Storage,
    StorageError,
    open_campaign,
    verify,
)
from engram.campaign.status import overview
from engram.errors import EngramError


def test_flipped_bytes_are_named(create, db, tmp_path, clock):
    """Whatever byte of the database is changed: verified as before, or an error that names it."""
    campaign = create(lease=60.0)
    for query in campaign.ask(3, by="é"):
        campaign.tell(query.cell, 0.5, key=f"k{query.query}")
    blob = Path(db).read_bytes()
    draw, harmed, named = random.Random(5), tmp_path / "harmed.db", 0
    for _ in range(60):
        copy = bytearray(blob)
        copy[draw.randrange(len(copy))] ^= 1 << draw.randrange(8)
        for beside in tmp_path.glob("harmed.db-*"):
            beside.unlink()
        harmed.write_bytes(copy)
        with contextlib.suppress(EngramError):
            overview(str(harmed))
        named += _verdict(lambda: open_campaign("pond", db=str(harmed), clock=clock)) != ""
    assert named >= 5


def test_tables_described_by_no_text_are_named(create, db):
    """SQLite repeats the damaged words in its error, which is then no text either."""
    create()
    blob = Path(db).read_bytes()
    blob = blob.replace(b"tableengram_events", b"tableengr\xe7m_events")
    Path(db).write_bytes(blob.replace(b"CREATE TABLE engram_events", b"CREATE TABLX engram_events"))
    with pytest.raises(StorageError, match="what describes its tables is not text"):
        Storage(db)


def _verdict(opening):
    """What is wrong with a campaign, or nothing."""
    try:
        return "; ".join(verify(opening()).faults)
    except EngramError as error:
        return str(error)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", "'two'"), ("at", "'soon'"), ("at", "9e999"),
        ("payload", "'[]'"), ("payload", "'{\"items\": 3, \"queries\": []}'"),
        ("payload", "replace(payload, '1.0', 'NaN')"), ("who", "x'ff'"), ("key", "5"),
        ("hash", "x'00'"), ("kind", "'create'"), ("kind", "'tel'"), ("payload", "x'ff'"),
    ],
)  # fmt: skip
def test_damaged_events_are_named(create, reopen, db, column, value):
    create().tell((0, 0), 1.0)
    raw = sqlite3.connect(db)
    raw.execute(f"UPDATE engram_events SET {column} = {value} WHERE seq = 2")
    raw.commit()
    raw.close()
    assert "event" in _verdict(reopen)


def test_a_database_nobody_may_write_is_read(create, db, tmp_path):
    """As a user who may read the file but write neither it nor its folder."""
    import os

    if os.geteuid() != 0:
        pytest.skip("needs another user to be")
    campaign = create()
    campaign.ask(1)
    campaign.tell((0, 0), 1.0)
    os.chmod(db, 0o644)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            os.chmod(folder, folder.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            again = open_campaign("pond", db=db)
            told = len(again.state.measurements) == 1 and verify(again).ok
            try:
                again.tell((0, 1), 1.0)
            except EngramError as error:
                told = told and "readonly" in str(error) and len(Storage(db).campaigns()) == 1
                code = 0 if told else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
