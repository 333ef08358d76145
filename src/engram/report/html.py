"""The report of one task: ``report.html``, which fetches nothing, and ``search.gif``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram._templates import rendered
from engram._version import __version__
from engram._writing import write_files
from engram.policies import POLICIES
from engram.report.animation import animate
from engram.report.figures import Section, sections
from engram.report.summary import (
    Entry,
    Result,
    entries_of,
    headline,
    object_sizes,
    random_result,
    result_of,
)
from engram.simulation import Trace


def write_report(
    traces: Sequence[Trace],
    out: Path,
    *,
    title: str,
    notes: Sequence[str] = (),
    beside: Mapping[str, str] | None = None,
) -> Path:
    """Write ``report.html`` and ``search.gif`` into the folder ``out``; returns the page's path.

    traces : searches of one and the same task, one per policy or seed
    notes  : sentences shown below the headline, for instance how the area was prepared
    beside : further files of the folder, name -> text; all files are written, or none

    The page holds everything it needs, the animation included, and fetches nothing.
    """
    entries = entries_of(traces)
    gif = animate(entries)
    text = page(title, entries, sections(entries), gif, notes)
    target = Path(out) / "report.html"
    more = {Path(out) / name: content for name, content in (beside or {}).items()}
    write_files({Path(out) / "search.gif": gif, target: text, **more})
    return target


def page(
    title: str, entries: Sequence[Entry], parts: Sequence[Section], gif: bytes, notes: Sequence[str]
) -> str:
    """The whole document."""
    lead, others = headline(entries)
    return rendered(
        "report.html",
        title=title,
        setting=_setting(entries),
        lead=lead,
        others=others,
        notes=notes,
        gif=b64encode(gif).decode(),
        rows=_rows(entries),
        parts=parts,
        provenance=_provenance(entries),
    )


def _rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One row per policy, best first, and the expectation of random search for each budget."""
    task = entries[0].trace.task
    total = len(object_sizes(task))
    ranked = sorted(entries, key=lambda e: e.trace.success_rate(), reverse=True)
    budgets = sorted({e.trace.budget for e in entries})
    rows = [_row(result_of(e), task.targets, total, e.colour) for e in ranked]
    return rows + [_row(random_result(task, b), task.targets, total, "") for b in budgets]


def _row(result: Result, targets: int, objects: int, colour: str) -> dict[str, Any]:
    """The figures of a row in words; one without a colour is an expectation."""
    count = ".0f" if colour else ".1f"
    figures = (
        str(result.budget),
        f"{result.found:{count}} of {targets}",
        f"{result.success_rate:.3f}",
        f"{result.mass:.3f}",
        f"{result.recall:.3f}",
        f"{result.gap:.0%}",
        f"{result.objects:{count}} of {objects}",
        "–" if result.seconds is None else f"{result.seconds:.3g}",
        "–" if result.evaluations is None else f"{result.evaluations:.3g}",
    )
    return {"label": result.label, "colour": colour, "figures": figures}


def _setting(entries: Sequence[Entry]) -> str:
    task = entries[0].trace.task
    grid = task.grid
    h, w = grid.cell
    kept = "averages" if grid.sides not in (None, grid.cell) else "pixels"
    pixels = f"one {kept[:-1]} each" if h * w == 1 else f"{h} x {w} {kept} each"
    channels = "1 channel" if grid.channels == 1 else f"{grid.channels} channels"
    closed = int(grid.closed.sum())
    return (
        f"Area {task.name}: {grid.rows} x {grid.cols} cells of {pixels}, {channels}"
        + (f", {closed} cells closed" if closed else "")
        + f"; {task.targets} cells hold target, in {len(object_sizes(task))} separate targets."
    )


def _provenance(entries: Sequence[Entry]) -> str:
    runs = []
    for entry in entries:
        spec = POLICIES.get(entry.trace.policy)
        about = f": {spec.summary}" if spec else ""
        runs.append(f"{entry.label}{about} (seed {entry.trace.seed})")
    return f"Made by engram {__version__}. " + "; ".join(runs) + "."
