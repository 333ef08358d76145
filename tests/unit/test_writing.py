"""Files are written whole or not at all, and never over a database."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engram import _writing
from engram._writing import write_file, write_files
from engram.errors import InputError


@contextmanager
def full_disk(free: int = 1000) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with full_disk(), pytest.raises(InputError, match=r"cannot write .*a\.csv.*unchanged"):
        write_file(path, b"x" * 5000)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.csv"]


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    small, large = tmp_path / "new" / "deep" / "small", tmp_path / "new" / "large"
    with full_disk(), pytest.raises(InputError, match=r"cannot write .*large"):
        write_files({small: "s", large: "x" * 5000})
    assert names(tmp_path) == []
    write_files({small: "s", large: b"x" * 5000})
    assert small.read_text() == "s"
    assert names(tmp_path / "new") == ["deep", "large"]


def test_one_place_that_cannot_be_written_keeps_all_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for blocked in ("folder", "pipe"):
        with pytest.raises(InputError, match=f"cannot write .*{blocked}: .*not a file"):
            write_files({tmp_path / "a": "a", tmp_path / blocked: "b"})
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_database_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "campaigns.json"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    link = tmp_path / "link.json"
    link.symlink_to(path)
    before = path.read_bytes()
    for place in (path, link):
        with pytest.raises(InputError, match="is a database and is not overwritten"):
            write_file(place, "{}")
    assert path.read_bytes() == before


def test_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "out.csv").symlink_to(precious)
    write_file(tmp_path / "out.csv", "new")
    assert precious.read_text() == "precious"
    assert (tmp_path / "out.csv").read_text() == "new"
    monkeypatch.setattr(_writing.secrets, "token_hex", lambda _: "known")
    (tmp_path / ".b.known.partial").symlink_to(precious)  # a name somebody foresaw
    with pytest.raises(InputError, match="cannot write"):
        write_file(tmp_path / "b", "new")
    assert precious.read_text() == "precious"
    assert not (tmp_path / "b").exists()
    assert (tmp_path / ".b.known.partial").is_symlink()
    (tmp_path / ".c.known.partial").write_text("theirs")
    with pytest.raises(InputError, match="cannot write"):
        write_file(tmp_path / "c", "new")
    assert (tmp_path / ".c.known.partial").read_text() == "theirs"


def test_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o600)
    write_file(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"


def test_an_interrupted_write_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_writing.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "new" / "a", "text")
    assert names(tmp_path) == []
