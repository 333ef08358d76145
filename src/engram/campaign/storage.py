"""The logs of campaigns: events chained by their hashes, over whatever store keeps the lines.

Every event carries the hash of the one before it. An event is appended only to the very event it
was made for (number and hash); whoever holds a log that the store no longer has, because an older
copy was put back or the database replaced, is told so (``StaleError``). All else is the store's
promise (``store``).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from engram.campaign.events import Event
from engram.campaign.model import StaleError, canonical
from engram.campaign.store import CampaignRow, LogReader, LogStore, LogWriter, Record, Result
from engram.errors import DamagedError, NotFoundError

NOT_JSON = (TypeError, ValueError, RecursionError)
"""What a text that is no JSON leads to when it is read."""


class Storage:
    """The campaigns of one store: of a database by its URL, or of any other ``LogStore``."""

    def __init__(self, db: str | LogStore | None = None, *, create: bool = False) -> None:
        if db is None or isinstance(db, str):
            from engram.campaign.sql_store import SqlStore

            db = SqlStore(db, create=create)
        self.store: LogStore = db

    @property
    def place(self) -> str:
        """The store as it may be shown: nothing in it is secret."""
        return self.store.place

    def artifact_folder(self) -> Path | None:
        """Where derived state is cached."""
        return self.store.artifact_folder()

    def time(self) -> float:
        """The store's time."""
        return self.store.time()

    # -- campaigns -----------------------------------------------------------------------

    def create_campaign(self, name: str, event: Event) -> CampaignRow:
        """A new campaign with its first event; refuses a name that is taken."""
        first = _record(event, "")[0]
        if event.beside is not None:
            first = first._replace(detail=canonical(event.beside))
        return self.store.create(name, uuid.uuid4().hex, first)

    def campaign(self, name: str) -> CampaignRow:
        """The campaign of this name."""
        row = self.store.campaign(name)
        if row is None:
            known = ", ".join(r.name for r in self.campaigns()) or "(none yet)"
            raise NotFoundError(f"no campaign named {name!r} in this database; there are: {known}")
        return row

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, in the order of their creation."""
        return self.store.campaigns()

    # -- events --------------------------------------------------------------------------

    def events(self, row: CampaignRow, after: int = 0, hash: str = "") -> list[Event]:
        """The events behind number ``after``, which must be there with this hash; no lock."""
        return self.store.read(row, lambda log: _behind(log, row, after, hash))

    def page(self, row: CampaignRow, after: int, limit: int) -> list[Event]:
        """Up to ``limit`` events behind number ``after``."""
        return self.store.read(
            row, lambda log: [_whole(log, record) for record in log.records(after + 1, limit)]
        )

    def event(self, row: CampaignRow, seq: int) -> Event | None:
        """One event by its number."""
        found = self.page(row, seq - 1, 1)
        return found[0] if found and found[0].seq == seq else None

    def find(self, row: CampaignRow, key: str) -> Event | None:
        """One event by its key."""
        return self.store.read(row, lambda log: _found(log, key))

    def detail(self, row: CampaignRow, seq: int) -> Any:
        """What an event keeps for explanations, or None."""
        text = self.store.read(row, lambda log: log.detail(seq))
        try:
            return None if text is None else json.loads(text)
        except NOT_JSON as error:
            raise DamagedError(
                f"the explanation of event {seq} is damaged: it is not JSON"
            ) from error

    def write(self, row: CampaignRow, work: Callable[[Writer], Result]) -> Result:
        """Run ``work`` as the only writer of a campaign; it may be run again."""
        return self.store.write(row, lambda log: work(Writer(log, row)))


class Writer:
    """The right to append to one campaign, inside one block."""

    def __init__(self, log: LogWriter, row: CampaignRow) -> None:
        self._log, self._row = log, row

    def time(self) -> float:
        """The store's time."""
        return self._log.time()

    def events(self, after: int = 0, hash: str = "") -> list[Event]:
        """The events behind number ``after``, which must be there with this hash."""
        return _behind(self._log, self._row, after, hash)

    def find(self, key: str) -> Event | None:
        """The event with this key."""
        return _found(self._log, key)

    def append(self, event: Event, previous_hash: str, detail: Any = None) -> Event:
        """Append one event to the one it was made for; returns it with its hash."""
        end = self._log.last()
        if end is None or (end.seq, end.hash) != (event.seq - 1, previous_hash):
            first = self._log.records(event.seq - 1, 1)
            raise _stale(self._row, event.seq - 1, first, end)
        record, event = _record(event, previous_hash)
        self._log.append(record if detail is None else record._replace(detail=canonical(detail)))
        return event


def _behind(log: LogReader, row: CampaignRow, after: int, hash: str) -> list[Event]:
    records = log.records(max(after, 1))
    if after:
        if not records or (records[0].seq, records[0].hash) != (after, hash):
            raise _stale(row, after, records, log.last())
        records = records[1:]
    return [_whole(log, record) for record in records]


def _found(log: LogReader, key: str) -> Event | None:
    record = log.by_key(key)
    return None if record is None else _whole(log, record)


def _whole(log: LogReader, record: Record) -> Event:
    """The event of a line, with what stands beside it."""
    event = _event(record)
    if not event.parted:
        return event
    try:
        beside = json.loads(log.detail(event.seq) or "null")
    except NOT_JSON:
        beside = None
    return replace(event, beside=beside if isinstance(beside, dict) else None)


def _stale(row: CampaignRow, seq: int, found: list[Record], end: Record | None) -> StaleError:
    """The event ``seq`` that was read is not there, is another one, or is not the last."""
    if end is None or not found or found[0].seq != seq:
        return StaleError(
            f"campaign {row.name!r} was read up to event {seq}, but its log in the database ends "
            f"at event {0 if end is None else end.seq}: an older copy of the database was put back "
            "since; open the campaign again and repeat what is missing; nothing of this request "
            "was kept"
        )
    return StaleError(
        f"campaign {row.name!r}: event {seq} in the database is not the one that was read "
        "here: another copy of the database was put in its place and has gone on; open the "
        "campaign again and repeat what is missing; nothing of this request was kept"
    )


# -- events as lines ---------------------------------------------------------------------------


def _record(event: Event, previous_hash: str) -> tuple[Record, Event]:
    """The line of an event that follows the one with this hash, and the event with its own."""
    text = canonical(event.payload)
    event = replace(event, hash=event.chained(previous_hash, text))
    return Record(event.seq, event.kind, event.at, event.who, event.key, text, event.hash), event


def _event(record: Record) -> Event:
    """A line as an event; what cannot be one is named."""
    seq, kind, at, who, key, text, hash, _ = record
    if not (type(seq) is int and type(kind) is type(who) is type(key) is type(hash) is str):
        raise _damaged(record, "a number or a text of it is something else")
    if not (isinstance(at, int | float) and isfinite(at)):
        raise _damaged(record, f"its time is {at!r}")
    try:
        payload = json.loads(text)
    except NOT_JSON as error:
        raise _damaged(record, "it is not JSON", "the payload of ") from error
    if type(payload) is not dict:
        raise _damaged(record, "its payload is not a table")
    return Event(seq, kind, float(at), who, key, payload, hash)


def _damaged(record: Record, reason: str, part: str = "") -> DamagedError:
    return DamagedError(f"{part}event {record.seq!r} ({record.kind!r}) is damaged: {reason}")
