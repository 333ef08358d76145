r"""The orienteering problem of crews: who visits what, to find much on short ways.

Crews :math:`k` leave a start and return within a time :math:`T`. With :math:`p_i` the chance of a
find at stop :math:`i`, :math:`t_{ij}` the way and :math:`s` the time of a visit,

.. math::  \max \sum_{i\ \mathrm{visited}} p_i \quad\text{then}\quad
   \min\ \sum t_{ij} + b \max_k d_k , \qquad d_k = \sum_{(i,j) \in k} (t_{ij} + s) \le T ,

each stop visited once at most and n of them at most: as much as can be found, then short ways, and
no crew on the way for much longer than the others. Few stops are solved exactly, by dynamic
programming over sets; more by OR-Tools' local search in a fixed number of rounds, so that the same
question has the same answer (a clock stops a search only far beyond what it takes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.errors import EngramError
from engram.seeding import numpy_generator

FEW = 9
"""Stops up to which the best tours are found by looking at every set."""
ROUNDS = 30
"""How often tours are given up in part and looked for again."""
PRICES = (2.0, 6.0)
"""What a find is worth while tours are looked for, in ways to a stop of the usual chance."""
PATIENCE = 20
"""Seconds after which one search ends in any case."""
FIND = 10**9
"""What a find weighs against a second: finds first, to a thousandth or so."""
BALANCE = 10
"""What a second of the longest tour weighs against one of way (b)."""

Array = NDArray[np.float64]
Pair = tuple[float, float, int, Any]
"""Longest tour, way, the stops of one crew as bits, and the pair of the other crews or None."""


@dataclass(frozen=True, eq=False)
class Trip:
    """What is to be shared out.

    times  : (n + 1, n + 1) seconds between places; the start is 0, the stops are 1 to n
    values : (n + 1,) expected finds of a visit; 0 for the start
    visit  : seconds of a visit
    limit  : seconds a crew has
    crews  : how many
    most   : stops all crews together visit at most
    """

    times: Array
    values: Array
    visit: float
    limit: float
    crews: int
    most: int

    def duration(self, route: list[int]) -> float:
        """Seconds of a route, given by its stops, with visits, from the start and back."""
        way = sum(self.times[i, j] for i, j in pairwise([0, *route, 0]))
        return float(way + self.visit * len(route))

    def found(self, routes: list[list[int]]) -> float:
        """Expected finds of routes."""
        return float(sum(self.values[i] for route in routes for i in route))

    def effort(self, routes: list[list[int]]) -> float:
        """Seconds of way of all routes together, and the longest tour weighed with them."""
        times = [self.duration(route) for route in routes]
        visits = self.visit * sum(len(route) for route in routes)
        return sum(times) - visits + BALANCE * max(times)


def solve(trip: Trip) -> list[list[int]]:
    """One route per crew: stops in visiting order, empty for a crew that stays."""
    near = [i for i in range(1, len(trip.values)) if trip.duration([i]) <= trip.limit]
    if len(near) <= FEW:
        return _exact_of(trip, near)
    if find_spec("ortools") is None:
        raise EngramError("tours of crews need OR-Tools: pip install 'engram[tours]'")
    places = [0, *near]
    part = replace(trip, times=trip.times[np.ix_(places, places)], values=trip.values[places])
    return [[places[i] for i in route] for route in _routed(part)]


def _exact(trip: Trip) -> list[list[int]]:
    """The best routes by dynamic programming: shortest route of every set, then sets to crews."""
    n = len(trip.values) - 1
    sets = 1 << n
    best = np.full((sets, n), np.inf)
    last = np.full((sets, n), -1)
    for i in range(n):
        best[1 << i, i] = trip.times[0, i + 1]
    for chosen in range(1, sets):
        for i in np.flatnonzero(np.isfinite(best[chosen])).tolist():
            for j in range(n):
                into = chosen | 1 << j
                way = best[chosen, i] + trip.times[i + 1, j + 1]
                if into != chosen and way < best[into, j]:
                    best[into, j], last[into, j] = way, i
    back = best + trip.times[1:, 0]
    count = np.array([chosen.bit_count() for chosen in range(sets)])
    way = np.r_[0.0, back[1:].min(axis=1)] if n else np.zeros(1)
    fits = (way + trip.visit * count <= trip.limit) & (count <= trip.most)
    gain = np.array([
        sum(trip.values[i + 1] for i in range(n) if chosen >> i & 1) for chosen in range(sets)
    ])  # fmt: skip
    groups = _shared(trip, fits, way, gain, count)
    return [_route_of(group, back, last) for group in groups]


def _shared(
    trip: Trip, fits: NDArray[np.bool_], way: Array, gain: Array, count: NDArray[np.int_]
) -> list[int]:
    """One set per crew: as much gain as can be had, then as little effort.

    For each set of stops and number of crews the pairs (longest tour, way) are kept that no other
    is better than in both, with the stops of the last crew and the pair of those before it.
    """
    alone: list[list[Pair]] = [
        [(float(way[s] + trip.visit * count[s]), float(way[s]), s, None)] if fits[s] else []
        for s in range(len(way))
    ]
    fronts = alone
    for _ in range(1, trip.crews):
        fronts = [_front(whole, alone, fronts) for whole in range(len(way))]
    reached = np.array([bool(front) for front in fronts]) & (count <= trip.most)
    near = np.flatnonzero(reached & (gain >= gain[reached].max() - 1e-9))
    pairs = (pair for whole in near for pair in fronts[whole])
    best: Pair | None = min(pairs, key=lambda pair: (BALANCE * pair[0] + pair[1], pair[2]))
    groups = []
    while best is not None:
        groups.append(best[2])
        best = best[3]
    return sorted(groups, key=lambda group: (group == 0, group))


def _front(whole: int, alone: list[list[Pair]], before: list[list[Pair]]) -> list[Pair]:
    """Pairs of a set with one more crew, which takes any part of it."""
    found: list[Pair] = []
    part = whole
    while True:
        for longest, way, _, _ in alone[part]:
            for rest in before[whole ^ part]:
                found.append((max(longest, rest[0]), way + rest[1], part, rest))
        if not part:
            break
        part = (part - 1) & whole
    kept: list[Pair] = []
    for pair in sorted(found, key=lambda pair: pair[:3]):
        if not kept or pair[1] < kept[-1][1] - 1e-9:
            kept.append(pair)
    return kept


def _route_of(chosen: int, back: Array, last: NDArray[np.int_]) -> list[int]:
    """The shortest route of a set, read back from its end."""
    route: list[int] = []
    at = int(np.argmin(back[chosen])) if chosen else -1
    while at >= 0:
        route.append(at + 1)
        chosen, at = chosen ^ 1 << at, int(last[chosen, at])
    return route[::-1]


def _routed(trip: Trip) -> list[list[int]]:
    """First what is visited, for the finds; then who visits it, for short and even tours.

    Tours that grow by the stop of most finds per second are improved by local search, which weighs
    finds against way like a crew that has to economise, at several prices, then finds alone. Then
    parts of the best tours are given up at random and the search goes on, some rounds long.
    """
    stops = list(range(1, len(trip.values)))
    leg = float(np.mean(trip.times[np.isfinite(trip.times)]))
    price = leg / max(float(trip.values[1:].mean()), 1e-6)
    thrifty = [_Search(trip, stops, factor * price) for factor in PRICES]
    greedy = _Search(trip, stops, FIND)
    starts = [_grown(trip, power) for power in (0.5, 1.0, 2.0)]
    best = max(
        (greedy.improved(search.improved(start)) for start in starts for search in thrifty),
        key=trip.found,
    )
    rng = numpy_generator(0, "tours")
    for number in range(ROUNDS):
        part = _given_up(best, rng)
        found = greedy.improved(thrifty[number % len(thrifty)].improved(part))
        better = (round(trip.found(found), 9), -trip.effort(found))
        best = found if better > (round(trip.found(best), 9), -trip.effort(best)) else best
    visited = sorted(i for route in best for i in route)
    even = _shared_out(trip, visited, best) if visited else best
    as_much = trip.found(even) >= trip.found(best) - 1e-9
    return even if as_much and trip.effort(even) <= trip.effort(best) else best


def _given_up(routes: list[list[int]], rng: np.random.Generator) -> list[list[int]]:
    """Routes without some stops in a row of each."""
    out = []
    for route in routes:
        length = int(rng.integers(0, len(route) // 2 + 2))
        at = int(rng.integers(0, len(route) + 1))
        out.append(route[:at] + route[at + length :])
    return out


def _grown(trip: Trip, power: float) -> list[list[int]]:
    """Tours that grow by the stop of the largest finds ** power per second, where it fits best."""
    routes: list[list[int]] = [[] for _ in range(trip.crews)]
    times = [0.0] * trip.crews
    left = {i for i in range(1, len(trip.values)) if trip.values[i] > 0}
    while left and sum(map(len, routes)) < trip.most:
        best: tuple[float, int, int, int] | None = None
        for crew, route in enumerate(routes):
            ends = np.array([0, *route, 0])
            for i in left:
                way = trip.times[ends[:-1], i] + trip.times[i, ends[1:]]
                more = way - trip.times[ends[:-1], ends[1:]]
                at = int(np.argmin(more))
                extra = float(more[at]) + trip.visit
                worth = float(trip.values[i]) ** power / max(extra, 1e-9)
                fits = times[crew] + extra <= trip.limit
                if fits and (best is None or worth > best[0]):
                    best = (worth, crew, i, at)
        if best is None:
            break
        _, crew, i, at = best
        routes[crew].insert(at, i)
        times[crew] = trip.duration(routes[crew])
        left.discard(i)
    return routes


def _shared_out(trip: Trip, stops: list[int], start: list[list[int]]) -> list[list[int]]:
    """Short and even tours through stops that one search has chosen."""
    if len(stops) <= FEW:
        return _exact_of(trip, stops)
    search = _Search(trip, stops, FIND, BALANCE)
    best, rng = search.improved(start), numpy_generator(0, "tours", 1)
    for _ in range(ROUNDS):
        found = search.improved(_given_up(best, rng))
        if (trip.found(found), -trip.effort(found)) > (trip.found(best) - 1e-9, -trip.effort(best)):
            best = found
    return best


def _exact_of(trip: Trip, stops: list[int]) -> list[list[int]]:
    """The best tours through some of a few stops."""
    places = [0, *stops]
    part = replace(trip, times=trip.times[np.ix_(places, places)], values=trip.values[places])
    return [[places[i] for i in route] for route in _exact(part)]


class _Search:
    """Local search of OR-Tools through some of these stops; it ends where no move helps.

    find    : seconds of way that a find is worth
    balance : weight of the longest tour
    """

    def __init__(self, trip: Trip, stops: list[int], find: float, balance: int = 0) -> None:
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2

        self.crews, self.places = trip.crews, [0, *stops]
        far = int(trip.limit) * 10 + 1
        among = trip.times[np.ix_(self.places, self.places)]
        times = np.where(np.isfinite(among), np.ceil(among), far).astype(int)
        visits = np.r_[0, np.full(len(stops), int(np.ceil(trip.visit)))][:, None]
        self.manager = pywrapcp.RoutingIndexManager(len(self.places), trip.crews, 0)
        self.model = model = pywrapcp.RoutingModel(self.manager)
        model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(times.tolist()))
        step = model.RegisterTransitMatrix((times + visits).tolist())
        model.AddDimension(step, 0, int(trip.limit), True, "time")
        if balance:
            model.GetDimensionOrDie("time").SetGlobalSpanCostCoefficient(balance)
        nodes = [self.manager.NodeToIndex(i) for i in range(1, len(self.places))]
        for node, stop in zip(nodes, stops, strict=True):
            model.AddDisjunction([node], round(float(trip.values[stop]) * find))
        solver = model.solver()
        solver.Add(solver.Sum([model.ActiveVar(node) for node in nodes]) <= trip.most)
        self.settings = pywrapcp.DefaultRoutingSearchParameters()
        self.settings.local_search_metaheuristic = (
            routing_enums_pb2.LocalSearchMetaheuristic.GREEDY_DESCENT
        )
        self.settings.time_limit.FromSeconds(PATIENCE)
        model.CloseModelWithParameters(self.settings)

    def improved(self, start: list[list[int]]) -> list[list[int]]:
        """Routes that no single move makes better, from these."""
        number = {stop: i for i, stop in enumerate(self.places)}
        routes = [[number[i] for i in route if i in number] for route in start]
        begin = self.model.ReadAssignmentFromRoutes(routes, True)
        found = (
            self.model.SolveFromAssignmentWithParameters(begin, self.settings) if begin else None
        )
        return start if found is None else [self._route(found, crew) for crew in range(self.crews)]

    def _route(self, found: Any, crew: int) -> list[int]:
        index, route = self.model.Start(crew), []
        while not self.model.IsEnd(index):
            node = self.manager.IndexToNode(index)
            route += [self.places[node]] if node else []
            index = found.Value(self.model.NextVar(index))
        return route
