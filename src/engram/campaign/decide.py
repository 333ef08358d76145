"""Which cells to hand out: a function of what is in force, the policy and the moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engram.blocks import as_field
from engram.campaign.state import State
from engram.errors import ExhaustedError
from engram.grid import Cell
from engram.policies.base import Answer, Policy, Suggestion, best_apart
from engram.policies.ranking import Offer
from engram.scores import best_cells

SLACK = 1e-9
"""Rounding allowed when costs are added up."""


@dataclass(frozen=True)
class Wish:
    """What a crew asks for. ``pool``: cells to choose the n from, where tours are made of them."""

    n: int = 1
    rank: str = "score"
    start: Cell | None = None
    pool: int = 0


class Outing(Protocol):
    """Crews that go out together (``geo.crews``): tours through some cells of a pool."""

    @property
    def pool(self) -> int:
        """How many cells to choose from."""

    def to_dict(self) -> dict[str, Any]:
        """What was asked for, as the log keeps it."""

    def chosen(
        self, state: State, candidates: list[Suggestion], n: int, left: float
    ) -> tuple[list[Suggestion], dict[str, Any]]:
        """Up to n of the candidates within the budget left, in the order of their queries, and
        what the log keeps beside them."""


def trip_cost(state: State, start: Cell | None) -> NDArray[np.float64]:
    """(n_cells,) cost of a visit, with the way there from a starting point."""
    cost = state.grid.cost.ravel().astype(np.float64)
    if start is None or state.spec.travel == 0:
        return cost
    return np.asarray(cost + state.spec.travel * state.grid.geometry.distances(start))


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


@dataclass(frozen=True, eq=False)
class Standing:
    """The cells at one moment, before anything of it is handed out.

    answer    : what the policy makes of them;  worth : (n_cells,) what they are ranked by
    available : (n_cells,) cells that compete
    """

    answer: Answer
    worth: NDArray[np.float64]
    available: NDArray[np.bool_]

    @cached_property
    def _shown(self) -> NDArray[np.float64]:
        """(n_cells,) worth, the least where nothing can be visited or is known."""
        return np.where(self.available, np.nan_to_num(self.worth, nan=-np.inf), -np.inf)

    def place(self, index: int) -> int:
        """1 for the best available cell, 2 for the next, ...; each by itself (no diversity)."""
        if self.best(1) == [index]:
            return 1
        own = self._shown[index]
        before = np.count_nonzero(self._shown > own)
        return 1 + int(before + np.count_nonzero(self._shown[:index] == own))

    def best(self, n: int) -> list[int]:
        """The n best available cells, the best first."""
        by_blocks = as_field(self.worth)
        if by_blocks is not None:
            return [index for index, _ in by_blocks.best(self.available, n)]
        return best_cells(self.worth, self.available, n)

    def order(self) -> list[int]:
        """All available cells from the best to the worst."""
        return self.best(int(self.available.sum()))


def standing(state: State, policy: Policy, wish: Wish, at: float) -> Standing:
    """How the cells stand at this moment."""
    available = state.available(at)
    payable = available & (prices(state) <= state.budget_left(at) + SLACK)
    return _standing(state, policy, wish, payable, available, len(state.pending(at)))


def _standing(
    state: State,
    policy: Policy,
    wish: Wish,
    payable: NDArray[np.bool_],
    available: NDArray[np.bool_],
    out: int,
) -> Standing:
    """Under the rules of the campaign: those of before 2 rank without knowing what is shut."""
    informed = state.spec.rules >= 2
    answer = policy.current(Offer(payable.copy(), out)) if informed else policy.current()
    worth = answer.scores.total
    if wish.rank != "score":
        worth = np.asarray(answer.scores.probability / trip_cost(state, wish.start))
    return Standing(answer, worth, payable if informed else available)


def decide(state: State, policy: Policy, wish: Wish, at: float) -> list[Suggestion]:
    """The n cells to hand out at this moment; refuses when budget or cells do not suffice.

    A pool is as large as there are cells, whatever they cost together.
    """
    grid, left = state.grid, state.budget_left(at)
    available, price = state.available(at), prices(state)
    before = standing(state, policy, wish, at)
    taken = [grid.index(cell) for cell in state.pending(at)]
    picks: list[Suggestion] = []
    for _ in range(wish.pool or wish.n):
        payable = available & (price <= left + SLACK)
        if not payable.any() and wish.pool:
            break
        if not payable.any():
            raise ExhaustedError(_why_not(state, wish.n, len(picks), at, bool(available.any())))
        now = _standing(state, policy, wish, payable, available, len(taken))
        index = best_apart(grid, now.worth, payable, taken)
        best = now.answer.suggestion(grid.at(index), index, before.place(index))
        picks.append(replace(best, terms={**best.terms, "worth": float(now.worth[index])}))
        taken.append(index)
        available[index] = False
        left -= 0 if wish.pool else price[index]
    return picks


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
