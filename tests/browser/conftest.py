"""Browser tests run wherever there is a browser; ``make browser`` installs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api", reason="there is no Playwright")

from browser_help import Server, chromium, launched
from playwright.sync_api import Browser, sync_playwright

NO_BROWSER = "there is no chromium here: 'make browser' installs it"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all browser tests; each has campaigns of its own."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    found = Server(tmp_path_factory.mktemp("browser")).start()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file: while it runs, others cannot run an event loop."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        found = launched(playwright)
        yield found
        found.close()
