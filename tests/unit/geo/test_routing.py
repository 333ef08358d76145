"""Tours against every possible one, and against tours that go to the nearest stop next."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from engram.geo import routing
from engram.geo.routing import BALANCE, Trip, solve


def trip(seed: int, stops: int, crews: int, hours: float, most: int | None = None) -> Trip:
    """Stops at random in 8 x 8 km around a start, walked at 3 km/h."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform(0, 8000, (stops + 1, 2))
    times = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1)) / (3 / 3.6)
    values = np.r_[0.0, rng.beta(1, 4, stops)]
    return Trip(times, values, 600.0, hours * 3600, crews, most or stops)


def brute_force(problem: Trip) -> tuple[float, float]:
    """Finds and effort of the best tours, by trying all orders and all ways to share them out."""
    stops = len(problem.values) - 1
    alone: dict[frozenset[int], float] = {frozenset(): 0.0}
    for size in range(1, stops + 1):
        for order in permutations(range(1, stops + 1), size):
            time, key = problem.duration(list(order)), frozenset(order)
            if time <= problem.limit:
                alone[key] = min(alone.get(key, np.inf), time)
    shared = {key: [(time,)] for key, time in alone.items()}
    for _ in range(1, problem.crews):
        wider: dict[frozenset[int], list[tuple[float, ...]]] = {}
        for key, times in shared.items():
            for other, time in alone.items():
                if not key & other:
                    wider.setdefault(key | other, []).extend((*t, time) for t in times[:40])
        shared = wider
    best = (-1.0, np.inf)
    for key, choices in shared.items():
        if len(key) > problem.most:
            continue
        finds = round(sum(float(problem.values[i]) for i in key), 9)
        visits = problem.visit * len(key)
        effort = min(sum(times) - visits + BALANCE * max(times) for times in choices)
        if (finds, -effort) > (best[0], -best[1]):
            best = (finds, effort)
    return best


@pytest.mark.parametrize(
    ("seed", "stops", "crews", "hours", "most"),
    [(0, 8, 1, 2.5, 8), (1, 7, 1, 4.0, 4), (2, 6, 2, 2.0, 6), (3, 6, 2, 5.0, 5), (4, 5, 3, 3.0, 5),
     (5, 5, 3, 1.2, 3), (6, 1, 2, 9.0, 1), (7, 7, 1, 0.1, 7)],
)  # fmt: skip
def test_few_stops_are_shared_out_best(
    seed: int, stops: int, crews: int, hours: float, most: int
) -> None:
    problem = trip(seed, stops, crews, hours, most)
    routes = solve(problem)
    finds, effort = brute_force(problem)
    assert len(routes) == crews
    assert max(problem.duration(route) for route in routes) <= problem.limit
    visited = [i for route in routes for i in route]
    assert len(set(visited)) == len(visited) <= most
    assert problem.found(routes) == pytest.approx(finds, abs=1e-8)
    assert problem.effort(routes) == pytest.approx(effort, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_solver_of_many_stops_finds_the_best_of_few(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = trip(seed, 8, 1 + seed % 3, 3.0)
    best = solve(problem)
    found = routing._routed(problem)
    assert problem.found(found) == pytest.approx(problem.found(best), abs=2e-3)


def nearest_neighbour(problem: Trip) -> list[list[int]]:
    """Each crew in turn goes to the nearest stop that is left, while it can still get back."""
    left, routes = set(range(1, len(problem.values))), []
    for _ in range(problem.crews):
        route: list[int] = []
        while left and sum(map(len, routes)) + len(route) < problem.most:
            here = route[-1] if route else 0
            nearest = min(left, key=lambda i: problem.times[here, i])
            if problem.duration([*route, nearest]) > problem.limit:
                break
            route.append(nearest)
            left.discard(nearest)
        routes.append(route)
    return routes


def test_many_stops_are_better_than_nearest_neighbours_and_the_same_each_time() -> None:
    problem = trip(11, 40, 3, 5.0)
    routes = solve(problem)
    assert max(problem.duration(route) for route in routes) <= problem.limit
    assert problem.found(routes) > 1.1 * problem.found(nearest_neighbour(problem))
    assert solve(problem) == routes


def test_stops_without_a_way_are_left_out() -> None:
    problem = trip(3, 12, 2, 30.0)
    problem.times[4, :] = problem.times[:, 4] = np.inf
    visited = {i for route in solve(problem) for i in route}
    assert visited == set(range(1, 13)) - {4}
