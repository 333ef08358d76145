"""How long an ask over HTTP takes at 32x32 cells with many told answers, for one crew.

    python benchmarks/server_ask.py [--policy auto] [--told 200] [--asks 40] [--before CHECKOUT]
        [--out FILE]

Each ask follows a tell, at once (the engine has to take it in first) or a second later (an idle
process has taken it in already).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from server_process import ServerProcess  # noqa: E402

from engram import Client  # noqa: E402
from engram.bench.provenance import commit, machine  # noqa: E402
from engram.client import RemoteCampaign  # noqa: E402
from engram.tasks.balls import ball_task  # noqa: E402


def asks(campaign: RemoteCampaign, cells: list[tuple[int, int]], pause: float) -> list[float]:
    """Seconds of an ask after each tell."""
    task, found = ball_task(0), []
    for cell in cells:
        campaign.tell(cell, task.measure(cell).outcome)
        time.sleep(pause)
        began = time.perf_counter()
        query = campaign.ask(1)[0]
        found.append(time.perf_counter() - began)
        campaign.fail(query=query.query, retry=0.0)
    return found


def measured(policy: str, told: int, count: int) -> dict[str, list[float]]:
    """Seconds of asks, at once and a second after a tell."""
    cells = [(row, col) for row in range(32) for col in range(32)]
    random.Random(1).shuffle(cells)
    task = ball_task(0)
    with (
        tempfile.TemporaryDirectory(prefix="engram-ask-") as folder,
        ServerProcess(str(Path(folder) / "campaigns.db")) as server,
    ):
        campaign = Client(server.link).create("speed", size=(32, 32), budget=800, policy=policy)
        known, rest = cells[:told], cells[told:]
        campaign.tell_many([{"cell": c, "outcome": task.measure(c).outcome} for c in known])
        campaign.fail(query=campaign.ask(1)[0].query, retry=0.0)
        found = {
            "at once": asks(campaign, rest[:count], 0.0),
            "a second later": asks(campaign, rest[count : 2 * count], 1.0),
        }
        server.stop()
    return found


def of_checkout(folder: Path, args: argparse.Namespace) -> dict[str, list[float]]:
    """The same by the server of another checkout."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(folder / "src")
    try:
        return measured(args.policy, args.told, args.asks)
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def table(runs: dict[str, dict[str, list[float]]]) -> list[str]:
    heads = [f"{name} {part}" for name in runs for part in ("p50", "p95", "longest")]
    lines = [f"| ask | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for kind in next(iter(runs.values())):
        figures = [
            f"{1000 * np.percentile(run[kind], p):.0f}"
            for run in runs.values()
            for p in (50, 95, 100)
        ]
        lines.append(f"| {kind} | {' | '.join(figures)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--told", type=int, default=200)
    parser.add_argument("--asks", type=int, default=40)
    parser.add_argument("--before", type=Path, help="A checkout of an earlier commit.")
    parser.add_argument("--before-name", help="What its columns are called, such as its commit.")
    parser.add_argument("--beside", default="", help="What else ran on the machine, in words.")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    runs = {}
    if args.before is not None:
        name = args.before_name or "before"
        runs[name] = of_checkout(args.before, args)
    runs["now"] = measured(args.policy, args.told, args.asks)
    lines = [
        f"Policy {args.policy}, 32x32 cells, {args.told} told: milliseconds of an ask after "
        f"a tell, {args.asks} asks each. Every tenth draws new particles.",
        "",
        *table(runs),
        "",
        *([args.beside, ""] if args.beside else []),
        f"<!-- {json.dumps({'commit': commit(), **machine()})} -->",
        "",
    ]
    print("\n".join(lines))
    if args.out is not None:
        args.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
