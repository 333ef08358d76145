r"""Statistics of a benchmark's rows, and tables of them.

Tasks are the independent units: the seeds of a task are averaged first. Intervals are
Student's, :math:`\bar x \pm t_{0.975,\,n-1}\, s / \sqrt n` over n tasks; paired differences
are taken task by task, over the tasks both policies have finished.

A row may be a whole sequence of tasks under one policy; its figures are then those of the
sequence (of its tasks from the second on), and ``steps`` holds the rows of its tasks.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.bench.units import Row
from engram.metrics import gap_closed

PerTask = dict[int, float]
"""Task number -> value, averaged over seeds."""
Table = tuple[list[str], list[list[str]]]
"""Head and lines."""


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean, 95 % confidence interval, standard deviation and number of values."""
    from scipy.stats import t

    x = np.asarray(values, float)
    out: dict[str, Any] = {"mean": float(x.mean()), "ci95": None, "sd": None, "n": len(x)}
    if len(x) > 1:
        sd = float(x.std(ddof=1))
        half = float(t.ppf(0.975, len(x) - 1)) * sd / len(x) ** 0.5
        out |= {"ci95": [out["mean"] - half, out["mean"] + half], "sd": sd}
    return out


def labels(rows: Iterable[Row]) -> list[str]:
    """Policies in the order in which they first appear."""
    return list(dict.fromkeys(row["policy"] for row in rows))


def per_task(rows: Iterable[Row], policy: str, value: Callable[[Row], float | None]) -> PerTask:
    """Value of a policy on every task, averaged over seeds; rows without it are left out."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        number = value(row) if row["policy"] == policy else None
        if number is not None:
            found[row["task"]].append(number)
    return {task: float(np.mean(values)) for task, values in found.items()}


def _at(name: str, budget: int) -> Callable[[Row], float | None]:
    return lambda row: row[name].get(str(budget))


def summarise(rows: Sequence[Row], at: Sequence[int]) -> dict[str, Any]:
    """Per policy and budget, the paired differences, cost and calibration of each policy."""
    names = labels(rows)
    return {
        "policies": {p: {str(b): _cell(rows, p, b) for b in at} for p in names},
        "paired": [
            {"policy": p, "minus": q, "budget": b, **paired(rows, p, q, b)}
            for i, p in enumerate(names)
            for q in names[i + 1 :]
            for b in at
        ],
        "cost": {p: _cost(rows, p) for p in names},
        "calibration": {p: pooled_calibration(rows, p) for p in names},
    }


def _cell(rows: Sequence[Row], policy: str, budget: int) -> dict[str, Any]:
    """SR (mean and interval at the top level), the other rates, and the gap closed."""
    rate = interval([*per_task(rows, policy, _at("sr", budget)).values()])
    chance = float(np.mean([*per_task(rows, policy, _at("random", budget)).values()]))
    return {
        **rate,
        "random": chance,
        "gap_closed": gap_closed(rate["mean"], chance),
        **{
            name: interval([*per_task(rows, policy, _at(name, budget)).values()])
            for name in ("mass", "recall", "objects")
        },
    }


def paired(
    rows: Sequence[Row], policy: str, other: str, budget: int, name: str = "sr"
) -> dict[str, Any]:
    """A rate of one policy minus that of another on the same tasks."""
    return paired_by(rows, policy, other, _at(name, budget))


def paired_by(
    rows: Sequence[Row], policy: str, other: str, value: Callable[[Row], float | None]
) -> dict[str, Any]:
    """Differences of a value on the same tasks, with the p-value of Student's paired test."""
    from scipy.stats import t

    a, b = (per_task(rows, name, value) for name in (policy, other))
    gains = [a[task] - b[task] for task in a if task in b]
    counts = {
        "wins": sum(g > 0 for g in gains),
        "ties": sum(g == 0 for g in gains),
        "losses": sum(g < 0 for g in gains),
    }
    if not gains:
        return {"mean": None, "ci95": None, "sd": None, "n": 0, "p": None, **counts}
    found = interval(gains)
    p = None
    if found["sd"]:
        n = found["n"]
        p = 2 * float(t.sf(abs(found["mean"]) / found["sd"] * n**0.5, n - 1))
    return {**found, "p": p, **counts}


def trials(rows: Sequence[Row], policy: str, budget: int) -> dict[str, Any]:
    """SR of independent trials: the mean over tasks for each seed, then over the seeds."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["policy"] == policy and str(budget) in row["sr"]:
            found[row["seed"]].append(row["sr"][str(budget)])
    return interval([float(np.mean(values)) for values in found.values()])


def _cost(rows: Sequence[Row], policy: str) -> dict[str, float]:
    own = [row for row in rows if row["policy"] == policy]
    names = (
        "seconds_per_observation",
        "network_evaluations_per_observation",
        "updates_accepted",
        "updates_rolled_back",
    )
    means = {name: float(np.mean([row[name] for row in own])) for name in names}
    return {**means, "peak_rss_mb": float(max(row["peak_rss_mb"] for row in own))}


def pooled_calibration(rows: Iterable[Row], policy: str) -> dict[str, Any] | None:
    """Reliability curve and expected calibration error over all rows of a policy."""
    bins = [r["calibration"] for r in rows if r["policy"] == policy and r.get("calibration")]
    if not bins:
        return None
    count, forecast, hits = (
        np.sum([b[name] for b in bins], axis=0) for name in ("count", "forecast", "hits")
    )
    some = count > 0
    p, f = forecast[some] / count[some], hits[some] / count[some]
    curve = [
        {"forecast": float(x), "frequency": float(y), "count": int(n)}
        for x, y, n in zip(p, f, count[some], strict=True)
    ]
    return {"curve": curve, "error": float((count[some] / count.sum() * np.abs(p - f)).sum())}


def curve(rows: Sequence[Row], policy: str | None, last: int) -> NDArray[np.float64]:
    """(tasks, last) SR after 1, 2, ... measurements; of random search for ``None``."""
    budgets = np.arange(1, last + 1)
    found: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    for row in [step for whole in rows for step in whole.get("steps", [None, whole])[1:]]:
        if policy is None:
            hits = row["targets"] * budgets / row["cells"]
        elif row["policy"] == policy:
            hits = np.searchsorted(np.asarray(row["hits"]), budgets, side="right")
        else:
            continue
        found[row["task"]].append(hits / np.minimum(budgets, row["targets"]))
    return np.stack([np.mean(values, axis=0) for values in found.values()])


def plus_minus(cell: dict[str, Any], sign: str = "") -> str:
    """Mean and half the width of its interval."""
    if cell["mean"] is None:
        return "-"
    text = format(cell["mean"], f"{sign}.3f")
    if cell["ci95"] is not None:
        text += f" ±{(cell['ci95'][1] - cell['ci95'][0]) / 2:.3f}"
    return text


def rate_table(summary: dict[str, Any], at: Sequence[int]) -> Table:
    """SR with its interval, and the share of the gap to random search closed, per budget."""
    lines = [
        [policy, *(f"{plus_minus(cells[str(b)])} ({cells[str(b)]['gap_closed']:.0%})" for b in at)]
        for policy, cells in summary["policies"].items()
    ]
    chance = next(iter(summary["policies"].values()))
    lines.append(["(random, expected)", *(f"{chance[str(b)]['random']:.3f} (0%)" for b in at)])
    return ["policy", *(f"SR at {b} (gap closed)" for b in at)], lines


def cost_table(summary: dict[str, Any]) -> Table:
    """What a query costs, how many updates were kept, and how honest the forecasts are."""
    head = ["policy", "s/query", "evals/query", "peak MB", "updates", "kept", "calib. error"]
    lines = []
    for policy, cost in summary["cost"].items():
        calibration = summary["calibration"][policy]
        kept, dropped = cost["updates_accepted"], cost["updates_rolled_back"]
        lines.append(
            [
                policy,
                f"{cost['seconds_per_observation']:.4f}",
                f"{cost['network_evaluations_per_observation']:.2f}",
                f"{cost['peak_rss_mb']:.0f}",
                f"{kept + dropped:.1f}",
                f"{kept:.1f}",
                "-" if calibration is None else f"{calibration['error']:.3f}",
            ]
        )
    return head, lines


def paired_table(summary: dict[str, Any], at: Sequence[int]) -> Table:
    """SR of one policy minus that of another, paired over tasks, per budget."""
    head = ["difference of SR", *(f"at {b}" for b in at), f"+/=/- at {at[-1]}"]
    lines: dict[tuple[str, str], list[str]] = {}
    for pair in summary["paired"]:
        line = lines.setdefault((pair["policy"], pair["minus"]), [])
        line.append(plus_minus(pair, "+"))
        if pair["budget"] == at[-1]:
            line.append(f"{pair['wins']}/{pair['ties']}/{pair['losses']}")
    return head, [[f"{p} - {q}", *line] for (p, q), line in lines.items()]


def markdown(table: Table) -> str:
    """The same as a Markdown table."""
    head, lines = table
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def csv_text(table: Table) -> str:
    """The same as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([table[0], *table[1]])
    return buffer.getvalue()


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
}  # fmt: skip


def latex(table: Table, caption: str) -> str:
    """The same as a LaTeX table (booktabs); the first column holds words, the others figures."""
    head, lines = table
    body = [" & ".join(_tex(cell) for cell in line) + r" \\" for line in (head, *lines)]
    return "\n".join(
        [
            r"\begin{table}[ht]",
            rf"\caption{{{_tex(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
