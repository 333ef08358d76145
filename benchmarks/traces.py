"""Traces of every policy, to compare two versions of the code cell by cell.

    python benchmarks/traces.py --out FILE [--data DIR] [--suites balls,overhead,species]
        [--policies A,B,...] [--budget N] [--tasks 0:4]      # keep the traces of this version
    python benchmarks/traces.py --compare BEFORE AFTER        # which of them are not the same

Run it with the source of either version (PYTHONPATH). A trace is kept with the cells in order,
forecasts and evidence of each; traces that are kept already are not made again. ``--data`` is a
folder with overhead/ and species/; without it these suites are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from engram._threads import set_threads
from engram._writing import write_file
from engram.bench.provenance import commit
from engram.bench.suites import SUITES
from engram.policies.spec import parse_policies

POLICIES = "random,spread,gp,greedy,diffatd,em-ptdm,auto"
DATA: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "balls": ((), {}, "digits"),
    "overhead": (("overhead/overhead_tiles.npz",), {"target": "ship"}, "natural"),
    "species": (
        ("species/feederwatch_2021.csv.gz",),
        {"species": "Poecile atricapillus"},
        "species",
    ),
}
"""Suite -> files, settings, memory."""


def traced(suite: str, policy: str, k: int, budget: int, data: Path | None) -> dict[str, Any]:
    """One search: what was measured, and what was forecast before."""
    from engram import simulate

    files, settings, prior = DATA[suite]
    paths = [] if data is None else [data / name for name in files]
    task = SUITES.find(suite).tasks(paths, settings).task(k)
    choice = parse_policies(policy, preset="default", prior=prior)[0]
    began = time.process_time()
    trace = simulate(choice.build(task, budget, seed=k), task)
    return {
        "cells": [task.grid.index(cell) for cell in trace.cells],
        "forecast": trace.forecast,
        "evidence": trace.evidence,
        "seconds": round(time.process_time() - began, 2),
    }


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print what both versions have searched; the number of searches that differ."""
    both = sorted(before["traces"].keys() & after["traces"].keys())
    differing = 0
    for name in both:
        old, new = before["traces"][name], after["traces"][name]
        same = old["cells"] == new["cells"]
        off = np.abs(np.subtract(old["forecast"], new["forecast"])).max() if same else np.nan
        differing += not same
        first = next(
            (
                i
                for i, pair in enumerate(zip(old["cells"], new["cells"], strict=True))
                if pair[0] != pair[1]
            ),
            None,
        )
        words = f"same cells, forecasts within {off:.1e}" if same else f"differs from {first} on"
        print(
            f"{name}: {len(new['cells'])} measurements, {words}; "
            f"{old['seconds']:.1f} s before, {new['seconds']:.1f} s after"
        )
    print(
        f"{before['commit'][:7]} and {after['commit'][:7]}: {len(both)} searches, "
        f"{differing} differ"
    )
    return differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--suites", default="balls,overhead,species")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--tasks", default="0:2")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    args = parser.parse_args()
    if args.compare:
        before, after = (json.loads(path.read_text()) for path in args.compare)
        raise SystemExit(compare(before, after) > 0)
    set_threads(1)
    kept: dict[str, Any] = {"commit": commit(), "traces": {}}
    if args.out.exists():
        kept = json.loads(args.out.read_text())
    first, last = (int(v) for v in args.tasks.split(":"))
    for suite in args.suites.split(","):
        if DATA[suite][0] and args.data is None:
            continue
        for k in range(first, last):
            for choice in parse_policies(args.policies, preset="default", prior=DATA[suite][2]):
                name = f"{suite} {k} {choice.label} {args.budget}"
                if name not in kept["traces"]:
                    found = traced(suite, choice.label, k, args.budget, args.data)
                    kept["traces"][name] = found
                    write_file(args.out, json.dumps(kept))
                    print(f"{name}: {found['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
