"""The library of memories: those shipped in the package, and files the user trained.

A memory is found by name in the folders of the library (the package's own first, then the
user's, ``$ENGRAM_HOME/memories`` or ``~/.engram/memories``) or by the path of its file. Where
several may apply to an area, ``universal+digits`` names the candidates, ``auto`` all there are.
"""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from engram.errors import InputError, shown
from engram.memory.card import Card

if TYPE_CHECKING:
    from engram.memory.permanent import PermanentMemory

SHIPPED = Path(__file__).resolve().parent.parent / "weights"
DEFAULT_MEMORY = "universal"
COPYING_MEMORY = "universal-copyist"
"""The universal memory that is told how measurements agree with themselves: the default of areas
that are seen as a whole."""
WINDOWED = 64
"""Cells per side up to which an area is seen as a whole (``policies.local.LARGEST``): in windows
the universal memory, which has learnt the average of its views, predicts better at less cost."""
AUTO = "auto"
"""Stands for every memory of the library: the one that explains the first measurements best."""


def default_memory(rows: int, cols: int) -> str:
    """The memory of an area of so many cells where the user names none."""
    return COPYING_MEMORY if max(rows, cols) <= WINDOWED else DEFAULT_MEMORY


def user_folder() -> Path:
    """Where memories trained by the user are kept."""
    home = os.environ.get("ENGRAM_HOME")
    return (Path(home) if home else Path.home() / ".engram") / "memories"


def memory_files() -> dict[str, Path]:
    """Name -> weights file of every memory in the library."""
    found: dict[str, Path] = {}
    for folder in (user_folder(), SHIPPED):
        if folder.is_dir():
            for path in sorted(folder.glob("*.safetensors")):
                if path.with_suffix(".json").exists():
                    found[path.stem] = path
    return found


def memory_path(name: str) -> Path:
    """The file of a memory given by name or path."""
    path = Path(name)
    if path.suffix == ".safetensors":
        if not path.is_file():
            raise InputError(f"no memory file at {path}")
        return path
    files = memory_files()
    if name not in files:
        raise InputError(
            f"unknown memory {shown(name)}; choose one of {', '.join(sorted(files)) or '(none)'} "
            "or give the path of a .safetensors file"
        )
    return files[name]


def read_card(name: str) -> Card:
    """The card alone, without loading weights (or torch)."""
    return Card.read(memory_path(name).with_suffix(".json"))


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: float) -> PermanentMemory:
    from engram.memory.kinds import load_file

    return load_file(path)


def load_memory(name: str = DEFAULT_MEMORY, device: str = "cpu") -> PermanentMemory:
    """Load a memory by name or path; the same file is read once per process.

    device : where its network runs, ``cpu``, ``cuda`` or ``mps``
    """
    path = memory_path(name).resolve()
    return _loaded(path, path.stat().st_mtime).on(device)


def candidates(prior: str) -> list[str]:
    """Names of the memories that a prior stands for: one, ``a+b+c``, or all for ``auto``."""
    if prior == AUTO:
        names = sorted(memory_files(), key=lambda name: (name != DEFAULT_MEMORY, name))
    else:
        one = prior in memory_files() or Path(prior).is_file()
        names = [prior] if one else prior.split("+")
    if len(set(names)) < len(names):
        raise InputError(f"prior {prior!r} names a memory twice")
    for name in names:
        memory_path(name)
    return names


def read_cards(prior: str) -> dict[str, Card]:
    """Name -> card of every memory that a prior stands for."""
    return {name: read_card(name) for name in candidates(prior)}


def load_memories(prior: str) -> list[PermanentMemory]:
    """Every memory that a prior stands for."""
    return [load_memory(name) for name in candidates(prior)]


def fingerprint(prior: str, *, symmetric: bool = True) -> str:
    """Hash of the memories that a prior stands for, with their symmetric networks or without: that
    of the file where it is one."""
    cards = read_cards(prior).values()
    hashes = [card.sha256 for card in cards]
    if symmetric:
        hashes += [card.symmetric["sha256"] for card in cards if card.symmetric]
    return hashes[0] if len(hashes) == 1 else sha256("+".join(hashes).encode()).hexdigest()
