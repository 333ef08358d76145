"""A field season in miniature: three crews, a flooded cell, a correction, and what is left.

The "world" is a ball task; in a real campaign people measure and tell what they saw.

    python examples/campaign.py [DATABASE]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from engram import ball_task
from engram.campaign import create_campaign, open_campaign, status, verify

CREWS = ("north", "south", "east")


def main(database: str) -> None:
    world = ball_task(3)
    campaign = create_campaign(
        "season", world.grid, 60, db=database, policy="random", seed=1, lease=12 * 3600.0
    )
    for day in range(10):
        for crew in CREWS:
            for query in campaign.ask(2, by=crew):
                if (day, crew) == (2, "east"):
                    campaign.fail(query=query.query, retry=3600.0, reason="flooded", by=crew)
                    continue
                seen = world.measure(query.cell)
                key = f"{crew}-{query.query}"
                campaign.tell(query.cell, seen.outcome, seen.content, by=crew, key=key)
    first = campaign.state.observations[0]
    campaign.correct(first.cell, outcome=first.outcome, noise=0.1, reason="worn lens")
    facts = status(open_campaign("season", db=database))
    left = facts.remaining
    print(f"measured {facts.told}, found {facts.found}")
    print(f"still to find: {left.expected} ({left.low} to {left.high})")
    print(f"in truth: {world.targets - facts.found}")
    print(facts.advice.words)
    assert verify(campaign).ok


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "season.db"))
