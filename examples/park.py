"""A campaign in the middle of its season, to look at with ``engram serve``: orchids in a park.

Where the orchids grow is invented; two crews have told 48 cells and are out for eight more.

    python examples/park.py DATABASE
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from engram.campaign import create_campaign, status
from engram.geo.area import AreaPlan, read_area

FOLDER = Path(__file__).resolve().parent / "park"
CREWS = ("north", "south")
MEADOWS = ((9, 12, 4.0), (20, 22, 5.0), (24, 8, 3.0))
"""Where orchids grow: row, column and radius in cells."""


def orchids(cell: tuple[int, int]) -> float:
    return float(any(np.hypot(cell[0] - r, cell[1] - c) <= size for r, c, size in MEADOWS))


def main(database: str) -> None:
    no_go = [FOLDER / "lake.geojson", FOLDER / "reserve.geojson"]
    park = read_area(AreaPlan(FOLDER / "park.geojson", 200.0, no_go=no_go))
    campaign = create_campaign(
        "park", park.grid, 90, db=database, prior="universal", seed=2, area=park.facts
    )
    for _ in range(6):
        for crew in CREWS:
            for query in campaign.ask(4, by=crew):
                campaign.tell(query.cell, orchids(query.cell), by=crew, key=f"visit-{query.query}")
    for crew in CREWS:
        campaign.ask(4, by=crew)
    facts = status(campaign)
    print(f"measured {facts.told}, found {facts.found}, out {facts.asked}")


if __name__ == "__main__":
    main(sys.argv[1])
