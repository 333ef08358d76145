"""Which figures a report has, and what each of them says; a whole search in one picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engram._writing import write_files
from engram.policies.ranking import WEIGHED
from engram.report import curves, maps, pixels
from engram.report.canvas import Draw, png, svg
from engram.report.summary import Entry, entries_of
from engram.simulation import Snapshot, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 4
"""Stages in the one picture of a search."""


@dataclass(frozen=True)
class FigureText:
    """A finished figure: its markup, a heading and one or two sentences about it."""

    heading: str
    caption: str
    markup: str


@dataclass(frozen=True)
class Section:
    """A heading, what it is about, and its figures."""

    heading: str
    about: str
    figures: tuple[FigureText, ...]


class _Sheet:
    """Numbers the figures, so that their ids differ."""

    def __init__(self) -> None:
        self.count = 0

    def figure(
        self, heading: str, caption: str, draw: Draw, size: tuple[float, float]
    ) -> FigureText:
        self.count += 1
        return FigureText(
            heading, caption, svg(draw, *size, f"f{self.count}", f"{heading}. {caption}")
        )


def sections(entries: Sequence[Entry]) -> list[Section]:
    """Every section that has something to show for these searches."""
    sheet = _Sheet()
    found = Section(
        "What was found",
        "All policies searched the same area with their own choice of cells.",
        (
            sheet.figure(
                "Cells visited",
                "The truth with the targets outlined, then every cell each policy measured: green "
                "where it held target, red where it did not. The rest of the truth is dimmed.",
                partial(maps.draw_visited, entries=entries),
                maps.visited_size(entries),
            ),
            sheet.figure(
                "Discovery curves",
                "How the finds grew with every measurement, between what random search finds on "
                "average (dashed) and the best anyone could do (dotted). Right: how many of the "
                "separate targets were touched at least once.",
                partial(curves.draw_discovery, entries=entries),
                (10, 3.9),
            ),
        ),
    )
    candidates = [
        found,
        Section(
            "What the policies imagined",
            "A policy with a memory imagines whole areas that agree with the cells it has "
            "measured. As measurements come in, the imagined areas should come to look like the "
            "truth and like each other.",
            tuple(_imagined(sheet, entries)),
        ),
        Section(
            "Why they went where they went",
            "Each cell gets a score from several terms; the cell with the highest total score is "
            "measured next. Grey cells are measured already or closed.",
            tuple(_scores(sheet, entries)),
        ),
        Section(
            "Did they learn?",
            "Before each measurement a policy says how likely the cell is to hold target. These "
            "figures compare what was said with what was found.",
            tuple(_learning(sheet, entries)),
        ),
    ]
    return [section for section in candidates if section.figures]


def _imagined(sheet: _Sheet, entries: Sequence[Entry]) -> Iterator[FigureText]:
    for entry in entries:
        if maps.imagined(entry.trace):
            target = any(s.view.shows == "target" for s in entry.trace.snapshots)
            shown = " They show where target may be, not what the area looks like."
            yield sheet.figure(
                f"Areas imagined by {entry.label}",
                "Each row is one moment of the search: the cells known so far, samples of the "
                "posterior (areas the policy holds possible) and their mean. Rows are named by the "
                f"number of measurements taken.{shown if target else ''}",
                partial(maps.draw_imagined, trace=entry.trace),
                maps.imagined_size(entry.trace),
            )
    informed = [e for e in entries if e.trace.distances()]
    if informed:
        yield sheet.figure(
            "Distance to the truth",
            "How far the posterior mean is from the true content, over the whole area and over "
            "the targets alone; lower is better.",
            partial(curves.draw_distances, entries=informed),
            (10, 3.7),
        )


def _scores(sheet: _Sheet, entries: Sequence[Entry]) -> Iterator[FigureText]:
    for entry in entries:
        if maps.scored_stages(entry.trace):
            imagined = (
                "Terms taken from imagined areas are not drawn for an area of this size: they are "
                "imagined around single cells, to explain these. "
                if maps.leaves_out(entry.trace)
                else "Terms taken from imagined areas are renewed every few measurements. "
            )
            yield sheet.figure(
                f"Score maps of {entry.label}",
                "The terms of the score at several moments; every panel has its own colour scale "
                "(its range is written above it), except the probability, which always runs "
                f"from 0 to 1. {imagined}The ring is the cell that was measured next.",
                partial(maps.draw_scores, trace=entry.trace),
                maps.scores_size(entry.trace),
            )
    weighing = [e for e in entries if any(rule in WEIGHED for rule in e.trace.rules)]
    if weighing:
        yield sheet.figure(
            "Exploration weight",
            "How much of the total score is exploration: high at first, when there is time to "
            "learn, and lower as the budget runs out.",
            partial(curves.draw_alpha, entries=weighing),
            (7.5, 3.1),
        )


def _learning(sheet: _Sheet, entries: Sequence[Entry]) -> Iterator[FigureText]:
    noted = [e for e in entries if e.trace.evidence]
    if noted:
        yield sheet.figure(
            "Evidence",
            "The log-likelihood of every outcome as forecast just before it was seen; higher is "
            "better and 0 is certainty. Policies measure different cells, and uncertain cells are "
            "harder to forecast, so compare a curve with its own past first.",
            partial(curves.draw_evidence, entries=noted),
            (10, 3.7),
        )
    adapting = [e for e in entries if e.trace.updates]
    if adapting:
        yield sheet.figure(
            "Updates of the transient memory",
            "Evidence of the measurements before and after an update (in the paper's preset, of "
            "those held out of it). Updates that predict unseen measurements worse than the memory "
            "without them are rolled back.",
            partial(curves.draw_updates, entries=adapting),
            (10, 0.7 + 2.8 * len(adapting)),
        )
    forecasting = [e for e in entries if e.trace.forecast]
    if forecasting:
        yield sheet.figure(
            "Reliability",
            "Of all measurements with a similar forecast, the share that really held target; "
            "points on the diagonal mean that the forecasts can be taken at their word. Larger "
            "dots stand for more measurements; the error is the mean distance to the diagonal.",
            partial(curves.draw_reliability, entries=forecasting),
            (6.8, 4.2),
        )


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
    write_files({path: png(partial(_draw_search, entry=entry, kept=kept), width, max(2.2, height))})
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


def _draw_search(fig: Figure, entry: Entry, kept: list[Snapshot]) -> None:
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
    curves.draw_found(axes[-1], [entry])
    axes[-1].set_title("discovery")
    axes[-1].set_ylim(top=1.45 * axes[-1].get_ylim()[1])
    axes[-1].legend(fontsize=7, loc="upper left", labelspacing=0.25)
