"""Does it do harm that h starts from habits that were learnt in searches which had such habits?

    python benchmarks/habits.py --searches DIR [--areas 40] [--out FILE.json]

The shipped hyperprior of h was fitted on searches whose h began with an older one, so which cells
it was fitted on depends on that one. Here the first areas of ``hyperprior_fit`` are searched twice,
with h as the shipped one was and without any (searches that are in DIR already are read), a
hyperprior is fitted on the searches of either kind, and both forecast outcomes in areas that
neither was fitted on, by parts of the areas in turn: each outcome from those before it, h learning
as the search goes on. Judged on searches of either kind, as each may favour its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hyperprior_fit import AREAS, Array, Lesson, Source, fitted, lesson, prequential

from engram._threads import set_threads
from engram.bench.provenance import commit, machine
from engram.bench.tables import interval
from engram.policies.hyperprior import usual
from engram.reproduction.verdicts import verdict

KINDS = {"with h": Source(), "without h": Source(h=False)}
"""Searches by what chose their cells."""
PARTS = 4
"""Every so many areas are held out at a time."""
SHIPPED = "as shipped"


def judged(lessons: dict[str, Sequence[Lesson]]) -> list[dict[str, Any]]:
    """A row for each area and kind of search: nats an outcome by no h and by h from each start."""
    rows = []
    shipped = usual()
    for part in range(PARTS):
        starts = {SHIPPED: (shipped.mean, shipped.covariance)}
        for kind, own in lessons.items():
            starts[kind] = fitted([one for k, one in enumerate(own) if k % PARTS != part])
        for kind, own in lessons.items():
            for area in range(part, len(own), PARTS):
                nats = {name: forecast(own[area], *start) for name, start in starts.items()}
                alone = prequential([own[area]], np.zeros_like(shipped.mean), None)
                rows.append({"searches": kind, "area": area, "no h": alone, **nats})
    return sorted(rows, key=lambda row: (row["searches"], row["area"]))


def forecast(one: Lesson, mean: Array, covariance: Array) -> float:
    """Nats an outcome of a search by h that starts from a hyperprior."""
    return prequential([one], mean, np.linalg.inv(covariance))


def table(rows: list[dict[str, Any]], note: str) -> str:
    """Means over areas as Markdown, and what habits from searches without h are worth beyond
    those from searches with it, paired."""
    with_h, without = KINDS
    names = ("no h", SHIPPED, with_h, without)
    heads = ("no h", "h as shipped", f"h from searches {with_h}", f"h from searches {without}")
    lines = [
        f"| forecast in searches | areas | {' | '.join(heads)} | last two, difference | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for kind in KINDS:
        own = [row for row in rows if row["searches"] == kind]
        means = [f"{np.mean([row[name] for row in own]):.4f}" for name in names]
        apart = interval([row[without] - row[with_h] for row in own])
        said = verdict(apart).removesuffix(" from")
        half = (apart["ci95"][1] - apart["ci95"][0]) / 2
        cells = [kind, str(len(own)), *means, f"{apart['mean']:+.4f} ±{half:.4f}", said]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=Path, required=True)
    parser.add_argument("--areas", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/habits.json"))
    args = parser.parse_args()
    set_threads(1)
    jobs = [
        (kind, source, series, k)
        for series, k in AREAS[: args.areas]
        for kind, source in KINDS.items()
    ]
    lessons: dict[str, list[Lesson]] = {kind: [] for kind in KINDS}
    searched = set[str]()
    for kind, source, series, k in jobs:
        found, made_at = lesson((source, series, k, args.searches))
        lessons[kind].append(found)
        searched.add(made_at)
        print(f"{kind}: {series} {k}", flush=True)
    rows = judged({**lessons})
    about = {"commit": commit(), "searched": sorted(searched), "machine": machine()}
    args.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    note = (
        "Mean log-likelihood of an outcome before it was seen, in nats; ± is half of the 95 % "
        f"interval over areas, none of which the hyperprior that forecasts in it was fitted on but "
        f"for the shipped one, which was fitted on them all (`python benchmarks/habits.py --areas "
        f"{args.areas}` at {about['commit']})."
    )
    args.out.with_suffix(".md").write_text(table(rows, note))


if __name__ == "__main__":
    main()
