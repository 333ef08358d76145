"""The tables of the people: accounts, what they may do, and the secrets they sign in with.

They lie beside the campaigns, so that several servers on one database know the same people.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    select,
    text,
)

from engram.errors import InputError

VERSION = 1
"""Raised with every change of these tables; a database of a higher version is refused."""

metadata = MetaData()

schema = Table("engram_people_schema", metadata, Column("version", Integer, primary_key=True))

accounts = Table(
    "engram_accounts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("created", Double, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
)

grants = Table(
    "engram_grants",
    metadata,
    Column("account", ForeignKey("engram_accounts.id"), primary_key=True),
    Column("campaign", String(32), primary_key=True),
    Column("role", String(10), nullable=False),
    Column("crew", String(200), nullable=False),
)
"""``campaign`` is the uid of one, or ``*`` for all; ``crew`` the name to ask and tell under."""

tokens = Table(
    "engram_tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("account", ForeignKey("engram_accounts.id"), nullable=False, index=True),
    Column("kind", String(10), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("label", String(100), nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("used", Boolean, nullable=False, default=False),
    Column("revoked", Boolean, nullable=False, default=False),
)
"""``hash`` is the SHA-256 of a secret of 256 random bits, which is kept nowhere."""


photos = Table(
    "engram_photos",
    metadata,
    Column("campaign", String(32), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("who", String(200), nullable=False),
    Column("at", Double, nullable=False),
    Column("picture", LargeBinary, nullable=False),
)
"""Photos of measurements, which name them by their hash."""

pages = Table(
    "engram_pages",
    metadata,
    Column("campaign", String(32), primary_key=True),
    Column("settings", Text, nullable=False),
)
"""What the page of a campaign shows beside it, as JSON."""


def ensure(connection: Connection) -> None:
    """Check the version, or create the tables; one server at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(0x656e6773)"))
    metadata.create_all(connection)
    if connection.execute(select(schema.c.version)).first() is None:
        connection.execute(schema.insert().values(version=VERSION))
    found = connection.execute(select(schema.c.version)).scalar_one_or_none()
    if not isinstance(found, int) or found > VERSION:
        raise InputError(
            f"the accounts of this database have schema version {found}; this version of engram "
            f"reads up to {VERSION}: update engram"
        )
