"""What the commands share: parsing of options, bars, tables, interruption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli._printing import acknowledges, err, say, say_json, show_table
from engram.errors import InputError, shown

if TYPE_CHECKING:
    from rich.progress import Progress

    from engram.simulation import Trace


class StoppedError(Exception):
    """Ctrl-C, with a word about what is kept."""


@contextmanager
def keeps(what: str) -> Iterator[None]:
    """Turn Ctrl-C into :class:`StoppedError` that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(what) from None


LayerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        help="Known of every cell beforehand: NAME=FILE, with :more or :less target where it is "
        "high, or :kinds for categories; may be given several times.",
    ),
]
GoalOption = Annotated[
    str | None,
    typer.Option(help="What counts: cells with target (cells), or separate targets (objects)."),
]
ExecutorOption = Annotated[
    str, typer.Option("--executor", "--engine", help="Where units run: local or ray.")
]
WindowsOption = Annotated[
    str,
    typer.Option(
        "--executor",
        "--engine",
        help="Where windows of a large area are computed, when many changed: local or ray.",
    ),
]
MixedOption = Annotated[
    bool,
    typer.Option(
        "--mixed",
        help="Train in bfloat16, which some processors do faster; weights stay in float32.",
    ),
]
AddressOption = Annotated[
    str | None, typer.Option(help="Ray cluster (default: one on this machine, for this run).")
]
BeliefOption = Annotated[
    Path | None, typer.Option("--belief", help="Map of the probability of target, 0 to 1.")
]


@contextmanager
def windows_at(executor: str, address: str | None) -> Iterator[None]:
    """Windows of large areas are computed by this executor while this lasts."""
    if executor == "local" and address is None:
        yield
        return
    from engram.policies.local.windows import computed_by
    from engram.ray_windows import windows_computed

    with windows_computed(executor, address) as compute, computed_by(compute):
        yield


DIGITS = 15
"""Whole numbers of an option have at most so many."""


def whole_number(text: str) -> int:
    """A whole number of an option; ``ValueError`` for anything else, however long."""
    if len(text.strip()) > DIGITS:
        raise ValueError(shown(text))
    return int(text)


def parse_pair(text: str, name: str) -> tuple[int, int]:
    """``4,4`` or ``4x4`` -> (4, 4)."""
    parts = text.lower().replace("x", ",").split(",")
    try:
        first, second = (whole_number(part) for part in parts)
    except ValueError:
        raise InputError(
            f"{name}={shown(text)}: give two whole numbers, for instance 4,4"
        ) from None
    if min(first, second) < 1:
        raise InputError(f"{name}={shown(text)}: both numbers must be at least 1")
    return first, second


def parse_span(text: str, name: str) -> tuple[int, int]:
    """``0:20`` -> (0, 20), the end not included; ``7`` -> (7, 8)."""
    first, colon, end = text.partition(":")
    try:
        low = whole_number(first)
        return low, whole_number(end) if colon else low + 1
    except ValueError:
        raise InputError(f"{name}={shown(text)}: give A:B (B is not included), like 0:20") from None


def parse_numbers(text: str, name: str) -> tuple[int, ...]:
    """``150,200,250`` -> (150, 200, 250)."""
    try:
        return tuple(whole_number(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{name}={shown(text)}: give whole numbers separated by commas, like 150,200,250"
        ) from None


def check_seed(seed: int) -> int:
    """Seeds are whole numbers from 0 that 63 bits hold."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed={shown(seed)}: give a whole number of at least 0, below 2^63")
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
        progress.TextColumn("{task.description:<10}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(text, markup=False),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def stages(budget: int) -> list[int]:
    """When beliefs are kept for the report."""
    return sorted({0, round(budget * 0.1), round(budget * 0.25), round(budget * 0.5), budget})


def show_report(
    traces: Sequence[Trace], results: dict[str, Any], page: Path, beside: str, as_json: bool
) -> None:
    """What was found, and where the report of it is."""
    with acknowledges(f"the report was written to {page}"):
        if as_json:
            say_json({**results, "report": str(page)})
        else:
            _show_results(traces)
            say(f"Report: {page} (open it in a browser); {beside}")


def _show_results(traces: Sequence[Trace]) -> None:
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


def weights_target(name: str, out: Path | None, overwrite: bool) -> Path:
    """Where the weights go; an existing memory is not replaced by accident."""
    from engram.memory.library import user_folder

    if not name.replace("-", "").replace("_", "").isalnum():
        raise InputError(f"name={name!r}: use letters, digits, '-' and '_'")
    target = out or user_folder() / f"{name}.safetensors"
    if target.suffix != ".safetensors":
        raise InputError(f"out={target}: the name of a memory ends in .safetensors")
    check_folder(target.parent)
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists; choose another name, or replace it with --overwrite")
    return target
