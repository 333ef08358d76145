"""Connections to the two databases: how they are made, and which failures pass by themselves."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from engram.campaign.lingering import pool, renewed_with
from engram.errors import UnavailableError

BUSY_SECONDS = 60.0
"""How long a writer waits for others before it gives up."""

PASSING = ("starting up", "shutting down", "recovery", "not yet accepting", "too many", "slots")
"""Words of a server that refuses connections for the moment only."""

REFUSALS = ("fatal:", "password", "authentication", "ssl")
"""Words of a server, or of its library, that will refuse the next time as well."""


def sqlite_engine(path: Path, *, lingers: bool = False) -> Engine:
    """Connections to a SQLite file; ``engram_write`` says which may write."""
    engine = sa.create_engine("sqlite://", creator=lambda: _open_file(path), **pool(lingers))
    if lingers:
        renewed_with(engine, path)

    @sa.event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the engine's begin event says how to begin
        connection.text_factory = _text
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("engram_write", False):
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def create_file(path: Path) -> None:
    """A new database file that nobody but its owner may read or write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _open_file(path: Path) -> sqlite3.Connection:
    """A connection; one that cannot write reads what is there, without a lock if it must.

    A log beside the file means that somebody is writing: then SQLite's own locks are used.
    """
    name, mode = os.path.abspath(path), ""  # never the beginning of a URI
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        busy = any(Path(f"{name}{end}").exists() for end in ("-wal", "-journal"))
        mode = "mode=ro" if busy else "mode=ro&immutable=1"
        name = f"file:{quote(name)}?{mode}"
    return sqlite3.connect(name, timeout=BUSY_SECONDS, check_same_thread=False, uri=bool(mode))


def _text(raw: bytes) -> str:
    """Text of the database; bytes that are no text are damage, which the hash will show."""
    return raw.decode(errors="replace")


def server_engine(url: URL, *, lingers: bool = False) -> Engine:
    """Connections to a PostgreSQL server that notice when it has gone."""
    alive = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10"}
    wanted = {key: value for key, value in alive.items() if key not in url.query}
    try:
        engine = sa.create_engine(url, connect_args=wanted, **pool(lingers))
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "PostgreSQL needs the psycopg package: pip install 'engram[postgres]'"
        ) from error

    @sa.event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("engram_write", False):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(1000 * BUSY_SECONDS)}")

    return engine


def may_pass(error: DBAPIError) -> bool:
    """True for a lost connection and a server that is away; a refusal stays one."""
    if error.connection_invalidated:
        return True
    if not isinstance(error, OperationalError) or error.statement is not None:
        return False
    words = str(error.orig).lower()
    if any(word in words for word in PASSING):
        return True
    return not any(word in words for word in REFUSALS)
