"""Answers that may be long, made into bytes without stopping anybody.

A list of a million numbers takes seconds to check and to write, and all threads stand still while
one call does either. What is known to be right is not checked again here, and written in short
pieces by a thread, between which others have their turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import Response

from engram.server.desk import Desk

PIECE = 200
"""Entries of a list that are written in one call."""

_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


async def long_answer(desk: Desk, make: Callable[[], dict[str, Any]], etag: str) -> Response:
    """The answer that ``make`` gives, which is called in a thread as well."""
    body = await desk.run(lambda: b"".join(pieces(make())))
    return Response(body, media_type="application/json", headers={"ETag": etag})


def pieces(value: Any) -> Iterator[bytes]:
    """The JSON of a value, a little at a time."""
    if isinstance(value, dict):
        mark = "{"
        for name, part in value.items():
            yield f"{mark}{_write(name)}:".encode()
            yield from pieces(part)
            mark = ","
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and value and isinstance(value[0], list):
        mark = "["
        for part in value:
            yield mark.encode()
            yield from pieces(part)
            mark = ","
        yield b"]"
    elif isinstance(value, list) and len(value) > PIECE:
        mark = "["
        for first in range(0, len(value), PIECE):
            yield f"{mark}{_write(value[first : first + PIECE])[1:-1]}".encode()
            mark = ","
        yield b"]"
    else:
        yield _write(value).encode()
