"""Do windows show? Smoothness across their borders, and long structures that cross them.

    python benchmarks/seams.py [--size 96] [--tasks 4] [--told 150] [--out benchmarks/results/seams]

Areas are crossed by a line or a front, whose course no single window sees. em-ptdm is told the same
measurements (half of them on the structure, half spread) with windows and without, and both
beliefs are compared with the truth on the cells that were not measured. A seam is measured by
second differences of probability and content along rows: their mean over cells at the ends of
windows, in proportion to that over all others. Areas that are in the results already are kept, so
that more of them can be added later.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram import Grid, Observation, load_memory, make_policy
from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.tables import interval
from engram.policies.emptdm import EmPtdm
from engram.policies.spread import spread_order

Array = NDArray[np.float64]
KINDS = ("line", "front")


def structure(kind: str, size: int, seed: int) -> NDArray[np.bool_]:
    """(size, size) True on a line three cells wide, or on a front of eight, across the area."""
    rng = np.random.default_rng([16, seed])
    angle, shift = rng.uniform(0, np.pi), rng.uniform(-0.15, 0.15) * size
    rows, cols = np.mgrid[:size, :size] - size / 2
    along = np.cos(angle) * rows + np.sin(angle) * cols
    away = -np.sin(angle) * rows + np.cos(angle) * cols - shift
    if kind == "line":
        return np.asarray(np.abs(away) <= 1.5)
    bend = 0.08 * size * np.sin(2 * np.pi * along / (0.7 * size) + rng.uniform(0, 6))
    return np.asarray(np.abs(away - bend) <= 4)


def told(truth: NDArray[np.bool_], grid: Grid, count: int, seed: int) -> list[Observation]:
    """Measurements, half of them on the structure and next to it, in one half of the area."""
    rng = np.random.default_rng([17, seed])
    on = np.flatnonzero(truth & (np.arange(grid.cols) < 0.6 * grid.cols))
    near = rng.permutation(on)[: count // 2]
    cells = dict.fromkeys([*near.tolist(), *spread_order(grid, seed)[: count - len(near)].tolist()])
    values = {i: float(truth.flat[i]) for i in cells}
    return [Observation.checked(grid, grid.at(i), y, y) for i, y in values.items()]


def believed(grid: Grid, seen: list[Observation], windows: bool) -> tuple[EmPtdm, Array, Array]:
    """The policy, its probability and its content, (rows, cols) each."""
    policy = make_policy(
        "em-ptdm", grid, 2 * len(seen), memory=load_memory("universal"), windows=windows
    )
    assert isinstance(policy, EmPtdm)
    policy.observe(seen)
    view = policy.view()
    assert view.mean is not None
    shape = (grid.rows, grid.cols)
    chance = np.asarray(policy.believed().beliefs.memory.probability).reshape(shape)
    return policy, chance, np.asarray(view.mean[0], np.float64)


def seam(policy: EmPtdm, table: Array, free: NDArray[np.bool_]) -> float:
    """Roughness at the ends of windows, in proportion to that elsewhere."""
    axis = policy.memory.windows.tiling.cols  # type: ignore[attr-defined]
    ends = {int(n) for s in axis.starts for n in (s - 1, s, s + axis.size - 1, s + axis.size)}
    at = np.array([n in ends for n in range(1, axis.side - 1)])
    rough = np.abs(np.diff(table, n=2, axis=1))
    kept = free[:, 1:-1] & free[:, :-2] & free[:, 2:]
    return float(rough[:, at][kept[:, at]].mean() / rough[:, ~at][kept[:, ~at]].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--told", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/seams"))
    args = parser.parse_args()
    set_threads(1)
    path = args.out.with_suffix(".json")
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in rows if (row.get("size"), row["told"]) == (args.size, args.told)]
    for number in range(args.tasks):
        for kind in KINDS:
            if any((row["kind"], row["task"]) == (kind, number) for row in rows):
                continue
            truth, grid = structure(kind, args.size, number), Grid(args.size, args.size)
            seen = told(truth, grid, args.told, number)
            free = np.ones(truth.shape, bool)
            for item in seen:
                free[item.cell] = False
            row: dict[str, Any] = {"kind": kind, "task": number, "told": args.told}
            row |= {"size": args.size, "commit": commit()}
            for name, windows in (("windows", True), ("whole", False)):
                began = time.process_time()
                policy, chance, content = believed(grid, seen, windows)
                row[f"{name} seconds"] = time.process_time() - began
                row[f"{name} brier"] = float(((chance - truth)[free] ** 2).mean())
                best = np.argsort(-np.where(free, chance, -1).ravel(), kind="stable")[: args.told]
                row[f"{name} SR"] = float(truth.ravel()[best].mean())
                if windows:
                    row["seam of probability"] = seam(policy, chance, free)
                    row["seam of content"] = seam(policy, content, free)
            rows.append(row)
            print(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True
            )
            write(args.out, rows)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Figures and table."""
    names = ("windows SR", "whole SR", "windows brier", "whole brier")
    names += ("seam of probability", "seam of content")
    lines = [
        "| structure | areas | " + " | ".join(names) + " | windows - whole, SR |",
        "| --- | ---: |" + " ---: |" * (len(names) + 1),
    ]
    for kind in (*KINDS, "both"):
        own = [r for r in rows if kind in (r["kind"], "both")]
        if own:
            means = [float(np.mean([r[n] for r in own])) for n in names]
            found = interval([r["windows SR"] - r["whole SR"] for r in own])
            half = "" if found["ci95"] is None else f" ± {found['ci95'][1] - found['mean']:.3f}"
            cells = [kind, str(len(own)), *(f"{v:.3f}" for v in means)]
            lines.append("| " + " | ".join([*cells, f"{found['mean']:+.3f}{half}"]) + " |")
    made = ", ".join(sorted({row["commit"] for row in rows}))
    size, told = rows[0]["size"], rows[0]["told"]
    text = "\n".join(lines) + (
        f"\n\nAreas of {size} x {size} cells, {told} measurements told. SR: share of target among "
        "as many further cells, the most likely ones; ± is half of the 95 % interval over areas. "
        "Seam: 1 = as smooth at the ends of windows as elsewhere (`benchmarks/seams.py` at "
        f"{made}).\n"
    )
    facts = {"machine": machine(), "rows": rows}
    files = {out.with_suffix(".json"): json.dumps(facts, indent=1) + "\n"}
    write_files({**files, out.with_suffix(".md"): text})


if __name__ == "__main__":
    main()
