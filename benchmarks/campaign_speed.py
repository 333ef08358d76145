"""How long a campaign takes to answer: ask with many told cells, and opening a long log.

    python benchmarks/campaign_speed.py [--policy NAME] [--prior NAME] [--told 200] [--events 1000]

Seconds on one core: a tell, an ask by a process that just told, the first ask of a process that
finds the artifacts, one that has to rebuild everything from the log, and opening a long log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engram._threads import set_threads
from engram.campaign import Campaign, create_campaign, open_campaign, verify
from engram.tasks.balls import ball_task


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return round(time.perf_counter() - began, 4)


def fill(campaign: Campaign, told: int) -> list[float]:
    """Ask and tell one by one; returns the seconds of each tell."""
    task = ball_task(0)
    times = []
    for _ in range(told):
        cell = campaign.ask()[0].cell
        seen = task.measure(cell)
        times.append(seconds(lambda c=cell, s=seen: campaign.tell(c, s.outcome, s.content)))  # type: ignore[misc]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="gp")
    parser.add_argument("--prior")
    parser.add_argument("--told", type=int, default=200)
    parser.add_argument("--events", type=int, default=1000)
    args = parser.parse_args()
    set_threads(1)
    grid = ball_task(0).grid
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder) / "c.db")
        terms = {"db": db, "policy": args.policy, "prior": args.prior}
        campaign = create_campaign("speed", grid, args.told + 50, **terms)
        tells = fill(campaign, args.told)
        found: dict[str, object] = {"policy": args.policy, "told": args.told}
        found["tell"] = round(sum(tells) / len(tells), 4)
        found["ask"] = seconds(campaign.ask)
        found["ask, resumed"] = seconds(lambda: open_campaign("speed", db=db).ask())
        shutil.rmtree(Path(folder) / "c.artifacts")
        found["ask, artifacts lost"] = seconds(lambda: open_campaign("speed", db=db).ask())
        found["verify"] = seconds(lambda: verify(open_campaign("speed", db=db)))
        long = create_campaign("long", grid, args.events, **terms)
        for i in range(args.events - 1 - args.events // 50):
            long.ask(1, key=f"a{i}") if i % 50 == 0 else None
            free = next(c for c in map(grid.at, range(grid.n_cells)) if _free(long, c))
            long.tell(free, 0.0)
        long.peek(1)
        again: list[Campaign] = []
        found["events"] = long.state.seq
        found["open the long log"] = seconds(lambda: again.append(open_campaign("long", db=db)))
        found["peek then"] = seconds(lambda: again[0].peek(1))
        found["measurements replayed"] = again[0].keeper.replayed
    print(json.dumps(found, indent=1))


def _free(campaign: Campaign, cell: tuple[int, int]) -> bool:
    index = campaign.grid.index(cell)
    return index not in campaign.state.measurements and not campaign.state.queries_of(cell)


if __name__ == "__main__":
    main()
