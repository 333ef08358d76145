"""The report of one task: ``report.html`` and ``search.gif``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engram._writing import write_files
from engram.report.animation import animate
from engram.report.figures import sections
from engram.report.html import page
from engram.report.summary import entries_of
from engram.simulate import Trace


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
