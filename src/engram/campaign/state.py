"""What is in force: the log folded into measurements, queries, closed cells and budget.

The state is a function of the events alone; what depends on the time (leases, waiting times)
takes the time as an argument, and every ask records the time it was made at.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from engram._version import __version__
from engram.campaign.model import (
    KINDS,
    Event,
    Measurement,
    Query,
    Spec,
    canonical,
    digest,
    grid_with_closed,
    observation_from_dict,
    observation_to_dict,
)
from engram.errors import InputError
from engram.grid import Cell, Grid
from engram.observation import Observation
from engram.policies.habits import fingerprint


class State:
    """Everything that follows from a prefix of the log."""

    def __init__(self, created: Event) -> None:
        if created.kind != "create":
            raise InputError(f"the log starts with {created.kind!r} instead of 'create'")
        self.spec = Spec.from_dict(created.payload)
        self.grid: Grid = self.spec.grid
        self.budget = float(self.spec.budget)
        self.base_closed = self.grid.closed.ravel().copy()
        self.closed: set[int] = set()
        self.waiting: dict[int, float] = {}
        self.measurements: dict[int, Measurement] = {}
        self.queries: dict[int, Query] = {}
        self.seq, self.hash, self.at = created.seq, created.hash, created.at

    @classmethod
    def replay(cls, events: Iterable[Event]) -> State:
        """Fold a whole log."""
        iterator = iter(events)
        state = cls(next(iterator))
        state.apply(iterator)
        return state

    def apply(self, events: Iterable[Event]) -> None:
        """Fold further events."""
        for event in events:
            if event.seq != self.seq + 1:
                raise InputError(f"the log has event {event.seq} after event {self.seq}")
            if event.kind not in KINDS:
                raise InputError(
                    f"event {event.seq} is of kind {event.kind!r}, which this version of engram "
                    "does not know: update engram"
                )
            getattr(self, f"_{event.kind}")(event)
            self.seq, self.hash, self.at = event.seq, event.hash, event.at

    # -- how each kind of event changes what is in force ---------------------------------

    def _ask(self, event: Event) -> None:
        lease = event.payload["lease"]
        until = None if lease is None else event.at + float(lease)
        for item in event.payload["queries"]:
            row, col = item["cell"]
            query = Query(
                item["query"], (row, col), event.who, event.at, until, event.seq, item["terms"]
            )
            self.queries[query.query] = query

    def _tell(self, event: Event) -> None:
        queries = event.payload["queries"]
        for item, query_id in zip(event.payload["items"], queries, strict=True):
            observation = observation_from_dict(self.grid, item)
            index = self.grid.index(observation.cell)
            self.measurements[index] = Measurement(
                event.seq, observation, event.who, event.at, query_id
            )
            self.waiting.pop(index, None)
            for query in self.queries_of(observation.cell):
                if query.state == "asked":
                    query.state = "told"

    def _fail(self, event: Event) -> None:
        row, col = event.payload["cell"]
        index = self.grid.index((row, col))
        for query in self.queries_of((row, col)):
            named = query.query == event.payload["query"]
            if query.state == "asked" and (named or not query.expired(event.at)):
                query.state = "failed"
        wait = event.payload["wait"]
        if wait is None:
            self.closed.add(index)
        else:
            self.waiting[index] = event.at + float(wait)

    def _correct(self, event: Event) -> None:
        observation = observation_from_dict(self.grid, event.payload["new"])
        index = self.grid.index(observation.cell)
        old = self.measurements[index]
        self.measurements[index] = Measurement(old.seq, observation, old.who, old.at, old.query)

    def _retract(self, event: Event) -> None:
        row, col = event.payload["cell"]
        del self.measurements[self.grid.index((row, col))]

    def _close(self, event: Event) -> None:
        self.closed.update(self.grid.index((r, c)) for r, c in event.payload["cells"])

    def _open(self, event: Event) -> None:
        for row, col in event.payload["cells"]:
            index = self.grid.index((row, col))
            self.closed.discard(index)
            self.waiting.pop(index, None)
            if self.base_closed[index]:
                self.base_closed[index] = False
                self.grid = grid_with_closed(self.grid, self.base_closed)

    def _extend(self, event: Event) -> None:
        self.budget += float(event.payload["by"])

    # -- questions -------------------------------------------------------------------------

    @property
    def observations(self) -> list[Observation]:
        """Measurements in force, in the order of the log."""
        return [m.observation for m in self.measurements.values()]

    def queries_of(self, cell: Cell) -> list[Query]:
        return [q for q in self.queries.values() if q.cell == cell]

    def out(self, at: float) -> list[Query]:
        """Queries that are out: asked, unanswered, lease not over."""
        return [q for q in self.queries.values() if q.state_at(at) == "asked"]

    def pending(self, at: float) -> list[Cell]:
        """Cells that are out, each once."""
        return list(dict.fromkeys(q.cell for q in self.out(at)))

    def is_closed(self, index: int) -> bool:
        return index in self.closed or bool(self.base_closed[index])

    def searchable(self) -> NDArray[np.bool_]:
        """(n_cells,) True for open cells that have no measurement in force."""
        mask = ~self.base_closed
        mask[list(self.closed)] = False
        mask[list(self.measurements)] = False
        return mask

    def available(self, at: float) -> NDArray[np.bool_]:
        """(n_cells,) True for cells that may be handed out now."""
        mask = self.searchable()
        mask[[self.grid.index(cell) for cell in self.pending(at)]] = False
        mask[[index for index, until in self.waiting.items() if at < until]] = False
        return mask

    def spent(self) -> float:
        """Budget taken by the measurements in force."""
        return sum(self.spec.cost_of(index) for index in self.measurements)

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
        by_tell = groupby(self.measurements.values(), key=lambda m: m.seq)
        return [[m.observation for m in group] for _, group in by_tell]

    def policy_keys(self, spec: Spec) -> list[str]:
        """Key of a policy's state after 0, 1, ... groups.

        It names everything the state depends on: engram's version and habits, area, budget,
        policy, options, seed, the memory's hash and every measurement so far. Two logs that put the
        same things in force share their keys; a correction changes those behind it only.
        """
        terms = canonical([spec.policy, spec.preset, spec.options, spec.seed, spec.prior_sha256])
        area = canonical(
            [spec.to_dict()["grid"], [int(i) for i in np.flatnonzero(self.base_closed)]]
        )
        code = f"{__version__} {fingerprint()}"
        keys = [digest("engram-state-1", code, terms, area, str(self.policy_budget()))]
        for group in self.groups():
            keys.append(digest(keys[-1], canonical([observation_to_dict(o) for o in group])))
        return keys
