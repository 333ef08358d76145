"""Asking: which cells to measure next, handed out, looked at, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engram.campaign.answers import Explanation
from engram.campaign.decide import SLACK, Outing, Wish, check_wish, decide
from engram.campaign.events import Ask, Event, HandedOut
from engram.campaign.explain import describe
from engram.campaign.log import CampaignLog, Entry, request_key
from engram.campaign.model import RANKINGS, Query, canonical, check_length, digest
from engram.campaign.state import State
from engram.errors import DamagedError, InputError, NotFoundError
from engram.grid import Cell
from engram.policies.base import Suggestion

RACES = 3
"""Asks computed without a lock before one is computed under it."""


class Asking(CampaignLog):
    """A campaign of which cells can be asked."""

    def wish(
        self, n: int, by: str = "", rank: str | None = None, start: Cell | None = None
    ) -> Wish:
        """What is asked for, checked, with the campaign's and the crew's defaults."""
        if n < 1:
            raise InputError(f"n={n}: ask for at least one cell")
        rank = self.state.spec.rank if rank is None else rank
        if rank not in RANKINGS:
            raise InputError(f"rank={rank!r}: choose one of {', '.join(RANKINGS)}")
        spec = self.state.spec
        if start is None and self.unknown_crew(by):
            raise InputError(
                f"by={by!r} is none of the crews {', '.join(spec.crews)}; name one of them, or say "
                "where the way begins (--from R,C)"
            )
        start = spec.crews.get(by) if start is None else start
        if start is not None:
            self.grid.index(start)
        return Wish(n, rank, start)

    def unknown_crew(self, by: str) -> bool:
        """True for a name that is none of the crews, where the campaign has named its crews."""
        crews = self.state.spec.crews
        return bool(by and crews) and by not in crews

    def ask(
        self,
        n: int = 1,
        *,
        by: str = "",
        lease: float | None = None,
        rank: str | None = None,
        start: Cell | None = None,
        key: str | None = None,
        outing: Outing | None = None,
    ) -> list[Query]:
        """Hand out n different cells and reserve their budget.

        lease  : seconds after which the cells are given back (default: the campaign's)
        rank   : 'score' or 'per-cost' (finds per cost, with the way from ``start``)
        key    : repeating a request with the same key returns the same cells
        outing : crews that go on tours: up to n cells out of a pool of good ones
        """
        if lease is not None and not lease > 0:
            raise InputError(f"lease={lease}: give a time above 0")
        if lease is not None:
            check_length(lease, "lease")
        wish = self.wish(n, by, rank, start)
        lease = self.state.spec.lease if lease is None else lease
        request = {
            "n": n,
            "rank": wish.rank,
            "start": None if wish.start is None else list(wish.start),
            "lease": lease,
        }
        if outing is not None:
            wish = replace(wish, pool=outing.pool)
            request["outing"] = outing.to_dict()
        key, given = request_key(key)
        for _ in range(RACES):
            self.refresh()
            if given and self.storage.find(self.row, key) is not None:
                break
            basis, at = self.state.seq, self.now()
            picks, more = self._chosen(wish, at, outing)
            entry = self._ask_entry(wish, lease, picks, basis, at, more)

            def keep(
                state: State, moment: float, picks: Any = picks, basis: int = basis, e: Any = entry
            ) -> Entry | None:
                return e if self._still_good(state, picks, basis, moment) else None

            event = self._commit("ask", by, key, request, keep)
            if event is not None:
                return self._queries(event[0])

        def locked(state: State, moment: float) -> Entry:
            picks, more = self._chosen(wish, moment, outing)
            return self._ask_entry(wish, lease, picks, state.seq, moment, more)

        done = self._commit("ask", by, key, request, locked)
        assert done is not None
        return self._queries(done[0])

    def peek(
        self, n: int = 10, *, by: str = "", rank: str | None = None, start: Cell | None = None
    ) -> list[Suggestion]:
        """The cells that ``ask`` would hand out now; nothing is reserved or written."""
        self.refresh()
        return self._decide(self.wish(n, by, rank, start), self.now())

    def _decide(self, wish: Wish, at: float) -> list[Suggestion]:
        check_wish(self.state, wish, at)
        return decide(self.state, self.policy(), wish, at)

    def _chosen(
        self, wish: Wish, at: float, outing: Outing | None
    ) -> tuple[list[Suggestion], dict[str, Any]]:
        """The cells to hand out, and what the log keeps of the tours they are on."""
        picks = self._decide(wish, at)
        if outing is None:
            return picks, {}
        return outing.chosen(self.state, picks, wish.n, self.state.budget_left(at))

    def _ask_entry(
        self,
        wish: Wish,
        lease: float | None,
        picks: list[Suggestion],
        basis: int,
        at: float,
        more: dict[str, Any],
    ) -> Entry:
        first = self.state.last_query + 1
        queries = tuple(
            HandedOut(first + i, pick.cell, {**pick.terms, "rank": pick.rank})
            for i, pick in enumerate(picks)
        )
        detail = describe(self.state, self.policy(), picks, wish, at)
        sha256 = digest(canonical(detail))
        body = Ask(wish.n, wish.rank, wish.start, lease, basis, at, queries, sha256, more=more)
        return Entry(body, detail)

    def _still_good(self, state: State, picks: list[Suggestion], basis: int, moment: float) -> bool:
        """True when since ``basis`` only measurements of other cells came in."""
        if state.stirred > basis:
            return False
        indices = [state.grid.index(pick.cell) for pick in picks]
        price = sum(state.spec.cost_of(index) for index in indices)
        affordable = price <= state.budget_left(moment) + SLACK
        return affordable and bool(state.available(moment)[indices].all())

    def _queries(self, event: Event) -> list[Query]:
        assert isinstance(event.body, Ask)
        return [self.state.queries[item.query] for item in event.body.queries]

    def explain(self, query: int) -> Explanation:
        """Why a query's cell was suggested, as it was kept when it was suggested."""
        self.refresh()
        known = self.state.queries.get(query)
        if known is None:
            raise NotFoundError(
                f"there is no query {query}; the campaign has {len(self.state.queries)} so far"
            )
        kept = self.storage.detail(self.row, known.seq)
        try:
            explanation = next(e for e in kept if tuple(e["cell"]) == known.cell)
            return Explanation.of(query, known.state_at(self.now()), explanation)
        except (TypeError, LookupError, StopIteration) as error:
            raise DamagedError(f"the explanation of query {query} was changed or lost") from error
