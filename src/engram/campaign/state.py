"""What is in force: the log folded into measurements, queries, closed cells and budget.

The state is a function of the events alone; what depends on the time (leases, waiting times)
takes the time as an argument, and every ask records the time it was made at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from engram._version import __version__
from engram.campaign.events import (
    DAMAGE,
    MEASURED,
    AnyBody,
    Ask,
    Close,
    Correct,
    Create,
    Event,
    Extend,
    Fail,
    Measured,
    Merge,
    Open,
    Retract,
    Tell,
)
from engram.campaign.keys import HEAD, Keys, policy_terms
from engram.campaign.model import (
    LARGEST,
    Measurement,
    Query,
    Spec,
    digest,
    grid_with_closed,
)
from engram.campaign.timeline import Span, Timeline
from engram.detection import settles
from engram.errors import DamagedError, NewerError
from engram.grid import Cell, Grid
from engram.observation import Observation
from engram.policies.hyperprior import fingerprint


class State:
    """Everything that follows from a prefix of the log.

    stirred : number of the last event that was not a measurement, which is what an ask computed
        before it cannot stand
    """

    def __init__(self, created: Event) -> None:
        if created.kind != Create.kind:
            raise DamagedError(f"the log starts with {created.kind!r} instead of 'create'")
        body = created.body
        assert isinstance(body, Create)
        self.spec: Spec = body.spec
        self.grid: Grid = self.spec.grid
        self.budget = min(float(self.spec.budget), LARGEST)
        self.base_closed = self.grid.closed.ravel().copy()
        self.closed: set[int] = set()
        self.waiting: dict[int, Span] = {}
        self.measurements: dict[int, Measurement] = {}
        self._earlier: dict[int, list[Measurement]] = {}
        self._unsettled: set[int] = set()
        self.queries: dict[int, Query] = {}
        self.last_query = 0
        self._unanswered: dict[int, Query] = {}
        self._by_cell: dict[Cell, list[Query]] = {}
        self._keys = Keys()
        self.time = Timeline(created.at)
        self.seq, self.hash, self.stirred = created.seq, created.hash, created.seq

    @property
    def at(self) -> float:
        """Time of the last event."""
        return self.time.at

    @classmethod
    def replay(cls, events: Iterable[Event]) -> State:
        """Fold a whole log."""
        iterator = iter(events)
        created = next(iterator, None)
        if created is None:
            raise DamagedError("the log is empty")
        state = cls(created)
        state.apply(iterator)
        return state

    def apply(self, events: Iterable[Event]) -> None:
        """Fold further events."""
        for event in events:
            if event.seq != self.seq + 1:
                raise DamagedError(f"the log has event {event.seq} after event {self.seq}")
            if event.kind == Create.kind:
                raise DamagedError(f"event {event.seq} creates the campaign a second time")
            try:
                self._fold(event, event.body)
            except NewerError:
                raise
            except DAMAGE as error:
                raise event.damaged(error) from error
            self.seq, self.hash = event.seq, event.hash
            if event.kind != Tell.kind:
                self.stirred = event.seq

    def _fold(self, event: Event, body: AnyBody) -> None:
        """How each kind of event changes what is in force."""
        self.time.move(event.at)
        match body:
            case Create():
                pass  # the first event made the state
            case Ask():
                self._ask(event, body)
            case Tell():
                self._tell(event, body)
            case Fail():
                self._fail(event, body)
            case Correct():
                self._correct(body)
            case Retract():
                self._withdraw(self.grid.index(body.cell))
            case Close():
                self.closed.update(map(self.grid.index, body.cells))
            case Open():
                self._open(body)
            case Extend():
                self.budget = min(self.budget + float(body.by), LARGEST)
            case Merge():
                self._merge(event, body)
            case _:
                assert_never(body)

    def _ask(self, event: Event, body: Ask) -> None:
        span = None if body.lease is None else self.time.grant(float(body.lease))
        for item in body.queries:
            cell = self.grid.at(self.grid.index(item.cell))
            self.add_query(
                Query(item.query, cell, event.who, event.at, span, event.seq, item.terms)
            )

    def add_query(self, query: Query) -> None:
        """Put a query in force, in its present state."""
        self.queries[query.query] = query
        self.last_query = max(self.last_query, query.query)
        self._by_cell.setdefault(query.cell, []).append(query)
        if query.state == "asked":
            self._unanswered[query.query] = query

    def _settle(self, query: Query, state: str) -> None:
        query.state = state
        del self._unanswered[query.query]

    def _tell(self, event: Event, body: Tell) -> None:
        for place, (item, query_id) in enumerate(zip(body.items, body.queries, strict=True)):
            observation = item.observation(self.grid)
            self.add_visit(
                Measurement(event.seq, observation, event.who, event.at, query_id, place)
            )
            self.waiting.pop(self.grid.index(observation.cell), None)
            for query in self.queries_of(observation.cell):
                if query.state == "asked":
                    self._settle(query, "told")

    def add_visit(self, told: Measurement) -> None:
        """Put a visit in force; the one before of the same cell becomes an earlier one."""
        index = self.grid.index(told.observation.cell)
        before = self.measurements.pop(index, None)
        if before is not None and index in self._unsettled:
            self._earlier.setdefault(index, []).append(before)
        elif before is not None:  # no request does that, but a log may have been changed
            self._keys.forget()
        self.measurements[index] = told
        self._weigh(index)

    def _withdraw(self, index: int) -> None:
        """Take back the latest visit of a cell."""
        del self.measurements[index]
        earlier = self._earlier.get(index)
        if earlier:
            self.measurements[index] = earlier.pop()
        self._weigh(index)
        self._keys.forget()

    def _weigh(self, index: int) -> None:
        """Note whether a cell that was visited can be visited again."""
        self._unsettled.discard(index)
        if index in self.measurements and not settles(self.worth_of(index)):
            self._unsettled.add(index)

    def worth_of(self, index: int) -> float:
        """What the visits of a cell add to its log-odds of target, as it is reckoned at first."""
        return sum((self.worth_of_report(m.observation) for m in self.visits_of(index)), 0.0)

    def worth_of_report(self, observation: Observation) -> float:
        """What one visit adds to the log-odds of target of its cell."""
        seen = (observation.detection or self.spec.detection).at_first
        return seen.log_odds(observation.outcome > 0)

    def _fail(self, event: Event, body: Fail) -> None:
        index = self.grid.index(body.cell)
        for query in self.queries_of(body.cell):
            named = query.query == body.query
            if query.state == "asked" and (named or not query.expired(event.at)):
                self._settle(query, "failed")
        if body.wait is None:
            self.closed.add(index)
        else:
            self.waiting[index] = self.time.grant(float(body.wait))

    def _correct(self, body: Correct) -> None:
        observation = body.new.observation(self.grid)
        index = self.grid.index(observation.cell)
        old = self.measurements[index]
        self.measurements[index] = replace(old, observation=observation)
        self._weigh(index)
        self._keys.forget()

    def _open(self, body: Open) -> None:
        for cell in body.cells:
            index = self.grid.index(cell)
            self.closed.discard(index)
            self.waiting.pop(index, None)
            if self.base_closed[index]:
                self.base_closed[index] = False
                self._keys.forget_area()
                self.grid = grid_with_closed(self.grid, self.base_closed)

    def _merge(self, event: Event, body: Merge) -> None:
        """What another copy of the campaign puts in force; which that is, ``merging`` says."""
        for cell in body.withdrawn:
            index = self.grid.index(cell)
            self.measurements.pop(index, None)
            self._earlier.pop(index, None)
            self._weigh(index)
        for item in body.queries:
            lease = None if item["lease"] is None else self.time.grant(float(item["lease"]))
            cell = self.grid.at(self.grid.index(item["cell"]))
            self.add_query(
                Query(
                    int(item["query"]), cell, item["by"], float(item["at"]), lease, event.seq,
                    item["terms"], item["state"],
                )
            )  # fmt: skip
        for place, item in enumerate(body.told):
            told = {n: item[n] for n in (*MEASURED, "detection") if n in item}
            observation = Measured.of(told).observation(self.grid)
            self.add_visit(
                Measurement(
                    event.seq, observation, item["who"], float(item["at"]), item["query"], place
                )
            )
            self.waiting.pop(self.grid.index(observation.cell), None)
            for query in self.queries_of(observation.cell):
                if query.state == "asked":
                    self._settle(query, "told")
        for number, state in body.settled:
            if self.queries[number].state == "asked":
                self._settle(self.queries[number], state)
        self._open(Open(body.opened, ""))
        self.closed.update(map(self.grid.index, body.closed))
        for item in body.waits:
            self.waiting[self.grid.index(item["cell"])] = self.time.grant(float(item["seconds"]))
        self.budget = min(self.budget + float(body.extra), LARGEST)
        self._keys.forget()

    # -- questions -------------------------------------------------------------------------

    @property
    def observations(self) -> list[Observation]:
        """Visits in force, in the order of the log."""
        return [m.observation for m in self.visits]

    @property
    def visits(self) -> list[Measurement]:
        """All visits in force, in the order of the log; ``measurements`` has the latest of each
        cell."""
        latest = list(self.measurements.values())
        if not self._earlier:
            return latest
        every = [*(m for told in self._earlier.values() for m in told), *latest]
        return sorted(every, key=lambda m: (m.seq, m.place))

    def visits_of(self, index: int) -> list[Measurement]:
        """Visits of one cell that are in force, the latest last."""
        latest = self.measurements.get(index)
        return [] if latest is None else [*self._earlier.get(index, ()), latest]

    @property
    def found(self) -> int:
        """Cells in which target was found; settled ones where it may be a false alarm."""
        finds = [o for o in self.observations if o.outcome > 0]
        sure = {o.cell for o in finds if not (o.detection or self.spec.detection).false_alarm}
        return len(sure | {o.cell for o in finds if self.is_settled(self.grid.index(o.cell))})

    @property
    def doubted(self) -> bool:
        """Whether any visit may miss a target, or report one that is not there."""
        if not self.spec.detection.perfect:
            return True
        return any(o.detection is not None for o in self.observations)

    def is_settled(self, index: int) -> bool:
        """Whether a cell was visited and nothing more is to be learnt of it."""
        return index in self.measurements and index not in self._unsettled

    def queries_of(self, cell: Cell) -> list[Query]:
        """Queries of a cell, in the order they were handed out."""
        return self._by_cell.get(cell, [])

    def out(self, at: float) -> list[Query]:
        """Queries that are out: asked, unanswered, lease not over."""
        return [q for q in self._unanswered.values() if not q.expired(at)]

    def pending(self, at: float) -> list[Cell]:
        """Cells that are out, each once."""
        return list(dict.fromkeys(q.cell for q in self.out(at)))

    def is_closed(self, index: int) -> bool:
        return index in self.closed or bool(self.base_closed[index])

    def searchable(self) -> NDArray[np.bool_]:
        """(n_cells,) True for open cells that are not settled by measurements in force."""
        mask = ~self.base_closed
        mask[list(self.measurements.keys() - self._unsettled)] = False
        mask[list(self.closed)] = False
        return mask

    def available(self, at: float) -> NDArray[np.bool_]:
        """(n_cells,) True for cells that may be handed out now."""
        mask = self.searchable()
        mask[[self.grid.index(cell) for cell in self.pending(at)]] = False
        mask[self.waits(at)] = False
        return mask

    def waits(self, at: float) -> list[int]:
        """Cells that are not to be tried yet after a failure."""
        return [index for index, wait in self.waiting.items() if not wait.over(at)]

    def spent(self) -> float:
        """Budget taken by the measurements in force."""
        if self.spec.budget_kind == "measurements":
            return float(len(self.visits))
        return sum(self.spec.cost_of(self.grid.index(o.cell)) for o in self.observations)

    def reserved(self, at: float) -> float:
        """Budget held by the cells that are out."""
        return sum(self.spec.cost_of(self.grid.index(cell)) for cell in self.pending(at))

    def budget_left(self, at: float) -> float:
        return self.budget - self.spent() - self.reserved(at)

    def policy_budget(self) -> int:
        """The budget as a number of measurements, which paces a policy."""
        cells = int((~self.base_closed).sum())
        if self.spec.budget_kind == "measurements":
            return min(int(self.budget), cells)
        mean = float(self.grid.cost.ravel()[~self.base_closed].mean())
        return max(1, min(int(self.budget / mean), cells))

    def groups(self) -> list[list[Observation]]:
        """Measurements in force as the policy takes them in: those of one tell together."""
        by_tell = groupby(self.visits, key=lambda m: m.seq)
        return [[m.observation for m in group] for _, group in by_tell]

    def policy_keys(self) -> list[str]:
        """Key of the policy's state after 0, 1, ... groups.

        It names everything the state depends on: engram's version and hyperprior, area, budget,
        policy, options, seed, the hashes of memory and layers and every measurement so far. Two
        logs that put the same things in force share their keys; a correction changes those behind
        it only.
        """
        code = f"{__version__} {fingerprint()}"
        return self.keys_of(code, policy_terms(self.spec), str(self.policy_budget()))

    def keys_of(self, code: str, terms: str, budget: str) -> list[str]:
        """Keys of whatever is made of the area and the measurements by ``code`` on ``terms``."""
        area = self._keys.area(self.spec, self.base_closed)
        return self._keys.after(digest(HEAD, code, terms, area, budget), self.groups())
