"""Where campaigns are kept: SQLite by default, PostgreSQL by URL.

The contract, the same on both (see the conformance tests):

* The log of a campaign is append-only; event ``seq`` 1, 2, 3 ... without gaps.
* ``write`` gives one process at a time the right to append to a campaign. Nobody appends
  between what the writer reads and what it writes. What was appended is there, whole and
  durable, when the block ends without an error, and is not there at all otherwise.
* An event is appended only to the very campaign that was opened (its uid) and only to the event
  it was made for (number and hash); whoever holds a log that the database no longer has, because
  an older copy was put back or the database replaced, is told so (``StaleError``).
* Readers see only whole blocks, wait for nobody and make nobody wait.
* A key occurs once in a campaign, which makes repeating a lost request harmless.
* Time is the server's, or on SQLite this machine's.

Every block has a connection of its own: campaigns last for days, connections need not.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from engram.campaign import schema
from engram.campaign.connect import create_file, may_pass, server_engine, sqlite_engine
from engram.campaign.event_table import (
    CampaignRow,
    Writer,
    check_identity,
    events_behind,
    events_page,
    insert,
    one_event,
    parsed,
    server_time,
)
from engram.campaign.model import BrokenFileError, Event, StorageError
from engram.campaign.place import default_url, home, parse_url, shown_place, without_secrets
from engram.errors import ConflictError, NotFoundError

Result = TypeVar("Result")

PATIENCE = 30.0
"""How long a lost connection to a server is tried again."""


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
            create_file(Path(self.path))
        self._engine = sqlite_engine(Path(self.path)) if self.is_sqlite else server_engine(self.url)
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

    def look(self, work: Callable[[Connection], Result]) -> Result:
        """Run a block that only reads, on tables that others keep in the same database."""
        return self._read(work)

    def change(self, work: Callable[[Connection], Result]) -> Result:
        """Run a block that writes to such tables, whole or not at all."""

        def changing() -> Result:
            with self._begin(write=True) as connection:
                return work(connection)

        return self._patient(changing)

    # -- campaigns -----------------------------------------------------------------------

    def create_campaign(self, name: str, event: Event) -> CampaignRow:
        """A new campaign with its first event; refuses a name that is taken."""
        uid = uuid.uuid4().hex

        def work() -> CampaignRow:
            with self._begin(write=True) as connection:
                row = self._find(connection, name)
                if row is not None and row.uid != uid:
                    raise ConflictError(
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
                    insert(connection, row.id, event, "", None)
                return row

        try:
            return self._patient(work)
        except IntegrityError as error:
            raise ConflictError(f"a campaign named {name!r} was created just now") from error

    def campaign(self, name: str) -> CampaignRow:
        """The campaign of this name."""
        row = None
        if not self.empty:
            row = self._read(lambda connection: self._find(connection, name))
        if row is None:
            known = ", ".join(r.name for r in self.campaigns()) or "(none yet)"
            raise NotFoundError(f"no campaign named {name!r} in this database; there are: {known}")
        return row

    @staticmethod
    def _find(connection: Connection, name: str) -> CampaignRow | None:
        table = schema.campaigns
        row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
        return None if row is None else CampaignRow.of(row._mapping)

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, in the order of their creation."""
        if self.empty:
            return []
        query = sa.select(schema.campaigns).order_by(schema.campaigns.c.id)
        rows = self._read(lambda connection: connection.execute(query).all())
        return [CampaignRow.of(row._mapping) for row in rows]

    # -- events --------------------------------------------------------------------------

    def _read(self, work: Callable[[Connection], Result]) -> Result:
        """Run a block that only reads."""

        def reading() -> Result:
            with self._begin(write=False) as connection:
                return work(connection)

        return self._patient(reading)

    def time(self) -> float:
        """The storage's time."""
        return time.time() if self.is_sqlite else self._read(server_time)

    def events(self, row: CampaignRow, after: int = 0, hash: str = "") -> list[Event]:
        """The events behind number ``after``, which must be there with this hash; no lock."""
        return self._read(lambda connection: events_behind(connection, row, after, hash))

    def page(self, row: CampaignRow, after: int, limit: int) -> list[Event]:
        """Up to ``limit`` events behind number ``after``."""
        return self._read(lambda connection: events_page(connection, row, after, limit))

    def event(self, row: CampaignRow, seq: int) -> Event | None:
        """One event by its number."""
        return self._read(lambda connection: one_event(connection, row, schema.events.c.seq == seq))

    def find(self, row: CampaignRow, key: str) -> Event | None:
        """One event by its key."""
        return self._read(lambda connection: one_event(connection, row, schema.events.c.key == key))

    def detail(self, row: CampaignRow, seq: int) -> Any:
        """What an event keeps for explanations, or None."""
        c = schema.events.c
        query = sa.select(c.detail).where(c.campaign == row.id, c.seq == seq)
        text = self._read(lambda connection: connection.execute(query).scalar_one_or_none())
        return None if text is None else parsed(text, f"the explanation of event {seq}")

    def write(self, row: CampaignRow, work: Callable[[Writer], Result]) -> Result:
        """Run ``work`` as the only writer of a campaign; repeated when the server went away."""

        def locked() -> Result:
            with self._begin(write=True) as connection:
                check_identity(connection, row, lock=True)
                return work(Writer(connection, row, self.is_sqlite))

        return self._patient(locked)
