"""Tours of crews: which cells each visits, in which order, and the way it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engram.campaign.campaign import Campaign
from engram.campaign.events import Ask
from engram.geo.units import shown_length


@dataclass(frozen=True)
class Tour:
    """What one crew does.

    queries : numbers of the queries in visiting order
    line    : the way on the grid's map, from the start and back to it
    metres, minutes : length of the way, and how long it takes with all visits
    finds   : expected finds
    """

    crew: int
    queries: list[int]
    line: list[tuple[float, float]]
    metres: float
    minutes: float
    finds: float

    def words(self) -> str:
        """The tour in a few words."""
        hours, minutes = divmod(round(self.minutes), 60)
        return (
            f"{len(self.queries)} visits, {shown_length(self.metres)}, {hours} h {minutes:02d} "
            f"min, {self.finds:.1f} finds expected"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "crew": self.crew,
            "queries": self.queries,
            "line": [[round(x, 1), round(y, 1)] for x, y in self.line],
            "metres": round(self.metres, 1),
            "minutes": round(self.minutes, 2),
            "finds": round(self.finds, 4),
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Tour:
        """A tour as it stands in the log."""
        line = [(float(x), float(y)) for x, y in data["line"]]
        return cls(
            int(data["crew"]),
            [int(q) for q in data["queries"]],
            line,
            float(data["metres"]),
            float(data["minutes"]),
            float(data["finds"]),
        )


def tours_of(campaign: Campaign, *, all_of_them: bool = False) -> list[Tour]:
    """Tours in the log: those with a query that is still out, or all of them."""
    out = {query.query for query in campaign.state.out(campaign.now())}
    asks = [event.body for event in campaign.events if isinstance(event.body, Ask)]
    found = [Tour.of(item) for ask in asks for item in ask.more.get("tours", ())]
    return [tour for tour in found if all_of_them or out & set(tour.queries)]
