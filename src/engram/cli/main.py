"""``engram``: the command line. Errors are one line on standard error and exit code 2."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from engram._version import __version__
from engram.cli._common import StoppedError
from engram.cli._printing import remark, say
from engram.errors import EngramError, EngramWarning, InputError, shown

USAGE_ERROR, INTERRUPTED = 2, 130

RARELY = (50_000, 20, 20)
"""When garbage is looked for, in new objects: after Python's usual 700 it is looked for again
and again while modules are loaded, which stay: a tenth of what loading torch takes."""

ROOMS = {
    "demo": (
        "demo:demo",
        "Search a ball task with EM-PTDM, DiffATD and at random; write a report to look at.",
    ),
    "search": (
        "search:search",
        "Search an image of yours as if it were unknown, and report how well it went.",
    ),
    "serve": (
        "serve:serve",
        "Serve the campaigns of a database over HTTP; prints a link that signs its owner in.",
    ),
    "prior": ("prior:app", "List, describe, train and sample permanent memories."),
    "bench": ("bench:app", "Compare policies on numbered tasks, with honest statistics."),
    "campaign": ("campaign:app", "Search in the real world: ask for cells, tell what was found."),
    "area": ("area:app", "Real places: grids, pictures and layers of an area."),
    "account": ("serve:account", "Who may use the campaigns of a server."),
}
"""Where each command is, and what the overview says of it: only the one that is given is loaded."""


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"engram {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@cache
def command_of(*rooms: str) -> Any:
    """The command line with some rooms loaded; of the others it has name and line."""
    app = typer.Typer(
        name="engram",
        help="Find targets in an area nobody has data about, with few measurements.",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    for name, (place, line) in ROOMS.items():
        if name not in rooms:
            app.command(name, help=line)(lambda: None)
            continue
        module, attribute = place.split(":")
        part = getattr(import_module(f"engram.cli.{module}"), attribute)
        if isinstance(part, typer.Typer):
            app.add_typer(part, name=name)
        else:
            app.command(name)(part)
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own); returns the exit code."""
    gc.set_threshold(*RARELY)
    with _said_in_a_line():
        return _run(list(sys.argv[1:] if arguments is None else arguments))


@contextmanager
def _said_in_a_line() -> Iterator[None]:
    """Our own warnings are a line of ours, not one of Python's with a place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", EngramWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, EngramWarning):
                _complain(f"warning: {message}")
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _run(given: list[str]) -> int:
    try:
        _check_text(given)
        wanted = [text for text in given if not text.startswith("-")][:1]
        command = command_of(*ROOMS.keys() & wanted)
        code = command(given, prog_name="engram", standalone_mode=False, obj=given)
    except StoppedError as stop:
        _complain(f"interrupted: {stop}")
        return INTERRUPTED
    except MemoryError:
        _complain("error: not enough memory for this; choose a smaller area, or larger cells")
        return USAGE_ERROR
    except EngramError as error:
        _complain(f"error: {error}")
        return error.exit_code
    except OSError as error:
        _complain(f"error: {error}")
        return USAGE_ERROR
    except Exception as error:
        if not hasattr(error, "format_message"):  # not a usage error of typer's
            raise
        if type(error).__name__ != "NoArgsIsHelpError":  # that one has shown the help
            _complain(f"error: {_without_secrets(error.format_message())}{_hint(error)}")
        return USAGE_ERROR
    if code == INTERRUPTED:  # Ctrl-C outside the work that keeps something
        _complain("interrupted")
    return code if isinstance(code, int) else 0


def _without_secrets(text: str) -> str:
    """A complaint about usage repeats what was given, and a database may have been there."""
    secret = re.compile("://|@|password", re.IGNORECASE)
    return " ".join("..." if secret.search(word) else word for word in text.split())


def _hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return "" if context is None else f" (see '{context.command_path} --help')"


def _check_text(given: Sequence[str]) -> None:
    """Arguments are text; bytes that are none would be met later, half-way through."""
    for text in given:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"argument {shown(text)} is not text in UTF-8; write it, or name the file, in UTF-8"
            ) from None


def _complain(text: str) -> None:
    remark(" ".join(text.split()))
