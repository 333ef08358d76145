"""Which cells to hand out: a function of what is in force, the policy and the moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.campaign.state import State
from engram.errors import ExhaustedError
from engram.grid import Cell
from engram.policies.base import Policy, Suggestion

SLACK = 1e-9
"""Rounding allowed when costs are added up."""


@dataclass(frozen=True)
class Wish:
    """What a crew asks for."""

    n: int = 1
    rank: str = "score"
    start: Cell | None = None


def trip_cost(state: State, start: Cell | None) -> NDArray[np.float64]:
    """(n_cells,) cost of a visit, with the way there from a starting point."""
    cost = state.grid.cost.ravel().astype(np.float64)
    if start is None or state.spec.travel == 0:
        return cost
    return np.asarray(cost + state.spec.travel * state.grid.geometry.distances(start))


def worth(state: State, policy: Policy, wish: Wish) -> NDArray[np.float64]:
    """(n_cells,) what the cells are ranked by: the total score, or finds per cost."""
    scores = policy.current_scores()
    if wish.rank == "score":
        return scores.total
    return np.asarray(scores.probability / trip_cost(state, wish.start))


def prices(state: State) -> NDArray[np.float64]:
    """(n_cells,) what a measurement of each cell takes from the budget."""
    if state.spec.budget_kind == "cost":
        return state.grid.cost.ravel().astype(np.float64)
    return np.ones(state.grid.n_cells)


def check_wish(state: State, wish: Wish, at: float) -> None:
    """Refuse what cannot be met before any work is done for it: too many cells, too dear."""
    available = state.available(at)
    total = np.cumsum(np.sort(prices(state)[available]))
    enough = int(np.searchsorted(total, state.budget_left(at) + SLACK, side="right"))
    if wish.n > enough:
        raise ExhaustedError(_why_not(state, wish.n, enough, at, enough < len(total)))


def decide(state: State, policy: Policy, wish: Wish, at: float) -> list[Suggestion]:
    """The n cells to hand out at this moment; refuses when budget or cells do not suffice."""
    grid, left = state.grid, state.budget_left(at)
    available = state.available(at)
    ranking = worth(state, policy, wish)
    place = _places(ranking, available)
    pending = state.pending(at)
    price = prices(state)
    picks: list[Suggestion] = []
    for _ in range(wish.n):
        shut = ~available | (price > left + SLACK)
        if shut.all():
            raise ExhaustedError(_why_not(state, wish.n, len(picks), at, bool(available.any())))
        best = policy.suggest(
            1, pending, exclude=[grid.at(int(i)) for i in np.flatnonzero(shut)], worth=ranking
        )[0]
        index = grid.index(best.cell)
        terms = {**best.terms, "worth": float(ranking[index])}
        picks.append(replace(best, rank=int(place[index]), terms=terms))
        pending = [*pending, best.cell]
        available[index] = False
        left -= price[index]
    return picks


def _places(ranking: NDArray[np.float64], available: NDArray[np.bool_]) -> NDArray[np.intp]:
    """1 for the best available cell, 2 for the next, ..."""
    shown = np.where(available, np.nan_to_num(ranking, nan=-np.inf), -np.inf)
    order = np.argsort(-shown, kind="stable")
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(1, len(order) + 1)
    return place


def ranked(state: State, policy: Policy, wish: Wish, at: float) -> list[int]:
    """Available cells from the best to the worst, each by itself (no diversity)."""
    available = state.available(at)
    place = _places(worth(state, policy, wish), available)
    return [int(i) for i in np.argsort(place, kind="stable")[: int(available.sum())]]


def _why_not(state: State, n: int, got: int, at: float, cells: bool) -> str:
    if cells:
        left, out = state.budget_left(at), len(state.pending(at))
        return (
            f"n={n}: the budget left ({left:g}, with {out} cell(s) out) is enough for {got}; "
            "ask for fewer, tell or fail what is out, or extend the budget"
        )
    waiting = len(state.waits(at))
    return (
        f"n={n}: only {got} cell(s) can be handed out ({len(state.measurements)} measured, "
        f"{len(state.pending(at))} out, {waiting} waiting after a failure, the others closed); "
        "ask for fewer, or open cells"
    )
