"""What a command costs from a new process, this version beside another one, in one run.

    python benchmarks/campaign_cli.py [--before FOLDER] [--out FILE] [--told 200] [--repeats 3]

FOLDER is the ``src`` of the other version. A campaign of 32 x 32 cells is filled by asking and
telling; then every command is run in new processes on copies of its database, the versions in
turn, and the processor time of the cheapest run counts (user and system, one thread). ``the answer
itself`` is what the same costs in a process that has asked before, and ``import torch`` what
loading torch costs in a process that does nothing else: policies with a memory cannot do without.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaign_long import commit_of, keep

from engram._threads import set_threads
from engram._version import __version__
from engram.campaign import create_campaign, open_campaign, status
from engram.tasks.balls import ball_task

COMMANDS = {
    "status": ["status", "speed"],
    "peek": ["peek", "speed", "-n", "1"],
    "ask": ["ask", "speed", "-n", "1"],
    "tell, then ask": ["ask", "speed", "-n", "1"],
}


def filled(db: Path, policy: str, told: int) -> None:
    """A campaign of ball task 0 that was asked and told, one by one."""
    task = ball_task(0)
    campaign = create_campaign("speed", task.grid, told + 100, db=str(db), policy=policy)
    for _ in range(told):
        cell = campaign.ask()[0].cell
        seen = task.measure(cell)
        campaign.tell(cell, seen.outcome, seen.content)
    campaign.peek(1)


def child(command: list[str], source: str, folder: Path) -> float:
    """Processor seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    place = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=place, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command_line(name: str, source: str, kept: Path) -> float:
    """Processor seconds of one command on a fresh copy of the campaign."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        if name.startswith("tell"):
            campaign = open_campaign("speed", db=str(Path(folder) / "c.db"))
            cell = campaign.ask()[0].cell
            campaign.tell(cell, 0.0)
        program = [sys.executable, "-m", "engram", "campaign", *COMMANDS[name], "--db", "c.db"]
        return child(program, source, Path(folder))


def staying(kept: Path) -> dict[str, float]:
    """Processor seconds of each answer in a process that has answered before."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        campaign = open_campaign("speed", db=str(Path(folder) / "c.db"))
        campaign.tell(campaign.ask()[0].cell, 0.0)
        status(campaign)
        found = {"status": _cpu(lambda: status(campaign)), "peek": _cpu(lambda: campaign.peek(1))}
        found["ask"] = _cpu(campaign.ask)
        campaign.tell(campaign.ask()[0].cell, 0.0)
        return {**found, "tell, then ask": _cpu(campaign.ask)}


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(
    sources: dict[str, str], policies: list[str], told: int, repeats: int
) -> list[dict[str, Any]]:
    """The commands of every policy for every version, side by side."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for policy in policies:
            kept = Path(folder) / policy
            kept.mkdir()
            filled(kept / "c.db", policy, told)
            alone = staying(kept)
            for name in COMMANDS:
                runs: dict[str, list[float]] = {version: [] for version in sources}
                for _ in range(repeats):
                    for version, source in sources.items():
                        runs[version].append(command_line(name, source, kept))
                row: dict[str, Any] = {"what": f"{name} ({policy}, {told} told)"}
                row |= {v: {"seconds": round(min(times), 3)} for v, times in runs.items()}
                row["the answer itself"] = {"seconds": round(alone[name], 3)}
                print(json.dumps(row), file=sys.stderr, flush=True)
                rows.append(row)
        for what in ("import torch", "import numpy, scipy.linalg, sqlalchemy, typer"):
            took = min(
                child([sys.executable, "-c", what], "", Path(folder)) for _ in range(repeats)
            )
            same = {"seconds": round(took, 3)}
            rows.append({"what": what, **dict.fromkeys([*sources, "the answer itself"], same)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="the src folder of another version")
    parser.add_argument("--out", type=Path, help="where to keep table (.md) and figures (.json)")
    parser.add_argument("--told", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--policies", nargs="+", default=["auto", "gp", "random"])
    args = parser.parse_args()
    set_threads(1)
    now = str(Path(sys.modules["engram"].__file__ or "").resolve().parents[1])
    sources = ({"before": args.before} if args.before else {}) | {"now": now}
    rows = compare(sources, args.policies, args.told, args.repeats)
    about = {
        "engram": __version__,
        "commits": {version: commit_of(source) for version, source in sources.items()},
        "command": f"python benchmarks/campaign_cli.py --told {args.told}",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    keep(rows, [*sources, "the answer itself"], about, args.out)


if __name__ == "__main__":
    main()
