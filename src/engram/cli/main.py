"""``engram``: the command line. Errors are one line on standard error and exit code 2."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from engram._version import __version__
from engram.cli import area, bench, campaign, prior
from engram.cli._common import StoppedError
from engram.cli._printing import remark, say
from engram.cli.consolidate import consolidate
from engram.cli.demo import demo
from engram.cli.search import search
from engram.cli.serve import account, serve
from engram.errors import EngramError, EngramWarning, InputError, shown

USAGE_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    name="engram",
    help="Find targets in an area nobody has data about, with few measurements.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"engram {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command()(search)
prior.app.command()(consolidate)
app.add_typer(prior.app, name="prior")
app.add_typer(bench.app, name="bench")
app.add_typer(campaign.app, name="campaign")
app.add_typer(area.app, name="area")
app.command()(serve)
app.add_typer(account, name="account")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own); returns the exit code."""
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
        code = app(given, prog_name="engram", standalone_mode=False, obj=given)
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
