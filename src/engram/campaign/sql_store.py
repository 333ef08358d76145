"""Logs in a database: SQLite by default, PostgreSQL by URL.

Every block has a connection of its own: campaigns last for days, connections need not. Those of
a server linger for a moment (``lingering``). Time is the server's, or on SQLite this machine's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from engram.campaign import schema
from engram.campaign.connect import create_file, may_pass, server_engine, sqlite_engine
from engram.campaign.lingering import Closing
from engram.campaign.model import BrokenFileError, StaleError, StorageError
from engram.campaign.place import default_url, home, parse_url, shown_place, without_secrets
from engram.campaign.store import CampaignRow, LogReader, LogWriter, Record, Result, gone
from engram.errors import ConflictError

PATIENCE = 30.0
"""How long a lost connection to a server is tried again."""

_COLUMNS = ("seq", "kind", "at", "who", "key", "payload", "hash")
_RECORDS = sa.select(*(schema.events.c[name] for name in _COLUMNS))


class SqlStore:
    """The logs of one database; see ``store`` for what it promises."""

    def __init__(
        self, url: str | None = None, *, create: bool = False, lingers: bool = False
    ) -> None:
        self.url = parse_url(default_url() if url is None else url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.empty = False
        self._closing: Closing | None = None
        if self.is_sqlite and not Path(self.path).exists():
            if not create:
                self.empty = True
                return
            create_file(Path(self.path))
        if self.is_sqlite:
            self._engine = sqlite_engine(Path(self.path), lingers=lingers)
        else:
            self._engine = server_engine(self.url, lingers=lingers)
        self._closing = Closing(self._engine) if lingers else None
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
        def prepare(connection: Connection) -> bool:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(0x656e6772)"))
            return schema.ensure(connection, create=True)

        ready = self.look(lambda connection: schema.ensure(connection, create=False))
        self.empty = not (ready or (create and self.change(prepare)))

    # -- connections ---------------------------------------------------------------------

    def look(self, work: Callable[[Connection], Result]) -> Result:
        """Run a block that only reads, on our tables or on others of the same database."""
        return self._patient(work, write=False)

    def change(self, work: Callable[[Connection], Result]) -> Result:
        """Run a block that writes, whole or not at all."""
        return self._patient(work, write=True)

    def close(self) -> None:
        """Close connections that linger; the next block opens one again."""
        if self._closing is not None:
            self._closing.now()

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Connection]:
        used = nullcontext() if self._closing is None else self._closing.used()
        with used, self._engine.connect() as connection:
            connection = connection.execution_options(engram_write=write)
            with connection.begin():
                yield connection

    def _patient(self, work: Callable[[Connection], Result], *, write: bool) -> Result:
        """Run a block; when the server went away, try again for a while."""
        deadline = time.monotonic() + PATIENCE
        pause = 0.05
        while True:
            try:
                with self._begin(write=write) as connection:
                    return work(connection)
            except IntegrityError:
                raise
            except DBAPIError as error:
                late = time.monotonic() + pause > deadline
                if self.is_sqlite or late or not may_pass(error):
                    raise self._error(error) from error
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
            except (SQLAlchemyError, UnicodeDecodeError) as error:  # a damaged file's own words
                raise self._error(error) from error

    def _error(self, error: Exception) -> StorageError:
        cause = getattr(error, "orig", None) or error
        broken = type(cause) is sqlite3.DatabaseError or isinstance(cause, UnicodeDecodeError)
        if isinstance(cause, UnicodeDecodeError):
            cause = "the file is damaged: what describes its tables is not text"
        reason = without_secrets(" ".join(str(cause).split()), self.url)
        words = f"database {self.place}: {reason}; nothing of this request was kept"
        return BrokenFileError(words) if broken else StorageError(words)

    # -- campaigns -----------------------------------------------------------------------

    def create(self, name: str, uid: str, first: Record) -> CampaignRow:
        """A new campaign with its first line; refuses a name that is taken."""

        def work(connection: Connection) -> CampaignRow:
            row = _find(connection, name)
            if row is not None and row.uid != uid:
                raise ConflictError(
                    f"a campaign named {name!r} exists already in this database; "
                    "choose another name"
                )
            if row is None:
                result = connection.execute(
                    schema.campaigns.insert().values(uid=uid, name=name, created=first.at)
                )
                key = result.inserted_primary_key
                assert key is not None
                row = CampaignRow(int(key[0]), uid, name, first.at)
                SqlLog(connection, row, self.is_sqlite).append(first)
            return row

        try:
            return self.change(work)
        except IntegrityError as error:
            raise ConflictError(f"a campaign named {name!r} was created just now") from error

    def campaign(self, name: str) -> CampaignRow | None:
        """The campaign of this name."""
        return None if self.empty else self.look(lambda connection: _find(connection, name))

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, in the order of their creation."""
        if self.empty:
            return []
        query = sa.select(schema.campaigns).order_by(schema.campaigns.c.id)
        rows = self.look(lambda connection: connection.execute(query).all())
        return [_row(row._mapping) for row in rows]

    # -- logs ----------------------------------------------------------------------------

    def time(self) -> float:
        """The storage's time."""
        return time.time() if self.is_sqlite else self.look(_server_time)

    def read(self, row: CampaignRow, work: Callable[[LogReader], Result]) -> Result:
        """Run a block that reads one log; it waits for nobody."""

        def reading(connection: Connection) -> Result:
            _check_identity(connection, row)
            return work(SqlLog(connection, row, self.is_sqlite))

        return self.look(reading)

    def write(self, row: CampaignRow, work: Callable[[LogWriter], Result]) -> Result:
        """Run a block as the only writer of one log; repeated when the server went away."""

        def locked(connection: Connection) -> Result:
            _check_identity(connection, row, lock=True)
            return work(SqlLog(connection, row, self.is_sqlite))

        try:
            return self.change(locked)
        except IntegrityError as error:
            raise ConflictError(
                f"campaign {row.name!r}: a line with this number or key is there already"
            ) from error


class SqlLog:
    """One log as rows of a table, inside one transaction."""

    def __init__(self, connection: Connection, row: CampaignRow, is_sqlite: bool) -> None:
        self._connection, self._row, self._is_sqlite = connection, row, is_sqlite

    def time(self) -> float:
        """The storage's time."""
        return time.time() if self._is_sqlite else _server_time(self._connection)

    def records(self, first: int = 1, limit: int | None = None) -> list[Record]:
        """Lines from number ``first`` on."""
        query = _RECORDS.where(self._ours, schema.events.c.seq >= first)
        ordered = query.order_by(schema.events.c.seq).limit(limit)
        return [Record(*found) for found in self._connection.execute(ordered)]

    def last(self) -> Record | None:
        """The last line."""
        query = _RECORDS.where(self._ours).order_by(schema.events.c.seq.desc()).limit(1)
        found = self._connection.execute(query).one_or_none()
        return None if found is None else Record(*found)

    def by_key(self, key: str) -> Record | None:
        """The line with this key."""
        query = _RECORDS.where(self._ours, schema.events.c.key == key)
        found = self._connection.execute(query).one_or_none()
        return None if found is None else Record(*found)

    def detail(self, seq: int) -> str | None:
        """The detail of a line."""
        c = schema.events.c
        query = sa.select(c.detail).where(self._ours, c.seq == seq)
        text: str | None = self._connection.execute(query).scalar_one_or_none()
        return text

    def append(self, record: Record) -> None:
        """Append a line."""
        values = {"campaign": self._row.id, **record._asdict()}
        self._connection.execute(schema.events.insert().values(values))

    @property
    def _ours(self) -> sa.ColumnElement[bool]:
        return schema.events.c.campaign == self._row.id


def _find(connection: Connection, name: str) -> CampaignRow | None:
    table = schema.campaigns
    row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
    return None if row is None else _row(row._mapping)


def _row(row: RowMapping) -> CampaignRow:
    """A row as it is read; one with a damaged date is still a campaign."""
    created = row["created"]
    known = created if isinstance(created, int | float) else float("nan")
    return CampaignRow(row["id"], str(row["uid"]), str(row["name"]), float(known))


def _server_time(connection: Connection) -> float:
    query = sa.text("SELECT extract(epoch FROM clock_timestamp())")
    return float(connection.execute(query).scalar_one())


def _check_identity(connection: Connection, row: CampaignRow, *, lock: bool = False) -> None:
    table = schema.campaigns
    query = sa.select(table.c.uid).where(table.c.id == row.id)
    if lock:
        query = query.with_for_update()
    if connection.execute(query).scalar_one_or_none() != row.uid:
        raise StaleError(gone(row))
