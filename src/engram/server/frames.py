"""Messages between the server and the processes that compute: JSON with bytes behind it.

A frame is two lengths (4 bytes each, big-endian), the JSON and the bytes.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, BinaryIO

_LENGTHS = struct.Struct(">II")


def packed(message: dict[str, Any], blob: bytes = b"") -> bytes:
    """A frame."""
    text = json.dumps(message).encode()
    return _LENGTHS.pack(len(text), len(blob)) + text + blob


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at the end."""
    head = stream.read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        return None
    text, blob = _LENGTHS.unpack(head)
    return json.loads(stream.read(text)), stream.read(blob)


async def receive(stream: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """The next frame; ``IncompleteReadError`` at the end."""
    text, blob = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
    message = json.loads(await stream.readexactly(text))
    return message, await stream.readexactly(blob) if blob else b""
