"""Crews that share out cells: tours from a start, within the hours they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.campaign.decide import SLACK, prices
from engram.campaign.state import State
from engram.errors import InputError
from engram.geo.place import Place
from engram.geo.routing import Trip, solve
from engram.geo.tours import Tour
from engram.geo.travel import Ways
from engram.policies.base import Suggestion

MOST_CREWS = 50
WIDEST = 80
"""Cells of a pool at most: more are not weighed against each other in time."""


@dataclass(frozen=True)
class Crews:
    """What crews have: a start (latitude, longitude), hours, a speed, minutes for a visit.

    count : how many crews
    n     : cells asked for, of which the pool is a multiple
    speed : metres per second, where no cost raster says how long cells take
    """

    count: int
    n: int
    start: tuple[float, float]
    hours: float
    speed: float
    minutes_per_visit: float

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_CREWS:
            raise InputError(f"--crews {self.count}: give 1 to {MOST_CREWS}")
        if not 0 < self.hours <= 240:
            raise InputError(f"--hours {self.hours:g}: give more than 0 and at most 240")
        if not 0 <= self.minutes_per_visit <= 60 * self.hours:
            raise InputError(
                f"--minutes-per-visit {self.minutes_per_visit:g}: give 0 to the hours there are"
            )

    @property
    def pool(self) -> int:
        return min(max(3 * self.n, 40), max(WIDEST, self.n))

    def to_dict(self) -> dict[str, Any]:
        return {
            "crews": self.count,
            "start": list(self.start),
            "hours": self.hours,
            "speed": self.speed,
            "minutes_per_visit": self.minutes_per_visit,
            "pool": self.pool,
        }

    def chosen(
        self, state: State, candidates: list[Suggestion], n: int, left: float
    ) -> tuple[list[Suggestion], dict[str, Any]]:
        """The cells that tours lead through, crew by crew, and the tours."""
        place = Place(state.grid)
        ways = Ways.of(state.grid, state.spec.area, self.speed)
        indices = [state.grid.index(pick.cell) for pick in candidates]
        start = np.array([float(v) for v in place.on_map(*self.start)])
        if not np.isfinite(start).all():
            raise InputError(f"--from {self.start[0]:g},{self.start[1]:g} is no place on this map")
        spots = np.vstack([start, np.stack(place.centres(indices), axis=1)])
        values = np.r_[0.0, [pick.terms["probability"] for pick in candidates]]
        trip = Trip(
            ways.seconds(spots), values, 60 * self.minutes_per_visit, 3600 * self.hours,
            self.count, n,
        )  # fmt: skip
        price = np.r_[0.0, prices(state)[indices]]
        routes = _affordable(solve(trip), price, values, left)
        if not any(routes):
            near = float(np.min(trip.times[0, 1:], initial=np.inf)) / 60
            raise InputError(
                f"no cell can be visited and left again in {self.hours:g} h (the nearest is "
                f"{near:,.0f} min away); give more --hours, or another --from"
            )
        picks, tours = [], []
        number = state.last_query + 1
        for crew, route in enumerate((r for r in routes if r), 1):
            line = _line(ways, spots, route)
            tour = Tour(
                crew,
                list(range(number, number + len(route))),
                line,
                float(np.hypot(*np.diff(np.array(line), axis=0).T).sum()),
                trip.duration(route) / 60,
                trip.found([route]),
            )
            number += len(route)
            picks += [candidates[i - 1] for i in route]
            tours.append(tour.to_dict())
        return picks, {"outing": self.to_dict(), "tours": tours}


def _affordable(routes: list[list[int]], price: Any, values: Any, left: float) -> list[list[int]]:
    """Routes without their least promising stops, until the budget pays for the rest."""
    kept = [list(route) for route in routes]
    while sum(price[i] for route in kept for i in route) > left + SLACK:
        worst = min((i for route in kept for i in route), key=lambda i: (values[i], -price[i]))
        kept = [[i for i in route if i != worst] for route in kept]
    return kept


def _line(ways: Ways, spots: Any, route: list[int]) -> list[tuple[float, float]]:
    """The way of a route, from the start and back, corner by corner."""
    line: list[tuple[float, float]] = [(float(spots[0][0]), float(spots[0][1]))]
    for i, j in zip([0, *route], [*route, 0], strict=True):
        line += ways.line(spots[i], spots[j])[1:]
    return line
