"""Which database a text names, and how to show it without what is secret."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from engram.errors import InputError, shown


def default_url() -> str:
    """``$ENGRAM_DB``, or a file in the user's data folder (``$ENGRAM_HOME`` or ~/.engram)."""
    return os.environ.get("ENGRAM_DB") or str(home() / "campaigns.db")


def home() -> Path:
    """The user's data folder."""
    folder = os.environ.get("ENGRAM_HOME")
    return Path(folder) if folder else Path.home() / ".engram"


DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def parse_url(text: str) -> URL:
    """The database a text names: with ``://`` it is a URL, otherwise the path of a SQLite file.

    A path is taken as it is, whatever characters it has; postgresql:// uses psycopg 3.
    """
    if "://" not in text:
        return _file_url(text)
    try:
        url = make_url(text)
        driver = DRIVERS.get(url.drivername)
    except (ArgumentError, ValueError):  # their words repeat the URL, and with it a password
        raise InputError(
            f"database {_cleaned(text)} is not a URL that can be read; write it as "
            "postgresql://USER:PASSWORD@HOST:PORT/NAME, or give the path of a SQLite file"
        ) from None
    if driver is None:
        raise InputError(
            f"database {_cleaned(text)}: engram keeps campaigns in SQLite or PostgreSQL "
            f"({', '.join(DRIVERS)})"
        )
    if driver == "sqlite" and (url.query or url.host or url.username):
        raise InputError(
            f"database {_cleaned(text)}: a SQLite file takes no host, user or options; give its "
            "path, or sqlite:///PATH"
        )
    if driver == "sqlite":
        return _file_url(url.database or "")
    return url.set(drivername=driver)


def _file_url(path: str) -> URL:
    if path in ("", ":memory:"):
        raise InputError(f"database {path!r}: give a file, campaigns are meant to last")
    if re.match(r"(postgres|postgresql|mysql|sqlite)(\+\w+)?:|.*\bpassword\s*=", path, re.S):
        raise InputError(
            f"database {_cleaned(path)} is neither a path nor a URL; a URL begins like "
            "postgresql://"
        )
    try:
        path.encode()
        if "\0" in path:
            raise ValueError("a path has no zero byte")
        return URL.create("sqlite", database=str(Path(path).expanduser()))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"database {shown(path)}: {error}; write the path out") from error


def _cleaned(text: str) -> str:
    """What may be shown of a URL that is not understood: its scheme, if it has one."""
    scheme = re.match(r"[A-Za-z][\w+.-]{0,30}(?=:)", text)
    return f"{scheme[0] if scheme else ''}:..."


def shown_place(url: URL) -> str:
    """The database as it may be shown: a path, or a URL without password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(query={}).render_as_string(hide_password=True)


def without_secrets(text: str, url: URL) -> str:
    """The words of a driver without the password and options of the URL, should it repeat them."""
    secrets = [str(url.password or "")]
    for value in url.query.values():
        secrets += [value] if isinstance(value, str) else value
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
