"""Searches of ball tasks by readings of the paper's Algorithms 1 and 2, for the choice of a preset.

    python benchmarks/readings_search.py [--tasks 0:4] [--only TEXT ...] [--out FILE.json]

Development tasks, memory ``digits``, budget 250, SR at 150, 200 and 250. ``--only`` searches by the
readings alone whose names hold the text; rows of the others stay. The same command goes on where an
earlier one was cut off.
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
from engram.reproduction.verdicts import ABOVE, BELOW, verdict

BUDGET, AT = 250, (150, 200, 250)
GUIDANCES = {"DPS": "dps", "MMPS": "mmps"}
"""What the text may mean instead of a network that is told the measurements."""


def draws(guidance: str) -> str:
    """Eight particles of eight steps, two of them renewed at a query."""
    return f"preset=paper,guidance={guidance},steps=8,refresh_steps=2,particles=8"


def hindsight(steps: int, *, guidance: str = "amortised", imagined: float = 0.05) -> str:
    """Options of an h that learns in hindsight, so many steps a lesson."""
    return f"{draws(guidance)},lesson=hindsight,imagined={imagined},m_steps={steps}"


DRAWS = draws("amortised")
LEARNT = hindsight(10)

CHOSEN = "raw, h in hindsight, 10 steps a lesson"
"""The reading that preset ``paper`` is."""

WITHOUT = "raw Eq. 12, no h"
"""The same without h."""

SEARCHES = {
    WITHOUT: f"diffatd[{DRAWS}]",
    "raw, h in hindsight, 5 steps a lesson": f"em-ptdm[{hindsight(5)}]",
    "the same, imagined pixels 0.02": f"em-ptdm[{hindsight(5, imagined=0.02)}]",
    CHOSEN: f"em-ptdm[{LEARNT}]",
    "normalised Eq. 12, no h": f"diffatd[{DRAWS},scale=normalised]",
    "normalised, h in hindsight, 5 steps a lesson": f"em-ptdm[{hindsight(5)},scale=normalised]",
    "raw, hindsight as above with 10 steps, rolled back by evidence": (
        f"em-ptdm[{LEARNT},rollback=on]"
    ),
    "raw, hindsight with 10 steps, one trajectory shared by all queries": (
        f"em-ptdm[{LEARNT},trajectory=shared]"
    ),
    "raw, hindsight with 10 steps, updates stretched over the budget": (
        f"em-ptdm[{LEARNT},stretch=on]"
    ),
    "raw, hindsight with 10 steps, eight fresh steps a query": (
        f"em-ptdm[{LEARNT},trajectory=fresh]"
    ),
    "raw, h from posterior samples (Algorithm 2 word for word), 10 steps": (
        f"em-ptdm[{DRAWS},lesson=posterior,m_steps=10]"
    ),
    "raw, h from the memory's own draws, 10 steps": f"em-ptdm[{DRAWS},lesson=prior,m_steps=10]",
    "raw, h from joint draws, 10 steps": f"em-ptdm[{DRAWS},lesson=joint,m_steps=10]",
    "raw, h from measured pixels, 10 steps": f"em-ptdm[{DRAWS},lesson=measured,m_steps=10]",
    **{
        f"{WITHOUT}, guided by {name}": f"diffatd[{draws(guidance)}]"
        for name, guidance in GUIDANCES.items()
    },
    **{
        f"{CHOSEN}, guided by {name}": f"em-ptdm[{hindsight(10, guidance=guidance)}]"
        for name, guidance in GUIDANCES.items()
    },
}


def searched(spec: str, number: int) -> dict[str, Any]:
    """One search: SR, and processor seconds a query."""
    task, choice = ball_task(number), PolicyChoice.parse(spec, preset="default", prior="digits")
    policy, began = choice.build(task, BUDGET, 0), time.process_time()
    trace = simulate(policy, task)
    seconds = (time.process_time() - began) / BUDGET
    return {"task": number, **{str(b): trace.success_rate(b) for b in AT}, "seconds": seconds}


def table(rows: list[dict[str, Any]], note: str) -> str:
    """Means over tasks as Markdown, and differences from the reading that is ``paper``, paired.

    Readings that were not searched by are left out.
    """
    heads = [f"SR at {b}" for b in AT]
    lines = [
        f"| reading | tasks | {' | '.join(heads)} | minus the chosen, at {AT[-1]} | s a query |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    chosen = {row["task"]: row for row in rows if row["reading"] == CHOSEN}
    for name in SEARCHES:
        own = [row for row in rows if row["reading"] == name]
        if not own:
            continue
        cells = [f"{np.mean([row[str(b)] for row in own]):.3f}" for b in AT]
        last = str(AT[-1])
        apart = [row[last] - chosen[row["task"]][last] for row in own if row["task"] in chosen]
        difference = plus_minus(interval(apart)) if apart else "-"
        cells.append("(chosen)" if name == CHOSEN else difference)
        seconds = np.mean([row["seconds"] for row in own])
        lines.append(f"| {name} | {len(own)} | {' | '.join(cells)} | {seconds:.2f} |")
    return "\n".join([*lines, "", *words(rows), "", note]) + "\n"


def _apart(
    rows: list[dict[str, Any]], reading: str, other: str, budget: int
) -> dict[str, Any] | None:
    """Difference of two readings, paired over the tasks of both; None without two of them."""
    one, two = (
        {r["task"]: r[str(budget)] for r in rows if r["reading"] == n} for n in (reading, other)
    )
    both = one.keys() & two.keys()
    return interval([one[task] - two[task] for task in sorted(both)]) if len(both) > 1 else None


def words(rows: list[dict[str, Any]]) -> list[str]:
    """What the rows say of the chosen reading and of h, by intervals."""
    others = [name for name in SEARCHES if name != CHOSEN]
    found = {name: _apart(rows, name, CHOSEN, AT[-1]) for name in others}
    below = [name for name, pair in found.items() if pair and verdict(pair) == BELOW]
    above = [name for name, pair in found.items() if pair and verdict(pair) == ABOVE]
    lines = [
        f"* Below the chosen reading at {AT[-1]}: {'; '.join(below) or 'none'}. Above it: "
        f"{'; '.join(above) or 'none'}."
    ]
    for name in ("", *GUIDANCES):
        end = f", guided by {name}" if name else ""
        pairs = [_apart(rows, CHOSEN + end, WITHOUT + end, b) for b in AT]
        if all(pairs):
            said = ", ".join(
                f"{plus_minus(pair, '+')} at {b} ({verdict(pair).removesuffix(' from')})"
                for b, pair in zip(AT, pairs, strict=True)
                if pair
            )
            lines.append(f"* h against none, {name or 'the memory told measurements'}: {said}.")
    return lines


def readings(only: list[str]) -> dict[str, str]:
    """The searches whose names hold one of the texts; all where none is given."""
    unknown = [text for text in only if not any(text in name for name in SEARCHES)]
    if unknown:
        names = "; ".join(SEARCHES)
        raise SystemExit(f"--only {unknown[0]!r}: no reading is called so; there are {names}")
    return {
        name: spec
        for name, spec in SEARCHES.items()
        if not only or any(text in name for text in only)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:4")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="part of a reading's name"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/readings-search.json"))
    options = parser.parse_args()
    wanted = readings(options.only)
    set_threads(1)
    first, end = (int(part) for part in options.tasks.split(":"))
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows = kept.get("rows", [])
    done = {(row["reading"], row["task"]) for row in rows}
    for number in range(first, end):
        for name, spec in wanted.items():
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
    tasks = [row["task"] for row in rows]
    searches = f"--tasks {min(tasks)}:{max(tasks) + 1}"
    note = f"`python benchmarks/readings_search.py {searches}` at {commits}."
    options.out.with_suffix(".md").write_text(table(rows, note))


if __name__ == "__main__":
    main()
