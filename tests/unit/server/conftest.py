"""A server in the test's own process, with people of every role."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from server_help import LocalClient, Served, inline_app


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A database with a campaign ``pond`` (12 x 12, random) and an account per role."""
    path = tmp_path_factory.mktemp("served") / "campaigns.db"
    app = inline_app(str(path))
    client = LocalClient(app)
    tokens = Served(client, app).furnished().tokens
    client.close()
    return path, tokens


@pytest.fixture
def served(furnished: tuple[Path, dict[str, str]], tmp_path: Path) -> Iterator[Served]:
    """A server of its own copy of that database."""
    shutil.copy(furnished[0], tmp_path / "campaigns.db")
    app = inline_app(str(tmp_path / "campaigns.db"))
    client = LocalClient(app)
    yield Served(client, app, dict(furnished[1]))
    client.close()
