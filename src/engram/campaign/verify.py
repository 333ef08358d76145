"""Replay of the whole log: does every recorded suggestion come out again?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from engram.campaign.campaign import Campaign
from engram.campaign.decide import Wish, decide
from engram.campaign.events import Ask, Event, Merge
from engram.campaign.keeper import PolicyKeeper
from engram.campaign.merging import check_merge, explained
from engram.campaign.model import canonical, digest
from engram.campaign.older_rules import is_gone
from engram.campaign.state import State
from engram.errors import DamagedError, EngramError

TOLERANCE = 1e-4
"""Relative difference of score terms between machines that is not counted as one."""


@dataclass
class Verification:
    """What the replay found; it agrees when there are no faults.

    suggestions : those that were made again;  older : those that were not, because the policy of
        then is no longer there (``older_rules``)
    """

    events: int = 0
    asks: int = 0
    suggestions: int = 0
    older: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def verify(campaign: Campaign) -> Verification:
    """Check the chain of hashes, fold the log again, and recompute every suggestion.

    Damage of any kind is named in the report. Snapshots and artifacts are not looked at, except
    that what is in force here must be what the log puts in force.
    """
    report = Verification()
    try:
        campaign.refresh()
        events = campaign.events
        report.events = len(events)
        _check_chain(events, report)
        if report.ok:
            _replay(campaign, events, report)
    except DamagedError as error:
        report.faults.append(str(error))
    return report


def _replay(campaign: Campaign, events: list[Event], report: Verification) -> None:
    keeper = PolicyKeeper()

    def kept(event: Event) -> Any:
        return _detail(campaign, event.seq)

    state = _replayed(events, 0, kept, keeper, report)
    keeper.policy(state)
    if _in_force(state) != _in_force(campaign.state):
        report.faults.append(
            "what was in force here is not what the log says: a snapshot was changed; remove "
            f"{campaign.folder}"
        )


def _replayed(
    events: list[Event],
    after: int,
    kept: Callable[[Event], Any],
    keeper: PolicyKeeper,
    report: Verification,
) -> State:
    """Fold a log, and check what was suggested and merged behind event ``after``.

    kept : the explanations that are kept with an event
    """
    state = State.replay(events[:1])
    for event in events[after:]:
        if isinstance(event.body, Ask):
            state.apply(events[state.seq : event.body.basis])
            _check_ask(event.seq, event.body, kept(event), state, keeper, report)
        elif isinstance(event.body, Merge):
            replay = partial(_replayed_copy, kept(event), keeper, report)
            report.faults += check_merge(events[: event.seq - 1], event, replay)
    state.apply(events[state.seq :])
    return state


def _replayed_copy(
    kept: Any, keeper: PolicyKeeper, report: Verification, events: list[Event], after: int
) -> None:
    """Check another copy's log, of which all explanations were kept one after the other."""
    rest = list(kept or ())
    parts: dict[int, Any] = {}
    for event in events[after:]:
        count = explained(event)
        parts[event.seq], rest = rest[:count], rest[count:]
    _replayed(events, after, lambda event: parts.get(event.seq), keeper, report)


def _in_force(state: State) -> tuple[Any, ...]:
    """What two states of one campaign are compared by."""
    queries = [(q.query, q.cell, q.by, q.until, q.state) for q in state.queries.values()]
    places = (sorted(state.closed), sorted(state.waiting.items()), state.base_closed.tolist())
    return state.hash, state.at, state.budget, state.policy_keys()[-1], queries, places


def _check_chain(events: list[Event], report: Verification) -> None:
    previous = ""
    for event in events:
        if event.rechained(previous) != event.hash:
            report.faults.append(
                f"event {event.seq} ({event.kind}) was changed after it was written"
            )
        previous = event.hash


def _check_ask(
    seq: int, ask: Ask, kept: Any, state: State, keeper: PolicyKeeper, report: Verification
) -> None:
    report.asks += 1
    if _detail_hash(kept) != ask.detail_sha256:
        report.faults.append(f"event {seq}: its explanation was changed or is missing")
    if is_gone(state.spec):
        report.older += len(ask.queries)
        return
    try:
        wish = Wish(ask.n, ask.rank, ask.start, ask.pool)
        picks = decide(state, keeper.policy(state), wish, ask.at)
    except EngramError as error:
        report.faults.append(f"event {seq}: the replay fails: {error}")
        return
    if ask.pool:  # tours are made of some of the pool; which ones is not replayed
        offered = {pick.cell: pick for pick in picks}
        picks = [offered.get(item.cell, picks[0]) for item in ask.queries]
    for recorded, pick in zip(ask.queries, picks, strict=True):
        report.suggestions += 1
        again = {**pick.terms, "rank": pick.rank}
        if recorded.cell != pick.cell:
            report.faults.append(
                f"query {recorded.query}: the log has cell {recorded.cell}, "
                f"the replay gives {pick.cell}"
            )
        elif not _close(recorded.terms, again):
            report.faults.append(f"query {recorded.query}: same cell, but other score terms")


def _detail(campaign: Campaign, seq: int) -> Any:
    try:
        return campaign.storage.detail(campaign.row, seq)
    except DamagedError:
        return None


def _detail_hash(detail: Any) -> str | None:
    try:
        return None if detail is None else digest(canonical(detail))
    except ValueError:
        return None


def _close(recorded: dict[str, float], again: dict[str, float]) -> bool:
    if "doubt" not in recorded:
        again = _before_doubt(again)
    return recorded.keys() == again.keys() and all(
        bool(np.isclose(recorded[name], again[name], rtol=TOLERANCE, atol=1e-6)) for name in again
    )


def _before_doubt(terms: dict[str, float]) -> dict[str, float]:
    """Terms as they were kept before doubt was one: exploration, where nothing is imagined."""
    older = {name: value for name, value in terms.items() if name != "doubt"}
    return older if older["likelihood"] else {**older, "exploration": terms["doubt"]}
