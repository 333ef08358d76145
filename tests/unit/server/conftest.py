"""A server in the test's own process, with people of every role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from server_help import LocalClient, Served, inline_app


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Served]:
    """A server with nothing in it."""
    app = inline_app(str(tmp_path / "campaigns.db"))
    client = LocalClient(app)
    yield Served(client, app)
    client.close()


@pytest.fixture
def served(bare: Served) -> Served:
    """A server with a campaign ``pond`` (12 x 12, random) and an account per role."""
    return bare.furnished()
