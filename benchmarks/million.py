"""A campaign of a million cells, command by command, killed in the middle and gone on.

    python benchmarks/million.py [--side 1000] [--told 20000] [--policies random gp em-ptdm]
                                 [--out benchmarks/results/million]

Every command is a new process. Measurements come from a CSV file of made patches; the area has a
mask (a lake is closed) and a cost for every cell. ``tell`` and ``ask`` are first killed
(SIGKILL) at several moments of their way, then repeated with the same key, as somebody would whose
machine went down: a command that was killed after its event was written answers from the log, so
its seconds are those of the last try, and what the whole work costs is the ``peek`` before it.
Processor seconds and peak memory of each process; ``verify`` replays the log.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from campaign_long import commit_of

from engram._version import __version__
from engram.seeding import numpy_generator

KILLS = (0.25, 0.6, 0.9)
"""Parts of a command's wall time after which it is killed."""


def area(folder: Path, side: int, told: int) -> None:
    """Mask, costs and a file of measurements: target where two waves meet."""
    rows, cols = np.mgrid[:side, :side]
    lake = (rows - 0.7 * side) ** 2 + (cols - 0.3 * side) ** 2 < (0.1 * side) ** 2
    np.save(folder / "mask.npy", (~lake).astype(np.uint8))
    rng = numpy_generator(0, "task")
    np.save(folder / "cost.npy", np.round(1 + rng.random((side, side)), 3))
    targets = (np.sin(rows / 17.0) + np.sin(cols / 23.0) > 1.2) & ~lake
    cells = rng.permutation(np.flatnonzero(~lake.ravel()))[:told]
    lines = [f"{i // side},{i % side},{int(targets.flat[i])}" for i in cells]
    (folder / "told.csv").write_text("\n".join(["row,col,outcome", *lines, ""]))


def run(folder: Path, *words: str, kill_after: float | None = None) -> dict[str, Any]:
    """A command in a process of its own; what it cost, and what it answered."""
    command = [sys.executable, "-m", "engram", "campaign", *words, "--db", "c.db", "--json"]
    place = {**os.environ, "OMP_NUM_THREADS": "1"}
    began = time.perf_counter()
    with (folder / "out.json").open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=place, stdout=out)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(process.pid, signal.SIGKILL)  # not yet waited for: it is there, or a zombie
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    if kill_after is None and process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return {
        "seconds": round(used.ru_utime + used.ru_stime, 2),
        "wall": round(time.perf_counter() - began, 2),
        "memory_mb": used.ru_maxrss // 1024,
        "killed": kill_after is not None and process.returncode < 0,
    }


def answer(folder: Path) -> Any:
    return json.loads((folder / "out.json").read_text())


def killed_and_repeated(folder: Path, wall: float, *words: str) -> dict[str, Any]:
    """Kill a command at several moments, then let it end; its key makes it count once."""
    stopped = [run(folder, *words, kill_after=part * wall)["killed"] for part in KILLS]
    return {**run(folder, *words), "killed": sum(stopped)}


def campaign(folder: Path, policy: str, side: int, told: int) -> list[dict[str, Any]]:
    """All commands of one campaign, in order."""
    area(folder, side, told)
    steps: list[dict[str, Any]] = []

    def step(name: str, found: dict[str, Any]) -> dict[str, Any]:
        steps.append({"policy": policy, "what": name, **found})
        print(json.dumps(steps[-1]), file=sys.stderr, flush=True)
        return found

    budget = str(told + 2000)
    terms = ["--budget", budget, "--policy", policy, "--mask", "mask.npy", "--cost", "cost.npy"]
    step("create", run(folder, "create", "m", *terms))
    first = step("ask -n 1, nothing measured", run(folder, "ask", "m", "-n", "1", "--key", "a0"))
    tell = ["tell", "m", "--file", "told.csv", "--key", "t"]
    guess = first["wall"] + told / 4000
    step(f"tell --file of {told:,}", killed_and_repeated(folder, guess, *tell))
    run(folder, *tell)
    assert answer(folder)["repeated"]
    wall = step("peek -n 50, all of it new", run(folder, "peek", "m", "-n", "50"))["wall"]
    step("ask -n 50", killed_and_repeated(folder, wall, "ask", "m", "-n", "50", "--key", "a1"))
    cells = [tuple(one["cell"]) for one in answer(folder)]
    assert len(set(cells)) == 50
    few = folder / "few.csv"
    few.write_text("row,col,outcome\n" + "".join(f"{r},{c},0\n" for r, c in cells[:20]))
    step("tell --file of 20", run(folder, "tell", "m", "--file", "few.csv", "--key", "t2"))
    step("ask -n 50 again", run(folder, "ask", "m", "-n", "50", "--key", "a2"))
    step("status", run(folder, "status", "m"))
    status = answer(folder)
    assert status["told"] in (told + 20, told + 21), status["told"]
    for name in ("m.csv", "m.json"):
        step(f"export {name[1:]}", run(folder, "export", "m", "-o", name))
    step("verify", run(folder, "verify", "m"))
    assert answer(folder)["ok"]
    with closing(sqlite3.connect(folder / "c.db")) as raw:
        sizes = raw.execute("SELECT kind, max(length(payload)), max(length(detail)) FROM "
                            "engram_events GROUP BY kind").fetchall()  # fmt: skip
    kept = sum(f.stat().st_size for f in (folder / "c.artifacts").rglob("*") if f.is_file())
    largest = {kind: {"event": event, "beside": beside or 0} for kind, event, beside in sizes}
    print(json.dumps({"bytes": largest, "artifacts": kept}), file=sys.stderr, flush=True)
    steps.append({"policy": policy, "what": "bytes", "events": largest, "artifacts": kept})
    return steps


def as_table(steps: list[dict[str, Any]], about: dict[str, Any]) -> str:
    policies = list(dict.fromkeys(one["policy"] for one in steps))
    timed = [one for one in steps if "seconds" in one]
    names = list(dict.fromkeys(one["what"] for one in timed))
    at = {(one["policy"], one["what"]): one for one in timed}
    lines = ["| command | " + " | ".join(f"{p}: seconds | MB" for p in policies) + " |"]
    lines.append("| --- |" + " ---: | ---: |" * len(policies))
    for name in names:
        cells = [
            f"{at[p, name]['seconds']:.1f} | {at[p, name]['memory_mb']:,}"
            if (p, name) in at
            else " | "
            for p in policies
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    kills = sum(int(one.get("killed") or 0) for one in timed)
    for one in steps:
        if one["what"] == "bytes":
            create, ask = one["events"]["create"], one["events"]["ask"]
            words = (
                f"{one['policy']}: the first event takes {create['event']:,} bytes, mask and costs "
                f"beside it {create['beside']:,}; explanations of 50 cells {ask['beside']:,}; "
                f"artifacts {one['artifacts']:,}."
            )
            lines += ["", words]
    lines += ["", f"Killed {kills} times on the way to tell and ask; every log verified."]
    return "\n".join([*lines, "", f"<!-- {json.dumps(about)} -->", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--told", type=int, default=20_000)
    parser.add_argument("--policies", nargs="+", default=["random", "gp", "em-ptdm"])
    parser.add_argument("--out", type=Path, help="where to keep table (.md) and figures (.json)")
    args = parser.parse_args()
    steps: list[dict[str, Any]] = []
    for policy in args.policies:
        with tempfile.TemporaryDirectory() as folder:
            steps += campaign(Path(folder), policy, args.side, args.told)
    about = {
        "engram": __version__,
        "commit": commit_of(str(Path(__file__).resolve().parent)),
        "command": f"python benchmarks/million.py --side {args.side} --told {args.told}",
        "machine": platform.machine(),
        "python": platform.python_version(),
        "one thread": True,
    }
    table = as_table(steps, about)
    print(table)
    if args.out:
        args.out.with_suffix(".md").write_text(table)
        whole = {"about": about, "rows": steps}
        args.out.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
