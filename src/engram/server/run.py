"""Running the server: the link first, then uvicorn, with clients that cannot wear it out."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from engram.errors import InputError, UnavailableError
from engram.server.app import create_app
from engram.server.context import Context
from engram.server.people import OWNER
from engram.server.settings import Settings
from engram.server.tidying import Tidying

HEADER_SECONDS = 10.0
"""How long a client may take to send the headers of a request."""
HEADERS = 16_384
"""Bytes that the headers of a request may have."""
MOST = 2_000
"""Connections at once."""
SWITCH = 0.001
"""Seconds that a thread may go on while the event loop wants its turn, which it gives up whenever
it sends something; Python's own are five times as many, and a crowd is told in many turns."""


class PatientProtocol(H11Protocol):
    """HTTP with an end to waiting: a request whose headers do not come in time ends the line."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._between():
            self._calm()
        elif self._timer is None:  # the beginning of a request
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _between(self) -> bool:
        """No request is being answered."""
        cycle = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def _expect(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._hang_up)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _hang_up(self) -> None:
        self._timer = None
        if self._between() and not self.transport.is_closing():
            self.transport.close()


class CalmServer(uvicorn.Server):
    """A server whose event loop is not kept waiting: by garbage, nor by its own threads."""

    _tidying: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.setswitchinterval(SWITCH)
        self._tidying = asyncio.create_task(Tidying().run())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        await super().shutdown(sockets)


def configured(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn runs the application."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=PatientProtocol,
        loop="asyncio",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        limit_concurrency=MOST,
        h11_max_incomplete_event_size=HEADERS,
    )


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Run until interrupted; the link is said before anything else."""
    app = create_app(settings)
    context: Context = app.state.context
    name = _owner(context)
    secret, _ = context.people.issue(name, "owner", label="printed at the start")
    config = configured(app, settings)
    server = CalmServer(config)
    try:
        listening = config.bind_socket()
    except SystemExit:
        raise UnavailableError(
            f"port {settings.port} of {settings.host} is taken; choose another with --port"
        ) from None
    gc.collect()
    say(f"{settings.base}/sign-in?token={secret}")
    with contextlib.suppress(KeyboardInterrupt):  # which is how a server is ended
        server.run(sockets=[listening])


def _owner(context: Context) -> str:
    """The account that the printed link belongs to."""
    if context.settings.is_local:
        return context.people.ensure_owner().name
    owners = [
        account.name
        for account in context.people.accounts()
        if account.runs_the_server and not account.disabled and account.name != OWNER
    ]
    if not owners:
        raise InputError(
            f"--host {context.settings.host}: others can reach this address, and there are no "
            "accounts yet; make one for yourself first: engram account add NAME --role owner"
        )
    return owners[0]
