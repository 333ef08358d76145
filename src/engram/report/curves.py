"""Figures over the course of a search: finds, evidence, updates, calibration, distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.metrics import calibration
from engram.report.canvas import FOUND, MISSED, whole_numbers
from engram.report.summary import GREY, Entry, object_sizes
from engram.simulation import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASUREMENTS = "measurements taken"


def draw_discovery(fig: Figure, entries: Sequence[Entry]) -> None:
    """Target cells found, and separate targets touched, against measurements."""
    left, right = fig.subplots(1, 2)
    draw_found(left, entries)
    draw_touched(right, entries)
    handles, labels = left.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))


def draw_found(ax: Axes, entries: Sequence[Entry]) -> None:
    """Finds of every policy between the expectation of random search and the best possible."""
    task = entries[0].trace.task
    budget = max(e.trace.budget for e in entries)
    steps = np.arange(budget + 1)
    ax.plot(steps, np.minimum(steps, task.targets), ":", c=GREY, lw=1.4, label="best possible")
    ax.plot(
        steps,
        steps * task.targets / len(task.grid.open_cells),
        "--",
        c=GREY,
        lw=1.4,
        label="random search, expected",
    )
    for entry in entries:
        found = np.cumsum(np.asarray(entry.trace.outcomes) > 0)
        ax.plot(np.arange(len(found) + 1), [0, *found], c=entry.colour, label=entry.label)
    ax.set(xlabel=MEASUREMENTS, ylabel="target cells found", xlim=(0, budget), ylim=(0, None))
    whole_numbers(ax, 6, 6)


def draw_touched(ax: Axes, entries: Sequence[Entry]) -> None:
    """Separate targets of which at least one cell was measured."""
    task = entries[0].trace.task
    total = len(object_sizes(task))
    budget = max(e.trace.budget for e in entries)
    ax.axhline(total, ls=":", c=GREY, lw=1.4)
    for entry in entries:
        touched = touched_by_step(entry.trace)
        ax.step(range(len(touched)), touched, where="post", c=entry.colour)
    ax.set(xlabel=MEASUREMENTS, ylabel=f"separate targets touched (of {total})")
    ax.set(xlim=(0, budget), ylim=(0, total * 1.08))
    whole_numbers(ax, 6, 6)


def touched_by_step(trace: Trace) -> list[int]:
    """Separate targets touched after 0, 1, 2, ... measurements."""
    seen: set[int] = {0}
    counts = [0]
    for cell in trace.cells:
        rows, cols = trace.task.grid.block(cell)
        seen.update(int(v) for v in np.unique(trace.task.objects[rows, cols]))
        counts.append(len(seen) - 1)
    return counts


def moving_mean(values: Sequence[float], window: int) -> NDArray[np.float64]:
    """Mean of the last ``window`` values (of all of them, while there are fewer)."""
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, float))])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def draw_evidence(fig: Figure, entries: Sequence[Entry]) -> None:
    """Prequential log-likelihood: moving mean (thick), mean so far (thin), marks at h-updates."""
    from matplotlib.lines import Line2D

    ax = fig.subplots()
    longest = max(len(e.trace.evidence) for e in entries)
    window = max(5, longest // 10)
    ax.axhline(np.log(0.5), ls=":", c=GREY, lw=1.4, label="coin toss (log 0.5)")
    for entry in entries:
        recent = moving_mean(entry.trace.evidence, window)
        steps = np.arange(1, len(recent) + 1)
        ax.plot(steps, recent, c=entry.colour, label=entry.label)
        so_far = moving_mean(entry.trace.evidence, len(recent))
        ax.plot(steps, so_far, c=entry.colour, lw=0.9, alpha=0.8)
        for accepted, marker, colour in ((True, "^", FOUND), (False, "X", MISSED)):
            times = [int(u["t"]) for u in entry.trace.updates if bool(u["accepted"]) is accepted]
            times = [t for t in times if 1 <= t <= len(recent)]
            if times:
                ax.plot(
                    times,
                    recent[np.array(times) - 1],
                    marker,
                    c=colour,
                    ms=6.5,
                    mew=0,
                    clip_on=False,
                )
    handles, labels = ax.get_legend_handles_labels()
    if any(e.trace.updates for e in entries):
        for marker, colour, label in (("^", FOUND, "accepted"), ("X", MISSED, "rolled back")):
            handles.append(Line2D([], [], ls="", marker=marker, c=colour, ms=6.5, mew=0))
            labels.append(f"update {label}")
    ax.set(xlabel=MEASUREMENTS, ylabel="predictive log-likelihood\n(nats per measurement)")
    ax.set_title(
        f"thick: mean of the last {window} measurements, thin: mean of all so far", loc="left"
    )
    ax.set_xlim(0, longest)
    fig.legend(handles, labels, loc="outside right upper")


def draw_updates(fig: Figure, entries: Sequence[Entry]) -> None:
    """One row per policy that adapts: evidence before and after every update."""
    axes = fig.subplots(len(entries), 1, squeeze=False, sharex=True)[:, 0]
    for ax, entry in zip(axes, entries, strict=True):
        _dumbbells(ax, entry.trace.updates)
        ax.set_ylabel("evidence\n(nats per measurement)")
        ax.set_xlim(-1, entry.trace.budget + 1)
        ax.set_title(entry.label, loc="left")
        whole_numbers(ax, 6)
    axes[-1].set_xlabel(MEASUREMENTS)
    _dumbbell_legend(fig)


def _dumbbells(ax: Axes, updates: Sequence[dict[str, Any]]) -> None:
    for update in updates:
        before, after = update.get("before"), update.get("after")
        if before is None or after is None:
            continue
        colour = FOUND if update["accepted"] else MISSED
        ax.plot([update["t"]] * 2, [before, after], c=colour, lw=1.4, clip_on=False)
        shape = "^" if update["accepted"] else "X"
        ax.plot(update["t"], before, "o", mfc="none", mec=colour, ms=5, clip_on=False)
        ax.plot(update["t"], after, shape, c=colour, ms=6.5, mew=0, clip_on=False)


def _dumbbell_legend(fig: Figure) -> None:
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], ls="", marker="o", mfc="none", mec=GREY, ms=5),
        Line2D([], [], ls="", marker="^", c=FOUND, ms=6.5, mew=0),
        Line2D([], [], ls="", marker="X", c=MISSED, ms=6.5, mew=0),
    ]
    names = ["before the update", "after it (accepted)", "after it (rolled back)"]
    fig.legend(keys, names, loc="outside lower center", ncols=3)


def draw_alpha(fig: Figure, entries: Sequence[Entry]) -> None:
    """The weight of exploration at every measurement."""
    ax = fig.subplots()
    for entry in entries:
        weights = [term.get("alpha", 0.0) for term in entry.trace.terms]
        ax.plot(range(len(weights)), weights, c=entry.colour, label=entry.label)
    ax.set(xlabel=MEASUREMENTS, ylabel="exploration weight alpha\n(1 = explore only)")
    ax.set(xlim=(0, max(e.trace.budget for e in entries)), ylim=(-0.02, 1.05))
    whole_numbers(ax, 6)
    ax.legend()


def draw_reliability(fig: Figure, entries: Sequence[Entry]) -> None:
    """How often target was found against how likely it was said to be."""
    ax = fig.subplots()
    ax.plot([0, 1], [0, 1], "--", c=GREY, lw=1.4, label="perfectly calibrated")
    for entry in entries:
        hits = (np.asarray(entry.trace.outcomes) > 0).astype(float)
        curve, error = calibration(np.asarray(entry.trace.forecast, float), hits)
        x, y = [b["forecast"] for b in curve], [b["frequency"] for b in curve]
        sizes = [12 + 180 * b["count"] / len(hits) for b in curve]
        ax.plot(x, y, c=entry.colour, lw=1.2, label=f"{entry.label} (error {error:.3f})")
        ax.scatter(x, y, sizes, color=entry.colour, alpha=0.8, linewidths=0, zorder=3)
    ax.set(xlabel="forecast probability of target", ylabel="share that was target")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    fig.legend(loc="outside right upper")


def draw_distances(fig: Figure, entries: Sequence[Entry]) -> None:
    """L2 distance of the posterior mean to the truth at the snapshots."""
    axes = fig.subplots(1, 2, sharey=True)
    heads = ("over all cells", "over target cells")
    for ax, head, targets_only in zip(axes, heads, (False, True), strict=True):
        for entry in entries:
            points = sorted(entry.trace.distances(targets_only=targets_only))
            x, y = [p[0] for p in points], [p[1] for p in points]
            ax.plot(x, y, "o-", c=entry.colour, ms=4, clip_on=False, label=entry.label)
        ax.set_title(head, loc="left")
        ax.set(xlabel=MEASUREMENTS, xlim=(0, max(e.trace.budget for e in entries)))
        ax.tick_params(labelleft=True)
        whole_numbers(ax, 6)
    axes[0].set_ylim(bottom=0)
    low, high = entries[0].trace.task.grid.range
    axes[0].set_ylabel(f"root mean squared distance\n(content units, {low:g} to {high:g})")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))
