"""A real server and a real browser: who starts them, and what they are asked again and again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, TimeoutError, expect

from engram.server.settings import free_port

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000
"""Milliseconds that anything may take on a busy machine."""
expect.set_options(timeout=PATIENCE)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}


def chromium() -> str | None:
    """Where the browser is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(
        executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
    )


@dataclass
class Server:
    """``engram serve`` in a process of its own, which can be killed and started again."""

    folder: Path
    port: int = field(default_factory=lambda: free_port("127.0.0.1"))
    link: str = ""
    token: str = ""
    process: subprocess.Popen[str] | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
        database = str(self.folder / "campaigns.db")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engram", "serve", "--db", database, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one},
        )
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()
        self.token = self.link.partition("token=")[2]
        assert self.token, "the server printed no link"
        self._wait()
        return self

    def _wait(self) -> None:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.base}/sign-in", timeout=5).close()
                return
            time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def call(self, path: str, body: Any = None) -> Any:
        """Ask the API as the owner."""
        request = urllib.request.Request(
            f"{self.base}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def owner_link(self) -> str:
        """A link that signs the owner in; the printed one is good once."""
        made = self.call("/accounts/owner/tokens", {})
        return f"{self.base}/sign-in?token={made['token']}"

    def crew_link(self, campaign: str, account: str) -> str:
        made = self.call(f"/campaigns/{campaign}/links", {"account": account})
        return str(made["link"])

    def events(self, campaign: str, kind: str) -> list[dict[str, Any]]:
        found = self.call(f"/campaigns/{campaign}/history?limit=5000")["events"]
        return [event for event in found if event["kind"] == kind]


@dataclass
class Person:
    """Somebody with a browser; what goes wrong in it is remembered."""

    context: BrowserContext
    server: Server
    page: Page
    faults: list[str] = field(default_factory=list)

    def open(self, path: str, ready: bool = True) -> Page:
        self.page.goto(f"{self.server.base}{path}")
        if ready:
            self.ready()
        return self.page

    def ready(self) -> None:
        self.page.wait_for_selector("body[data-ready]")

    def comes_to(self, path: str) -> None:
        """Wait until the page is another one; where that does not come, tell what this one says."""
        try:
            self.page.wait_for_url(f"**{path}")
        except TimeoutError as error:
            said = self.page.locator("[role=status], [role=alert]").all_inner_texts()
            pressed = self.page.locator("[aria-busy=true]").count()
            raise AssertionError(
                f"{self.page.url} did not go to {path}; it says {said}, "
                f"buttons at work: {pressed}, faults: {self.faults}"
            ) from error
        self.ready()

    def another_page(self) -> Page:
        """Close the page and open another one, as who puts a phone away does."""
        self.page.close()
        self.page = self.context.new_page()
        watch(self.page, self.server, self.faults)
        return self.page

    def sign_in(self, link: str) -> None:
        self.page.goto(link)
        button = self.page.locator("form button")
        if button.count():
            button.click()
        self.page.wait_for_url(lambda url: "/sign-in" not in url)


def watch(page: Page, server: Server, faults: list[str]) -> None:
    """Remember errors of scripts, and every request to another host."""

    def asked(url: str) -> None:
        if not url.startswith((server.base, "data:", "blob:")):
            faults.append(f"asked {url}")

    page.on("request", lambda request: asked(request.url))
    page.on("pageerror", lambda error: faults.append(f"error {error}"))
    page.on(
        "console",
        lambda m: faults.append(m.text) if "Content Security Policy" in m.text else None,
    )


@contextlib.contextmanager
def person(browser: Browser, server: Server, **options: Any) -> Iterator[Person]:
    """A browser of somebody's own; nothing may have gone wrong in it in the end."""
    with contextlib.closing(browser.new_context(**{"viewport": DESKTOP, **options})) as context:
        context.set_default_timeout(PATIENCE)
        found = Person(context, server, context.new_page())
        watch(found.page, server, found.faults)
        yield found
        assert not found.faults, found.faults
