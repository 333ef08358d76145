"""Lengths and speeds with their units; a plain number is refused, since nobody knows what it is."""

from __future__ import annotations

import math
import re

from engram.errors import InputError, shown

LENGTHS = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344}
"""Unit -> metres."""
SPEEDS = {"km/h": 1 / 3.6, "m/s": 1.0, "mph": 0.44704, "kn": 1852 / 3600}
"""Unit -> metres per second."""
_NUMBER = r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z/]*)\s*"


def length(text: str, option: str) -> float:
    """'250m', '0.5 km', '800ft', '1mi' -> metres."""
    return _measure(text, option, LENGTHS, "250m, 0.5km, 800ft or 1mi")


def speed(text: str, option: str) -> float:
    """'3km/h', '1m/s', '2mph' -> metres per second."""
    return _measure(text, option, SPEEDS, "3km/h, 1m/s or 2mph")


def _measure(text: str, option: str, units: dict[str, float], examples: str) -> float:
    match = re.fullmatch(_NUMBER, text) if len(text) < 40 else None
    factor = None if match is None else units.get(match[2].lower())
    if match is None or factor is None:
        why = " has no unit" if match is not None and not match[2] else ""
        raise InputError(
            f"{option} {shown(text)}{why}: give a number with its unit, like {examples}"
        )
    value = float(match[1]) * factor
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{option} {shown(text)}: give more than 0")
    return value


def shown_length(metres: float) -> str:
    """A length as people say it: 340 m, 2.4 km, 1,250 km."""
    if metres < 1000:
        return f"{metres:.0f} m" if metres >= 10 or metres == 0 else f"{metres:.2g} m"
    return f"{metres / 1000:.1f} km" if metres < 100_000 else f"{metres / 1000:,.0f} km"


def shown_side(metres: float) -> str:
    """The side of a cell: 250 m, 1 km, 30.48 m."""
    return f"{metres / 1000:g} km" if metres >= 1000 and not metres % 100 else f"{metres:.6g} m"
