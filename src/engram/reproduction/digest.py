"""The small file kept of an experiment: who made it, how, the statistics and what they are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from engram.bench.tables import interval, labels, paired, paired_by, per_task, summarise, trials
from engram.bench.units import Row
from engram.reproduction.experiments import Experiment
from engram.reproduction.kept import kept_rows

FORMAT = "engram-paper-1"
DISTANCES = ("forecast", "forecast_targets", "image", "image_targets")
APART = 100_000
"""Added to task numbers of each further part when parts are pooled."""

Results = dict[str, Any]


def digest(experiment: Experiment, results: Mapping[str, Results], *, quick: bool) -> Results:
    """Statistics of every part (and of all tasks together, where that is asked for)."""
    first = next(iter(results.values()))
    parts = {
        name: _part(experiment, found["rows"], found["options"]["at"], found)
        for name, found in results.items()
    }
    if experiment.pool and len(results) > 1:
        at = [
            b
            for b in first["options"]["at"]
            if all(b in r["options"]["at"] for r in results.values())
        ]
        parts[experiment.pool] = _part(experiment, pooled_rows(results), at, None)
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "quick": quick,
        "commit": first["commit"],
        "version": first["version"],
        "machine": first["machine"],
        "complete": all(found["complete"] for found in results.values()),
        "parts": parts,
    }


def pooled_rows(results: Mapping[str, Results]) -> list[Row]:
    """Rows of all parts, tasks numbered apart."""
    return [
        {**row, "task": row["task"] + APART * i}
        for i, found in enumerate(results.values())
        for row in found["rows"]
    ]


def _part(
    experiment: Experiment, rows: Sequence[Row], at: Sequence[int], found: Results | None
) -> Results:
    summary = summarise(rows, at)
    rates = {
        policy: {b: _cell(cell) for b, cell in cells.items()}
        for policy, cells in summary["policies"].items()
    }
    out: Results = {
        "options": None if found is None else _options(found["options"]),
        "seen": {} if found is None else _seen(found),
        "at": list(at),
        "tasks": len({row["task"] for row in rows}),
        "unit": "sequence" if "steps" in rows[0] else "task",
        "rates": rates,
        "paired": _pairs(experiment, rows, at),
        "cost": summary["cost"],
        "calibration_error": {
            policy: None if pooled is None else pooled["error"]
            for policy, pooled in summary["calibration"].items()
        },
    }
    for view, more in VIEWS.items():
        if view in experiment.views:
            out[view] = more(experiment, rows, at)
    small: Results = rounded(out)
    if found is not None:  # the rows of all parts together are theirs
        small["complete"] = found["complete"]
        small["rows"] = kept_rows(rows)
    return small


def _cell(cell: Results) -> Results:
    small = {k: cell[k] for k in ("mean", "ci95", "sd", "n", "random", "gap_closed")}
    return {**small, **{k: cell[k]["mean"] for k in ("recall", "mass", "objects")}}


def _options(options: Results) -> Results:
    """Options with memories by name; a file made for the run loses its folder."""
    memories = {PurePath(name).stem: sha for name, sha in options["memories"].items()}
    return {**options, "memories": memories}


def _seen(found: Results) -> Results:
    """What the memories have seen, by the names of ``_options``."""
    return {PurePath(name).stem: text for name, text in found.get("seen", {}).items()}


def shown_pairs(experiment: Experiment, present: Sequence[str]) -> list[tuple[str, str]]:
    """The differences an experiment is about: the lead against the others, and its own pairs."""
    leads = [(experiment.lead, other) for other in present if other != experiment.lead]
    return [
        (policy, minus)
        for policy, minus in dict.fromkeys([*leads, *experiment.pairs])
        if policy in present and minus in present
    ]


def _pairs(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> list[Results]:
    return [
        {"policy": p, "minus": q, "budget": b, **paired(rows, p, q, b)}
        for p, q in shown_pairs(experiment, labels(rows))
        for b in at
    ]


def _objects(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> Results:
    """Separate targets touched at the largest budget: how many there are, and differences."""
    in_task = per_task(rows, rows[0]["policy"], lambda row: row["objects_in_task"])
    return {
        "in_task": float(np.mean([*in_task.values()])),
        "found": {
            policy: interval(
                [*per_task(rows, policy, lambda row: row["objects"][str(at[-1])]).values()]
            )
            for policy in labels(rows)
        },
        "paired": [
            {"policy": p, "minus": q, **paired(rows, p, q, at[-1], "objects")}
            for p, q in shown_pairs(experiment, labels(rows))
        ],
    }


def curve_mean(name: str) -> Callable[[Row], float | None]:
    """Row -> mean over the search of a distance to the truth; None where it has none."""

    def value(row: Row) -> float | None:
        curve = (row.get("l2") or {}).get(name)
        return float(np.mean(curve)) if curve else None

    return value


def _distances(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> Results:
    """Distances to the truth, averaged over the search, per policy and paired."""
    found: dict[str, Results] = {}
    for policy in labels(rows):
        means = {n: [*per_task(rows, policy, curve_mean(n)).values()] for n in DISTANCES}
        found[policy] = {name: interval(values) for name, values in means.items() if values}
    pairs = [
        {"policy": p, "minus": q, "distance": name, **paired_by(rows, p, q, curve_mean(name))}
        for p, q in shown_pairs(experiment, labels(rows))
        for name in DISTANCES
        if name in found[p] and name in found[q]
    ]
    return {"means": found, "paired": pairs}


def _positions(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> Results:
    """SR at the largest budget of the first, second, ... task of the sequences."""
    return {
        policy: [
            interval([row["steps"][i]["sr"][str(at[-1])] for row in own])
            for i in range(len(own[0]["steps"]))
        ]
        for policy in labels(rows)
        if (own := [row for row in rows if row["policy"] == policy])
    }


def _trials(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> Results:
    return {p: {str(b): trials(rows, p, b) for b in at} for p in labels(rows)}


def _evidence(experiment: Experiment, rows: Sequence[Row], at: Sequence[int]) -> Results:
    return {
        policy: interval([*per_task(rows, policy, lambda row: row["evidence_mean"]).values()])
        for policy in labels(rows)
    }


VIEWS: dict[str, Callable[[Experiment, Sequence[Row], Sequence[int]], Results]] = {
    "objects": _objects,
    "distances": _distances,
    "positions": _positions,
    "trials": _trials,
    "evidence": _evidence,
}


def rounded(value: Any) -> Any:
    """The same with four digits after the point (two significant ones below that)."""
    if isinstance(value, float):
        return round(value, 4) if abs(value) >= 1e-3 else float(f"{value:.2g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value
