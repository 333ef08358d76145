"""How often the interval of "what is left" covers the truth, in searches with a known truth.

    python benchmarks/coverage.py [--suite balls] [--tasks 0:12] [--policy gp] [--prior NAME]
                                  [--budget 200] [--at 20,50,100,150,200] [--searches DIR]
                                  [--out FILE]

Prints (and writes) a Markdown table: nominal level, share of backtests covered, mean width,
mean truth, mean expectation and its mean absolute error; and the facts of the run. Searches are
read from DIR when they are there, and kept there. Suite ``scenes``: the procedural scenes of
``remaining_fit.py``, each with a budget of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np
from searches import MOMENTS, evidence_at, kept, memory_of

from engram import __version__
from engram._threads import set_threads
from engram.campaign.remaining import remaining
from engram.policies import POLICIES

LEVELS = (0.8, 0.95)


def run_task(k: int, args: argparse.Namespace, moments: list[int]) -> list[dict[str, float]]:
    """One backtest: at each moment, truth and interval at every level."""
    search = kept(args.suite, k, args.policy, args.prior, budget=args.budget, folder=args.searches)
    rows = []
    for t in moments:
        if t not in search.chances:
            continue
        seen, truth = evidence_at(search, t)
        for level in LEVELS:
            left = remaining(seen, level=level)
            rows.append({"task": k, "t": t, "truth": truth, **left.to_dict()})
    return rows


def table(rows: list[dict[str, float]], moments: list[int]) -> str:
    """Coverage by moment and level."""
    lines = [
        "| measured | nominal | covered | mean width | mean truth | mean expected | mean error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for t in [*moments, 0]:
        for level in LEVELS:
            some = [r for r in rows if r["level"] == level and t in (0, r["t"])]
            if not some:
                continue
            low, high, truth, expected = (
                np.array([r[name] for r in some]) for name in ("low", "high", "truth", "expected")
            )
            inside = ((low <= truth) & (truth <= high)).mean()
            lines.append(
                f"| {t or 'all'} | {level:.0%} | {inside:.0%} | {(high - low).mean():.1f} "
                f"| {truth.mean():.1f} | {expected.mean():.1f} "
                f"| {np.abs(truth - expected).mean():.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="balls", choices=("balls", "scenes"))
    parser.add_argument("--tasks", default="0:12")
    parser.add_argument("--policy", default="gp", choices=sorted(POLICIES))
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--at", default="20,50,100,150,200")
    parser.add_argument("--searches", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    first, last = (int(v) for v in args.tasks.split(":"))
    moments = [int(v) for v in args.at.split(",")]
    if unknown := set(moments) - set(MOMENTS):
        parser.error(f"--at {sorted(unknown)}: choose among {', '.join(map(str, MOMENTS))}")
    rows = [row for k in range(first, last) for row in run_task(k, args, moments)]
    memory = memory_of(args.policy, args.prior)
    facts = {
        "engram": __version__,
        "policy": args.policy,
        "prior": args.prior if memory else "",
        "sha256": memory.card.sha256[:12] if memory else "",
        "suite": args.suite,
        "tasks": args.tasks,
        "budget": args.budget if args.suite == "balls" else "",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    text = f"{table(rows, moments)}\n\n<!-- {json.dumps(facts)} -->\n"
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
