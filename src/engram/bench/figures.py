"""Figures of a benchmark: success rate against budget, and reliability of the forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engram._writing import write_files
from engram.bench.tables import curve, labels, pooled_calibration
from engram.bench.units import Row
from engram.report.canvas import png, whole_numbers
from engram.report.summary import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTTED = (0, (2, 2))
STYLES = ("-", "--", "-.", ":")
BESIDE = 4
"""Policies whose names fit beside the curves; more stand below the figure."""


def policy_styles(policies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and line of every policy; more policies than colours differ in the line."""
    found, i = {}, 0
    for policy in policies:
        if policy == "random":
            found[policy] = {"color": GREY, "linestyle": "-"}
            continue
        line = STYLES[i // len(COLOURS) % len(STYLES)]
        found[policy] = {"color": COLOURS[i % len(COLOURS)], "linestyle": line}
        i += 1
    return found


def rate_figure(rows: Sequence[Row], path: Path, *, title: str, budget: int) -> Path:
    """Mean SR after each measurement with a band of two standard errors over tasks."""
    x = np.arange(1, budget + 1)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for policy, style in policy_styles(labels(rows)).items():
            y = curve(rows, policy, budget)
            mean = y.mean(axis=0)
            axes.plot(x, mean, label=policy, **style)
            if len(y) > 1:
                error = 2 * y.std(axis=0, ddof=1) / len(y) ** 0.5
                band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                axes.fill_between(x, mean - error, mean + error, **band)
        chance = curve(rows, None, budget).mean(axis=0)
        axes.plot(x, chance, color="black", linestyle=DOTTED, label="random search, expected")
        tasks = len({row["task"] for row in rows})
        what = "sequence" if "steps" in rows[0] else "task"
        band_words = ", band = 2 standard errors" if tasks > 1 else ""
        axes.set(
            xlabel="budget (measurements)",
            ylabel="success rate (finds / most that could be found)",
            title=f"{title}: mean over {tasks} {what}{'s' if tasks > 1 else ''}{band_words}",
            xlim=(0, budget),
            ylim=(0, 1.02),
        )
        whole_numbers(axes, x=8)
        if len(labels(rows)) > BESIDE:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        else:
            axes.legend(loc="best")

    write_files({path: png(draw, 7.5, 4.8)})
    return path


def calibration_figure(rows: Sequence[Row], path: Path, *, title: str) -> Path | None:
    """Frequency of target against forecast probability; ``None`` without forecasts."""
    policies = labels(rows)
    pooled = {policy: pooled_calibration(rows, policy) for policy in policies}
    if not any(pooled.values()):
        return None
    styles = policy_styles(policies)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="black", linestyle=DOTTED, label="perfectly calibrated")
        for policy, found in pooled.items():
            if found is None:
                continue
            p, f, n = np.array([[*point.values()] for point in found["curve"]]).T
            axes.plot(p, f, label=f"{policy} (error {found['error']:.3f})", **styles[policy])
            axes.scatter(p, f, s=8 + 90 * n / n.max(), color=styles[policy]["color"], alpha=0.7)
        axes.set(
            xlabel="forecast probability that the cell holds target",
            ylabel="share of such cells that did",
            title=f"{title}: reliability of the forecasts\n(dot size: number of measurements)",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        axes.legend(loc="upper left")

    write_files({path: png(draw, 5.6, 5.6)})
    return path
