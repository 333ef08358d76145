"""The one family of exceptions engram raises on purpose."""

from __future__ import annotations

import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlong = 40


def shown(value: Any) -> str:
    """A value as it stands in a message: as Python writes it, but never long."""
    return _SHORT.repr(value)


class EngramError(Exception):
    """Root of every error a caller can provoke; the message names value and remedy."""


class InputError(EngramError, ValueError):
    """Something the user gave is wrong: shape, range, name, file or budget."""


class EngramWarning(UserWarning):
    """Root of every warning of engram's: something its user should know, in one line."""


class PlugInWarning(EngramWarning):
    """A part that another package offers is left out."""


class PresetWarning(EngramWarning):
    """A search does not run the preset it was asked for."""


class WeightsError(EngramError):
    """A weights file is missing, damaged, or not one of engram's."""
