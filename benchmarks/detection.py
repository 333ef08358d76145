"""Searches whose visits may miss a target: what it is worth to know how often.

    python benchmarks/detection.py --searches DIR [--tasks 0:8] [--detection 0.7] [--budget 250]
                                   [--only-kept] [--searched COMMIT] [--out FILE]

Ball tasks in which a visit finds a target that is there with a chance below 1, searched by em-ptdm
that is told the chance, that takes blanks for truth and that learns it, and by the process that is
told it and that learns it. Prints (and writes, as Markdown and JSON) success rates, revisits, the
calibration of the forecasts against what cells hold, and how often the interval of what is left
holds the truth, how wide it is, and its interval score (smaller is better). Searches are kept in
DIR; with ``--only-kept`` nothing is run.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
from include_results import in_words
from searches import Search, kept, so_far_at

from engram._threads import set_threads
from engram.bench.provenance import commit
from engram.bench.tables import interval
from engram.campaign.remaining import distribution, summary
from engram.metrics import calibration

PLANS: tuple[tuple[str, str, float | str | None], ...] = (
    ("em-ptdm", "auto", None),
    ("em-ptdm[detection=1]", "auto", 1.0),
    ("gp", "gp", None),
    ("em-ptdm[detection=learn]", "auto", "learn"),
    ("gp[detection=learn]", "gp", "learn"),
)
"""Label, policy and what it is told (None: the chance)."""
PRIOR = "universal"
LEVELS = (0.8, 0.95)
MOMENTS = (50, 75, 100, 125, 150, 175, 200, 225, 250)


def row_of(label: str, k: int, search: Search, at: tuple[int, ...]) -> dict[str, Any]:
    """Figures of one search."""
    finds = _finds(search)
    targets = int(search.truth.sum())
    left = [{"t": t, **_left(search, t)} for t in MOMENTS if t in search.chances]
    return {
        "policy": label,
        "task": k,
        "targets": targets,
        "sr": {str(b): float(finds[:b].sum() / min(b, targets)) for b in at},
        "revisits": len(search.cells) - len(np.unique(search.cells)),
        "forecast": [round(float(p), 4) for p in search.forecast],
        "held": [int(v) for v in search.truth[search.cells]],
        "left": left,
        "believed": {str(t): round(d, 3) for t, d in search.believed.items() if t in MOMENTS},
    }


def _finds(search: Search) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(B,) 1 for a visit that was the first to find a target."""
    out = np.zeros(len(search.cells))
    known: set[int] = set()
    for i, (cell, hit) in enumerate(zip(search.cells.tolist(), search.hits, strict=True)):
        if hit and cell not in known:
            out[i] = 1
            known.add(cell)
    return out


def _left(search: Search, t: int) -> dict[str, float]:
    seen, truth = so_far_at(search, t)
    masses = distribution(seen)
    row: dict[str, float] = {"truth": truth}
    for level in LEVELS:
        rest = summary(masses, level)
        width, outside = rest.high - rest.low, max(rest.low - truth, truth - rest.high, 0)
        row |= {"expected": rest.expected, f"width{level:g}": width}
        row[f"covered{level:g}"] = float(outside == 0)
        row[f"score{level:g}"] = width + 2 / (1 - level) * outside
    return row


def table(rows: list[dict[str, Any]], at: tuple[int, ...]) -> str:
    """Means over the tasks that each policy has searched; their number stands beside."""
    names = [label for label, _, _ in PLANS if any(r["policy"] == label for r in rows)]
    head = [
        *("policy", "tasks", *(f"SR at {b}" for b in at), "revisits", "calib. error"),
        *("left: 80 % holds", "width", "score", "95 % holds", "width", "score"),
        *("truth", "expected"),
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name in names:
        own = [r for r in rows if r["policy"] == name]
        rates = [interval([r["sr"][str(b)] for r in own]) for b in at]
        shown = [
            f"{x['mean']:.3f}" + (f" ±{x['ci95'][1] - x['mean']:.3f}" if x["ci95"] else "")
            for x in rates
        ]
        p, held = (
            np.concatenate([np.array(r[n], float) for r in own]) for n in ("forecast", "held")
        )
        left = [one for r in own for one in r["left"]]
        mean = {n: float(np.mean([one[n] for one in left])) for n in left[0]}
        lines.append(
            f"| {name} | {len(own)} | {' | '.join(shown)} "
            f"| {np.mean([r['revisits'] for r in own]):.0f} | {calibration(p, held)[1]:.3f} "
            + "".join(
                f"| {mean[f'covered{level:g}']:.0%} | {mean[f'width{level:g}']:.0f} "
                f"| {mean[f'score{level:g}']:.0f} "
                for level in LEVELS
            )
            + f"| {mean['truth']:.0f} | {mean['expected']:.0f} |"
        )
    return "\n".join(lines)


def paired(rows: list[dict[str, Any]], at: tuple[int, ...]) -> str:
    """Differences of SR of em-ptdm that is told the chance, paired over tasks, in words."""
    first = PLANS[0][0]
    there = [name for name, _, _ in PLANS[1:] if any(row["policy"] == name for row in rows)]
    lines = [f"* {first} - {name}: {in_words(rows, list(at), first, name)}" for name in there]
    return "\n".join(["SR, paired over tasks:", "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:8")
    parser.add_argument("--detection", type=float, default=0.7)
    parser.add_argument("--budget", type=int, default=250)
    parser.add_argument("--searches", type=Path, required=True)
    parser.add_argument("--only-kept", action="store_true")
    parser.add_argument("--searched", help="commit of the searches kept", default="")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    at = tuple(b for b in (150, 200, 250) if b <= args.budget) or (args.budget,)
    first, last = (int(v) for v in args.tasks.split(":"))
    rows = []
    for k in range(first, last):
        for label, policy, told in PLANS:
            label_of = PRIOR if policy == "auto" else "none"
            said = args.detection if told is None else told
            name = f"balls-{policy}-{label_of}-d{args.detection:g}-{said}-{k}.npz"
            if args.only_kept and not (args.searches / name).exists():
                continue
            search = kept(
                "balls",
                k,
                policy,
                PRIOR,
                budget=args.budget,
                folder=args.searches,
                detection=args.detection,
                told=told,
            )
            rows.append(row_of(label, k, search, at))
    facts = {
        "commit": commit(),
        "searched": args.searched or commit(),
        "suite": "balls",
        "detection": args.detection,
        "budget": args.budget,
        "prior": PRIOR,
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    text = f"{table(rows, at)}\n\n{paired(rows, at)}\n\n<!-- {json.dumps(facts)} -->\n"
    print(text)
    if args.out:
        args.out.write_text(text)
        head = f'{{"format": "engram-detection-1", "facts": {json.dumps(facts)}, "rows": ['
        lines = ",\n".join(json.dumps(row) for row in rows)
        args.out.with_suffix(".json").write_text(f"{head}\n{lines}\n]}}\n")


if __name__ == "__main__":
    main()
