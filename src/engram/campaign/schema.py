"""The tables of a campaign database and their version."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)

from engram.errors import NewerError

VERSION = 1
"""Raised with every change of the tables; a database of a higher version is refused."""

metadata = MetaData()

schema = Table("engram_schema", metadata, Column("version", Integer, primary_key=True))

campaigns = Table(
    "engram_campaigns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(32), nullable=False, unique=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("created", Double, nullable=False),
)

events = Table(
    "engram_events",
    metadata,
    Column("campaign", ForeignKey("engram_campaigns.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("key", String(200), nullable=False),
    Column("payload", Text, nullable=False),
    Column("detail", Text),
    Column("hash", String(64), nullable=False),
    Index("engram_events_key", "campaign", "key", unique=True),
)
"""Append-only. ``detail`` holds what only explanations need and is read on demand."""


def ensure(connection: Connection, *, create: bool) -> bool:
    """Check the version; create the tables of an empty database if asked to.

    Returns False when there are no tables and none were to be created.
    """
    if not inspect(connection).has_table(schema.name):
        if create:
            metadata.create_all(connection)
            connection.execute(schema.insert().values(version=VERSION))
        return create
    found = connection.execute(select(schema.c.version)).scalar_one_or_none()
    if not isinstance(found, int) or found > VERSION:
        raise NewerError(
            f"this database has schema version {found}; this version of engram reads up to "
            f"{VERSION}: update engram"
        )
    return True
