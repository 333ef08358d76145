"""How good the estimate of separate targets nobody has touched is, in searches with a known truth.

    python benchmarks/targets_left.py --overhead TILES.npz [--suites balls,shapes,overhead]
                                      [--tasks 0:24] [--overhead-tasks 0:12] [--policies ...]
                                      [--prior universal] [--searches DIR] [--out FILE.md]

Every policy searches every task; after 15, 30, 50, 100 and 150 measurements the targets it has not
touched are counted and compared with what ``status`` of a campaign would say. The tables have, by
moment: mean truth and expectation, mean error (bias) and mean absolute error, how often the
intervals at 80 % and 95 % hold the truth, their mean width, and the interval score (width, and
2 / (1 - level) for every target by which it misses). Beside it a rival: the target cells of
untouched targets that the policy believes in (its corrected chances times the chance that a target
is none of those found), by the cells of a target. Last, targets that were touched: truth, groups
of finds, and the estimate. A second table is about the advice: how many more targets the
measurements up to the 150th touched, what was expected of them, how often the interval at 80 % held
that, how often Stop was advised at a yield of 0.02, and how often wrongly (they did bring it).

Searches are read from DIR when they are there, and kept there. ``--out`` writes the tables as
Markdown and the rows as JSON beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from coverage import interval_score
from numpy.typing import NDArray
from objects import tasks_of

from engram._threads import set_threads
from engram.bench.provenance import commit
from engram.campaign.advice import TARGETS, advise, looked_at
from engram.campaign.correction import corrected
from engram.campaign.remaining import SearchSoFar, distribution, summary
from engram.campaign.status import NEXT
from engram.campaign.untouched import untouched
from engram.metrics import objects_touched
from engram.observation import Observations
from engram.policies.separate import NewTargets, Separate, cells_touched, groups_of
from engram.policies.spec import PolicyChoice, parse_policies
from engram.tasks.base import Task

MOMENTS = (15, 30, 50, 100, 150)
LEVELS = (0.8, 0.95)
YIELD = 0.02
"""Targets a measurement below which going on is not worthwhile: what campaigns set by default."""
POLICIES = "gp[goal=objects],em-ptdm[goal=objects]"

Row = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """cells, forecast (B,): measured cells in order, and the chance of target of each beforehand;
    chances: after t measurements, (n_cells,) the chances of target."""

    cells: NDArray[np.intp]
    forecast: NDArray[np.float64]
    chances: dict[int, NDArray[np.float64]]


def searched(task: Task, number: int, choice: PolicyChoice, file: Path | None) -> Search:
    """One search, from its file if it is there; the seed is the number of the task."""
    if file is not None and file.exists():
        with np.load(file) as kept:
            chances = {t: kept[f"p{t}"].astype(np.float64) for t in MOMENTS}
            return Search(kept["cells"], kept["forecast"], chances)
    policy, chances = choice.build(task, MOMENTS[-1], number), {}
    for t in range(MOMENTS[-1] + 1):
        if t in MOMENTS:
            chances[t] = policy.current_scores().probability
        if t < MOMENTS[-1]:
            policy.observe(task.measure(policy.suggest()[0].cell))
    found = Search(policy.observations.indices, np.array(policy.log.forecast), chances)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kept_chances = {f"p{t}": p.astype(np.float32) for t, p in chances.items()}
        np.savez_compressed(file, cells=found.cells, forecast=found.forecast, **kept_chances)
    return found


def judged(task: Task, search: Search, t: int) -> Row:
    """What would have been said after t measurements, and the truth."""
    grid, cells = task.grid, [task.grid.at(int(c)) for c in search.cells[:t]]
    seen = Observations(grid, [task.measure(cell) for cell in cells])
    so_far = SearchSoFar.of(seen, seen.available, search.forecast[:t], search.chances[t])
    ways = untouched(seen, seen.available)
    left = ways.left(distribution(so_far))
    touched = objects_touched(task, cells)
    row: Row = {
        "t": t,
        "truth": len(np.unique(task.objects[task.objects > 0])) - touched,
        "expected": summary(left, LEVELS[0]).expected,
        "by_belief": round(by_belief(seen, so_far), 2),
        "touched": touched,
        "groups": groups_of(grid, seen.indices[seen.outcomes > 0]),
        "apart": round(ways.apart, 2),
    }
    for level in LEVELS:
        ends = summary(left, level)
        row |= {f"low_{level}": ends.low, f"high_{level}": ends.high}
    count = MOMENTS[-1] - t
    if count:
        rest, soon = (ways.prospect(left, n) for n in (count, min(count, NEXT)))
        share = looked_at(grid, seen.indices, seen.available)
        later = [grid.at(int(c)) for c in search.cells]
        row |= {
            "brought": objects_touched(task, later) - touched,
            "to_bring": round(rest.expected, 2),
            "to_bring_low": rest.interval[0],
            "to_bring_high": rest.interval[1],
            "stop": advise(rest, soon, YIELD, share, TARGETS).stop,
        }
    return row


def by_belief(seen: Observations, so_far: SearchSoFar) -> float:
    """The rival: target cells of untouched targets by the policy's belief, by those of a target."""
    rule = NewTargets(Separate(seen.grid, 0), seen)
    chances = corrected(so_far.probability, so_far.forecast, so_far.hits)
    new = chances * rule.untouched(so_far.probability)
    return float(new[so_far.searchable].sum()) / cells_touched(rule.extent)


HEAD = (
    "measured",
    "tasks",
    "not touched",
    "expected",
    "bias",
    "error",
    *(f"{what} {level:.0%}" for level in LEVELS for what in ("covered", "width", "score")),
    "by belief",
    "error",
    "touched",
    "groups",
    "estimated",
)


def table(rows: Sequence[Row]) -> str:
    """Figures by moment, and over all of them."""
    lines = [HEAD, ("---",) * len(HEAD)]
    for moments in (*((t,) for t in MOMENTS), MOMENTS):
        some = [row for row in rows if row["t"] in moments]
        truth = np.array([row["truth"] for row in some])
        names = [name for name in some[0] if all(name in row for row in some)]
        of = {name: np.array([row[name] for row in some]) for name in names}
        cells = [of["truth"].mean(), of["expected"].mean(), (of["expected"] - truth).mean()]
        cells.append(np.abs(of["expected"] - truth).mean())
        line = [str(moments[0]) if len(moments) == 1 else "all", str(len({*of["task"].tolist()}))]
        line += [f"{cells[0]:.2f}", f"{cells[1]:.2f}", f"{cells[2]:+.2f}", f"{cells[3]:.2f}"]
        for level in LEVELS:
            low, high = of[f"low_{level}"], of[f"high_{level}"]
            inside = ((low <= truth) & (truth <= high)).mean()
            ends = zip(low, high, truth, strict=True)
            score = np.mean([interval_score(a, b, u, level) for a, b, u in ends])
            line += [f"{inside:.0%}", f"{(high - low).mean():.1f}", f"{score:.1f}"]
        rival = of["by_belief"]
        line += [f"{rival.mean():.2f}", f"{np.abs(rival - truth).mean():.2f}"]
        line += [f"{of[name].mean():.2f}" for name in ("touched", "groups", "apart")]
        lines.append(tuple(line))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def advice_table(rows: Sequence[Row]) -> str:
    """What the measurements left touched, what was said of it, and the advice."""
    head = ("measured", "brought", "expected", "covered 80%", "Stop advised", "wrongly")
    lines = [head, ("---",) * len(head)]
    for t in MOMENTS[:-1]:
        some = [row for row in rows if row["t"] == t]
        held = [row["to_bring_low"] <= row["brought"] <= row["to_bring_high"] for row in some]
        stops = [row for row in some if row["stop"]]
        wrong = [row for row in stops if row["brought"] >= YIELD * (MOMENTS[-1] - t)]
        brought, said = (np.mean([row[name] for row in some]) for name in ("brought", "to_bring"))
        figures = (f"{brought:.2f}", f"{said:.2f}", f"{np.mean(held):.0%}")
        lines.append((str(t), *figures, f"{len(stops)} of {len(some)}", str(len(wrong))))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def run(args: argparse.Namespace) -> list[Row]:
    """All backtests."""
    choices = parse_policies(args.policies, preset="default", prior=args.prior)
    rows = []
    for suite in args.suites.split(","):
        numbers = args.overhead_tasks if suite == "overhead" else args.tasks
        first, last = (int(v) for v in numbers.split(":"))
        for number, task in tasks_of(suite, range(first, last), args.overhead):
            for choice in choices:
                name = f"{suite}-{choice.label.partition('[')[0]}-{number}.npz"
                file = None if args.searches is None else args.searches / name
                search = searched(task, number, choice, file)
                label = {"suite": suite, "policy": choice.label, "task": number, "seed": number}
                rows += [{**label, **judged(task, search, t)} for t in MOMENTS]
    return rows


def page(rows: Sequence[Row], args: argparse.Namespace) -> str:
    """A table for every suite and policy."""
    parts = []
    for suite in args.suites.split(","):
        numbers = args.overhead_tasks if suite == "overhead" else args.tasks
        for policy in dict.fromkeys(row["policy"] for row in rows):
            some = [row for row in rows if (row["suite"], row["policy"]) == (suite, policy)]
            tables = f"{table(some)}\n\n{advice_table(some)}"
            parts.append(f"**{suite}**, tasks {numbers}, {policy}\n\n{tables}")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", default="balls,shapes,overhead")
    parser.add_argument("--tasks", default="0:24")
    parser.add_argument("--overhead", type=Path, help="tiles of the suite overhead (.npz)")
    parser.add_argument("--overhead-tasks", help="numbers of tiles, as --tasks", default="0:12")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--prior", default="universal")
    parser.add_argument("--searches", type=Path, help="folder in which searches are kept")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    set_threads(1)
    rows = run(args)
    text = page(rows, args)
    facts = {
        "commit": commit(),
        "suites": args.suites,
        "tasks": args.tasks,
        "overhead_tasks": args.overhead_tasks,
        "policies": args.policies,
        "prior": args.prior,
        "seeds": "the number of the task",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    print(text)
    if args.out:
        args.out.write_text(f"{text}\n\n<!-- {json.dumps(facts)} -->\n", encoding="utf-8")
        head = f'{{"format": "engram-targets-left-1", "facts": {json.dumps(facts)}, "rows": ['
        lines = ",\n".join(json.dumps(row) for row in rows)
        args.out.with_suffix(".json").write_text(f"{head}\n{lines}\n]}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
