"""Where campaigns are kept: SQLite by default, PostgreSQL by URL.

The contract, the same on both (see the conformance tests):

* The log of a campaign is append-only; event ``seq`` 1, 2, 3 ... without gaps.
* ``writer`` gives one process at a time the right to append to a campaign. Nobody appends
  between what the writer reads and what it writes. What was appended is there, whole and
  durable, when the block ends without an error, and is not there at all otherwise.
* Readers see only whole blocks, wait for nobody and make nobody wait.
* A key occurs once in a campaign, which makes repeating a lost request harmless.

Every block has a connection of its own: campaigns last for days, connections need not.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from engram.campaign import schema
from engram.campaign.model import Event, canonical
from engram.campaign.place import default_url, home, parse_url, shown_place, without_secrets
from engram.errors import EngramError, InputError

Result = TypeVar("Result")

BUSY_SECONDS = 60.0
"""How long a writer waits for others before it gives up."""

PATIENCE = 30.0
"""How long a lost connection to a server is tried again."""


class StorageError(EngramError):
    """The database could not be read or written; nothing of the request was kept."""


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in the database."""

    id: int
    uid: str
    name: str
    created: float


class Storage:
    """One database of campaigns; see the module's docstring for what it promises."""

    def __init__(self, url: str | None = None, *, create: bool = False) -> None:
        self.url = parse_url(default_url() if url is None else url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.empty = False
        if self.is_sqlite and not Path(self.path).exists():
            if not create:
                self.empty = True
                return
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        self._engine = _sqlite_engine(self.url) if self.is_sqlite else _server_engine(self.url)
        self._prepare(create)

    @property
    def path(self) -> str:
        """The SQLite file."""
        return str(self.url.database)

    @property
    def place(self) -> str:
        """The database as it may be shown: nothing in it is secret."""
        return shown_place(self.url)

    def artifact_folder(self) -> Path:
        """Where derived state is cached: beside the SQLite file, or in the user's folder."""
        if self.is_sqlite:
            return Path(self.path).with_suffix(".artifacts")
        return home() / "artifacts"

    def _prepare(self, create: bool) -> None:
        def ready() -> bool:
            with self._begin(write=False) as connection:
                return schema.ensure(connection, create=False)

        def prepare() -> bool:
            with self._begin(write=True) as connection:
                if not self.is_sqlite:
                    connection.execute(sa.text("SELECT pg_advisory_xact_lock(0x656e6772)"))
                return schema.ensure(connection, create=True)

        self.empty = not (self._patient(ready) or (create and self._patient(prepare)))

    # -- connections ---------------------------------------------------------------------

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            connection = connection.execution_options(engram_write=write)
            with connection.begin():
                yield connection

    def _patient(self, work: Callable[[], Result]) -> Result:
        """Run a block; when the server went away, try again for a while."""
        deadline = time.monotonic() + PATIENCE
        pause = 0.05
        while True:
            try:
                return work()
            except IntegrityError:
                raise
            except DBAPIError as error:
                lost = error.connection_invalidated or _is_unreachable(error)
                if self.is_sqlite or not lost or time.monotonic() + pause > deadline:
                    raise self._error(error) from error
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
            except SQLAlchemyError as error:
                raise self._error(error) from error

    def _error(self, error: SQLAlchemyError) -> StorageError:
        cause = getattr(error, "orig", None) or error
        reason = without_secrets(" ".join(str(cause).split()), self.url)
        return StorageError(f"database {self.place}: {reason}; nothing of this request was kept")

    # -- campaigns -----------------------------------------------------------------------

    def create_campaign(self, name: str, event: Event) -> CampaignRow:
        """A new campaign with its first event; refuses a name that is taken."""
        uid = uuid.uuid4().hex

        def work() -> CampaignRow:
            with self._begin(write=True) as connection:
                row = self._find(connection, name)
                if row is not None and row.uid != uid:
                    raise InputError(
                        f"a campaign named {name!r} exists already in this database; "
                        "choose another name"
                    )
                if row is None:
                    result = connection.execute(
                        schema.campaigns.insert().values(uid=uid, name=name, created=event.at)
                    )
                    key = result.inserted_primary_key
                    assert key is not None
                    row = CampaignRow(int(key[0]), uid, name, event.at)
                    _insert(connection, row.id, event, "", None)
                return row

        try:
            return self._patient(work)
        except IntegrityError as error:
            raise InputError(f"a campaign named {name!r} was created just now") from error

    def campaign(self, name: str) -> CampaignRow:
        """The campaign of this name."""
        row = None
        if not self.empty:

            def work() -> CampaignRow | None:
                with self._begin(write=False) as connection:
                    return self._find(connection, name)

            row = self._patient(work)
        if row is None:
            known = ", ".join(r.name for r in self.campaigns()) or "(none yet)"
            raise InputError(f"no campaign named {name!r} in this database; there are: {known}")
        return row

    @staticmethod
    def _find(connection: Connection, name: str) -> CampaignRow | None:
        table = schema.campaigns
        row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
        return None if row is None else CampaignRow(**row._mapping)

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, in the order of their creation."""
        if self.empty:
            return []

        def work() -> list[CampaignRow]:
            with self._begin(write=False) as connection:
                rows = connection.execute(sa.select(schema.campaigns).order_by(sa.text("id")))
                return [CampaignRow(**row._mapping) for row in rows]

        return self._patient(work)

    # -- events --------------------------------------------------------------------------

    def events(self, campaign: int, after: int = 0) -> list[Event]:
        """The events behind ``after``, without taking any lock."""

        def work() -> list[Event]:
            with self._begin(write=False) as connection:
                return _read(connection, campaign, after)

        return self._patient(work)

    def detail(self, campaign: int, seq: int) -> Any:
        """What an event keeps for explanations, or None."""
        table = schema.events

        def work() -> str | None:
            with self._begin(write=False) as connection:
                query = sa.select(table.c.detail).where(
                    table.c.campaign == campaign, table.c.seq == seq
                )
                return connection.execute(query).scalar_one_or_none()

        text = self._patient(work)
        return None if text is None else json.loads(text)

    def write(self, campaign: int, work: Callable[[Writer], Result]) -> Result:
        """Run ``work`` as the only writer of a campaign; repeated when the server went away."""

        def locked() -> Result:
            with self._begin(write=True) as connection:
                table = schema.campaigns
                query = sa.select(table.c.id).where(table.c.id == campaign)
                connection.execute(query.with_for_update()).one()
                return work(Writer(connection, campaign))

        return self._patient(locked)


class Writer:
    """The right to append to one campaign, inside one transaction."""

    def __init__(self, connection: Connection, campaign: int) -> None:
        self._connection, self._campaign = connection, campaign

    def events(self, after: int = 0) -> list[Event]:
        return _read(self._connection, self._campaign, after)

    def append(self, event: Event, previous_hash: str, detail: Any = None) -> Event:
        """Append one event; returns it with its hash."""
        text = None if detail is None else canonical(detail)
        return _insert(self._connection, self._campaign, event, previous_hash, text)


def _read(connection: Connection, campaign: int, after: int) -> list[Event]:
    c = schema.events.c
    query = (
        sa.select(c.seq, c.kind, c.at, c.who, c.key, c.payload, c.hash)
        .where(c.campaign == campaign, c.seq > after)
        .order_by(c.seq)
    )
    return [
        Event(row.seq, row.kind, row.at, row.who, row.key, json.loads(row.payload), row.hash)
        for row in connection.execute(query)
    ]


def _insert(
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


def _is_unreachable(error: DBAPIError) -> bool:
    """True when no connection could be made at all (server down or starting)."""
    from sqlalchemy.exc import OperationalError

    return isinstance(error, OperationalError) and error.statement is None


def _sqlite_engine(url: URL) -> Engine:
    engine = sa.create_engine(
        url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}
    )

    @sa.event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the engine's begin event says how to begin
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("engram_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _server_engine(url: URL) -> Engine:
    try:
        return sa.create_engine(url, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise InputError(
            "PostgreSQL needs the psycopg package: pip install 'engram[postgres]'"
        ) from error
