"""How good the interval of "what is left" is, in searches with a known truth.

    python benchmarks/coverage.py [--suite balls] [--tasks 0:12] [--policy gp] [--prior NAME]
                                  [--budget 250] [--searches DIR] [--out FILE]

Prints (and writes) a Markdown table by stage of the search: nominal level, share of backtests
covered, mean width, mean interval score, the same of kriging alone, mean truth, mean expectation
and its mean absolute error; and the facts of the run. The interval score of [l, u] at level 1 - a,

    (u - l) + 2/a (l - N)+ + 2/a (N - u)+ ,

is proper: lowest on average for the true quantiles, so that neither a wide nor a bold interval
gains by it. Searches are read from DIR when they are there, and kept there. Suites: ``balls``;
``rare``, maps of 24 x 40 cells with few targets; ``scenes``, the procedural scenes of
``remaining_fit.py``, each with a budget of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np
from searches import SUITES, kept, memory_of, so_far_at

from engram._threads import set_threads
from engram.bench.provenance import commit
from engram.campaign.remaining import by_kriging, distribution, summary
from engram.policies import POLICIES

LEVELS = (0.8, 0.95)
MOMENTS = (20, 35, 50, 75, 100, 125, 150, 175, 200, 225, 250)
STAGES = ((20, 50), (50, 100), (100, 200), (200, 300))
"""Measurements from which and up to which a stage lasts."""

Row = dict[str, float]


def interval_score(low: float, high: float, truth: float, level: float) -> float:
    """Width, and 2 / (1 - level) for each target by which the interval misses the truth."""
    miss = max(low - truth, 0.0) + max(truth - high, 0.0)
    return high - low + 2 / (1 - level) * miss


def run_task(k: int, args: argparse.Namespace) -> list[Row]:
    """One backtest: at each moment and level, truth, interval and that of kriging alone."""
    search = kept(args.suite, k, args.policy, args.prior, budget=args.budget, folder=args.searches)
    rows = []
    for t in MOMENTS:
        if t not in search.chances:
            continue
        seen, truth = so_far_at(search, t)
        ours, plain = distribution(seen), by_kriging(seen)
        for level in LEVELS:
            row: Row = {"t": t, "level": level, "truth": truth}
            for name, masses in (("", ours), ("kriging_", plain)):
                left = summary(masses, level)
                row[name + "expected"] = left.expected
                row[name + "covered"] = left.low <= truth <= left.high
                row[name + "width"] = left.high - left.low
                row[name + "score"] = interval_score(left.low, left.high, truth, level)
            rows.append(row)
    return rows


def table(rows: list[Row]) -> str:
    """Coverage, width and score by stage and level."""
    lines = [
        "| measured | nominal | covered | mean width | interval score | kriging alone: covered "
        "| width | score | mean truth | mean expected | mean error |",
        "|" + " --- |" * 11,
    ]
    for first, last in (*STAGES, (0, 1000)):
        for level in LEVELS:
            some = [r for r in rows if r["level"] == level and first <= r["t"] < last]
            if not some:
                continue
            mean = {name: float(np.mean([r[name] for r in some])) for name in some[0]}
            error = np.mean([abs(r["truth"] - r["expected"]) for r in some])
            lines.append(
                f"| {stage_name(first, last)} | {level:.0%} | {mean['covered']:.0%} "
                f"| {mean['width']:.1f} | {mean['score']:.1f} | {mean['kriging_covered']:.0%} "
                f"| {mean['kriging_width']:.1f} | {mean['kriging_score']:.1f} "
                f"| {mean['truth']:.1f} | {mean['expected']:.1f} | {error:.1f} |"
            )
    return "\n".join(lines)


def stage_name(first: int, last: int) -> str:
    if not first:
        return "all"
    return f"{first} and more" if last == STAGES[-1][1] else f"{first} to {last - 1}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="balls", choices=SUITES)
    parser.add_argument("--tasks", default="0:12")
    parser.add_argument("--policy", default="gp", choices=sorted({*POLICIES, "auto"}))
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--budget", type=int, default=250)
    parser.add_argument("--searches", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    first, last = (int(v) for v in args.tasks.split(":"))
    rows = [row for k in range(first, last) for row in run_task(k, args)]
    text = f"{table(rows)}\n\n<!-- {json.dumps(facts(args))} -->\n"
    print(text)
    if args.out:
        args.out.write_text(text)


def facts(args: argparse.Namespace) -> dict[str, str | int]:
    """What made a table of backtests."""
    memory = memory_of(args.policy, args.prior)
    return {
        "commit": commit(),
        "policy": args.policy,
        "prior": args.prior if memory else "",
        "sha256": memory.card.sha256[:12] if memory else "",
        "suite": args.suite,
        "tasks": args.tasks,
        "budget": args.budget if args.suite != "scenes" else "",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
