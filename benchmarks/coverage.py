"""How often the interval of "what is left" covers the truth, on ball-task backtests.

    python benchmarks/coverage.py [--tasks 0:12] [--policy gp] [--prior NAME] [--budget 200]
                                  [--at 50,100,150,200] [--out FILE]

Prints (and writes) a Markdown table: nominal level, share of backtests covered, mean width,
mean error of the expectation; and the facts of the run.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np

from engram import __version__
from engram._threads import set_threads
from engram.campaign.remaining import remaining
from engram.policies import POLICIES, make_policy
from engram.tasks.balls import ball_task

LEVELS = (0.8, 0.95)


def run_task(k: int, args: argparse.Namespace, moments: list[int]) -> list[dict[str, float]]:
    """One backtest: at each moment, truth and interval at every level."""
    task = ball_task(k)
    memory = None
    if POLICIES[args.policy].needs_memory:
        from engram.memory.library import load_memory

        memory = load_memory(args.prior)
    policy = make_policy(args.policy, task.grid, args.budget, seed=k, memory=memory)
    rows = []
    for t in range(1, args.budget + 1):
        policy.observe(task.measure(policy.suggest()[0].cell))
        if t not in moments:
            continue
        seen = policy.observations
        hits = (seen.outcomes > 0).astype(float)
        cells = np.array([task.grid.index(cell) for cell in seen.cells], np.intp)
        truth = task.targets - int(hits.sum())
        searchable = seen.available
        for level in LEVELS:
            left = remaining(task.grid, searchable, cells, hits, level=level)
            rows.append({"task": k, "t": t, "truth": truth, **left.to_dict()})
    return rows


def table(rows: list[dict[str, float]], moments: list[int]) -> str:
    """Coverage by moment and level."""
    lines = [
        "| measured | nominal | covered | mean width | mean truth | mean expected |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for t in [*moments, 0]:
        for level in LEVELS:
            some = [r for r in rows if r["level"] == level and t in (0, r["t"])]
            inside = np.mean([r["low"] <= r["truth"] <= r["high"] for r in some])
            width = np.mean([r["high"] - r["low"] for r in some])
            truth, expected = (np.mean([r[name] for r in some]) for name in ("truth", "expected"))
            label = str(t) if t else "all"
            lines.append(
                f"| {label} | {level:.0%} | {inside:.0%} | {width:.1f} | {truth:.1f} "
                f"| {expected:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:12")
    parser.add_argument("--policy", default="gp", choices=sorted(POLICIES))
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--at", default="50,100,150,200")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    first, last = (int(v) for v in args.tasks.split(":"))
    moments = [int(v) for v in args.at.split(",")]
    rows = [row for k in range(first, last) for row in run_task(k, args, moments)]
    facts = {
        "engram": __version__,
        "policy": args.policy,
        "prior": args.prior if POLICIES[args.policy].needs_memory else "",
        "tasks": args.tasks,
        "budget": args.budget,
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    text = f"{table(rows, moments)}\n\n<!-- {json.dumps(facts)} -->\n"
    print(text)
    if args.out:
        args.out.write_text(text)
        args.out.with_suffix(".json").write_text(json.dumps({"facts": facts, "rows": rows}))


if __name__ == "__main__":
    main()
