"""Was the rule by which a search leaves a patch tuned too closely to balls?

    python benchmarks/rule_fit.py [--tasks 0:16] [--out benchmarks/results/rule-fit]

The foraging rule (``engram.policies.ranking``) has constants that were chosen by hand on ball
tasks. Here it is varied, one constant at a time, in searches of scenes in which figures repeat that
nobody has drawn (``engram.memory.repeats``: no discs, no kind of the suite ``shapes``), by the
memory ``digits``, which has seen neither, with the whole of today's engine. Every search that ends
is a row of the results; a run goes on where it was stopped. The table has the success rate of the
rule as it is, and of each other one the difference on the same scenes.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from engram import load_memory, make_policy
from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.tables import markdown, paired, per_task, plus_minus
from engram.bench.units import row_of
from engram.grid import Grid
from engram.memory.repeats import repeated_figures
from engram.policies.emptdm import EmPtdm
from engram.policies.forecast import Belief
from engram.policies.ranking import MOST_RATE, Foraging, Progress, Ranking
from engram.seeding import numpy_generator
from engram.simulation import simulate
from engram.tasks.base import Task

SIZE, BUDGET, AT = 32, 250, (100, 150, 200, 250)
SHARE, OBJECTS = (0.10, 0.33), 3
"""Least and largest share of target in a scene, and the fewest objects."""
MEMORY = "digits"


@dataclass(frozen=True)
class Drawn(Progress):
    """Progress whose rate of finds has another upper bound."""

    high: float = MOST_RATE

    @property
    def rate(self) -> float:
        return min(super().rate, self.high)


@dataclass(frozen=True)
class Varied(Foraging):
    """The rule with another upper bound of the rate of finds, or one that leaves a patch where its
    best cell promises less than ``times`` that rate."""

    high: float = MOST_RATE
    times: float = 1.0

    def order(self, belief: Belief, available: NDArray[np.bool_], progress: Progress) -> Ranking:
        at = Drawn(**vars(progress), high=self.high)
        leaves = min(self.times * max(at.rate, self.least_rate), 1.0)
        return Foraging(self.explore, leaves, self.least_rate).order(belief, available, at)


RULES = {
    "as it is": Varied(),
    "doubt 1.5 times the rate": Varied(explore=1.5),
    "doubt 4 times the rate": Varied(explore=4.0),
    "leaves at 0.8 of the rate": Varied(times=0.8),
    "leaves at 1.2 of the rate": Varied(times=1.2),
    "rate of 0.7 at most": Varied(high=0.7),
    "rate of 0.45 at least": Varied(least_rate=0.45),
}


def scene(number: int) -> Task:
    """A scene as a task: the first of its draws with enough target in enough objects."""
    draw = 0
    while True:
        image = repeated_figures(numpy_generator(0, "task", 7, number, draw), SIZE, SIZE) > 0.5
        if SHARE[0] <= image.mean() <= SHARE[1] and label(image, np.ones((3, 3)))[1] >= OBJECTS:
            content = image.astype(np.float32)[None]
            return Task(f"figures that repeat, {number}", Grid(SIZE, SIZE), content, image)
        draw += 1


def search(number: int, rule: Varied) -> dict[str, Any]:
    """Success rates of one search by a rule."""
    task = scene(number)
    policy = make_policy("em-ptdm", task.grid, BUDGET, memory=load_memory(MEMORY))
    assert isinstance(policy, EmPtdm)
    policy.ranker = rule
    row = row_of(simulate(policy, task), AT)
    return {name: row[name] for name in ("sr", "random", "targets")}


def table(rows: list[dict[str, Any]]) -> str:
    """The rule as it is, and what others find more or less."""
    first, *others = RULES
    own = per_task(rows, first, lambda row: row["sr"][str(AT[-1])])
    lines = []
    means = [np.mean([r["sr"][str(b)] for r in rows if r["policy"] == first]) for b in AT]
    lines.append([f"SR of the rule {first}, {len(own)} scenes", *(f"{mean:.3f}" for mean in means)])
    for name in others:
        pairs = [paired(rows, name, first, b) for b in AT]
        if pairs[0]["n"]:
            lines.append([f"{name}, difference", *(plus_minus(pair, "+") for pair in pairs)])
    made = ", ".join(sorted({row["commit"] for row in rows}))
    note = (
        f"Scenes in which figures repeat, {SIZE} x {SIZE} cells, memory `{MEMORY}`; ± is half of "
        f"the 95 % interval of pairs (`benchmarks/rule_fit.py` at {made})."
    )
    return markdown((["rule", *(f"at {b}" for b in AT)], lines)) + f"\n{note}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="0:16", help="A:B, B not included")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rule-fit"))
    args = parser.parse_args()
    set_threads(1)
    path, (begin, end) = args.out.with_suffix(".json"), map(int, args.tasks.split(":"))
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for number, (name, rule) in product(range(begin, end), RULES.items()):
        if (number, name) in {(row["task"], row["policy"]) for row in rows}:
            continue
        labels = {"policy": name, "task": number, "seed": 0, "commit": commit()}
        rows.append({**labels, **search(number, rule)})
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
        write_files({path: text, args.out.with_suffix(".md"): table(rows)})
        print(number, name, rows[-1]["sr"], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
