"""Databases that were damaged, or changed by somebody who knows SQL."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from attack_files import NUMBERS, damaged


def flip(rng: Random, path: Path) -> bool:
    """Damage the bytes; whether history changed cannot be known."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return False


def cut(rng: Random, path: Path) -> bool:
    data = path.read_bytes()
    path.write_bytes(data[: rng.choice((0, 10, 100, 4096, 5000, len(data) // 2, len(data) - 1))])
    return False


def scramble(rng: Random, path: Path) -> bool:
    path.write_bytes(damaged(rng, path.read_bytes()))
    return False


def overwrite(rng: Random, path: Path) -> bool:
    page = rng.randrange(max(1, path.stat().st_size // 4096))
    data = bytearray(path.read_bytes())
    data[page * 4096 : (page + 1) * 4096] = rng.choice((bytes(4096), rng.randbytes(4096)))
    path.write_bytes(data)
    return False


def _sql(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def payload(rng: Random, path: Path) -> bool:
    """Change one value inside one event."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT campaign, seq, payload FROM engram_events").fetchall()
    campaign, seq, text = rng.choice(rows)
    before = json.loads(text)
    data = json.loads(text)
    _change(rng, data)
    if json.dumps(data) == json.dumps(before):
        return False
    new = rng.choice((json.dumps(data),) * 6 + ("{", "[]", "null", "[" * 5000, '"\\ud800"'))
    _sql(path, "UPDATE engram_events SET payload=? WHERE campaign=? AND seq=?", new, campaign, seq)
    return True


def _change(rng: Random, data: Any) -> None:
    """Replace, remove or add one entry somewhere in nested lists and dictionaries."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(data[key], dict | list) and data[key] and rng.random() < 0.7:
        _change(rng, data[key])
    elif rng.random() < 0.2:
        del data[key]
    else:
        data[key] = rng.choice((*NUMBERS, -(10**30), "\ud800", [[]], float("nan")))


def column(rng: Random, path: Path) -> bool:
    """Change a column of one event."""
    name, value = rng.choice(
        (
            ("kind", "tell"),
            ("kind", "nonsense"),
            ("kind", "__init__"),
            ("at", 4e9),
            ("at", -1.0),
            ("at", 1e300),
            ("at", "yesterday"),
            ("who", "mallory"),
            ("who", b"\xff"),
            ("key", "k"),
            ("hash", "0" * 64),
            ("hash", ""),
            ("seq", 999),
            ("seq", -1),
            ("detail", "{"),
            ("detail", "[]"),
            ("detail", None),
            ("campaign", 99),
        )
    )
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT campaign, seq, kind FROM engram_events").fetchall()
    campaign, seq, kind = rng.choice(rows)
    try:
        _sql(
            path,
            f"UPDATE engram_events SET {name}=? WHERE campaign=? AND seq=?",
            value,
            campaign,
            seq,
        )
    except sqlite3.Error:
        return False
    return name in ("kind", "at", "who", "key", "hash") and (name, value) != ("kind", kind)


def rows(rng: Random, path: Path) -> bool:
    """Remove or repeat events, tables, campaigns."""
    statement = rng.choice(
        (
            "DELETE FROM engram_events WHERE seq = 1",
            "DELETE FROM engram_events WHERE seq = 3",
            "DELETE FROM engram_events",
            "DELETE FROM engram_campaigns",
            "DROP TABLE engram_events",
            "DROP TABLE engram_campaigns",
            "UPDATE engram_campaigns SET name = '[/x]' || char(27) || char(10) || name",
            "UPDATE engram_campaigns SET uid = '../../../escaped'",
            "UPDATE engram_campaigns SET uid = '/tmp/engram-attack-escaped'",
            "UPDATE engram_campaigns SET uid = ''",
            "UPDATE engram_campaigns SET created = 1e300",
            "UPDATE engram_campaigns SET created = 'x'",
            "ALTER TABLE engram_events RENAME COLUMN hash TO h",
            "CREATE TABLE more (x)",
            "UPDATE engram_schema SET version = 99",
        )
    )
    with contextlib.suppress(sqlite3.Error):
        _sql(path, statement)
    return False


def damage_artifact(rng: Random, folder: Path) -> None:
    """Damage one of the files in which derived state is cached: they are never the truth."""
    files = sorted(path for path in folder.glob("*.artifacts/**/*") if path.is_file())
    if files:
        path = rng.choice(files)
        path.write_bytes(damaged(rng, path.read_bytes()))


DAMAGES: tuple[Callable[[Random, Path], bool], ...] = (
    flip,
    cut,
    scramble,
    overwrite,
    payload,
    payload,
    payload,
    column,
    column,
    rows,
)
"""Each damages the database at a path; True when ``verify`` of its campaigns must not agree."""
