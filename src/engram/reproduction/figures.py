"""Figures of an experiment, drawn from its rows; each shows random search for reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram._writing import write_files
from engram.bench.figures import DOTTED, policy_styles, rate_figure
from engram.bench.tables import labels, per_task
from engram.bench.units import Row
from engram.report.canvas import png, whole_numbers
from engram.reproduction.digest import DISTANCES, curve_mean, pooled_rows
from engram.reproduction.experiments import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, dict[str, Any]]

PANELS = {
    "forecast": "forecast of target, all cells",
    "forecast_targets": "forecast of target, target cells",
    "image": "imagined content, all pixels",
    "image_targets": "imagined content, target pixels",
}


def figures_of(
    experiment: Experiment, results: Results, folder: Path, *, side_by_side: bool = False
) -> list[Path]:
    """Draw the figures of an experiment into a folder: all, or those of all parts side by side."""
    views = [v for v in experiment.views if v in (SIDE_BY_SIDE if side_by_side else VIEWS)]
    drawn = dict.fromkeys(VIEWS[view] for view in views)
    return [path for draw in drawn for path in draw(experiment, results, folder)]


def _title(experiment: Experiment, part: str) -> str:
    return f"{experiment.title}{', ' + part if part else ''}"


def _name(experiment: Experiment, *parts: str) -> str:
    return "-".join([experiment.name, *filter(None, parts)]) + ".png"


def _rates(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    rows = {name: (found["rows"], found["options"]["budget"]) for name, found in results.items()}
    if experiment.pool and len(results) > 1:
        least = min(budget for _, budget in rows.values())
        rows[experiment.pool] = pooled_rows(results), least
    return [
        rate_figure(
            own, folder / _name(experiment, name), title=_title(experiment, name), budget=budget
        )
        for name, (own, budget) in rows.items()
    ]


def _band(
    axes: Axes, x: Any, curves: NDArray[np.float64], style: dict[str, Any], name: str
) -> None:
    """Mean of curves (n, len(x)) with two standard errors around it."""
    mean = curves.mean(axis=0)
    axes.plot(x, mean, label=name, **style)
    if len(curves) > 1:
        error = 2 * curves.std(axis=0, ddof=1) / len(curves) ** 0.5
        axes.fill_between(
            x, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0
        )


def _curves(rows: Sequence[Row], policy: str, name: str) -> tuple[list[float], NDArray[np.float64]]:
    own = [r["l2"] for r in rows if r["policy"] == policy and name in (r.get("l2") or {})]
    return (own[0]["t"], np.array([curves[name] for curves in own])) if own else ([], np.empty(0))


def _distances(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    found = []
    for part, result in results.items():
        rows, budget = result["rows"], result["options"]["budget"]
        names = [n for n in DISTANCES if any(n in (r.get("l2") or {}) for r in rows)]
        path = folder / _name(experiment, part, "distances")

        def draw(figure: Figure, rows: Any = rows, names: Any = names, part: str = part) -> None:
            grid = figure.subplots(len(names) // 2, 2, squeeze=False, sharex=True).ravel()
            for axes, name in zip(grid, names, strict=True):
                for policy, style in policy_styles(labels(rows)).items():
                    t, curves = _curves(rows, policy, name)
                    if len(curves):
                        _band(axes, t, curves, style, policy)
                axes.set(title=PANELS[name], ylabel="distance to the truth (RMS)", ylim=(0, None))
            for axes in grid[-2:]:
                axes.set_xlabel("measurements taken")
            grid[0].legend(loc="best")
            figure.suptitle(f"{_title(experiment, part)}; band = 2 standard errors over tasks")

        write_files({path: png(draw, 8.4, 3.4 * max(1, len(names) // 2))})
        found.append(path)
        if "image" in names:
            found.append(_scatter(experiment, part, rows, budget, folder))
    return found


def _scatter(
    experiment: Experiment, part: str, rows: Sequence[Row], budget: int, folder: Path
) -> Path:
    """Success against reconstruction, a dot per task: over the area, and over the targets."""
    path = folder / _name(experiment, part, "scatter")

    def draw(figure: Figure) -> None:
        for axes, name in zip(figure.subplots(1, 2, sharey=True), DISTANCES[2:], strict=True):
            for policy, style in policy_styles(labels(rows)).items():
                x = per_task(rows, policy, curve_mean(name))
                y = per_task(rows, policy, lambda row: row["sr"].get(str(budget)))
                if x:
                    dots = {"color": style["color"], "alpha": 0.75, "label": policy}
                    axes.scatter([*x.values()], [y[task] for task in x], s=22, **dots)
            chance = float(np.mean([row["random"][str(budget)] for row in rows]))
            axes.axhline(chance, color="black", linestyle=DOTTED, label="random search, expected")
            axes.set(title=PANELS[name], xlabel="distance to the truth (RMS), mean over the search")
        figure.axes[0].set_ylabel(f"success rate at {budget} measurements")
        figure.axes[0].legend(loc="best")
        figure.suptitle(f"{_title(experiment, part)}: success against reconstruction, dot = task")

    write_files({path: png(draw, 8.4, 4.2)})
    return path


def _objects(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Targets touched against targets there are, and against measurements for the largest."""
    path = folder / _name(experiment)
    last = next(iter(results.values()))["options"]["budget"]
    hardest_name, hardest = list(results.items())[-1]
    policies = labels(hardest["rows"])

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        numbers = [found["rows"][0]["objects_in_task"] for found in results.values()]
        for policy, style in policy_styles(policies).items():
            means = [
                np.mean([*per_task(f["rows"], policy, lambda r: r["objects"][str(last)]).values()])
                for f in results.values()
            ]
            left.plot(numbers, means, marker="o", markersize=4, label=policy, **style)
            at = hardest["options"]["at"]
            own = [r["objects"] for r in hardest["rows"] if r["policy"] == policy]
            curves = np.array([[objects[str(b)] for b in at] for objects in own], float)
            _band(right, at, curves, style, policy)
        left.plot(numbers, numbers, color="black", linestyle=DOTTED, label="all there are")
        left.set(
            xlabel="balls in the area (number)",
            ylabel=f"balls touched within {last} measurements (mean)",
        )
        right.set(xlabel="measurements taken", ylabel="balls touched (mean)", title=hardest_name)
        whole_numbers(left, x=8)
        left.legend(loc="best")
        figure.suptitle(f"{experiment.title}; band = 2 standard errors over tasks")

    write_files({path: png(draw, 8.8, 4.2)})
    return [path]


def _cost(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Time, network evaluations and memory per area."""
    path = folder / _name(experiment)
    quantities = {
        "seconds_per_observation": "seconds per observation (one core)",
        "network_evaluations_per_observation": "network evaluations per observation",
        "peak_rss_mb": "peak memory of the process (MB)",
    }
    sizes = [name for name in results if not name.endswith("-paper")]
    policies = list(dict.fromkeys(p for found in results.values() for p in labels(found["rows"])))

    def draw(figure: Figure) -> None:
        for axes, (name, title) in zip(figure.subplots(1, 3), quantities.items(), strict=True):
            for policy, style in policy_styles(policies).items():
                points = [
                    (sizes.index(size.removesuffix("-paper")), np.mean([r[name] for r in own]))
                    for size, found in results.items()
                    if (own := [r for r in found["rows"] if r["policy"] == policy])
                ]
                x, y = np.array(points, float).T
                axes.plot(x, y, marker="o", markersize=5, label=policy, **style)
            axes.set_xticks(range(len(sizes)), sizes)
            axes.set(xlabel="area (pixels)", ylabel=title, xlim=(-0.5, len(sizes) - 0.5))
            if name == "peak_rss_mb" or any((line.get_ydata() <= 0).any() for line in axes.lines):
                axes.set_ylim(0, None)
            else:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(lambda y, _: f"{y:g}" if f"{y:e}"[0] in "25" else "")
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
        )
        figure.suptitle(f"{experiment.title}; random search costs nothing to speak of")

    write_files({path: png(draw, 11, 4.2)})
    return [path]


def _positions(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    found = []
    for part, result in results.items():
        rows, budget = result["rows"], str(result["options"]["budget"])
        path = folder / _name(experiment, part, "positions")

        def draw(figure: Figure, rows: Any = rows, budget: str = budget, part: str = part) -> None:
            axes = figure.subplots()
            places = np.arange(1, len(rows[0]["steps"]) + 1)
            for policy, style in policy_styles(labels(rows)).items():
                own = [row["steps"] for row in rows if row["policy"] == policy]
                rates = np.array([[step["sr"][budget] for step in steps] for steps in own])
                _band(axes, places, rates, style, policy)
            chance = [[step["random"][budget] for step in row["steps"]] for row in rows]
            expected = np.mean(chance, axis=0)
            axes.plot(
                places, expected, color="black", linestyle=DOTTED, label="random search, expected"
            )
            axes.set(
                xlabel="place of the task in the sequence",
                ylabel=f"success rate at {budget} measurements",
                title=f"{_title(experiment, part)}\nmean over sequences, band = 2 standard errors",
                ylim=(0, 1.02),
            )
            whole_numbers(axes, x=8)
            axes.legend(loc="best")

        write_files({path: png(draw, 7.5, 4.8)})
        found.append(path)
    return found


VIEWS: dict[str, Callable[[Experiment, Results, Path], list[Path]]] = {
    "rates": _rates,
    "trials": _rates,
    "objects": _objects,
    "cost": _cost,
    "distances": _distances,
    "positions": _positions,
}

SIDE_BY_SIDE = ("objects", "cost")
"""Views whose one figure shows all parts."""
