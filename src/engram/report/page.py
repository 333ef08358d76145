"""The report of one task: ``report.html`` and ``search.gif``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engram.report.animation import animate
from engram.report.figures import sections
from engram.report.files import write_all
from engram.report.html import page
from engram.report.summary import entries_of
from engram.simulate import Trace


def write_report(
    traces: Sequence[Trace], out: Path, *, title: str, notes: Sequence[str] = ()
) -> Path:
    """Write ``report.html`` and ``search.gif`` into the folder ``out``; returns the page's path.

    traces : searches of one and the same task, one per policy or seed
    notes  : sentences shown below the headline, for instance how the area was prepared

    The page holds everything it needs, the animation included, and fetches nothing.
    """
    entries = entries_of(traces)
    gif = animate(entries)
    text = page(title, entries, sections(entries), gif, notes)
    target = Path(out) / "report.html"
    write_all({Path(out) / "search.gif": gif, target: text.encode()})
    return target
