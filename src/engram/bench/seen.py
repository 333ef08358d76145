"""What the memories of a benchmark have seen, to be said beside its tables.

A memory that was trained on areas like those it is tested on has an advantage that no table
shows; so whoever writes a table writes these lines too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from engram.errors import EngramError
from engram.memory.library import memory_files, read_card

NOT_SAID = "what it has seen is not on record"


def seen_lines(memories: Mapping[str, str], recorded: Mapping[str, Any] | None) -> list[str]:
    """One sentence for each memory of a result.

    memories : name -> hash, as in the options of a result
    recorded : name -> what it has seen, as written with the result; memories that are missing
               there are looked up in the library by their hash
    """
    known = dict(recorded or {})
    lines = []
    for name, sha256 in memories.items():
        text = known.get(name) or _in_library(sha256)
        said = f" has seen {text}" if text else f": {NOT_SAID}"
        lines.append(f"Memory `{PurePath(name).stem}`{said}.")
    return lines


def _in_library(sha256: str) -> str:
    """What the memory with this hash has seen; empty where no card says so."""
    for path in memory_files().values():
        try:
            card = read_card(str(path))
        except EngramError:
            continue
        if card.sha256 == sha256:
            return card.seen
    return ""
