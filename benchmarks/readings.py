"""Readings of the paper's Algorithms 1 and 2 beside each other, on the same measurements.

    python benchmarks/readings.py [--tasks 0:6] [--out FILE.json]

Ball tasks, memory ``digits``. A Gaussian process chooses 120 cells of every task; each reading is
told them, h learns after 60 and 120 of them, and what is then believed of all other cells is
compared with the truth:

area   : mean log-likelihood of the outcomes of all cells that are not measured
auc    : chance that an unmeasured target ranks above an unmeasured blank
share  : mean probability of target there, less the true share
spread : mean of Eq. 9 there, by which the paper explores; P squared at most while samples keep to
         the range

What a reading's own search would have measured plays no part, so that forecasts can be told from
the rule that uses them. Differences are paired over tasks, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from engram import Task, ball_task, load_memory, make_policy, simulate
from engram._threads import set_threads
from engram.bench.provenance import commit, machine
from engram.bench.tables import interval
from engram.memory.permanent import PermanentMemory

EVERY, MEASURED = 60, 120
H = {"schedule": "uniform", "every": EVERY, "m_steps": 20}
TOLD = {"guidance": "amortised", "particles": 8, "steps": 8, "refresh_steps": 2}
MMPS = {"guidance": "mmps", "particles": 8, "steps": 6, "refresh_steps": 3}
NO_H = "no h"

READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    NO_H: ("diffatd", TOLD),
    "h from posterior samples": ("em-ptdm", {**TOLD, **H, "lesson": "posterior"}),
    "h from measured pixels": ("em-ptdm", {**TOLD, **H, "lesson": "measured"}),
    "h from samples measured anew": ("em-ptdm", {**TOLD, **H, "lesson": "joint"}),
    "h from the memory's own draws": ("em-ptdm", {**TOLD, **H, "lesson": "prior"}),
    "h told the first, asked the later": ("em-ptdm", {**TOLD, **H, "lesson": "prequential"}),
    "h in hindsight": ("em-ptdm", {**TOLD, **H, "lesson": "hindsight"}),
    "h in hindsight, imagined pixels in full": (
        "em-ptdm",
        {**TOLD, **H, "lesson": "hindsight", "imagined": 1.0},
    ),
    "h in hindsight, imagined pixels not at all": (
        "em-ptdm",
        {**TOLD, **H, "lesson": "hindsight", "imagined": 0.0},
    ),
    "MMPS, no h": ("diffatd", MMPS),
    "MMPS, h in hindsight": ("em-ptdm", {**MMPS, **H, "lesson": "hindsight"}),
}
SCORES = ("area", "auc", "share", "spread")


def beliefs(
    policy_name: str,
    options: dict[str, Any],
    memory: PermanentMemory,
    task: Task,
    path: list[tuple[int, int]],
) -> dict[str, float]:
    """Scores of one reading on one task."""
    policy = make_policy(
        policy_name, task.grid, 250, memory=memory, preset="paper", reward="affine", **options
    )
    for end in range(EVERY, MEASURED + 1, EVERY):
        policy.observe([task.measure(cell) for cell in path[end - EVERY : end - 1]])
        policy.current_scores()  # h learns from samples that were drawn
        policy.observe(task.measure(path[end - 1]))
    scores, rest = policy.current_scores(), ~policy.observations.measured
    truth = task.outcomes.ravel()[rest] > 0
    p = np.clip(scores.probability[rest], 0.02, 0.98)
    return {
        "area": float(np.where(truth, np.log(p), np.log(1 - p)).mean()),
        "auc": float(roc_auc_score(truth, p)),
        "share": float(p.mean() - truth.mean()),
        "spread": float(scores.exploration[rest].mean()),
    }


def table(rows: list[dict[str, Any]], command: str) -> str:
    """Means over tasks and differences to the memory alone, for the page that quotes it."""
    lines = [
        f"| reading | {' | '.join(SCORES)} | area, less that of no h |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    by = {name: [row for row in rows if row["reading"] == name] for name in READINGS}
    for name, own in by.items():
        cells = [f"{np.mean([row[k] for row in own]):.3f}" for k in SCORES]
        base = by["MMPS, no h" if name.startswith("MMPS") else NO_H]
        gains = [a["area"] - b["area"] for a, b in zip(own, base, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} | {_said(gains) if any(gains) else ''} |")
    return "\n".join([*lines, "", command]) + "\n"


def _said(gains: list[float]) -> str:
    found = interval(gains)
    half = "" if found["ci95"] is None else f" ±{found['ci95'][1] - found['mean']:.3f}"
    return f"{found['mean']:+.3f}{half}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:6")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    set_threads(1)
    first, end = (int(part) for part in options.tasks.split(":"))
    memory, rows = load_memory("digits"), []
    for number in range(first, end):
        task = ball_task(number)
        path = simulate(make_policy("gp", task.grid, MEASURED), task).cells
        for name, (policy, settings) in READINGS.items():
            scores = beliefs(policy, settings, memory, task, path)
            rows.append({"reading": name, "task": number, **scores})
            print(json.dumps(rows[-1]), flush=True)
        if options.out:  # after every task: a run that is cut off leaves what it has
            result = {"commit": commit(), "machine": machine(), "rows": rows}
            options.out.write_text(json.dumps(result, indent=2) + "\n")
            said = f"`python benchmarks/readings.py --tasks {first}:{number + 1}` at {commit()}."
            options.out.with_suffix(".md").write_text(table(rows, said))


if __name__ == "__main__":
    main()
