"""Why a cell was suggested: kept with the suggestion, told in words, drawn as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram._writing import write_file
from engram.blocks import as_field
from engram.campaign.answers import Explanation
from engram.campaign.decide import Wish, standing, trip_cost
from engram.campaign.state import State
from engram.errors import InputError
from engram.grid import Grid
from engram.policies.base import Policy, Suggestion, View
from engram.policies.ranking import WEIGHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from engram.layer_effects import Explained

RADIUS = 4
"""How far around the suggested cell the picture reaches, in cells."""

RUNNERS_UP = 5
SAMPLES = 4
"""Samples of the area of which the picture shows the neighbourhood."""


RULES = {
    "likely": "the chance of target",
    "frontier": "no cell was likely enough to follow, so doubt counted beside the chance of target",
    "room": "no cell was likely enough to follow, so doubt counted too, where another target like "
    "those that were outlined has room",
    "last": "the chance of target, since the last measurements are not spent on doubt",
    "bound": "the expected outcome with a bonus for doubt",
    "look-ahead": "the finds to be expected with the budget left, by the spatial model",
    "new-target": "the chance of a target that nobody has touched, and doubt beside it",
    "gap": "the largest gap between all that was measured, since nothing was found yet, or targets "
    "are so large that they are found by filling gaps",
    "eq11": "exploitation alone, the reward of samples that agree",
    "layer": "the value of a layer alone",
    "eq12": "exploration and exploitation, weighed by alpha",
    "eq12-normalised": "exploration and exploitation, each of its largest, weighed by alpha",
}
"""What the rules that make a score rank by (``policies.ranking``)."""


def describe(
    state: State, policy: Policy, picks: list[Suggestion], wish: Wish, at: float
) -> list[dict[str, Any]]:
    """One explanation per pick, as JSON: terms, rank, runners-up, expectation, pictures."""
    view, stand = policy.view(), standing(state, policy, wish, at)
    scores = stand.answer.scores
    chosen = {state.grid.index(pick.cell) for pick in picks}
    best = stand.best(len(picks) + RUNNERS_UP)
    others = [i for i in best if i not in chosen][:RUNNERS_UP]
    place = {index: position for position, index in enumerate(best, 1)}
    runners_up = [
        {
            "cell": list(state.grid.at(i)),
            "rank": place[i],
            "total": float(scores.total[i]),
            "probability": float(scores.probability[i]),
        }
        for i in others
    ]
    common = {
        "policy": state.spec.policy,
        "prior": state.spec.prior,
        "measured": len(state.visits),
        "found": state.found,
        "ranked_by": wish.rank,
        "candidates": int(stand.available.sum()),
        "out": [list(cell) for cell in state.pending(at)],
        "runners_up": runners_up,
    }
    cost, model = trip_cost(state, wish.start), policy.layered()
    return [
        {
            **common,
            "cell": list(pick.cell),
            "rank": pick.rank,
            "terms": pick.terms,
            "rule": pick.rule,
            "weights": pick.weights,
            "tilt": pick.tilt,
            **_layers_of(model, state.grid.index(pick.cell)),
            "cost": float(cost[state.grid.index(pick.cell)]),
            "expected_outcome": float(view.scores.probability[state.grid.index(pick.cell)]),
            "expected_content": _expected_content(state.grid, view, pick),
            "picture": _picture(state, view, pick),
            **_visited(state, pick),
        }
        for pick in picks
    ]


def _layers_of(model: Explained | None, index: int) -> dict[str, dict[str, float]]:
    """What each layer added to the log-odds of a cell; nothing without layers."""
    if model is None:
        return {}
    return {"layers": {name: round(v, 3) for name, v in model.contributions(index).items()}}


def _visited(state: State, pick: Suggestion) -> dict[str, int]:
    """How often the cell was visited before; nothing for a cell that never was."""
    count = sum(o.cell == pick.cell for o in state.observations) if state.doubted else 0
    return {"visited": count} if count else {}


def _expected_content(grid: Grid, view: View, pick: Suggestion) -> list[float] | None:
    """Mean over the cell's pixels of each channel, or None when no content is imagined."""
    if view.mean is None or view.shows != "content":
        return None
    return [round(float(v), 5) for v in grid.content_of(view.mean, pick.cell).mean(axis=(1, 2))]


def _per_cell(
    grid: Grid, image: NDArray[np.float32], window: tuple[slice, slice]
) -> NDArray[np.float64]:
    """(..., C, H, W) -> (..., rows, cols) of a window of cells: mean over channels and pixels."""
    h, w = grid.cell
    rows, cols = window
    part = image[..., rows.start * h : rows.stop * h, cols.start * w : cols.stop * w]
    down, across = rows.stop - rows.start, cols.stop - cols.start
    split = np.moveaxis(part.reshape(*part.shape[:-2], down, h, across, w), -3, -2)
    return np.asarray(split.mean(axis=(-1, -2)).mean(axis=-3), np.float64)


def _picture(state: State, view: View, pick: Suggestion) -> dict[str, Any]:
    """The neighbourhood as small tables: what is believed and what was measured there."""
    grid = state.grid
    window = grid.geometry.window(pick.cell, RADIUS)

    def table(values: NDArray[np.float64]) -> list[list[float]]:
        return [[round(float(v), 4) for v in line] for line in values]

    picture: dict[str, Any] = {
        "corner": [window[0].start, window[1].start],
        "range": [float(v) for v in grid.range],
        "probability": table(_around(grid, view.scores.probability, window)),
        "measured": _measured(state, window),
    }
    if grid.geometry.height != grid.geometry.width:
        picture["sides"] = [grid.geometry.height, grid.geometry.width]
    if view.mean is not None:
        picture["mean"], picture["shows"] = table(_per_cell(grid, view.mean, window)), view.shows
    if view.particles is not None:
        cells = _per_cell(grid, view.particles, window)
        picture["spread"] = table(cells.std(axis=0))
        picture["samples"] = [table(sample) for sample in cells[:SAMPLES]]
    return picture


def _around(
    grid: Grid, values: NDArray[np.float64], window: tuple[slice, slice]
) -> NDArray[np.float64]:
    """(n_cells,) -> the part of it in a window."""
    by_blocks = as_field(values)
    if by_blocks is not None:
        return by_blocks.region(*window)
    return values.reshape(grid.rows, grid.cols)[window]


def _measured(state: State, window: tuple[slice, slice]) -> list[list[float | None]]:
    """Outcomes in force in a window; None where nothing was measured."""
    known, cols = state.measurements, state.grid.cols
    return [
        [
            round(float(known[row * cols + col].observation.outcome), 4)
            if row * cols + col in known
            else None
            for col in range(window[1].start, window[1].stop)
        ]
        for row in range(window[0].start, window[0].stop)
    ]


def in_words(why: Explanation) -> str:
    """The explanation as a short text."""
    terms, content = why.terms, why.expected_content
    shown = (
        "" if content is None else f", expected content {', '.join(f'{v:.3g}' for v in content)}"
    )
    lines = [
        f"Cell ({why.cell[0]}, {why.cell[1]}) was number {why.rank} of {why.candidates} "
        f"candidates ranked by {why.ranked_by}, after {why.measured} "
        f"measurements with {why.found} finds (policy {why.policy}"
        + (f", prior {why.prior}" if why.prior else "")
        + ").",
        f"Chance of target {why.expected_outcome:.3f}{shown}.",
        f"Score {terms['total']:.4g}"
        + (
            f" at alpha {terms['alpha']:.3f}: "
            if why.rule in WEIGHED
            else ". Terms that say more of the cell: "
        )
        + f"exploration {terms['exploration']:.4g}, exploitation {terms['exploitation']:.4g} "
        f"(likelihood {terms['likelihood']:.4g}, reward {terms['reward']:.4g}).",
        *_made_by(why),
    ]
    if why.kept.get("visited"):
        lines.append(
            f"It was visited {why.kept['visited']} time(s) before; a visit may miss a target, and "
            "the chance counts what those visits said."
        )
    if why.out:
        lines.append(f"Already out then: {', '.join(f'({r}, {c})' for r, c in why.out)}.")
    if why.runners_up:
        cells = ", ".join(
            f"({r['cell'][0]}, {r['cell'][1]}) with {r['total']:.4g}" for r in why.runners_up
        )
        lines.append(f"Runners-up by score: {cells}.")
    return "\n".join(lines)


def _made_by(why: Explanation) -> list[str]:
    """Rule, mixture and tilt, as far as they were kept."""
    lines = []
    if why.rule:
        about = RULES.get(why.rule, "as the policy says")
        lines.append(f"Rule of the score: {why.rule} ({about}).")
    weights = [f"{name} {weight:.2f}" for name, weight in why.weights.items()]
    if weights:
        moved = "" if why.tilt is None else f"; h moved the memory's chance by {why.tilt:+.3f}"
        lines.append(f"The chance weighs {', '.join(weights)}{moved}.")
    added = sorted(why.layers.items(), key=lambda item: -abs(item[1]))
    if added:
        told = ", ".join(f"{name}: {value:+.1f}" for name, value in added)
        lines.append(f"Layers, in log-odds beside an average cell: {told}.")
    return lines


def draw(why: Explanation, path: Path) -> None:
    """The neighbourhood as a PNG: probability, mean, spread and samples, whatever is kept."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: the picture is a PNG; name a file that ends in .png")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = why.picture
    known = tuple(picture.get("range", (0.0, 1.0)))
    panels = [("chance of target", picture["probability"], _from_zero(picture["probability"]))]
    if "mean" in picture:
        panels.append((f"expected {picture.get('shows', 'content')}", picture["mean"], known))
    if "spread" in picture:
        panels.append(("spread of samples", picture["spread"], _from_zero(picture["spread"])))
    for i, sample in enumerate(picture.get("samples", ()), 1):
        panels.append((f"sample {i}", sample, known))
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.2 * columns, 3.1 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    row, col = why.cell
    figure.suptitle(f"cell ({row}, {col}): rank {why.rank}, chance {why.expected_outcome:.2f}")
    for i, (title, table, limits) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        _panel(axes, why, title, np.array(table), limits)
    for axes in figure.axes:
        figure.colorbar(axes.images[0], ax=axes, shrink=0.8)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110, format="png")
    write_file(path, drawn.getvalue())


def _from_zero(table: list[list[float]]) -> tuple[float, float]:
    """Limits of a colour scale from 0 to the largest value."""
    return 0.0, max(1e-6, float(np.max(table)))


def _panel(
    axes: Axes,
    why: Explanation,
    title: str,
    table: NDArray[np.float64],
    limits: tuple[float, float],
) -> None:
    from matplotlib.colors import Normalize

    picture, (row, col) = why.picture, why.cell
    top, left = picture["corner"]
    height, width = table.shape
    extent = (left - 0.5, left + width - 0.5, top + height - 0.5, top - 0.5)
    tall, wide = picture.get("sides", (1.0, 1.0))
    colours = Normalize(*limits)
    axes.imshow(
        table,
        cmap="viridis",
        extent=extent,
        interpolation="nearest",
        norm=colours,
        aspect=tall / wide,
    )
    for r, line in enumerate(picture["measured"]):
        for c, outcome in enumerate(line):
            if outcome is not None:
                marker, colour = ("o", "white") if outcome > 0 else ("x", "0.75")
                axes.plot(left + c, top + r, marker, color=colour, markersize=5)
    axes.plot(col, row, "s", markerfacecolor="none", markeredgecolor="red", markersize=14, mew=2)
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)
