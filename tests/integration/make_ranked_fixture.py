"""Write campaigns whose rules looked at cells that were out, closed or could not be paid.

make_ranked_fixture.py FILE

``data/campaigns-ranked.db`` was written before availability was an input of ranking and before
doubt was a term of its own; later versions must open it and give the same suggestions.
"""

from __future__ import annotations

import sqlite3
import sys

import numpy as np

from engram.campaign import Campaign, create_campaign, verify
from engram.grid import Grid

SIDE = 12
SETTINGS = {
    "process": {"policy": "gp"},
    "foraging": {"policy": "gp[acquisition=foraging]"},
    "memory": {"policy": "em-ptdm[particles=4,steps=2,every=4]", "prior": "digits"},
}


def outcome(cell: tuple[int, int]) -> float:
    """Target is a disc in the upper left."""
    return float((cell[0] - 4) ** 2 + (cell[1] - 4) ** 2 <= 7)


def search(campaign: Campaign) -> None:
    """Three crews, of which two stay out for long; a blocked corner; a budget that runs out."""
    for cell in ((4, 4), (9, 9), (1, 10)):
        campaign.tell(cell, outcome(cell))
    campaign.close([(3, 3), (3, 4), (3, 5)], reason="nest")
    out = [campaign.ask(2, by="anna"), campaign.ask(2, by="ben")]
    for step in range(8):
        query = campaign.ask(1, by="cleo")[0]
        campaign.tell(query.cell, outcome(query.cell), by="cleo")
        if step % 3 == 2:
            for old in out.pop(0):
                campaign.tell(old.cell, outcome(old.cell))
            out.append(campaign.ask(2, by="anna"))
    campaign.fail(query=out[0][0].query, retry=1e9, reason="flooded")
    campaign.ask(1, by="cleo", rank="per-cost")


def main(path: str) -> None:
    cost = np.ones((SIDE, SIDE))
    cost[:, 7:] = 4.0
    for name, settings in SETTINGS.items():
        grid = Grid(SIDE, SIDE, cost=cost)
        kind, budget = ("cost", 55) if name == "foraging" else ("measurements", 36)
        campaign = create_campaign(
            name, grid, budget, db=path, budget_kind=kind, seed=3, lease=1e9, **settings
        )
        search(campaign)
        assert verify(campaign).ok
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA journal_mode=DELETE")
        raw.execute("VACUUM")


if __name__ == "__main__":
    main(sys.argv[1])
