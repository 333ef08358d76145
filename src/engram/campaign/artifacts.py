"""Derived state cached in files: safetensors with a hash, written whole or not at all.

An artifact is never the truth: whatever is missing, damaged or made by another version is
passed over and rebuilt from the log. Files are named by us, from hashes and numbers alone, and
a folder is searched and tidied by those names: what else lies there is not ours.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._writing import write_file
from engram.campaign.model import digest
from engram.errors import InputError

FORMAT = "engram-artifact-5"
"""Changes with what policies keep; artifacts of another format are made again from the log."""

BACK = (1, 4, 16, 64, 256, 1024)
"""How many groups of measurements the kept artifacts lie behind the newest one, at least."""

OTHERS = 2
"""Artifacts kept that are not on the way to what is in force: a correction may be undone."""

_KEY = re.compile(r"(?:[0-9]{12}-)?[0-9a-f]{64}")
_PARTIAL = re.compile(rf"\.{_KEY.pattern}\.safetensors\.[0-9a-f]+\.partial")

Arrays = Mapping[str, NDArray[Any]]


def campaign_folder(root: Path, uid: str) -> Path:
    """The folder of a campaign; a uid that is not one of ours never becomes a path."""
    return root / (uid if re.fullmatch("[0-9a-f]{32}", uid) else digest("campaign", uid)[:32])


def _fingerprint(key: str, note: str, arrays: Arrays) -> str:
    """SHA-256 over key, note, and name, type, shape and bytes of every array."""
    total = hashlib.sha256(f"{FORMAT}\0{key}\0{note}\0".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        total.update(array.tobytes())
    return total.hexdigest()


class Artifacts:
    """A folder of artifacts of one kind, each named by the key of the state it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not the name of an artifact")
        return self.folder / f"{key}.safetensors"

    def keys(self) -> list[str]:
        """Keys for which there is a file."""
        with contextlib.suppress(OSError):
            names = [Path(name) for name in os.listdir(self.folder)]
            return [n.stem for n in names if n.suffix == ".safetensors" and _KEY.fullmatch(n.stem)]
        return []

    def newest(self, keys: Sequence[str]) -> int | None:
        """Position of the last of these keys for which there is a file."""
        present = set(self.keys())
        for position in range(len(keys) - 1, -1, -1):
            if keys[position] in present:
                return position
        return None

    def save(self, key: str, arrays: Arrays, note: str) -> None:
        """Write an artifact. A cache that cannot be written is no reason to fail."""
        from safetensors.numpy import save

        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        about = {"format": FORMAT, "key": key, "note": note}
        about["sha256"] = _fingerprint(key, note, whole)
        with contextlib.suppress(OSError, InputError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(self.path(key), save(whole, metadata=about), lasting=False)

    def load(self, key: str) -> tuple[dict[str, NDArray[Any]], str] | None:
        """Arrays and note of an artifact; None, and the file removed, when it is damaged."""
        from safetensors import SafetensorError, safe_open

        path = self.path(key)
        try:
            with safe_open(path, "np") as file:
                about = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            arrays, about = {}, {}
        note = about.get("note", "")
        good = about.get("format") == FORMAT and about.get("key") == key
        if not good or about.get("sha256") != _fingerprint(key, note, arrays):
            _remove(path)
            return None
        return arrays, note

    def tidy(self, way: Sequence[str]) -> None:
        """Keep what is most useful for the states on the ``way`` (their keys, in order).

        That is the newest of them, some that lie further and further behind it down to the
        first, from which a correction is replayed, and a few that are not on the way.
        """
        place = {key: position for position, key in enumerate(way)}
        present = self.keys()
        on = sorted((place[key] for key in present if key in place), reverse=True)
        kept = {way[p] for p in (*on[:1], *on[-1:])}
        for distance in BACK:
            kept.update(way[p] for p in [p for p in on if p <= on[0] - distance][:1])
        others = [key for key in present if key not in place]
        kept.update(sorted(others, key=self._age)[:OTHERS])
        self.keep_only(kept)

    def keep_only(self, keys: Collection[str]) -> None:
        """Remove our other artifacts, and partial files left by a crash an hour ago or more."""
        for key in self.keys():
            if key not in keys:
                _remove(self.path(key))
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                if _PARTIAL.fullmatch(path.name) and _older(path, 3600):
                    _remove(path)

    def _age(self, key: str) -> float:
        """Smaller for files that were written later."""
        with contextlib.suppress(OSError):
            return -self.path(key).stat().st_mtime
        return 0.0


def _older(path: Path, seconds: float) -> bool:
    """True when a file was written so long before the youngest one beside it."""
    times = [entry.stat().st_mtime for entry in os.scandir(path.parent)]
    return path.stat().st_mtime < max(times) - seconds


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
