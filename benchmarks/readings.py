"""Readings of the paper's Algorithms 1 and 2 beside each other, on the same measurements.

    python benchmarks/readings.py [--tasks 0:4] [--out FILE.json]

Ball tasks, memory ``digits``. A Gaussian process chooses 240 cells of every task; each reading is
told them, eight at a time, and forecasts before every eight (from the 24th on):

next : mean log-likelihood of the outcomes of the next eight
area : the same over all cells that are not measured yet
auc  : chance that an unmeasured target ranks above an unmeasured blank

What a reading's own search would have measured plays no part, so that forecasts can be told from
the rule that uses them.
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
from engram.memory.permanent import PermanentMemory

MEASURED, GROUP, FIRST = 240, 8, 24
H = {"m_steps": 20, "batch": 8, "rollback": False}
WARM = {"trajectory": "warm", "particles": 8}
DPS = {**WARM, "guidance": "dps", "steps": 8, "refresh_steps": 4}
MMPS = {**WARM, "guidance": "mmps", "steps": 6, "refresh_steps": 3}
FRESH = {"guidance": "dps", "steps": 8, "trajectory": "fresh", "particles": 8}

READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "DPS, fresh draws of 8 steps, no h": ("diffatd", FRESH),
    "DPS, warm, 4 steps, no h": ("diffatd", DPS),
    "MMPS, warm, 3 steps, no h": ("diffatd", MMPS),
    "MMPS, h from posterior samples": ("em-ptdm", {**MMPS, **H, "lesson": "posterior"}),
    "MMPS, h from measured pixels": ("em-ptdm", {**MMPS, **H, "lesson": "measured"}),
    "MMPS, h from samples measured anew": ("em-ptdm", {**MMPS, **H, "lesson": "joint"}),
    "MMPS, h from the memory's own draws": ("em-ptdm", {**MMPS, **H, "lesson": "prior"}),
    "MMPS, h told the first, asked the later": ("em-ptdm", {**MMPS, **H, "lesson": "prequential"}),
}


def forecasts(
    policy_name: str, options: dict[str, Any], memory: PermanentMemory, task: Task, seed: int = 0
) -> dict[str, float]:
    """Scores of one reading on one task."""
    path = simulate(make_policy("gp", task.grid, MEASURED, seed=seed), task).cells
    truth = task.outcomes.ravel() > 0
    policy = make_policy(
        policy_name, task.grid, 250, memory=memory, preset="paper", reward="affine", **options
    )
    kept: dict[str, list[float]] = {"next": [], "area": [], "auc": []}
    for start in range(0, MEASURED, GROUP):
        p = np.clip(policy.current_scores().probability, 0.01, 0.99)
        logs = np.where(truth, np.log(p), np.log(1 - p))
        group = path[start : start + GROUP]
        unmeasured = ~policy.observations.measured
        if start >= FIRST:
            kept["next"].append(float(np.mean([logs[task.grid.index(cell)] for cell in group])))
            kept["area"].append(float(logs[unmeasured].mean()))
            kept["auc"].append(float(roc_auc_score(truth[unmeasured], p[unmeasured])))
        policy.observe([task.measure(cell) for cell in group])
    means = {name: float(np.mean(values)) for name, values in kept.items()}
    return {**means, "evaluations": policy.log.evaluations / (MEASURED / GROUP)}


def table(rows: list[dict[str, Any]], tasks: tuple[int, int], version: str) -> str:
    """Means over tasks as Markdown, for the page that quotes it."""
    lines = [
        "| reading | next | area | auc | evaluations a forecast |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in READINGS:
        own = [row for row in rows if row["reading"] == name]
        cells = [f"{np.mean([row[k] for row in own]):.3f}" for k in ("next", "area", "auc")]
        evaluations = np.mean([row["evaluations"] for row in own])
        lines.append(f"| {name} | {' | '.join(cells)} | {evaluations:.0f} |")
    note = f"`python benchmarks/readings.py --tasks {tasks[0]}:{tasks[1]}` at {version}."
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:4")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    set_threads(1)
    first, end = (int(part) for part in options.tasks.split(":"))
    memory, rows = load_memory("digits"), []
    for number in range(first, end):
        for name, (policy, settings) in READINGS.items():
            scores = forecasts(policy, settings, memory, ball_task(number))
            rows.append({"reading": name, "task": number, **scores})
            print(json.dumps(rows[-1]), flush=True)
        if options.out:  # after every task: a run that is cut off leaves what it has
            result = {"commit": commit(), "machine": machine(), "rows": rows}
            options.out.write_text(json.dumps(result, indent=2) + "\n")
            done = (first, number + 1)
            options.out.with_suffix(".md").write_text(table(rows, done, result["commit"]))


if __name__ == "__main__":
    main()
