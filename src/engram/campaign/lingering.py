"""Connections of a process that serves many: kept while they are in use, closed soon after.

A new connection for every block costs a server more than the block itself: PostgreSQL starts a
process for it, and SQLite writes its log back into the file whenever the last one is closed. Once
nobody has used them for a moment all are closed, so that a database that nobody works on is one
whole file that may be copied or replaced.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import NullPool, QueuePool

SECONDS = 1.0
"""How long connections stay open that nobody uses."""


def pool(lingers: bool) -> dict[str, Any]:
    """How an engine keeps its connections: not at all, or for a moment."""
    if not lingers:
        return {"poolclass": NullPool}
    return {"poolclass": QueuePool, "pool_size": 16, "max_overflow": -1}


def renewed_with(engine: Engine, path: Path) -> None:
    """Drop connections to a file that another one was put in the place of."""

    @sa.event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        record.info["file"] = _which(path)

    @sa.event.listens_for(engine, "checkout")
    def _on_checkout(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["file"] != _which(path):
            raise DisconnectionError


def _which(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


class Closing:
    """Closes the connections of an engine when nobody has used them for a moment."""

    def __init__(self, engine: Engine, seconds: float = SECONDS) -> None:
        self._engine, self._seconds = engine, seconds
        self._users, self._last = 0, 0.0
        self._lock = threading.Lock()
        self._waits = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Somebody works with the database meanwhile."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            self._left()

    def _left(self) -> None:
        with self._lock:
            self._users -= 1
            self._last = time.monotonic()
            if self._waits:
                return
            self._waits = True
        threading.Thread(target=self._wait, name="engram-connections", daemon=True).start()

    def _wait(self) -> None:
        while True:
            with self._lock:
                left = self._last + self._seconds - time.monotonic()
                if left <= 0 and not self._users:
                    self._waits = False
                    break
            time.sleep(max(left, self._seconds / 10))
        self.now()

    def now(self) -> None:
        """Close those that nobody is using."""
        self._engine.dispose()
