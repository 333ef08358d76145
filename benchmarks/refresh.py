"""The answer after 10,000 tells at once: here, and on Ray clusters of 1 and 2 workers.

    python benchmarks/refresh.py [--side 1000] [--told 10000] [--spacing 4] [--workers 1 2]
                                 [--out benchmarks/results/refresh]

A satellite pass: every ``spacing``-th cell of a square in the middle of a ball task's area is told
at once, and em-ptdm is asked for 20 cells. Every case is a process of its own: first here, then on
a cluster of its own for each number of workers, at last with one worker killed (SIGKILL) on the
way. All must suggest the same cells with the same scores, to the last bit. Wall seconds are those
of the answer; starting the cluster and its workers is timed apart. Other work counts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from engram import load_memory, make_policy
from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.errors import EngramError
from engram.policies.local.windows import Seeing, Sight, computed_by
from engram.ray_windows import LEAST, RayWindows
from engram.tasks.balls import ball_task

ASKED = 20
"""Cells that are suggested."""


def working() -> list[int]:
    """Processes of this one's Ray cluster that are at work on windows (Linux)."""
    found, parents = [], {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if (folder / "cmdline").read_text().startswith("ray::_computed"):
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
    ours = {os.getpid()}
    for _ in range(4):  # driver -> raylet -> worker
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return [pid for pid in found if pid in ours]


def kill_one(killed: list[int]) -> None:
    """Kill the first worker that is seen at work."""
    while not killed:
        for pid in working()[:1]:
            time.sleep(1)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        time.sleep(0.05)


def warm(compute: RayWindows, see: Seeing) -> None:
    """Start cluster and workers, by windows that nobody needs."""
    compute(see, [Sight.of_nothing(see.grid)] * LEAST)


def case(side: int, told: int, spacing: int, workers: int, kill: bool) -> dict[str, Any]:
    """One row; no workers = here."""
    set_threads(1)
    task = ball_task(0, size=side)
    across = round(told**0.5)
    begin = max(0, (side - spacing * across) // 2)
    cells = [(begin + spacing * (k // across), begin + spacing * (k % across)) for k in range(told)]
    policy = make_policy("em-ptdm", task.grid, told + 1000, memory=load_memory("universal"))
    policy.suggest()
    policy.observe([task.measure(cell) for cell in cells])
    killed: list[int] = []
    start, sent, counted = 0.0, 0, policy.memory  # type: ignore[attr-defined]
    before = counted.evaluations
    if not workers:
        began, spent = time.perf_counter(), time.process_time()
        found = policy.suggest(ASKED)
    else:
        with RayWindows(workers) as compute, computed_by(compute):
            began = time.perf_counter()
            warm(compute, policy.memory.windows.see)  # type: ignore[attr-defined]
            start, before = time.perf_counter() - began, counted.evaluations
            if kill:
                threading.Thread(target=kill_one, args=(killed,), daemon=True).start()
            began, spent = time.perf_counter(), time.process_time()
            found = policy.suggest(ASKED)
            sent = compute.sent - LEAST
    wall, spent = time.perf_counter() - began, time.process_time() - spent
    if kill and not killed:
        raise EngramError("no worker was seen at work, so none was killed; tell more cells")
    return {
        "workers": workers,
        "killed": len(killed),
        "wall": round(wall, 2),
        "cpu of this process": round(spent, 2),
        "start of the cluster": round(start, 2),
        "windows sent": sent,
        "windows": len(policy.memory.windows.means),  # type: ignore[attr-defined]
        "evaluations": counted.evaluations - before,
        "suggested": [[*one.cell, one.terms["total"].hex()] for one in found],
    }


def words(row: dict[str, Any]) -> str:
    if not row["workers"]:
        return "here"
    killed = ", one of them killed on the way" if row["killed"] else ""
    return f"Ray, {row['workers']} worker{'s' if row['workers'] > 1 else ''}{killed}"


def table(facts: dict[str, Any]) -> str:
    rows = facts["rows"]
    lines = [
        "| windows are computed | answer, wall seconds | of them this process (CPU) | "
        "start of the cluster | same suggestions |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        same = "" if row is rows[0] else "yes" if _same(row, rows[0]) else "NO"
        figures = [f"{row[k]:.1f}" for k in ("wall", "cpu of this process", "start of the cluster")]
        lines.append(f"| {words(row)} | " + " | ".join([*figures, same]) + " |")
    return "\n".join(lines) + (
        f"\n\n{facts['told']:,} cells told at once in an area of {facts['side']:,} x "
        f"{facts['side']:,}, {rows[0]['windows']:,} windows changed, {ASKED} cells asked for; a "
        f"machine of {facts['machine']['cores']} cores with other work on it "
        f"(`benchmarks/refresh.py` at {facts['commit']}).\n"
    )


def _same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row[name] == other[name] for name in ("suggested", "evaluations", "windows"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--told", type=int, default=10_000)
    parser.add_argument("--spacing", type=int, default=4)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/refresh"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    terms = (args.side, args.told, args.spacing)
    if args.one is not None:
        workers, kill = map(int, args.one.split(","))
        print(json.dumps(case(*terms, workers, bool(kill))))
        return
    rows = []
    for number, kill in [(0, 0), *((n, 0) for n in args.workers), (max(args.workers), 1)]:
        command = [sys.executable, __file__, "--one", f"{number},{kill}"]
        for name, value in zip(("side", "told", "spacing"), terms, strict=True):
            command += [f"--{name}", str(value)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print({k: v for k, v in rows[-1].items() if k != "suggested"}, flush=True)
    facts = {
        "commit": commit(),
        "machine": machine(),
        **dict(zip(("side", "told", "spacing"), terms, strict=True)),
        "rows": rows,
    }
    files = {args.out.with_suffix(".json"): json.dumps(facts, indent=1) + "\n"}
    write_files({**files, args.out.with_suffix(".md"): table(facts)})
    print(table(facts))


if __name__ == "__main__":
    main()
