"""HTTP/1.1 by hand, for load generators that share a machine with the server they ask."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

PATIENCE = 3600.0
"""Seconds in which an answer may be asked for again."""


class BrokenError(Exception):
    """The connection ended before the answer did."""


class Http:
    """One connection to the server; made anew when it breaks."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        return self._streams

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    async def begin(
        self, method: str, path: str, body: Any = None, headers: str = ""
    ) -> tuple[int, dict[str, str]]:
        reader, writer = await self._connected()
        raw = b"" if body is None else json.dumps(body).encode()
        kind = "Content-Type: application/json\r\n" if raw else ""
        writer.write(
            f"{method} /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Bearer {self._token}\r\n{kind}{headers}"
            f"Content-Length: {len(raw)}\r\n\r\n".encode()
            + raw
        )
        line = await reader.readline()
        if not line:
            raise BrokenError
        status, found = int(line.split()[1]), {}
        while (line := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            found[name.lower()] = value.strip()
        return status, found

    async def once(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, headers = await self.begin(method, path, body)
        reader, _ = await self._connected()
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        return status, json.loads(raw) if raw else None

    async def asked(self, method: str, path: str, body: Any = None) -> tuple[int, Any, float]:
        """The answer, however often it takes, and the seconds of the try that was answered."""
        deadline = time.monotonic() + PATIENCE
        while True:
            began = time.monotonic()
            try:
                status, answer = await self.once(method, path, body)
                return status, answer, time.monotonic() - began
            except (OSError, BrokenError, asyncio.IncompleteReadError):
                self.close()
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of an answer that goes on, in chunks as HTTP/1.1 sends them."""
        reader, _ = await self._connected()
        rest = b""
        while size := int((await reader.readline()) or b"0", 16):
            rest += await reader.readexactly(size)
            await reader.readline()
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield line
