"""Settings of tasks, each declared once: checks, command-line options and JSON are made from it.

A suite's settings are the fields of a dataclass, or the keyword arguments of its maker. One has a
command-line option of its own when its field's metadata (``option``) or its annotated type says
what the help page is to say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from engram.errors import InputError

FILES, SPECIES = "Tasks from data files", "Species"
"""Panels of the help pages."""


@dataclass(frozen=True)
class Setting:
    """What is declared of one setting.

    help    : words for its command-line option; empty = it has none and is given with ``--set``
    panel   : of the help page that shows the option
    several : the option may be repeated; the values are joined by ``;``
    read    : makes the value from its text; None = the value is what was written
    kind    : of the value as it is written: a whole number, number, switch or text
    """

    help: str = ""
    panel: str = FILES
    several: bool = False
    read: Callable[[str], Any] | None = None
    kind: type = str


def option(help: str, **more: Any) -> dict[str, Setting]:
    """Metadata of a dataclass's field that is a setting with a command-line option."""
    return {"setting": Setting(help, **more)}


def of_plan(plan: type) -> dict[str, Setting]:
    """Name -> setting of every field of a dataclass."""
    hints = get_type_hints(plan)
    return {
        one.name: _of_kind(one.metadata.get("setting", Setting()), hints[one.name])
        for one in fields(plan)
    }


def of_maker(make: Callable[..., Any]) -> dict[str, Setting]:
    """Name -> setting of every keyword argument of a maker."""
    hints, found = get_type_hints(make, include_extras=True), {}
    for one in signature(make).parameters.values():
        if one.kind is Parameter.KEYWORD_ONLY:
            hint, declared = hints[one.name], Setting()
            if get_origin(hint) is Annotated:
                hint, declared = get_args(hint)[:2]
            found[one.name] = _of_kind(declared, hint)
    return found


def _of_kind(declared: Setting, hint: Any) -> Setting:
    """A setting with the kind of its values: of ``int | None``, int."""
    kind = str if declared.read is not None else (get_args(hint) or (hint,))[0]
    return replace(declared, kind=kind)


def read_plan(plan: type, settings: Mapping[str, Any]) -> Any:
    """The dataclass with these settings, texts read as declared."""
    known = of_plan(plan)
    values = {}
    for name, value in settings.items():
        read = known[name].read
        values[name] = value if read is None else read(value)
    return plan(**values)


def box_of(text: str) -> tuple[float, float, float, float]:
    """``south,north,west,east`` in degrees."""
    try:
        south, north, west, east = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"box={text!r}: give south,north,west,east in degrees, like 25.6,55,-123.1,-75"
        ) from None
    return south, north, west, east


def years_of(text: str) -> tuple[int | None, int | None]:
    """``2008-2016``, both included; ``2008-``, ``-2016`` or ``2016`` alone."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    try:
        low = int(first) if first else None
        high = (int(last) if last else None) if dash else low
    except ValueError:
        low = high = None
    if low is None and high is None:
        raise InputError(f"years={text!r}: give first-last, like 2008-2016, or one year")
    return low, high


def columns_of(text: str) -> dict[str, str]:
    """``FIELD=NAME``, with ``;`` between several."""
    columns: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        field, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not field or not name:
            raise InputError(f"column {part.strip()!r} is not of the form FIELD=NAME")
        columns[field] = name
    return columns


def names_of(text: str) -> tuple[str, ...]:
    """Names with ``;`` between them."""
    return tuple(name.strip() for name in text.split(";"))
