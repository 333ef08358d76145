"""Write the database that later versions must open: run once per schema version.

make_campaign_fixture.py FILE
"""

from __future__ import annotations

import sqlite3
import sys

from engram.campaign import create_campaign, verify
from engram.grid import Grid


def main(path: str) -> None:
    campaign = create_campaign(
        "fixture", Grid(12, 12, cell=(2, 2)), 12, db=path, policy="random", seed=7, lease=1e9
    )
    asked = campaign.ask(3, by="anna")
    campaign.tell(asked[2].cell, 1.0, by="anna", key="first")
    campaign.tell(asked[0].cell, 0.25, [[0.1, 0.2], [0.3, 0.4]], noise=0.05, by="ben")
    campaign.fail(query=asked[1].query, retry=3600, reason="flooded", by="ben")
    free = [c for c in ((0, 0), (0, 1), (5, 5), (4, 4)) if c not in [q.cell for q in asked]]
    campaign.close([free[0]], reason="nest")
    campaign.open([free[0]])
    campaign.tell(free[0], 1.0)
    campaign.correct(free[0], outcome=0.0, reason="typo", by="anna")
    campaign.tell(free[1], 0.5)
    campaign.retract(free[1], reason="wrong place")
    campaign.extend(3)
    query = campaign.ask(1, by="ben", rank="per-cost", start=(0, 0))[0]
    campaign.tell(query.cell, 0.0)
    campaign.ask(1)
    assert verify(campaign).ok
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA journal_mode=DELETE")
        raw.execute("VACUUM")


if __name__ == "__main__":
    main(sys.argv[1])
