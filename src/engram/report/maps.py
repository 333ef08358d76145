"""Figures that show the area: truth, visited cells, imagined areas, score maps.

Every panel has its axes in cells, counted from the top left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engram.grid import Grid
from engram.report import pixels
from engram.report.canvas import RULE, whole_numbers
from engram.report.mosaic import Mosaic
from engram.report.summary import Entry, stages
from engram.scores import OfCells, Scores
from engram.simulation import Snapshot, Trace
from engram.tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAGES = 5
SAMPLES = 5
OUTLINE = "#e2409a"
NEXT = "#ff5a1f"
UNSCORED = "#b9bec5"

TERMS = {
    "exploration": "exploration\n(samples disagree)",
    "likelihood": "likelihood\n(samples agree)",
    "reward": "reward\n(looks like target)",
    "exploitation": "exploitation\n(likelihood x reward)",
    "doubt": "doubt\n(spread of the outcome)",
    "total": "total score\n(decides)",
    "probability": "probability\nof target",
}


def show(ax: Axes, grid: Grid, image: NDArray[np.float32], *, left: bool, bottom: bool) -> None:
    """An area (H, W, 3) with axes in cells, labelled at the left and at the bottom edge."""
    _frame(ax, left=left, bottom=bottom)
    ax.imshow(
        pixels.fitted(image, 512),
        interpolation="none",
        extent=(0, grid.cols, grid.rows, 0),
        aspect=grid.geometry.height / grid.geometry.width,  # cells have their own shape
    )


def _frame(ax: Axes, *, left: bool, bottom: bool) -> None:
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set(visible=True, color=RULE)
    ax.tick_params(length=2)
    whole_numbers(ax, 4 if bottom else None, 4 if left else None, open_end=True)
    if left:
        ax.set_ylabel("row (cells)")
    else:
        ax.set_yticks([])
    if bottom:
        ax.set_xlabel("column (cells)")
    else:
        ax.set_xticks([])


def outline(ax: Axes, task: Task) -> None:
    """A line around the target pixels."""
    grid = task.grid
    padded = np.pad(task.target.astype(float), 1)
    x = (np.arange(grid.width + 2) - 0.5) / grid.cell[1]
    y = (np.arange(grid.height + 2) - 0.5) / grid.cell[0]
    ax.contour(x, y, padded, levels=[0.5], colors=[OUTLINE], linewidths=1.2)
    ax.set(xlim=(0, grid.cols), ylim=(grid.rows, 0))


def height_of(grid: Grid, width: float) -> float:
    """Height in inches of a panel for the whole area, within reason for very long areas."""
    return width * min(max(grid.height / grid.width, 0.2), 1.6)


def visited_size(entries: Sequence[Entry]) -> tuple[float, float]:
    columns = min(4, len(entries) + 1)
    rows, width = -(-(len(entries) + 1) // columns), min(10.0, 3.6 * columns)
    panel = height_of(entries[0].trace.task.grid, width / columns - 0.3)
    return width, rows * (panel + 0.7) + 0.35


def draw_visited(fig: Figure, entries: Sequence[Entry]) -> None:
    """Truth with the targets outlined, then each policy's measured cells in green and red."""
    from matplotlib.patches import Patch

    task = entries[0].trace.task
    columns = min(4, len(entries) + 1)
    axes = fig.subplots(-(-(len(entries) + 1) // columns), columns, squeeze=False).ravel()
    show(axes[0], task.grid, pixels.picture(task.grid, task.content), left=True, bottom=True)
    outline(axes[0], task)
    axes[0].set_title(f"truth: {task.targets} target cells")
    for i, (ax, entry) in enumerate(zip(axes[1:], entries, strict=False), 1):
        draw_cells(ax, entry.trace, left=i % columns == 0)
        ax.set_title(f"{entry.label}: {entry.trace.found} found")
    for ax in axes[len(entries) + 1 :]:
        ax.set_axis_off()
    handles = [
        Patch(facecolor=pixels.GREEN, label="measured: target found"),
        Patch(facecolor=pixels.RED, label="measured: no target"),
        Patch(facecolor="none", edgecolor=OUTLINE, label="outline of the targets"),
    ]
    if task.grid.closed.any():
        handles.append(Patch(facecolor=pixels.CLOSED, label="closed to measurements"))
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def draw_cells(ax: Axes, trace: Trace, *, left: bool) -> None:
    """One policy's measured cells over the dimmed truth."""
    image = pixels.visited(trace.task, trace.cells, trace.outcomes)
    show(ax, trace.task.grid, image, left=left, bottom=True)


def imagined(trace: Trace, most: int = STAGES) -> list[Snapshot]:
    """At most ``most`` snapshots with a posterior mean or samples."""
    return [s for s in stages(trace, most) if mean_of(s) is not None]


def mean_of(snapshot: Snapshot) -> NDArray[np.float32] | None:
    """The posterior mean; the mean of the samples when the policy gives none."""
    view = snapshot.view
    if view.mean is None and view.particles is not None:
        return np.asarray(view.particles.mean(axis=0), np.float32)
    return view.mean


def _samples(kept: Sequence[Snapshot]) -> int:
    """Columns of samples: the most that any stage can fill."""
    counts = [0 if s.view.particles is None else len(s.view.particles) for s in kept]
    return min(SAMPLES, max(counts, default=0))


def _imagined_mosaic(trace: Trace) -> Mosaic:
    kept = imagined(trace)
    return Mosaic(trace.task.grid, len(kept), _samples(kept) + 2)


def imagined_size(trace: Trace) -> tuple[float, float]:
    width, height = _imagined_mosaic(trace).size
    return width + 0.6, height + 0.75


def draw_imagined(fig: Figure, trace: Trace) -> None:
    """Rows: stages. Columns: what is known, samples of the posterior, posterior mean."""
    kept, mosaic, grid = imagined(trace), _imagined_mosaic(trace), trace.task.grid
    ax, samples = fig.subplots(), _samples(kept)
    for row, snapshot in enumerate(kept):
        mosaic.show(ax, row, 0, pixels.known(trace.task, trace.cells[: snapshot.t]))
        particles, mean = snapshot.view.particles, mean_of(snapshot)
        for i, particle in enumerate(() if particles is None else particles[:samples], 1):
            mosaic.show(ax, row, i, pixels.picture(grid, particle))
        if mean is not None:
            mosaic.show(ax, row, samples + 1, pixels.picture(grid, mean))
    heads = ["known so far", *(f"sample {i + 1}" for i in range(samples)), "posterior mean"]
    for column, text in enumerate(heads):
        mosaic.head(ax, 0, column, text)
    mosaic.finish(ax, [stage_name(s.t) for s in kept])


def stage_name(t: int) -> str:
    return "at the start" if t == 0 else f"after {t}"


def scored_stages(trace: Trace) -> list[Snapshot]:
    """Snapshots of a policy that tells cells apart; none for one without beliefs."""
    kept = stages(trace, STAGES)
    named = ("exploration", "doubt", "probability")
    return kept if any(_tells(s.view.scores, name) for s in kept for name in named) else []


def leaves_out(trace: Trace) -> bool:
    """Whether terms of imagined areas are not drawn: those of a large area, for which every window
    in which something was measured would have to be imagined at every stage."""
    scores = (s.view.scores for s in stages(trace, STAGES))
    return any(isinstance(getattr(s, name), OfCells) for s in scores for name in TERMS)


def _tells(scores: Scores, name: str) -> bool:
    """Whether a term that can be drawn differs between cells."""
    values = getattr(scores, name)
    return not isinstance(values, OfCells) and bool(np.ptp(_finite(values)) > 0)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = values[np.isfinite(values)]
    return finite if len(finite) else np.zeros(1)


def used_terms(kept: Sequence[Snapshot]) -> list[str]:
    """Terms that differ between cells at one stage at least, and are not the probability again."""
    scores = [s.view.scores for s in kept]
    return [
        name
        for name in TERMS
        if any(_tells(s, name) for s in scores)
        and (
            name == "probability"
            or not all(np.array_equal(getattr(s, name), s.probability) for s in scores)
        )
    ]


def _scores_mosaic(trace: Trace) -> Mosaic:
    kept = scored_stages(trace)
    return Mosaic(trace.task.grid, len(kept), len(used_terms(kept)), head=0.22)


def scores_size(trace: Trace) -> tuple[float, float]:
    width, height = _scores_mosaic(trace).size
    return width + 1.2, height + 0.95


def draw_scores(fig: Figure, trace: Trace) -> None:
    """Rows: stages. Columns: score terms, each panel on its own scale; measured cells blank."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.lines import Line2D

    kept, mosaic, grid = scored_stages(trace), _scores_mosaic(trace), trace.task.grid
    ax, colours = fig.subplots(), colormaps["viridis"].with_extremes(bad=UNSCORED)
    for row, snapshot in enumerate(kept):
        blank = grid.closed.copy()
        for cell in trace.cells[: snapshot.t]:
            blank[cell] = True
        for column, name in enumerate(used_terms(kept)):
            values = getattr(snapshot.view.scores, name).reshape(grid.rows, grid.cols)
            shown = np.ma.masked_invalid(np.where(blank, np.nan, values))
            low, high = (0.0, 0.0) if shown.mask.all() else (shown.min(), shown.max())
            scale = (0, 1) if name == "probability" else (low, high if high > low else low + 1)
            mosaic.show(ax, row, column, shown, cmap=colours, vmin=scale[0], vmax=scale[1])
            limits = f"{low:.3g} to {high:.3g}"
            text = f"{TERMS[name]}\n{limits}" if row == 0 else limits
            mosaic.head(ax, row, column, text, fontsize=8)
            if snapshot.t < len(trace.cells):
                mosaic.ring(ax, row, column, trace.cells[snapshot.t], NEXT)
    mosaic.finish(ax, [stage_name(s.t) for s in kept])
    bar = fig.colorbar(ScalarMappable(cmap=colours), ax=ax, ticks=[0, 1], shrink=0.5, pad=0.015)
    bar.ax.set_yticklabels(["lowest", "highest"])
    bar.set_label("value within its panel", labelpad=-20)
    ring = Line2D([], [], ls="", marker="o", ms=7, mfc="none", mec=NEXT, mew=1.6)
    fig.legend([ring], ["the cell measured next"], loc="outside lower center")
