"""JSON from strangers: measured before it is parsed, and no number that is none."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NoReturn

from engram._files import json_depth
from engram.errors import InputError, shown

DEEPEST = 20
"""Levels of lists and objects a request may have."""

DIGITS = 400
"""Characters of the longest number."""


def parse(raw: bytes) -> Any:
    """What a body says; NaN, infinite numbers, depth and double names are refused."""
    if json_depth(raw) > DEEPEST:
        raise InputError(f"the body is nested more than {DEEPEST} levels deep; give it flat")
    try:
        return json.loads(
            raw.decode(),
            parse_constant=_no_constant,
            parse_float=_real,
            parse_int=_whole,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not text in UTF-8 (byte {error.start})") from error
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not valid JSON: {error}") from error


def _no_constant(text: str) -> NoReturn:
    raise InputError(f"{text} in the body is not a number of JSON; give finite numbers")


def _real(text: str) -> float:
    number = float(text) if len(text) <= DIGITS else float("inf")
    if not isfinite(number):
        raise InputError(f"{shown(text)} in the body is not a finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise InputError(f"{shown(text)} in the body has more than {DIGITS} digits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{shown(twice)} is in one object of the body twice")
    return made
