"""The one way files are written: whole or not at all.

Everything is rendered first, written under a temporary name in the folder of its place, brought
to the disk, then renamed. What was there before stays as it was until the last byte is safe.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from engram.errors import InputError

DATABASE = b"SQLite format 3\0"
"""How a SQLite file begins."""
GEOPACKAGE = b"GPKG"
"""What stands at byte 68 of one that is a map and may be replaced."""


def write_file(path: Path, data: bytes | str, *, lasting: bool = True) -> None:
    """Replace one file as a whole; a reader sees the old or the new one, never a part.

    lasting : wait until the disk has it; a cache that checks itself when it is read need not
    """
    write_files({path: data}, lasting=lasting)


def write_files(contents: Mapping[Path, bytes | str], *, lasting: bool = True) -> None:
    """Replace several files; when one of them cannot be written, none is.

    Folders that are missing are made, and removed again when nothing could be written into
    them. A database is never overwritten, nor anything that is not a file. A link that stands
    at the place of a file is replaced by the file; what it pointed to is not touched.
    """
    made: list[Path] = []
    written: dict[Path, Path] = {}
    where = next(iter(contents), Path())
    try:
        for where in contents:
            _check_place(where)
        for where, data in contents.items():
            made += _make_folder(where.parent)
            _write_beside(where, data.encode() if isinstance(data, str) else data, written, lasting)
        for where, temporary in written.items():
            temporary.replace(where)
        made.clear()
    except OSError as error:
        raise InputError(
            f"cannot write {where}: {error.strerror or error}; nothing was written and what was "
            "there is unchanged: free some space, or choose a place that can be written to"
        ) from error
    finally:
        for temporary in written.values():
            with contextlib.suppress(OSError):
                temporary.unlink()
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _check_place(path: Path) -> None:
    """Refuse to replace what is no file, or a database that is no map."""
    try:
        kind = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        raise InputError(f"cannot write {path}: there is something that is not a file")
    with contextlib.suppress(OSError), path.open("rb") as file:
        head = file.read(72)
        if head.startswith(DATABASE) and head[68:] != GEOPACKAGE:
            raise InputError(f"{path} is a database and is not overwritten; choose another name")


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it; returns the new ones, the outermost first."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _write_beside(path: Path, data: bytes, written: dict[Path, Path], lasting: bool) -> None:
    """Write a new file in the folder of ``path``, under a name that nobody has or can foresee."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), 0o666)
    written[path] = temporary
    with os.fdopen(descriptor, "wb") as file:
        with contextlib.suppress(OSError):
            there = path.lstat().st_mode
            if stat.S_ISREG(there):  # a file that is replaced keeps its permissions
                os.chmod(temporary, stat.S_IMODE(there))
        file.write(data)
        file.flush()
        if lasting:
            os.fsync(file.fileno())
