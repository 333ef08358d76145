"""Whole files or none: everything is rendered first, written beside its place, then renamed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engram.errors import InputError


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write every file under a temporary name in its own folder, then rename them all.

    When any of them cannot be written, none appears and no temporary file stays behind.
    """
    temporary = {path: path.with_name(path.name + ".partial") for path in contents}
    try:
        for path, data in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_bytes(data)
        for path, partial in temporary.items():
            partial.replace(path)
    except OSError as error:
        where = error.filename or next(iter(contents))
        raise InputError(
            f"cannot write {where}: {error.strerror}; choose a folder that can be written to"
        ) from error
    finally:
        for partial in temporary.values():
            if partial.is_file():
                partial.unlink()
