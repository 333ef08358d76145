"""Replay of the whole log: does every recorded suggestion come out again?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from engram.campaign.campaign import Campaign
from engram.campaign.decide import Wish, decide
from engram.campaign.engine import Engine
from engram.campaign.events import Ask, Event
from engram.campaign.model import canonical, digest
from engram.campaign.state import State
from engram.errors import DamagedError, EngramError

TOLERANCE = 1e-4
"""Relative difference of score terms between machines that is not counted as one."""


@dataclass
class Verification:
    """What the replay found; it agrees when there are no faults."""

    events: int = 0
    asks: int = 0
    suggestions: int = 0
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
    engine = Engine()
    state = State.replay(events[:1])
    for event in events:
        if isinstance(event.body, Ask):
            state.apply(events[state.seq : event.body.basis])
            _check_ask(campaign, event.seq, event.body, state, engine, report)
    state.apply(events[state.seq :])
    engine.policy(state)
    if _in_force(state) != _in_force(campaign.state):
        report.faults.append(
            "what was in force here is not what the log says: a snapshot was changed; remove "
            f"{campaign.folder}"
        )


def _in_force(state: State) -> tuple[Any, ...]:
    """What two states of one campaign are compared by."""
    queries = [(q.query, q.cell, q.by, q.until, q.state) for q in state.queries.values()]
    places = (sorted(state.closed), sorted(state.waiting.items()), state.base_closed.tolist())
    return state.hash, state.at, state.budget, state.policy_keys()[-1], queries, places


def _check_chain(events: list[Event], report: Verification) -> None:
    previous = ""
    for event in events:
        if _chained(event, previous) != event.hash:
            report.faults.append(
                f"event {event.seq} ({event.kind}) was changed after it was written"
            )
        previous = event.hash


def _chained(event: Event, previous: str) -> str | None:
    """The hash an event should have; None when its payload cannot have been written."""
    try:
        return event.chained(previous, canonical(event.payload))
    except ValueError:  # NaN, or text that is no text
        return None


def _check_ask(
    campaign: Campaign, seq: int, ask: Ask, state: State, engine: Engine, report: Verification
) -> None:
    report.asks += 1
    if _detail_hash(campaign, seq) != ask.detail_sha256:
        report.faults.append(f"event {seq}: its explanation was changed or is missing")
    try:
        wish = Wish(ask.n, ask.rank, ask.start, ask.pool)
        picks = decide(state, engine.policy(state), wish, ask.at)
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


def _detail_hash(campaign: Campaign, seq: int) -> str | None:
    try:
        detail = campaign.storage.detail(campaign.row, seq)
        return None if detail is None else digest(canonical(detail))
    except (DamagedError, ValueError):
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
