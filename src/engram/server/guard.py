"""What stands before every route: names, sizes, times and the headers of every answer.

Bodies are counted while they arrive and refused when they are too long or too slow; nothing is
kept of them then. The next layer sees a request only with a Host header that names this server.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from engram.server.problems import ProblemError, problem, problem_of
from engram.server.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY = 1_000_000
"""Bytes of the longest body."""
UPLOAD = 20_000_000
"""Bytes of the longest body that brings a file."""
TOGETHER = 10
"""Requests that begin in one turn of the event loop."""
BODY_SECONDS = 30.0
"""How long a body may take to arrive."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(self), camera=(self), microphone=()",
}


def too_long(limit: int) -> ProblemError:
    """That a body is longer than what is taken."""
    return ProblemError(413, f"the body is longer than the {limit:,} bytes taken here")


class _Turns:
    """Lets requests in, a few in one turn of the event loop: a crowd does not stop the others."""

    def __init__(self) -> None:
        self._begun = 0

    async def one(self) -> None:
        """Wait until there is room."""
        while self._begun >= TOGETHER:
            await asyncio.sleep(0)
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._anew)
        self._begun += 1

    def _anew(self) -> None:
        self._begun = 0


class Guard:
    """The outermost layer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._turns = _Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await self._turns.one()
        headers = _single(scope["headers"])
        answered = _Answered(send, cached=scope["path"].startswith("/static/"))
        limit = UPLOAD if headers.get("content-type", "").startswith("multipart/") else BODY
        refusal = self._refusal(headers, limit)
        if refusal is None:
            await self.app(scope, _Counted(receive, limit), answered)
        else:
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, answered)

    def _refusal(self, headers: dict[str, str], limit: int) -> Any:
        if not self.settings.knows_host(headers.get("host", "")):
            return problem(
                400, "the Host header does not name this server; start it with --name NAME"
            )
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:20]) > limit:
            return problem_of(too_long(limit))
        return None


class _Counted:
    """A body that is counted and timed while it arrives."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._left = receive, limit, limit
        self._deadline = time.monotonic() + BODY_SECONDS
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # what comes now is that the client has gone, whenever that is
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._deadline - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise ProblemError(408, f"the body did not arrive within {BODY_SECONDS:g} s") from None
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_long(self._limit)
        return message


class _Answered:
    """An answer with the headers that every answer has."""

    def __init__(self, send: Send, cached: bool) -> None:
        self._send, self._cached, self.started = send, cached, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            given = {name.lower() for name, _ in message["headers"]}
            more = HEADERS if self._cached else {**HEADERS, "cache-control": "no-cache, private"}
            message["headers"] = [
                *message["headers"],
                *((n.encode(), v.encode()) for n, v in more.items() if n.encode() not in given),
            ]
        await self._send(message)


def _single(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; of those that are there twice with other values, none that is right."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in ("host", "content-length") and found.get(name, value) != value:
            value = "?"
        found[name] = value
    return found
