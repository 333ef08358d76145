"""Options of a policy, as users give them, put into its settings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar, get_args, get_type_hints

from engram.errors import InputError

Settings = TypeVar("Settings")

_FORMS: dict[type, str] = {bool: "on or off", int: "a whole number", float: "a number"}


def with_options(settings: Settings, **options: object) -> Settings:
    """Settings with named fields replaced; names and kinds that do not fit are refused.

    ``schedule=adaptive`` or ``uniform`` stands for the usual schedule of that kind.
    """
    assert is_dataclass(settings)
    known = [field.name for field in fields(settings)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(f"unknown option(s) {', '.join(unknown)}; known are {', '.join(known)}")
    kinds = get_type_hints(type(settings))
    chosen: dict[str, Any] = {}
    for name, value in options.items():
        if name == "schedule" and isinstance(value, str):
            chosen[name] = replace(getattr(settings, name), kind=value)
        else:
            chosen[name] = _checked(name, value, get_args(kinds[name]) or (kinds[name],))
    return replace(settings, **chosen)  # type: ignore[type-var]


def _checked(name: str, value: object, kinds: tuple[type, ...]) -> object:
    """The value, if it is of one of the kinds; a whole number is a number too."""
    if isinstance(value, bool):
        if bool in kinds:
            return value
    elif float in kinds and isinstance(value, Real):
        return float(value)
    elif int in kinds and isinstance(value, Integral):
        return int(value)
    elif any(kind not in _FORMS and isinstance(value, kind) for kind in kinds):
        return value
    form = next((_FORMS[kind] for kind in kinds if kind in _FORMS), kinds[0].__name__)
    raise InputError(f"option {name}={value!r}: give {form}")
