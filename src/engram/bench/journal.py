"""The journal of a benchmark: a header, then one line per finished unit, each on disk at once.

A run that was interrupted finds its finished units here. The header says which options and
which version of the code the rows belong to, so that nothing else is ever added to them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

from engram.errors import InputError

NAME = "journal.jsonl"


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What two sets of options disagree on, in words."""
    keys = dict.fromkeys([*there, *here])
    return [
        f"{key} was {json.dumps(there.get(key))} and is {json.dumps(here.get(key))} now"
        for key in keys
        if there.get(key) != here.get(key)
    ]


class Journal:
    """Rows of finished units by key; open it with ``with``, one writer at a time.

    ``identity`` is what every row in one journal shares; a journal with another identity is
    refused, unless ``fresh`` says to discard it. Nothing is written before the first row.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.folder, self.path = folder, folder / NAME
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self.rows: dict[str, dict[str, Any]] = {}
        self._fresh = fresh
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; give the name of a folder")
        if self.path.exists() and not self._fresh:
            self._open("r+b")
            try:
                self._read()
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def add(self, key: str, row: dict[str, Any]) -> None:
        """Append a row; it is on disk when this returns."""
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._open("r+b" if self._fresh and self.path.exists() else "xb")
            self._cut(0)
        self._append({"key": key, "row": row})
        self.rows[key] = row

    def _open(self, mode: Literal["r+b", "xb"]) -> None:
        try:
            self._file = self.path.open(mode)
        except OSError as error:
            raise InputError(f"cannot write to {self.path}: {error}") from error
        try:
            _lock(self._file, self.folder)
        except InputError:
            self._close()
            raise

    def _cut(self, length: int) -> None:
        """Keep the first ``length`` bytes; an empty journal gets its header."""
        assert self._file is not None
        self._file.truncate(length)
        self._file.seek(length)
        if length == 0:
            self._append(self.identity)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, record: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        assert self._file is not None
        lines = self._file.read().splitlines(keepends=True)
        kept = 0
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict) or not line.endswith(b"\n"):
                    raise ValueError("not a whole record")
                if number > 1:
                    self.rows[str(record["key"])] = record["row"]
            except (ValueError, KeyError, RecursionError) as error:
                if number == len(lines):  # the line being written when the run was stopped
                    break
                raise InputError(
                    f"line {number} of {self.path} is damaged ({error}); restore the file, or "
                    "discard its results with --fresh"
                ) from error
            if number == 1:
                self._check(record)
            kept += len(line)
        self._cut(kept)

    def _check(self, header: Mapping[str, Any]) -> None:
        there = header.get("options", {})
        if not isinstance(there, Mapping):
            raise InputError(f"line 1 of {self.path} is damaged; discard its results with --fresh")
        found = [*differences(there, self.identity.get("options", {}))]
        rest = [{k: v for k, v in h.items() if k != "options"} for h in (header, self.identity)]
        found += differences(*rest)
        if found:
            raise InputError(
                f"{self.folder} holds results of another run: {'; '.join(found)}. Choose another "
                "folder, or discard those results with --fresh"
            )


def _lock(file: IO[bytes], folder: Path) -> None:
    """Refuse to write where another run is writing (released when the file is closed)."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(f"another run is writing to {folder}; wait for it to end") from error
