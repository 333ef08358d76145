"""The log of one campaign as rows of a table: read, checked and appended to."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from math import isfinite
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from engram.campaign import schema
from engram.campaign.model import Event, StaleError, canonical
from engram.errors import DamagedError

_EVENTS = sa.select(
    *(schema.events.c[name] for name in ("seq", "kind", "at", "who", "key", "payload", "hash"))
)


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in the database."""

    id: int
    uid: str
    name: str
    created: float

    @classmethod
    def of(cls, row: RowMapping) -> CampaignRow:
        """A row as it is read; one with a damaged date is still a campaign."""
        created = row["created"]
        known = created if isinstance(created, int | float) else float("nan")
        return cls(row["id"], str(row["uid"]), str(row["name"]), float(known))


class Writer:
    """The right to append to one campaign, inside one transaction."""

    def __init__(self, connection: Connection, row: CampaignRow, is_sqlite: bool) -> None:
        self._connection, self._row, self._is_sqlite = connection, row, is_sqlite

    def time(self) -> float:
        """The storage's time."""
        return time.time() if self._is_sqlite else server_time(self._connection)

    def events(self, after: int = 0, hash: str = "") -> list[Event]:
        """The events behind number ``after``, which must be there with this hash."""
        return events_behind(self._connection, self._row, after, hash)

    def find(self, key: str) -> Event | None:
        """The event with this key."""
        return one_event(self._connection, self._row, schema.events.c.key == key)

    def append(self, event: Event, previous_hash: str, detail: Any = None) -> Event:
        """Append one event to the one it was made for; returns it with its hash."""
        _check_head(self._connection, self._row, event.seq - 1, previous_hash, last=True)
        text = None if detail is None else canonical(detail)
        return insert(self._connection, self._row.id, event, previous_hash, text)


def server_time(connection: Connection) -> float:
    query = sa.text("SELECT extract(epoch FROM clock_timestamp())")
    return float(connection.execute(query).scalar_one())


def check_identity(connection: Connection, row: CampaignRow, *, lock: bool = False) -> None:
    table = schema.campaigns
    query = sa.select(table.c.uid).where(table.c.id == row.id)
    if lock:
        query = query.with_for_update()
    if connection.execute(query).scalar_one_or_none() != row.uid:
        raise StaleError(
            f"campaign {row.name!r} is not in this database any more: another database was put in "
            "its place since it was opened; open it again; nothing of this request was kept"
        )


def _check_head(
    connection: Connection, row: CampaignRow, seq: int, hash: str, *, last: bool = False
) -> None:
    """Refuse when event ``seq`` is not there with this hash (and as the last one, if asked)."""
    c = schema.events.c
    query = sa.select(c.seq, c.hash).where(c.campaign == row.id)
    found = connection.execute(query.where(c.seq == seq)).one_or_none()
    end = connection.execute(query.order_by(c.seq.desc()).limit(1)).one_or_none()
    if end is None or found is None:
        raise StaleError(
            f"campaign {row.name!r} was read up to event {seq}, but its log in the database ends "
            f"at event {0 if end is None else end.seq}: an older copy of the database was put back "
            "since; open the campaign again and repeat what is missing; nothing of this request "
            "was kept"
        )
    if found.hash != hash or (last and end.seq != seq):
        raise StaleError(
            f"campaign {row.name!r}: event {seq} in the database is not the one that was read "
            "here: another copy of the database was put in its place and has gone on; open the "
            "campaign again and repeat what is missing; nothing of this request was kept"
        )


def events_behind(connection: Connection, row: CampaignRow, after: int, hash: str) -> list[Event]:
    check_identity(connection, row)
    if after:
        _check_head(connection, row, after, hash)
    query = _EVENTS.where(schema.events.c.campaign == row.id, schema.events.c.seq > after)
    return [_event(found) for found in connection.execute(query.order_by(schema.events.c.seq))]


def events_page(connection: Connection, row: CampaignRow, after: int, limit: int) -> list[Event]:
    check_identity(connection, row)
    query = _EVENTS.where(schema.events.c.campaign == row.id, schema.events.c.seq > after)
    ordered = query.order_by(schema.events.c.seq).limit(limit)
    return [_event(found) for found in connection.execute(ordered)]


def one_event(
    connection: Connection, row: CampaignRow, wanted: sa.ColumnElement[bool]
) -> Event | None:
    query = _EVENTS.where(schema.events.c.campaign == row.id, wanted)
    found = connection.execute(query).one_or_none()
    return None if found is None else _event(found)


def _event(row: Any) -> Event:
    """A row as an event; what cannot be one is named."""
    seq, kind, at, who, key, text, hash = row
    where = f"event {seq!r} ({kind!r})"
    texts = (kind, who, key, hash)
    if type(seq) is not int or not all(isinstance(value, str) for value in texts):
        raise DamagedError(f"{where} is damaged: a number or a text of it is something else")
    if not (isinstance(at, int | float) and isfinite(at)):
        raise DamagedError(f"{where} is damaged: its time is {at!r}")
    payload = parsed(text, f"the payload of {where}")
    if not isinstance(payload, dict):
        raise DamagedError(f"{where} is damaged: its payload is not a table")
    return Event(seq, kind, float(at), who, key, payload, hash)


def parsed(text: Any, what: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedError(f"{what} is damaged: it is not JSON") from error


def insert(
    connection: Connection, campaign: int, event: Event, previous_hash: str, detail: str | None
) -> Event:
    text = canonical(event.payload)
    hashed = event.chained(previous_hash, text)
    connection.execute(
        schema.events.insert().values(
            campaign=campaign,
            seq=event.seq,
            kind=event.kind,
            at=event.at,
            who=event.who,
            key=event.key,
            payload=text,
            detail=detail,
            hash=hashed,
        )
    )
    return Event(event.seq, event.kind, event.at, event.who, event.key, event.payload, hashed)
