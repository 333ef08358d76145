"""Theorems 1 and 2 as they can be checked: evidence with and without h, task by task.

    python benchmarks/evidence.py [--out FILE.md]

Reads rows that are kept (``evidence_of``, ``updates``); searches nothing. Theorem 1 says that an
update does not lower the evidence of the measurements it learns from; Theorem 2 that what is
forecast improves with it. The first is counted over all updates. The second is judged by outcomes
that h had not seen: the mean log-likelihood, in nats, of each outcome before it was measured, by
the permanent memory alone and after h, in the same search and thus of the same measurements.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engram.bench.tables import interval, plus_minus
from engram.reproduction.verdicts import ABOVE, verdict

RESULTS = Path(__file__).resolve().parent / "results"
SEARCHES = {
    "balls, digits, memory and h alone": ("attribution", "em-ptdm[guard=off,copies=off]"),
    "balls, digits": ("balls-2000", "em-ptdm[prior=digits]"),
    "balls, universal": ("balls-2000", "em-ptdm"),
    "shapes, digits": ("shapes-2000", "em-ptdm[prior=digits]"),
    "shapes, universal": ("shapes-2000", "em-ptdm"),
}
"""What was searched with which memory: the result file, and the policy in it."""
SAME = 1e-9
"""Nats by which evidence may fall through rounding."""


def rows_of(name: str, policy: str) -> list[dict[str, Any]]:
    """The searches of a policy, by task."""
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return sorted((r for r in kept["rows"] if r["policy"] == policy), key=lambda r: r["task"])


def gain(row: dict[str, Any]) -> float:
    """Nats an outcome by which h forecast better than the memory alone."""
    return float(row["evidence_of"]["h"] - row["evidence_of"]["memory"])


def second(searches: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Outcomes before they were seen, with and without h: means over tasks."""
    lines = ["| searches | tasks | memory alone | after h | h adds | better / worse | verdict |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, rows in searches.items():
        gains = [gain(row) for row in rows]
        parts = ([row["evidence_of"][of] for row in rows] for of in ("memory", "h"))
        means = [plus_minus(interval(values)) for values in parts]
        found = interval(gains)
        better = sum(value > 0 for value in gains)
        cells = [name, str(len(rows)), *means, plus_minus(found, "+")]
        cells += [f"{better} / {len(rows) - better}", verdict(found).removesuffix(" from")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def first(searches: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What updates did to the evidence of what they learnt from."""
    lines = ["| searches | updates | evidence fell in | kept | nats an outcome gained, mean |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name, rows in searches.items():
        updates = [update for row in rows for update in row["updates"]]
        changes = [update["after"] - update["before"] for update in updates]
        fell = sum(change < -SAME for change in changes)
        kept = sum(update["accepted"] for update in updates)
        mean = sum(changes) / len(changes)
        lines.append(f"| {name} | {len(updates):,} | {fell} | {kept:,} | {mean:+.4f} |")
    return lines


def each(searches: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What h added, task by task."""
    tasks = sorted({row["task"] for rows in searches.values() for row in rows})
    lines = ["| task | " + " | ".join(searches) + " |", "| --- |" + " ---: |" * len(searches)]
    for task in tasks:
        found = ({row["task"]: gain(row) for row in rows} for rows in searches.values())
        cells = (f"{gains[task]:+.3f}" if task in gains else "-" for gains in found)
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return lines


def page() -> str:
    """All three tables as Markdown."""
    searches = {name: rows_of(*where) for name, where in SEARCHES.items()}
    files = ", ".join(dict.fromkeys(f"`{name}.json`" for name, _ in SEARCHES.values()))
    above = sum(
        verdict(interval([gain(row) for row in rows])) == ABOVE for rows in searches.values()
    )
    parts = [
        f"By the intervals h forecasts better than the memory alone in {above} of "
        f"{len(searches)} sets of searches.",
        "",
        "Outcomes that h had not seen (Theorem 2), nats an outcome:",
        "",
        *second(searches),
        "",
        "Measurements that h learnt from (Theorem 1):",
        "",
        *first(searches),
        "",
        "What h adds to the forecast of unseen outcomes, by task (nats an outcome):",
        "",
        *each(searches),
        "",
        f"Rows of {files}; ± is half of the 95 % interval over tasks. Each search is judged by the "
        "measurements it made itself (`python benchmarks/evidence.py`).",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "evidence.md")
    parser.parse_args().out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
