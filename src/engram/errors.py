"""The one family of exceptions engram raises on purpose."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar, Literal, NamedTuple

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlong = 40


def shown(value: Any) -> str:
    """A value as it stands in a message: as Python writes it, but never long."""
    return _SHORT.repr(value)


Kind = Literal["input", "not found", "conflict", "exhausted", "damaged", "unavailable", "failed"]


class Reply(NamedTuple):
    """What the doors of the package make of a kind of error."""

    exit_code: int
    status: int


REPLIES: dict[Kind, Reply] = {
    "input": Reply(2, 422),
    "not found": Reply(2, 404),
    "conflict": Reply(2, 409),
    "exhausted": Reply(2, 409),
    "damaged": Reply(2, 500),
    "unavailable": Reply(2, 503),
    "failed": Reply(2, 500),
}
"""Exit code of the command line and HTTP status of a server, by kind of error."""


class EngramError(Exception):
    """Root of every error a caller can provoke; the message names value and remedy.

    ``kind`` is all the core says of what an error means; ``REPLIES`` says what a door makes of it.
    """

    kind: ClassVar[Kind] = "failed"

    @property
    def exit_code(self) -> int:
        """What the command line exits with."""
        return REPLIES[self.kind].exit_code

    @property
    def status(self) -> int:
        """The HTTP status a server answers with."""
        return REPLIES[self.kind].status


class InputError(EngramError, ValueError):
    """Something the user gave is wrong: shape, range, name, file or budget.

    The errors derived from it are requests that are sound in themselves but cannot be met here
    and now; whoever catches this one catches all that another request can put right.
    """

    kind: ClassVar[Kind] = "input"


class NotFoundError(InputError):
    """What the request names is not there: a campaign, a query, a measurement."""

    kind: ClassVar[Kind] = "not found"


class ConflictError(InputError):
    """What is in force forbids the request: a name or a key is taken, a cell measured already."""

    kind: ClassVar[Kind] = "conflict"


class ExhaustedError(InputError):
    """The budget, or the cells that can be handed out, do not suffice."""

    kind: ClassVar[Kind] = "exhausted"


class NewerError(InputError):
    """Written by a later version of engram; the remedy is to update."""

    kind: ClassVar[Kind] = "unavailable"


class DamagedError(EngramError):
    """What is stored cannot be what was written: the message names it and what is wrong."""

    kind: ClassVar[Kind] = "damaged"


class UnavailableError(EngramError):
    """Something the request needs is not there for now: a server, a lock, a package."""

    kind: ClassVar[Kind] = "unavailable"


class EngramWarning(UserWarning):
    """Root of every warning of engram's: something its user should know, in one line."""


class PlugInWarning(EngramWarning):
    """A part that another package offers is left out."""


class PresetWarning(EngramWarning):
    """A search does not run the preset it was asked for."""


class WeightsError(EngramError):
    """A weights file is missing, damaged, or not one of engram's."""

    kind: ClassVar[Kind] = "input"
