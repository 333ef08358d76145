"""How much there is to gain beyond the order of a layer, if everything else were known.

    python benchmarks/headroom.py --data-root DIR [--only NAME,...] [--most N]

For the (first N) tasks of ``benchmarks/results/layers-NAME.json`` the default engine's forecaster
of layers is told the truth of *all* cells, and every cell is ordered by what it says of it without
that cell's own truth (the cavity of ``engram.logistic``). A search knows less at every moment, so
where this order finds no more than the layer's, neighbours add nothing to the layer, and a search
that is level with the layer has done what can be done with this model. Writes
``layers-NAME-headroom.json`` and ``.md`` with these rows beside those of the searches.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from include_results import in_words
from layers import PLANS, RESULTS

from engram._threads import set_threads
from engram.bench.provenance import commit
from engram.bench.runner import read_results
from engram.bench.suites import get_suite
from engram.bench.tables import markdown, rate_table, summarise
from engram.logistic import LogisticModel
from engram.tasks.base import Task

LABEL, SEARCHED = "all-others-known", ("em-ptdm", "layer-order")
KEPT = ("policy", "task", "targets", "cells", "hits", "sr")
SURE = 20.0
"""Log-odds of a truth that is told: certain, but for the model to leave out again."""


def ordered(task: Task) -> list[int]:
    """Numbers from 1 of the cells with target, in the order of what all other cells say."""
    assert task.layers is not None
    cells = np.random.default_rng(0).permutation(task.grid.open_cells)
    found = (task.outcomes[cells] > 0).astype(np.float64)
    model = LogisticModel(task.grid, task.layers)
    model.fit(cells, found, np.where(found > 0, SURE, -SURE))
    order = np.argsort(-model.others()[cells], kind="stable")
    return [int(i) + 1 for i in np.flatnonzero(found[order])]


def rates(row: dict[str, Any], at: list[int]) -> dict[str, Any]:
    """What finds say at some budgets."""
    finds = {b: sum(hit <= b for hit in row["hits"]) for b in at}
    return {
        "sr": {str(b): n / min(b, row["targets"]) for b, n in finds.items()},
        "recall": {str(b): n / row["targets"] for b, n in finds.items()},
        "random": {str(b): row["targets"] * b / row["cells"] / min(b, row["targets"]) for b in at},
    }


def row_of(searched: dict[str, Any], task: Task, at: list[int]) -> dict[str, Any]:
    """A row like that of a search of the same task: its finds, and the rates they make."""
    row = {**searched, "policy": LABEL, "hits": ordered(task)}
    return {**row, **rates(row, at)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--only", default="chickadee,strymon,waxwing,gold")
    parser.add_argument("--most", type=int, default=24)
    args = parser.parse_args()
    set_threads(1)
    for name in args.only.split(","):
        file = RESULTS / f"layers-{name}.json"
        if not file.exists():
            continue
        results, plan = read_results(file), PLANS[name]
        options, data = results["options"], [args.data_root / part for part in plan.data]
        tasks = get_suite(plan.suite).tasks(data, options["settings"])
        firsts = [row for row in results["rows"] if row["policy"] == "em-ptdm"][: args.most]
        found = [row_of(row, tasks.task(row["task"]), options["at"]) for row in firsts]
        tried = {row["task"] for row in firsts}
        rows = [row for row in results["rows"] if row["task"] in tried]
        others = [row for row in rows if row["policy"] in SEARCHED]
        write(name, [*found, *others], options["at"])


def write(name: str, rows: list[dict[str, Any]], at: list[int]) -> None:
    """Table and words, and of every row what they rest on."""
    count = len({row["task"] for row in rows})
    table = markdown(rate_table(summarise(rows, at), at))
    words = [f"{LABEL} - {other}: {in_words(rows, at, LABEL, other)}." for other in SEARCHED]
    source = f"`python benchmarks/headroom.py --only {name}` at {commit()}, {count} tasks."
    target = RESULTS / f"layers-{name}-headroom.md"
    target.write_text("\n\n".join([table.strip(), *words, f"{source}\n"]), encoding="utf-8")
    kept = [{key: row[key] for key in KEPT} for row in rows]
    lines = ",\n".join(map(json.dumps, kept))
    head = f'{{"format": "engram-headroom-1", "commit": "{commit()}", "rows": ['
    target.with_suffix(".json").write_text(f"{head}\n{lines}\n]}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
