"""Tours of crews against tours that go to the nearest stop next, on areas made at random.

    python benchmarks/tours.py --out benchmarks/results/tours.md

Each area is 8 x 8 km with 60 stops, half of them in five clusters; the chance of a find is high in
some clusters and low elsewhere. Three crews have six hours, walk 3 km/h and stay 10 minutes.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np

from engram.bench.provenance import commit
from engram.geo.routing import Trip, solve

STOPS, CREWS, HOURS, SPEED, VISIT = 60, 3, 6.0, 3 / 3.6, 600.0


def area(seed: int) -> Trip:
    """Stops, chances and seconds between them."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(500, 7500, (5, 2))
    chances = rng.beta(2, 3, 5)
    member = rng.integers(0, 5, STOPS // 2)
    near = middles[member] + rng.normal(0, 400, (STOPS // 2, 2))
    spots = np.vstack([rng.uniform(0, 8000, (1 + STOPS - STOPS // 2, 2)), near])
    values = np.r_[0.0, rng.beta(1, 9, STOPS - STOPS // 2), chances[member]]
    times = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1)) / SPEED
    return Trip(times, values, VISIT, HOURS * 3600, CREWS, STOPS)


def nearest_neighbour(trip: Trip) -> list[list[int]]:
    """Each crew in turn goes to the nearest stop that is left, while it can still get back."""
    left, routes = set(range(1, len(trip.values))), []
    for _ in range(trip.crews):
        route: list[int] = []
        while left:
            here = route[-1] if route else 0
            nearest = min(left, key=lambda i: float(trip.times[here, i]))
            if trip.duration([*route, nearest]) > trip.limit:
                break
            route.append(nearest)
            left.discard(nearest)
        routes.append(route)
    return routes


def figures(trip: Trip, routes: list[list[int]]) -> dict[str, float]:
    """Finds, hours, kilometres and finds per hour of all crews together."""
    hours = sum(trip.duration(route) for route in routes) / 3600
    visits = sum(map(len, routes))
    way = (hours * 3600 - visits * trip.visit) * SPEED / 1000
    finds = trip.found(routes)
    return {"finds": finds, "visits": visits, "km": way, "hours": hours, "rate": finds / hours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--areas", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tours.md"))
    given = parser.parse_args()
    rows = []
    for seed in range(given.areas):
        trip = area(seed)
        rows.append((figures(trip, nearest_neighbour(trip)), figures(trip, solve(trip))))
        print(seed, *(f"{f['finds']:.2f} finds, {f['km']:.1f} km" for f in rows[-1]), flush=True)
    lines = [
        "| area | nearest stop next: finds | visits | km | finds per hour "
        "| tours: finds | visits | km | finds per hour | more finds per hour |",
        "| --- " * 10 + "|",
    ]
    for name, (near, tour) in [*enumerate(rows), ("mean", _mean(rows))]:
        cells = [
            f"{f['finds']:.2f} | {f['visits']:.0f} | {f['km']:.1f} | {f['rate']:.3f}"
            for f in (near, tour)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {tour['rate'] / near['rate'] - 1:+.0%} |")
    facts = {
        "commit": commit(), "areas": f"0:{given.areas}", "stops": STOPS, "crews": CREWS,
        "hours": HOURS, "machine": platform.machine(), "python": platform.python_version(),
    }  # fmt: skip
    given.out.write_text("\n".join(lines) + f"\n\n<!-- {json.dumps(facts)} -->\n", encoding="utf-8")


def _mean(
    rows: list[tuple[dict[str, float], dict[str, float]]],
) -> tuple[dict[str, float], dict[str, float]]:
    pick = [
        {key: float(np.mean([row[i][key] for row in rows])) for key in rows[0][0]} for i in (0, 1)
    ]
    return pick[0], pick[1]


if __name__ == "__main__":
    main()
