"""Kinds of memories: the card of a file names its kind, and the kind knows how to load it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.errors import EngramError, InputError, WeightsError, shown
from engram.memory.card import Card
from engram.plugins import Registry, in_a_line

if TYPE_CHECKING:
    from engram.memory.denoiser import Denoiser
    from engram.memory.permanent import PermanentMemory

Loader = Callable[[Path, Card], "Denoiser"]
"""(weights file, its card) -> a denoiser, or a :class:`PermanentMemory` ready made."""

NEEDED = ("estimate", "schedule", "conditioned")
"""What a denoiser has to have."""


def _unet(path: Path, card: Card) -> PermanentMemory:
    from engram.memory.permanent import PermanentMemory

    return PermanentMemory.load(path)


def _loader(kind: str, given: Any) -> Loader:
    if not callable(given):
        raise InputError(f"a loader is a function of (path, card), not {shown(given)}")
    loader: Loader = given
    return loader


KINDS: Registry[Loader] = Registry("memory kind", "engram.memories", _loader, {"unet": _unet})


def load_file(path: Path) -> PermanentMemory:
    """The memory of a file, by the kind on its card; a damaged file is refused."""
    from engram.memory.permanent import PermanentMemory

    card = Card.read(path.with_suffix(".json"))
    if card.kind not in KINDS:
        raise WeightsError(
            f"memory {path} is of kind {card.kind!r}, which nothing here can load (known are "
            f"{', '.join(KINDS)}); install the package it came with"
        )
    loader = KINDS[card.kind]
    card.check_file(path)
    try:
        loaded = loader(path, card)
    except EngramError:
        raise
    except Exception as error:
        raise WeightsError(
            f"memory {path} of kind {card.kind!r} cannot be loaded: {in_a_line(error)}"
        ) from error
    if isinstance(loaded, PermanentMemory):
        return loaded
    missing = [name for name in NEEDED if not hasattr(loaded, name)]
    if missing:
        raise WeightsError(
            f"memory {path}: the loader of kind {card.kind!r} gave a {type(loaded).__name__} "
            f"without {', '.join(missing)}"
        )
    return PermanentMemory(loaded, card)
