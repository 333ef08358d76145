"""One wide picture of a search, for a README or a talk."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engram._writing import write_files
from engram.report import maps, pixels
from engram.report.canvas import png
from engram.report.curves import draw_found
from engram.report.summary import Entry, entries_of
from engram.simulation import Snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from engram.simulation import Trace

PANELS = 4


def draw_search(trace: Trace, path: Path) -> Path:
    """Write a PNG: truth, visited cells, the posterior mean at four stages, discovery curve.

    The stages are those among the trace's snapshots that lie most evenly; a policy without a
    posterior mean has no such panels.
    """
    entry = entries_of([trace])[0]
    kept = _even(maps.imagined(trace, len(trace.snapshots)), trace.budget)
    width = 1.75 * (2 + len(kept)) + 3.0
    height = maps.height_of(trace.task.grid, 1.6) + 0.75
    path = Path(path)
    write_files({path: png(partial(_draw, entry=entry, kept=kept), width, max(2.2, height))})
    return path


def _even(kept: list[Snapshot], budget: int) -> list[Snapshot]:
    """At most PANELS snapshots, nearest to even steps from a tenth of the budget to all of it."""
    left, picks = list(kept), []
    for wanted in np.linspace(1.0, 0.1, PANELS) * budget:
        if left:
            nearest = min(left, key=lambda s: abs(s.t - wanted))
            picks.append(nearest)
            left.remove(nearest)
    return sorted(picks, key=lambda s: s.t)


def _draw(fig: Figure, entry: Entry, kept: list[Snapshot]) -> None:
    trace, grid = entry.trace, entry.trace.task.grid
    ratios = [*[1.0] * (2 + len(kept)), 1.5]
    axes = list(fig.subplots(1, len(ratios), width_ratios=ratios))
    maps.show(axes[0], grid, pixels.picture(grid, trace.task.content), left=True, bottom=True)
    axes[0].set_title(f"truth ({trace.task.targets} cells)")
    maps.draw_cells(axes[1], trace, left=False)
    axes[1].set_title(f"visited: {trace.found} found")
    for ax, snapshot in zip(axes[2:], kept, strict=False):
        mean = maps.mean_of(snapshot)
        assert mean is not None
        maps.show(ax, grid, pixels.picture(grid, mean), left=False, bottom=True)
        ax.set_title(f"imagined, {maps.stage_name(snapshot.t)}")
    draw_found(axes[-1], [entry])
    axes[-1].set_title("discovery")
    axes[-1].set_ylim(top=1.45 * axes[-1].get_ylim()[1])
    axes[-1].legend(fontsize=7, loc="upper left", labelspacing=0.25)
