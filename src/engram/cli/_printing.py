"""What the commands print: data stays data, whatever is in it."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TextIO

from rich.console import Console

from engram.errors import EngramError

out = Console()
"""Results: what a user or a program reads. Only drawn with; ``_put`` writes."""
err = Console(stderr=True)
"""Progress, so that standard output stays clean."""


def show_table(table: tuple[Sequence[str], Sequence[Sequence[str]]], title: str = "") -> None:
    """A table (head, lines) on standard output; columns of figures are set to the right.

    Where a terminal is too narrow, words are wrapped and columns put below; no figure is cut.
    """
    from rich.table import Table
    from rich.text import Text

    from engram.cli._layout import arranged

    head = [visible(name) for name in table[0]]
    lines = [[visible(text) for text in line] for line in table[1]]
    with out.capture() as drawing:
        for part in arranged(head, lines, out.width):
            drawn = Table(title=Text(visible(title)) if title else None, title_justify="left")
            drawn.show_edge = drawn.pad_edge = part.edges
            widths = part.widths(out.width)
            for column, width in zip(part.columns, widths, strict=True):
                side: Literal["left", "right"] = "right" if column.figures else "left"
                name = Text(head[column.index])
                drawn.add_column(name, justify=side, overflow="fold", width=width)
            for line in lines:
                drawn.add_row(*(Text(line[column.index]) for column in part.columns))
            out.print(drawn, width=sum(widths) + part.frame, crop=False)
            title = ""
    _put(drawing.get())


def visible(text: str) -> str:
    """The text with control characters (also line ends and marks of direction) as escapes.

    What somebody wrote into a campaign or a card cannot move the cursor, colour the terminal
    or look like a line of ours.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str) -> None:
    """One line on standard output, exactly this text: nothing in it is markup."""
    _put(visible(text) + "\n")


def say_json(data: Any) -> None:
    """JSON on standard output."""
    _put(to_json(data) + "\n")


def remark(text: str) -> None:
    """One line on standard error; one that cannot be written is no reason to stop."""
    with contextlib.suppress(OutputError):
        _put(visible(text) + "\n", sys.stderr)


def _put(text: str, stream: TextIO | None = None) -> None:
    """Write to a stream (standard output) and see that it arrived."""
    stream = sys.stdout if stream is None else stream
    if stream is None:  # closed by the caller, who wants no answer
        return
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:  # a terminal of few characters
            few = stream.encoding
            stream.write(text.encode(few, "backslashreplace").decode(few))
        stream.flush()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write to standard output: {reason}") from error


class OutputError(EngramError):
    """The answer could not be printed; the message says what was done all the same."""


@contextmanager
def acknowledges(what: str) -> Iterator[None]:
    """When the answer cannot be printed, say what was done: ``what`` is true already."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{what}; only the answer was not printed ({error})") from error


def to_json(data: Any) -> str:
    """JSON that every parser reads; numbers that are not finite become null."""
    try:
        return json.dumps(data, indent=1, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(data), indent=1, allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
