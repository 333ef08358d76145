"""What is in force, kept in a file, so that opening a campaign does not fold its whole log.

A snapshot is never the truth. It holds for one campaign (uid) up to one event (number and hash);
whoever opens it asks the log for the events behind that very event, and a log that does not have
it, such as one restored from a copy, passes the snapshot over. One that is missing, damaged or
made by another version is passed over as well; ``verify`` never looks at any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._version import __version__
from engram.campaign.artifacts import Artifacts
from engram.campaign.events import Event
from engram.campaign.model import Measurement, Query, digest, grid_with_closed
from engram.campaign.state import State
from engram.campaign.timeline import Span, Timeline
from engram.detection import Detection
from engram.observation import Observation

FORMAT = f"engram-snapshot-2 {__version__}"
"""Changes with what ``State`` keeps and how it folds events."""

EVERY = 1000
"""Events after which a new snapshot is written."""

KEEP = 2
"""Snapshots kept: the newest, and one that an interrupted restore may still need."""

STATES = ("asked", "told", "failed")
_NAME = re.compile(r"([0-9]{12})-([0-9a-f]{64})")

Arrays = dict[str, NDArray[Any]]


class Snapshots:
    """The snapshots of one campaign."""

    def __init__(self, folder: Path, uid: str) -> None:
        self._uid = uid
        self._files = Artifacts(folder / "snapshots")
        self._last = 0

    def states(self, created: Callable[[], Event | None]) -> Iterator[State]:
        """States from the newest sound snapshot to the oldest."""
        for key in sorted(self._files.keys(), reverse=True):
            named = _NAME.fullmatch(key)
            if named is None:
                continue
            loaded = self._files.load(key)
            first = created() if loaded is not None else None
            if loaded is None or first is None:
                continue
            arrays, note = loaded
            facts = json.loads(note)
            if facts["binding"] != self._binding(int(named[1]), named[2]):
                continue
            self._last = int(named[1])
            yield _unpacked(first, arrays, facts)
        self._last = 0

    def keep(self, state: State) -> None:
        """Write a snapshot when there are many events behind the last one."""
        if state.seq < self._last + EVERY or not re.fullmatch("[0-9a-f]{64}", state.hash):
            return
        arrays, facts = _packed(state)
        facts["binding"] = self._binding(state.seq, state.hash)
        self._files.save(f"{state.seq:012}-{state.hash}", arrays, json.dumps(facts))
        self._files.keep_only(sorted(self._files.keys())[-KEEP:])
        self._last = state.seq

    def _binding(self, seq: int, hash: str) -> str:
        return digest(FORMAT, self._uid, str(seq), hash)


def _packed(state: State) -> tuple[Arrays, dict[str, Any]]:
    """Everything that ``State`` has beyond its first event."""
    measured, queries = state.visits, list(state.queries.values())
    names = sorted({m.who for m in measured} | {q.by for q in queries})
    code = {name: i for i, name in enumerate(names)}
    shape = (len(measured), *state.grid.content_shape)
    index = state.grid.index
    spans: Sequence[Span | None] = [q.lease for q in queries]
    waits = list(state.waiting.items())
    arrays: Arrays = {
        "told.place": _whole(
            (index(m.observation.cell), m.seq, code[m.who], _or_none(m.query), m.place)
            for m in measured
        ),
        "told.number": _real(
            [m.at, m.observation.outcome, m.observation.noise, *_seen(m.observation.detection)]
            for m in measured
        ),
        "told.content": np.array([m.observation.content for m in measured], np.float32).reshape(
            shape
        ),
        "query.place": _whole(
            [q.query, index(q.cell), q.seq, code[q.by], STATES.index(q.state)] for q in queries
        ),
        "query.number": _real([q.at, *_span(s)] for q, s in zip(queries, spans, strict=True)),
        "query.terms": np.frombuffer(json.dumps([q.terms for q in queries]).encode(), np.uint8),
        "closed": np.array(sorted(state.closed), np.int64),
        "base_closed": state.base_closed,
        "waiting": np.array([i for i, _ in waits], np.int64),
        "waiting.span": _real(_span(span) for _, span in waits),
        "leaps": _real(state.time.leaps),
    }
    facts = {
        "names": names,
        "seq": state.seq,
        "hash": state.hash,
        "stirred": state.stirred,
        "at": state.at,
        "budget": state.budget,
    }
    return arrays, facts


def _unpacked(created: Event, arrays: Arrays, facts: dict[str, Any]) -> State:
    state = State(created)
    grid, names = state.grid, facts["names"]
    state.base_closed = np.array(arrays["base_closed"], bool)
    if (state.base_closed != grid.closed.ravel()).any():
        state.grid = grid_with_closed(grid, state.base_closed)
    state.closed = set(arrays["closed"].tolist())
    spans = map(_granted, arrays["waiting.span"].tolist())
    state.waiting = {i: s for i, s in zip(arrays["waiting"].tolist(), spans, strict=True) if s}
    told = zip(
        arrays["told.place"].tolist(),
        arrays["told.number"].tolist(),
        arrays["told.content"],
        strict=True,
    )
    for (i, seq, who, query, place), (at, outcome, noise, *seen), content in told:
        detection = None if isnan(seen[0]) else Detection(*seen)
        observation = Observation(grid.at(i), content, outcome, noise, detection)
        state.add_visit(
            Measurement(seq, observation, names[who], at, None if query < 0 else query, place)
        )
    asked = zip(
        arrays["query.place"].tolist(),
        arrays["query.number"].tolist(),
        json.loads(arrays["query.terms"].tobytes()),
        strict=True,
    )
    for (number, i, seq, who, code), (at, *span), terms in asked:
        state.add_query(
            Query(number, grid.at(i), names[who], at, _granted(span), seq, terms, STATES[code])
        )
    state.time = Timeline(facts["at"], [(before, after) for before, after in arrays["leaps"]])
    state.budget = facts["budget"]
    state.seq, state.hash, state.stirred = facts["seq"], facts["hash"], facts["stirred"]
    return state


def _whole(rows: Any) -> NDArray[np.int64]:
    return np.array(list(rows), np.int64)


def _real(rows: Any) -> NDArray[np.float64]:
    return np.array(list(rows), np.float64)


def _or_none(query: int | None) -> int:
    return -1 if query is None else query


def _seen(detection: Detection | None) -> tuple[float, float]:
    return (nan, nan) if detection is None else (detection.chance, detection.false_alarm)


def _span(span: Span | None) -> tuple[float, float, float]:
    return (nan, nan, nan) if span is None else (span.at, span.length, span.eve)


def _granted(numbers: Sequence[float]) -> Span | None:
    return None if isnan(numbers[0]) else Span(*numbers)
