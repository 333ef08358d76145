"""Derived state cached in files: safetensors with a hash, written whole or not at all.

An artifact is never the truth: whatever is missing, damaged or made by another version is
passed over and rebuilt from the log.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "engram-artifact-3"
"""Changes with what policies keep; artifacts of another format are made again from the log."""
KEEP = 8
"""Artifacts kept per folder; older ones are removed."""

Arrays = Mapping[str, NDArray[Any]]


def _fingerprint(key: str, note: str, arrays: Arrays) -> str:
    """SHA-256 over key, note, and name, type, shape and bytes of every array."""
    total = hashlib.sha256(f"{FORMAT}\0{key}\0{note}\0".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        total.update(array.tobytes())
    return total.hexdigest()


class Artifacts:
    """A folder of artifacts, each named by the key of the state it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"

    def newest(self, keys: list[str]) -> int | None:
        """Position of the last of these keys for which there is a file."""
        if not self.folder.is_dir():
            return None
        present = set(os.listdir(self.folder))
        for position in range(len(keys) - 1, -1, -1):
            if f"{keys[position]}.safetensors" in present:
                return position
        return None

    def save(self, key: str, arrays: Arrays, note: str) -> None:
        """Write an artifact. A cache that cannot be written is no reason to fail."""
        from safetensors.numpy import save

        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        about = {"format": FORMAT, "key": key, "note": note}
        about["sha256"] = _fingerprint(key, note, whole)
        partial = self.folder / f".{uuid.uuid4().hex}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(partial, "wb") as file:
                file.write(save(whole, metadata=about))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path(key))
            self._prune()
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()

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
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return arrays, note

    def _prune(self) -> None:
        """Remove the oldest artifacts, and partial files left by a crash an hour ago or more."""
        files = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                files.append((path.stat().st_mtime, path))
        artifacts = sorted((f for f in files if f[1].suffix == ".safetensors"), reverse=True)
        stale = [p for age, p in files if p.suffix == ".partial" and age < artifacts[0][0] - 3600]
        for path in [p for _, p in artifacts[KEEP:]] + stale:
            with contextlib.suppress(OSError):
                path.unlink()
