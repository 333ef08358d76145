"""A server, reached with the standard library: requests, errors, and patience."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from engram.client.remote import RemoteCampaign, as_json
from engram.errors import (
    ConflictError,
    DamagedError,
    EngramError,
    ExhaustedError,
    InputError,
    NotFoundError,
    UnavailableError,
    shown,
)

PATIENCE = 60.0
"""Seconds for which a server that went away is tried again."""
TIMEOUT = 600.0
"""Seconds an answer may take: some need the engine."""
SILENCE = 60.0
"""Seconds without a sign of life after which live events are asked for again."""


class RefusedError(EngramError):
    """The server does not know the token, or its account may not do this."""


class HeadChangedError(ConflictError):
    """The log has gone on since the request was prepared."""


ERRORS: dict[str, type[EngramError]] = {
    "input": InputError,
    "not-found": NotFoundError,
    "conflict": ConflictError,
    "exhausted": ExhaustedError,
    "damaged": DamagedError,
    "unavailable": UnavailableError,
    "unauthorized": RefusedError,
    "forbidden": RefusedError,
    "changed": HeadChangedError,
}
"""Kind of a problem -> error."""


class Client:
    """A server. ``url`` may be the link that ``engram serve`` prints, with the token in it.

    url, token default to the environment's ``ENGRAM_SERVER`` and ``ENGRAM_TOKEN``.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, patience: float = PATIENCE
    ) -> None:
        parts = urlsplit(url or os.environ.get("ENGRAM_SERVER", ""))
        given = parse_qs(parts.query).get("token", [""])[0]
        self._token = token or given or os.environ.get("ENGRAM_TOKEN", "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"server {shown(parts.netloc or url)}: give http://HOST:PORT")
        try:
            self._port = parts.port
        except ValueError:
            raise InputError(f"server {shown(parts.netloc)}: its port is not a number") from None
        if not self._token:
            raise InputError(
                "a server needs a token: give the link it printed, or set ENGRAM_TOKEN"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._secure, self._host = parts.scheme == "https", parts.hostname
        self.patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def campaigns(self) -> list[dict[str, Any]]:
        """The campaigns you have a part in, at a glance."""
        found: list[dict[str, Any]] = self.json("GET", "/campaigns")["campaigns"]
        return found

    def create(self, name: str, **terms: Any) -> RemoteCampaign:
        """A new campaign: ``size`` (height, width) or ``area``, ``budget``, and what else
        ``POST /api/v1/campaigns`` takes."""
        made = self.json("POST", "/campaigns", {"name": name, **as_json(terms)})
        return RemoteCampaign(self, made["name"], made["uid"])

    def campaign(self, name: str) -> RemoteCampaign:
        """An existing campaign."""
        for line in self.campaigns():
            if line["name"] == name:
                return RemoteCampaign(self, name, line["uid"])
        raise NotFoundError(f"no campaign named {shown(name)} here that you have a part in")

    # -- requests ------------------------------------------------------------------------

    def json(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer to a request as JSON; ``path`` is behind ``/api/v1``."""
        more = dict(headers or {})
        raw = None
        if body is not None:
            raw = json.dumps(body).encode()
            more["Content-Type"] = "application/json"
        answer = self.raw(method, path, raw, more)
        return json.loads(answer) if answer else None

    def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The answer to a request; one that a lost server did not answer is sent again.

        Whoever writes sends a key with it.
        """
        deadline, pause = time.monotonic() + self.patience, 0.1
        while True:
            try:
                status, answer, kind = self._once(method, path, body, dict(headers or {}))
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() + pause > deadline:
                    raise UnavailableError(f"server {self.url}: {error or 'it is away'}") from error
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
                continue
            if status < 400:
                return answer
            raise _error(status, answer, kind)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, str]:
        if self._connection is None:
            self._connection = self.connect(TIMEOUT)
        headers["Authorization"] = f"Bearer {self._token}"
        self._connection.request(method, f"/api/v1{path}", body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Content-Type", "")

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """A connection of its own."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=timeout)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """An answer that goes on, on a connection of its own."""
        connection = self.connect(SILENCE)
        try:
            more = {"Authorization": f"Bearer {self._token}", **headers}
            connection.request("GET", f"/api/v1{path}", headers=more)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error(answer.status, answer.read(), answer.getheader("Content-Type", ""))
            yield answer
        finally:
            connection.close()

    def close(self) -> None:
        """End the connection; the next request makes a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.close()


def _error(status: int, answer: bytes, kind: str) -> EngramError:
    if not kind.startswith("application/problem+json"):
        return UnavailableError(f"the server answered {status}; is it engram's?")
    said = json.loads(answer)
    name = str(said["type"]).rpartition("/")[2]
    return ERRORS.get(name, InputError if status < 500 else UnavailableError)(said["detail"])
