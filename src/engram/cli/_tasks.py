"""Options that say which tasks a suite makes from data files; shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli._common import parse_pair
from engram.errors import InputError
from engram.tasks.settings import FILES

if TYPE_CHECKING:
    from engram.policies.spec import Value
    from engram.tasks.settings import Setting

SuiteName = Annotated[
    str,
    typer.Argument(
        help="The family of tasks: balls, shapes, species, overhead, tumour, digits or windows."
    ),
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="Data file or folder; may be given several times.", rich_help_panel=FILES
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting of the tasks: balls=5, kind=star, digit=8, seed=1."),
]

Settings = dict[str, "Value"]
"""Settings of a suite, by name."""

Command = Callable[..., None]


def with_settings(*only: str) -> Callable[[Command], Command]:
    """A command with an option for every setting that our suites declare with words for one.

    The command takes them, and those of ``--set``, as ``settings``. ``only`` names the settings
    that are to have an option; all of them where none is named.
    """
    options = {name: one for name, one in _declared().items() if not only or name in only}

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            own = {name: given.pop(name) for name in options}
            settings = _settings(given.pop("set_"), own)
            command(**given, settings=settings)

        plain = signature(command, eval_str=True)
        kept = [one for name, one in plain.parameters.items() if name != "settings"]
        made = [_parameter(name, _option(name, one)) for name, one in options.items()]
        run.__signature__ = plain.replace(  # type: ignore[attr-defined]
            parameters=[*kept, *made, _parameter("set_", Set)]
        )
        run.__annotations__ = {}
        return run

    return decorated


def _declared() -> dict[str, Setting]:
    """Name -> setting with an option of its own, of all our suites."""
    from engram.bench.suites import OURS

    every = (pair for suite in OURS.values() for pair in suite.settings.items())
    found: dict[str, Setting] = {}
    for name, one in every:
        if one.help:
            found.setdefault(name, one)
    return found


def _option(name: str, one: Setting) -> Any:
    """The type of an option as typer reads it."""
    kind = list[str] if one.several else str if name == "size" else one.kind
    flag = "--" + name.replace("_", "-")
    return Annotated[kind | None, typer.Option(flag, help=one.help, rich_help_panel=one.panel)]


def _parameter(name: str, hint: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint)


def _settings(given: Sequence[str] | None, own: dict[str, Any]) -> dict[str, Value]:
    """The settings of a suite: those of ``--set`` and those with an option of their own."""
    from engram.policies.spec import parse_options

    settings = parse_options(",".join(given), "--set") if given else {}
    for name, value in own.items():
        if value is None or value == []:
            continue
        if name in settings:
            raise InputError(f"{name} is given twice, as an option and with --set")
        if name == "size":
            value = _side(value)
        settings[name] = ";".join(value) if isinstance(value, list) else value
    return settings


def _side(text: str) -> int:
    """``64`` or ``64,64`` -> 64."""
    if text.isdigit() and int(text) > 0:
        return int(text)
    height, width = parse_pair(text, "size")
    if height != width:
        raise InputError(f"size={text!r}: these tasks are square; give one number")
    return height
