"""Numbers of a whole area (a mask, costs, layers) stand beside an event, their hash in it.

The payload of an event is read wherever the log is: listed, exported, sent to pages. A list of
more than ``LONGEST`` numbers is therefore kept in the event's detail, packed, and the payload says
``{"beside": SHA-256 of the numbers, "count": how many}`` in its place. Events of small areas are
written as they always were.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.errors import DamagedError

LONGEST = 20_000
"""Numbers that a list in an event may have."""

KINDS = {"i": "<i8", "f": "<f8"}
"""How whole numbers and others are packed; a number that is missing is NaN among the others."""

Packed = Mapping[str, Any]


def parted(payload: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Packed]]:
    """A payload without long lists of numbers, and these, packed, by their hash."""
    arrays: dict[str, tuple[str, NDArray[Any]]] = {}
    said = shortened(payload, arrays)
    return said, {
        sha256: {"kind": kind, "data": base64.b85encode(zlib.compress(array.tobytes(), 6)).decode()}
        for sha256, (kind, array) in arrays.items()
    }


def shortened(
    payload: Mapping[str, Any], arrays: dict[str, tuple[str, NDArray[Any]]]
) -> dict[str, Any]:
    """A payload without long lists of numbers; ``arrays`` takes these, with their kind, by their
    hash. Packing them takes longer than everything else: who needs the hash alone does without."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: short(one) for name, one in value.items()}
        if isinstance(value, list) and len(value) > LONGEST:
            kind = "i" if all(type(v) is int for v in value) else "f"
            array = np.array([np.nan if v is None else v for v in value], KINDS[kind])
            sha256 = _hash(kind, array)
            arrays[sha256] = (kind, array)
            return {"beside": sha256, "count": len(value)}
        if isinstance(value, list):
            return [short(one) for one in value]
        return value

    out: dict[str, Any] = short(dict(payload))
    return out


def joined(payload: Mapping[str, Any], beside: Mapping[str, Packed] | None) -> dict[str, Any]:
    """The payload with the lists that stand beside it; one that is missing or changed is named."""

    def whole(value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"beside", "count"}:
            return _unpacked(value, (beside or {}).get(value["beside"]))
        if isinstance(value, dict):
            return {name: whole(one) for name, one in value.items()}
        if isinstance(value, list) and any(isinstance(one, dict | list) for one in value[:1]):
            return [whole(one) for one in value]
        return value

    out: dict[str, Any] = whole(dict(payload))
    return out


def _unpacked(said: Packed, packed: Packed | None) -> list[Any]:
    if packed is None:
        raise DamagedError(
            f"the {said['count']} numbers with the hash {str(said['beside'])[:12]} that stand "
            "beside the event are missing; restore a copy of the database"
        )
    try:
        kind, room = packed["kind"], 8 * int(said["count"])
        data = zlib.decompressobj().decompress(base64.b85decode(packed["data"]), room + 1)
        array = np.frombuffer(data, KINDS[kind])
        good = len(data) == room and _hash(kind, array) == said["beside"]
    except (LookupError, TypeError, ValueError, zlib.error, binascii.Error):
        good = False
    if not good:
        raise DamagedError(
            f"the {said['count']} numbers with the hash {str(said['beside'])[:12]} that stand "
            "beside the event were changed; restore a copy of the database"
        )
    if kind == "i" or not np.isnan(array).any():
        return list(array.tolist())
    return [None if v != v else v for v in array.tolist()]


def _hash(kind: str, array: NDArray[Any]) -> str:
    return hashlib.sha256(kind.encode() + array.tobytes()).hexdigest()
