"""Cost of a query, presets side by side in one run: seconds, network evaluations, memory.

    python benchmarks/presets.py [--queries 50] [--out FILE.json]

One thread. Both presets are timed in the middle of a search with a budget of 250 (60 cells told
one by one), with the updates of h that fall due. Seconds are processor time, so that other work on
the machine counts little; ratios of one run are what counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from engram import Grid, Task, load_memory, make_policy
from engram._threads import set_threads
from engram.bench.provenance import commit, machine
from engram.memory.scenes import shape_group

SIZES = (32, 64, 128)
BUDGET, TOLD = 250, 60


def scene_task(size: int) -> Task:
    """Shapes in a square area; cells of size / 32 pixels, so that there are always 1024."""
    target = shape_group(np.random.default_rng(5), size, size) > 0
    cell = (size // 32, size // 32)
    return Task(f"scene-{size}", Grid(size, size, cell=cell), target[None] * 1.0, target)


def cost(preset: str, size: int, queries: int) -> dict[str, float]:
    """Mean cost of a query."""
    task = scene_task(size)
    memory = load_memory("universal")
    policy = make_policy("em-ptdm", task.grid, BUDGET, memory=memory, preset=preset)
    for _ in range(TOLD):
        policy.observe(task.measure(policy.suggest()[0].cell))
    before, began = policy.log.evaluations, time.process_time()
    for _ in range(queries):
        policy.observe(task.measure(policy.suggest()[0].cell))
    return {
        "seconds": (time.process_time() - began) / queries,
        "evaluations": (policy.log.evaluations - before) / queries,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def table(rows: list[dict[str, Any]], version: str) -> str:
    """The same as Markdown, for the pages that quote it."""
    lines = [
        "| area | preset | s a query | evaluations | peak MB | times the default |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        for preset in ("default", "paper"):
            if row[preset]:
                seconds, evaluations, peak = row[preset].values()
                ratio = f"{row['paper_over_default']:.0f}" if preset == "paper" else "1"
                lines.append(
                    f"| {row['size']} x {row['size']} | {preset} | {seconds:.3f} | "
                    f"{evaluations:.1f} | {peak:.0f} | {ratio} |"
                )
    lines += ["", f"`python benchmarks/presets.py` at {version}; 1024 cells each, one thread."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    set_threads(1)
    rows = []
    for size in SIZES:
        fast = cost("default", size, options.queries)
        slow = cost("paper", size, options.queries) if size == SIZES[0] else None
        ratio = slow["seconds"] / fast["seconds"] if slow else None
        rows.append({"size": size, "default": fast, "paper": slow, "paper_over_default": ratio})
        print(json.dumps(rows[-1]))
    if options.out:
        result = {"commit": commit(), "machine": machine(), "rows": rows}
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        options.out.with_suffix(".md").write_text(table(rows, result["commit"]))


if __name__ == "__main__":
    main()
