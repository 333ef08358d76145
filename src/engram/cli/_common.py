"""What the commands share: consoles, parsing of options, bars, tables, interruption."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from engram.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from engram.simulate import Trace

out = Console()
"""Results: what a user or a program reads."""
err = Console(stderr=True)
"""Progress and remarks, so that standard output stays clean."""


class StoppedError(Exception):
    """Ctrl-C, with a word about what is kept."""


@contextmanager
def keeps(what: str) -> Iterator[None]:
    """Turn Ctrl-C into :class:`StoppedError` that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(what) from None


def parse_pair(text: str, name: str) -> tuple[int, int]:
    """``4,4`` or ``4x4`` -> (4, 4)."""
    parts = text.lower().replace("x", ",").split(",")
    try:
        first, second = (int(part) for part in parts)
    except ValueError:
        raise InputError(f"{name}={text!r}: give two whole numbers, for instance 4,4") from None
    if min(first, second) < 1:
        raise InputError(f"{name}={text!r}: both numbers must be at least 1")
    return first, second


def parse_span(text: str, name: str) -> tuple[int, int]:
    """``0:20`` -> (0, 20), the end not included; ``7`` -> (7, 8)."""
    first, colon, end = text.partition(":")
    try:
        low = int(first)
        return low, int(end) if colon else low + 1
    except ValueError:
        raise InputError(f"{name}={text!r}: give A:B (B is not included), like 0:20") from None


def parse_numbers(text: str, name: str) -> tuple[int, ...]:
    """``150,200,250`` -> (150, 200, 250)."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{name}={text!r}: give whole numbers separated by commas, like 150,200,250"
        ) from None


def check_seed(seed: int) -> int:
    """Seeds are whole numbers from 0."""
    if seed < 0:
        raise InputError(f"seed={seed}: give a whole number of at least 0")
    return seed


def check_folder(path: Path) -> Path:
    """A folder for results that can be made, or is one already; nothing is created."""
    for parent in (path, *path.parents):
        if parent.exists():
            if not parent.is_dir():
                raise InputError(f"{parent} is a file; give the name of a folder for --out")
            return path
    return path


FOUND = "{task.fields[found]} found"
"""What a bar of a search says beside the count of measurements."""


def moving_bar(text: str) -> Progress:
    """A progress bar with ``text`` beside it, on terminals only and only while it moves."""
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description:<10}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(text),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def show_table(table: tuple[Sequence[str], Sequence[Sequence[str]]], title: str = "") -> None:
    """A table (head, lines) on standard output; columns of figures are set to the right.

    Where a terminal is too narrow, words are wrapped and columns put below; no figure is cut.
    """
    from rich.table import Table
    from rich.text import Text

    from engram.cli._layout import arranged

    head, lines = table
    for part in arranged(head, lines, out.width):
        drawn = Table(title=title or None, title_justify="left")
        drawn.show_edge = drawn.pad_edge = part.edges
        widths = part.widths(out.width)
        for column, width in zip(part.columns, widths, strict=True):
            side: Literal["left", "right"] = "right" if column.figures else "left"
            drawn.add_column(head[column.index], justify=side, overflow="fold", width=width)
        for line in lines:
            drawn.add_row(*(Text(line[column.index]) for column in part.columns))
        out.print(drawn, width=sum(widths) + part.frame, crop=False)
        title = ""


def say(text: str) -> None:
    """A plain line on standard output, never wrapped or coloured."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def remark(text: str) -> None:
    """A plain line on standard error."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def to_json(data: Any) -> str:
    """JSON that every parser reads (no NaN)."""
    return json.dumps(data, indent=1, allow_nan=False)


def stages(budget: int) -> list[int]:
    """When beliefs are kept for the report."""
    return sorted({0, round(budget * 0.1), round(budget * 0.25), round(budget * 0.5), budget})


def show_results(traces: Sequence[Trace]) -> None:
    """The figures of some searches of one task; the last line is what chance finds on average."""
    from engram.report.summary import entries_of, random_result, result_of

    results = [result_of(entry) for entry in entries_of(traces)]
    chance = random_result(traces[0].task, traces[0].budget)
    results.append(replace(chance, label="(random)"))
    head = ["policy", "found", "SR", "recall", "gap", "objects", "s/query", "evals"]
    lines = [
        [
            r.label,
            f"{r.found:.4g}",
            f"{r.success_rate:.3f}",
            f"{r.recall:.3f}",
            f"{r.gap:.0%}",
            f"{r.objects:.3g}",
            "" if r.seconds is None else f"{r.seconds:.3f}",
            "" if r.evaluations is None else f"{r.evaluations:.1f}",
        ]
        for r in results
    ]
    show_table((head, lines))
