"""How often the advice to stop is wrong, in searches with a known truth that went on.

    python benchmarks/stopping.py [--suite rare] [--tasks 0:24] [--policy auto] [--prior NAME]
                                  [--budget 200] [--yields 0.02,0.05,0.1] [--searches DIR]
                                  [--out FILE]

A search is asked for advice every few measurements, as ``status`` gives it. At the first Stop it
is seen what the measurements left did find: the advice was wrong if that was worth going on for
(at least the yield times the measurements left). Beside it stands the rule of the next ten alone
(stop when the policy's corrected chances of the ten likeliest cells promise less than the yield).
Prints (and writes) a Markdown table and the facts of the run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from coverage import facts
from searches import MOMENTS, SUITES, Search, kept, so_far_at

from engram._threads import set_threads
from engram.campaign.advice import advise, looked_at
from engram.campaign.prospect import likeliest, prospect
from engram.campaign.remaining import SearchSoFar, distribution
from engram.campaign.status import NEXT
from engram.policies import POLICIES

Rule = Callable[[float], bool]
"""Yield -> whether to stop."""


def by_status(seen: SearchSoFar, left: int) -> Rule:
    """The advice of ``status`` with so many measurements left."""
    masses = distribution(seen)
    rest, soon = (prospect(seen, masses, n) for n in (left, min(left, NEXT)))
    share = looked_at(seen.grid, seen.cells, seen.searchable)
    return lambda least: advise(rest, soon, least, share).stop


def by_next_ten(seen: SearchSoFar, left: int) -> Rule:
    """Stop when the next ten promise less than the yield."""
    promise = float(likeliest(seen)[: min(left, NEXT)].mean())
    return lambda least: promise < least


RULES = {"status": by_status, "next ten alone": by_next_ten}


def first_stops(search: Search, name: str, yields: list[float]) -> dict[float, int]:
    """Measurements made when Stop is advised for the first time, for the yields where it is."""
    budget, stops = len(search.cells), {}
    for t in (t for t in MOMENTS if 0 < t < budget):
        rule = RULES[name](so_far_at(search, t)[0], budget - t)
        stops |= {least: t for least in yields if least not in stops and rule(least)}
    return stops


def line(searches: list[Search], stops: list[int | None], name: str, least: float) -> str:
    """One row of the table."""
    stopped = [(s, t) for s, t in zip(searches, stops, strict=True) if t is not None]
    missed = [int(s.hits[t:].sum()) for s, t in stopped]
    wrong = sum(m >= least * (len(s.cells) - t) for m, (s, t) in zip(missed, stopped, strict=True))
    right = len(stopped) - wrong
    possible = sum(could_stop(s, least) for s in searches)
    found = sum(int(s.hits.sum()) for s in searches)
    spared = sum(len(s.cells) - t for s, t in stopped) / sum(len(s.cells) for s in searches)
    when = f"{np.mean([t for _, t in stopped]):.0f}" if stopped else "-"
    return (
        f"| {name} | {least:g} | {len(stopped)} of {len(searches)} | {wrong} "
        f"| {right} of {possible} | {when} | {spared:.0%} | {sum(missed) / found:.1%} |"
    )


def could_stop(search: Search, least: float) -> bool:
    """Whether, with hindsight, there was a moment to stop."""
    left = np.arange(len(search.hits), 0, -1)
    to_come = np.cumsum(search.hits[::-1])[::-1]
    return bool((to_come < least * left)[1:].any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="rare", choices=SUITES)
    parser.add_argument("--tasks", default="0:24")
    parser.add_argument("--policy", default="auto", choices=sorted({*POLICIES, "auto"}))
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--yields", default="0.02,0.05,0.1")
    parser.add_argument("--searches", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    first, last = (int(v) for v in args.tasks.split(":"))
    searches = [
        kept(args.suite, k, args.policy, args.prior, budget=args.budget, folder=args.searches)
        for k in range(first, last)
    ]
    lines = [
        "| rule | yield | stopped | wrongly | rightly, of possible | at measurement "
        "| measurements spared | finds missed |",
        "|" + " --- |" * 8,
    ]
    yields = [float(v) for v in args.yields.split(",")]
    for name in RULES:
        stops = [first_stops(search, name, yields) for search in searches]
        lines += [line(searches, [s.get(y) for s in stops], name, y) for y in yields]
    text = "\n".join(lines) + f"\n\n<!-- {json.dumps(facts(args))} -->\n"
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
