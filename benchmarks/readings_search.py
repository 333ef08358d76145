"""Searches of ball tasks by readings of the paper's Algorithms 1 and 2, for the choice of a preset.

    python benchmarks/readings_search.py [--tasks 0:4] [--out FILE.json]

Development tasks, memory ``digits``, budget 250, SR at 150, 200 and 250. The same command goes on
where an earlier one was cut off.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from engram import ball_task, simulate
from engram._threads import set_threads
from engram.bench.provenance import commit, machine
from engram.bench.tables import interval, plus_minus
from engram.policies.spec import PolicyChoice

BUDGET, AT = 250, (150, 200, 250)
DRAWS = "preset=paper,guidance=amortised,steps=8,refresh_steps=2,particles=8"
LEARNT = f"{DRAWS},lesson=hindsight"

SEARCHES = {
    "raw Eq. 12, no h": f"diffatd[{DRAWS}]",
    "raw, h in hindsight, 5 steps a lesson": f"em-ptdm[{LEARNT},imagined=0.05,m_steps=5]",
    "the same, imagined pixels 0.02": f"em-ptdm[{LEARNT},imagined=0.02,m_steps=5]",
    "raw, h in hindsight, 10 steps a lesson": f"em-ptdm[{LEARNT},imagined=0.05,m_steps=10]",
    "normalised Eq. 12, no h": f"diffatd[{DRAWS},scale=normalised]",
    "normalised, h in hindsight, 5 steps a lesson": (
        f"em-ptdm[{LEARNT},scale=normalised,imagined=0.05,m_steps=5]"
    ),
    "raw, hindsight as above with 10 steps, rolled back by evidence": (
        f"em-ptdm[{LEARNT},imagined=0.05,m_steps=10,rollback=on]"
    ),
    "raw, hindsight with 10 steps, one trajectory shared by all queries": (
        f"em-ptdm[{LEARNT},imagined=0.05,m_steps=10,trajectory=shared]"
    ),
    "raw, h from joint draws, 10 steps": f"em-ptdm[{DRAWS},lesson=joint,m_steps=10]",
    "raw, h from measured pixels, 10 steps": f"em-ptdm[{DRAWS},lesson=measured,m_steps=10]",
}


CHOSEN = "raw, h in hindsight, 10 steps a lesson"
"""The reading that preset ``paper`` is."""


def searched(spec: str, number: int) -> dict[str, Any]:
    """One search: SR, and processor seconds a query."""
    task, choice = ball_task(number), PolicyChoice.parse(spec, preset="default", prior="digits")
    policy, began = choice.build(task, BUDGET, 0), time.process_time()
    trace = simulate(policy, task)
    seconds = (time.process_time() - began) / BUDGET
    return {"task": number, **{str(b): trace.success_rate(b) for b in AT}, "seconds": seconds}


def table(rows: list[dict[str, Any]], note: str) -> str:
    """Means over tasks as Markdown, and differences from the reading that is ``paper``, paired."""
    heads = [f"SR at {b}" for b in AT]
    lines = [
        f"| reading | {' | '.join(heads)} | minus the chosen, at {AT[-1]} | s a query |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    chosen = {row["task"]: row for row in rows if row["reading"] == CHOSEN}
    for name in SEARCHES:
        own = [row for row in rows if row["reading"] == name]
        cells = [f"{np.mean([row[str(b)] for row in own]):.3f}" for b in AT]
        last = str(AT[-1])
        apart = [row[last] - chosen[row["task"]][last] for row in own if row["task"] in chosen]
        cells.append("(chosen)" if name == CHOSEN else plus_minus(interval(apart)))
        seconds = np.mean([row["seconds"] for row in own])
        lines.append(f"| {name} | {' | '.join(cells)} | {seconds:.2f} |")
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:4")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/readings-search.json"))
    options = parser.parse_args()
    set_threads(1)
    first, end = (int(part) for part in options.tasks.split(":"))
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows = kept.get("rows", [])
    done = {(row["reading"], row["task"]) for row in rows}
    for number in range(first, end):
        for name, spec in SEARCHES.items():
            if (name, number) in done:
                continue
            rows.append(
                {"reading": name, "spec": spec, "commit": commit()} | searched(spec, number)
            )
            print(json.dumps(rows[-1]), flush=True)
            options.out.write_text(
                json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
            )
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
    note = f"`python benchmarks/readings_search.py --tasks {options.tasks}` at {commits}."
    options.out.with_suffix(".md").write_text(table(rows, note))


if __name__ == "__main__":
    main()
