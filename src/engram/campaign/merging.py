"""Laptops that meet: two copies of a campaign that were used apart become one log.

Both logs begin alike. What the other copy did behind that is compared in three ways, with what was
in force where they parted: what only one side changed is taken, what both changed alike is kept,
and what both changed differently is a conflict, which a rule or a hand decides. All events of the
other copy are kept in the one event that merges them, so that nothing is dropped and ``verify``
can replay what the other copy suggested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.campaign.answers import Merged
from engram.campaign.events import Ask, Event, Extend, Measured, Merge
from engram.campaign.log import Entry
from engram.campaign.model import Measurement
from engram.campaign.state import State
from engram.campaign.storage import Storage
from engram.detection import settles
from engram.errors import ConflictError, InputError, shown
from engram.grid import Cell

if TYPE_CHECKING:
    from engram.campaign.campaign import Campaign

RULES = ("here", "there", "first", "last")
"""Who is right where both measured differently: this copy, the other, who came first or last."""
SOON = 1e-3
"""Seconds for which a lease or a wait that is over already is granted again."""


@dataclass(frozen=True)
class Conflict:
    """A cell that both copies changed in different ways; None: no measurement in force."""

    cell: Cell
    here: float | None
    there: float | None
    take: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cell": list(self.cell)}

    def words(self) -> str:
        sides = ("none" if y is None else f"{y:g}" for y in (self.here, self.there))
        return f"({self.cell[0]}, {self.cell[1]}): {' here, '.join(sides)} there"


@dataclass(frozen=True)
class Judge:
    """Decides conflicts: by hand where a cell is named, else by a rule, if there is one."""

    rule: str = ""
    by_hand: Mapping[Cell, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rule and self.rule not in RULES:
            raise InputError(f"--rule {shown(self.rule)}: choose one of {', '.join(RULES)}")

    def take(self, cell: Cell, here: Measurement | None, there: Measurement | None) -> str:
        """'here', 'there', or nothing where it is not decided."""
        if cell in self.by_hand:
            return self.by_hand[cell]
        if self.rule in ("first", "last"):
            late = float("inf")  # what was withdrawn was so after it was measured
            times = [late if side is None else side.at for side in (here, there)]
            first = "here" if times[0] <= times[1] else "there"
            other = "there" if first == "here" else "here"
            return first if self.rule == "first" else other
        return self.rule


def merge(
    campaign: Campaign,
    other: str | Path,
    *,
    rule: str = "",
    by_hand: Mapping[Cell, str] | None = None,
    by: str = "",
    only_list: bool = False,
) -> Merged:
    """Put in force what another copy of a campaign has that this one has not.

    rule    : decides every conflict; ``by_hand`` those of single cells
    only_list : look, and write nothing
    """
    judge = Judge(rule, dict(by_hand or {}))
    theirs, details = _read(campaign, other)
    found: list[Conflict] = []

    def prepare(state: State, at: float) -> Entry:
        ours = campaign.storage.events(campaign.row)[: state.seq]
        body, conflicts = merged(ours, theirs, judge, at)
        found[:] = conflicts
        open_ones = [c for c in conflicts if not c.take]
        if open_ones:
            listed = "; ".join(c.words() for c in open_ones[:5])
            raise ConflictError(
                f"{len(open_ones)} cell(s) were measured differently: {listed}; decide by --rule "
                f"({', '.join(RULES)}) or by hand, --take R,C=here"
            )
        return Entry(body, details)

    if only_list:
        state = campaign.refresh()
        body, conflicts = merged(campaign.events, theirs, judge, campaign.now())
        return _answer(body, conflicts, state.seq, 0)
    receipt = campaign._request("merge", by, None, {}, prepare)
    body_done = campaign.events[receipt.seq - 1].body
    assert isinstance(body_done, Merge)
    return _answer(body_done, found, receipt.seq, 1)


def _answer(body: Merge, conflicts: Sequence[Conflict], seq: int, written: int) -> Merged:
    listed = [c.to_dict() for c in conflicts]
    return Merged(
        seq, bool(written), len(body.events) - body.known, len(body.told), len(body.withdrawn),
        len(body.queries), listed,
    )  # fmt: skip


def _read(campaign: Campaign, other: str | Path) -> tuple[list[Event], list[Any]]:
    """The other copy's log, and the explanations of what it suggested, one after the other."""
    storage = Storage(str(other))
    row = storage.campaign(campaign.name)
    if storage.place == campaign.storage.place:
        raise InputError(f"{other} is this very database; give the other copy")
    theirs = storage.events(row)
    ours = campaign.storage.event(campaign.row, 1)
    if row.uid != campaign.row.uid or ours is None or theirs[0].hash != ours.hash:
        raise InputError(
            f"{other}: its campaign {campaign.name!r} is another one, not a copy of this; tell its "
            "measurements instead (export as .csv, tell --file)"
        )
    base = _common(campaign.events, theirs)
    kept: list[Any] = []
    for event in theirs[base:]:
        if isinstance(event.body, Ask | Merge):
            kept += storage.detail(row, event.seq) or []
    return theirs, kept


def _common(ours: Sequence[Event], theirs: Sequence[Event]) -> int:
    """How many events both logs begin with."""
    same = [a.hash == b.hash for a, b in zip(ours, theirs, strict=False)]
    return same.index(False) if False in same else len(same)


def _hashes(events: Sequence[Event]) -> set[str]:
    """Hashes of events, and of those that were merged by them."""
    found = {event.hash for event in events}
    for event in events:
        if isinstance(event.body, Merge):
            found |= _hashes(event.body.foreign())
    return found


def explained(event: Event) -> int:
    """How many explanations are kept with an event."""
    if isinstance(event.body, Ask):
        return len(event.body.queries)
    if isinstance(event.body, Merge):
        return sum(map(explained, event.body.foreign()))
    return 0


def merged(
    ours: Sequence[Event], theirs: Sequence[Event], judge: Judge, at: float
) -> tuple[Merge, list[Conflict]]:
    """What the other log puts in force here, and the conflicts with how they were decided."""
    base = _common(ours, theirs)
    foreign, here_hashes = list(theirs[base:]), _hashes(ours)
    known = next((i for i, e in enumerate(foreign) if e.hash not in here_hashes), len(foreign))
    if known == len(foreign):
        raise InputError("the other copy has nothing that is not here")
    return _compared(ours, foreign, base, known, judge, at)


def _compared(
    ours: Sequence[Event], foreign: list[Event], base: int, known: int, judge: Judge, at: float
) -> tuple[Merge, list[Conflict]]:
    parted = State.replay([*ours[:base], *foreign[:known]])
    here = State.replay(ours)
    there = State.replay([*ours[:base], *foreign])
    keys = {event.key for event in ours}
    conflicts, told, withdrawn = _measurements(parted, here, there, judge)
    numbers, queries = _queries(parted, here, there, at)
    measured = {*here.measurements, *(here.grid.index(m.observation.cell) for m in told)}
    body = Merge(
        base,
        known,
        [asdict(event) for event in foreign],
        [c.to_dict() for c in conflicts],
        [
            {
                **Measured.told(m.observation).plain(),
                "who": m.who,
                "at": m.at,
                "query": None if m.query is None else numbers.get(m.query, m.query),
            }
            for m in told
        ],
        tuple(withdrawn),
        _cells(here, (there.closed - parted.closed) - here.closed - measured),
        _cells(here, {i for i in _opened(parted, there) if here.is_closed(i)}),
        _waits(parted, there, at, measured),
        queries,
        [
            [number, there.queries[number].state]
            for number, query in parted.queries.items()
            if query.state == "asked"
            and here.queries[number].state == "asked"
            and there.queries[number].state != "asked"
        ],
        _extra(foreign[known:], keys),
    )
    return body, conflicts


def _same(one: Measurement, other: Measurement) -> bool:
    a, b = one.observation, other.observation
    plain = (a.outcome, a.noise, a.detection) == (b.outcome, b.noise, b.detection)
    return plain and np.array_equal(a.content, b.content)


def _alike(ones: Sequence[Measurement], others: Sequence[Measurement]) -> bool:
    return len(ones) == len(others) and all(map(_same, ones, others))


def _measurements(
    parted: State, here: State, there: State, judge: Judge
) -> tuple[list[Conflict], list[Measurement], list[Cell]]:
    """Conflicts, visits to take over, and cells whose visits are withdrawn."""
    conflicts: list[Conflict] = []
    told: list[Measurement] = []
    withdrawn: list[Cell] = []
    for index in dict.fromkeys([*there.measurements, *parted.measurements]):
        before, mine, theirs = (s.visits_of(index) for s in (parted, here, there))
        if _alike(theirs, before) or _alike(mine, theirs):
            continue
        further = _further(here, before, mine, theirs)
        if further is not None:
            told += further
            continue
        cell = here.grid.at(index)
        if not _alike(mine, before):
            latest = (mine[-1] if mine else None, theirs[-1] if theirs else None)
            outcomes = [None if m is None else m.observation.outcome for m in latest]
            take = judge.take(cell, *latest)
            conflicts.append(Conflict(cell, outcomes[0], outcomes[1], take))
            if take != "there":
                continue
        several = len(theirs) > 1 or len(mine) > 1
        if not theirs or several or (mine and not here.is_settled(index)):
            withdrawn.append(cell)  # what is told would else count beside what is here
        told += theirs
    return conflicts, told, withdrawn


def _further(
    here: State, before: list[Measurement], mine: list[Measurement], theirs: list[Measurement]
) -> list[Measurement] | None:
    """Visits of the other copy that count beside those here; None where the copies contradict.

    Visits that leave doubt do not contradict each other: those of both copies count, until the
    cell is settled.
    """
    known = len(before)
    if not (_alike(mine[:known], before) and _alike(theirs[:known], before)):
        return None
    worth = sum((here.worth_of_report(m.observation) for m in mine), 0.0)
    added = theirs[known:]
    if mine and settles(worth):
        doubted = [np.isfinite(here.worth_of_report(m.observation)) for m in (*mine, *added)]
        sure = (m for m in added if settles(here.worth_of_report(m.observation)))
        found = mine[-1].observation.outcome > 0
        agree = all((m.observation.outcome > 0) == found for m in sure)
        return [] if any(doubted) and agree else None
    taken = []
    for visit in added:
        taken.append(visit)
        worth += here.worth_of_report(visit.observation)
        if settles(worth):
            break
    return taken


def _queries(
    parted: State, here: State, there: State, at: float
) -> tuple[dict[int, int], list[dict[str, Any]]]:
    """New numbers of what the other copy handed out, and those queries as they come into force."""
    known = {(q.cell, q.by, q.at): q.query for q in here.queries.values()}
    numbers: dict[int, int] = {}
    found = []
    number = here.last_query
    for query in there.queries.values():
        if query.query in parted.queries:
            continue
        mark = (query.cell, query.by, query.at)
        if mark in known:
            numbers[query.query] = known[mark]
            continue
        number += 1
        numbers[query.query] = number
        lease = None if query.until is None else max(query.until - at, SOON)
        found.append(
            {
                "query": number,
                "cell": list(query.cell),
                "by": query.by,
                "at": query.at,
                "lease": lease,
                "terms": query.terms,
                "state": query.state,
            }
        )
    return numbers, found


def _opened(parted: State, there: State) -> set[int]:
    opened = set(np.flatnonzero(parted.base_closed & ~there.base_closed).tolist())
    return opened | (parted.closed - there.closed)


def _cells(state: State, indices: set[int]) -> tuple[Cell, ...]:
    return tuple(state.grid.at(index) for index in sorted(indices))


def _waits(parted: State, there: State, at: float, measured: set[int]) -> list[dict[str, Any]]:
    return [
        {"cell": list(there.grid.at(index)), "seconds": max(span.until - at, SOON)}
        for index, span in there.waiting.items()
        if parted.waiting.get(index) != span and index not in measured
    ]


def _extra(events: Sequence[Event], keys: set[str]) -> float:
    """Budget that events added, those left out whose request reached this copy as well."""
    total = 0.0
    for event in events:
        if isinstance(event.body, Extend) and event.key not in keys:
            total += float(event.body.by)
        if isinstance(event.body, Merge):
            total += _extra(event.body.foreign()[event.body.known :], keys)
    return total


def check_merge(
    ours: Sequence[Event], event: Event, replay: Callable[[list[Event], int], None]
) -> list[str]:
    """Faults of a merge: the other's chain, what it suggested, and what was put in force.

    ours   : the log before the merge
    replay : replays a log (the other copy's) and checks the suggestions behind an event
    """
    body = event.body
    assert isinstance(body, Merge)
    foreign = body.foreign()
    theirs = [*ours[: body.base], *foreign]
    previous = ours[body.base - 1].hash
    for one in foreign:
        if one.hash != one.rechained(previous):
            return [f"event {event.seq} (merge): event {one.seq} of the other copy was changed"]
        previous = one.hash
    replay(theirs, body.base)
    decided = {(d["cell"][0], d["cell"][1]): d["take"] for d in body.decisions}
    again, _ = _compared(ours, foreign, body.base, body.known, Judge(by_hand=decided), event.at)
    if {**again.plain(), "reason": body.reason} != {n: body.plain()[n] for n in again.plain()}:
        return [f"event {event.seq} (merge): it puts in force what the two logs do not say"]
    return []
