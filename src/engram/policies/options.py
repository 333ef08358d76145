"""Options of a policy, as users give them, put into its settings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from numbers import Integral
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from engram.errors import InputError

Settings = TypeVar("Settings")

_FORMS: dict[type, str] = {bool: "on or off", int: "a whole number", float: "a number"}


MOST = 1e300
"""Numbers of an option are smaller than this."""


def with_options(settings: Settings, **options: object) -> Settings:
    """Settings with named fields replaced; names and kinds that do not fit are refused.

    A field that is a dataclass itself (how particles are drawn, how h is adapted) is reached
    through its own fields' names. ``schedule=adaptive`` or ``uniform`` stands for the usual
    schedule of that kind.
    """
    assert is_dataclass(settings)
    own = [field.name for field in fields(settings)]
    parts = {name: getattr(settings, name) for name in own if is_dataclass(getattr(settings, name))}
    home = {
        field.name: name
        for name, part in reversed(parts.items())
        for field in fields(part)
        if field.name not in own
    }
    unknown = sorted(set(options) - {*own, *home})
    if unknown:
        known = ", ".join(dict.fromkeys([*own, *sorted(home)]))
        raise InputError(f"unknown option(s) {', '.join(unknown)}; known are {known}")
    inside: dict[str, dict[str, object]] = {}
    chosen: dict[str, Any] = {}
    kinds = get_type_hints(type(settings))
    for name, value in options.items():
        if name in home:
            inside.setdefault(home[name], {})[name] = value
        elif name == "schedule" and isinstance(value, str):
            inside.setdefault(name, {})["kind"] = value
        else:
            chosen[name] = checked_option(name, value, get_args(kinds[name]) or (kinds[name],))
    for name, given in inside.items():
        chosen[name] = with_options(chosen.get(name, parts[name]), **given)
    return replace(settings, **chosen)  # type: ignore[type-var]


def checked_option(name: str, value: object, kinds: tuple[type, ...]) -> object:
    """The value, if it is of one of the kinds; a whole number is a number too."""
    if isinstance(value, bool):
        if bool in kinds:
            return value
    elif float in kinds and isinstance(value, int | float | np.number):
        if -MOST < value < MOST:
            return float(value)
    elif int in kinds and isinstance(value, Integral):
        return int(value)
    elif any(kind not in _FORMS and isinstance(value, kind) for kind in kinds):
        return value
    form = next((_FORMS[kind] for kind in kinds if kind in _FORMS), kinds[0].__name__)
    raise InputError(f"option {name}={value!r}: give {form}")
