"""The contract of storage: what keeps the logs of campaigns, as lines of text.

A ``LogStore`` knows nothing of what the lines mean; hashes are chained above it (``storage``).
It promises, and ``engram.campaign.contract.LogStoreContract`` tests:

* A campaign is its uid; a name occurs once. Its log is append-only: lines 1, 2, 3 ... that come
  back as they were given.
* ``write`` gives one process at a time the right to append to a campaign. Nobody appends between
  what the writer reads and what it writes. What was appended is there, whole and durable, when
  the block ends without an error, and is not there at all otherwise.
* The campaign of a block is the very one that was opened: whoever holds one that the store no
  longer has is told so (``StaleError``).
* Readers see only whole blocks, wait for nobody and make nobody wait.
* A key and a number occur once in a campaign (``ConflictError``), which makes repeating a lost
  request harmless; a block may be run again when a connection was lost.
* Time is the store's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in a store. ``id`` is the store's own number of it."""

    id: int
    uid: str
    name: str
    created: float


class Record(NamedTuple):
    """One line of a log as it is kept: ``payload`` and ``detail`` are JSON, ``hash`` hexadecimal.

    ``detail`` holds what only explanations need; it is written with the line and read on demand.
    """

    seq: int
    kind: str
    at: float
    who: str
    key: str
    payload: str
    hash: str
    detail: str | None = None


class LogReader(Protocol):
    """One log at one moment."""

    def records(self, first: int = 1, limit: int | None = None) -> list[Record]:
        """Lines from number ``first`` on, in order and without their details."""

    def last(self) -> Record | None:
        """The last line."""

    def by_key(self, key: str) -> Record | None:
        """The line with this key."""

    def detail(self, seq: int) -> str | None:
        """The detail of a line."""


class LogWriter(LogReader, Protocol):
    """The right to append to one log, inside one block."""

    def time(self) -> float:
        """The store's time."""

    def append(self, record: Record) -> None:
        """Append a line."""


class LogStore(Protocol):
    """Where logs are kept; see the module's docstring for what it promises."""

    @property
    def place(self) -> str:
        """The store as it may be shown: nothing in it is secret."""

    def artifact_folder(self) -> Path | None:
        """Where derived state may be cached; None for nowhere."""

    def time(self) -> float:
        """The store's time."""

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, in the order of their creation."""

    def campaign(self, name: str) -> CampaignRow | None:
        """The campaign of this name."""

    def create(self, name: str, uid: str, first: Record) -> CampaignRow:
        """A new campaign with its first line; ``ConflictError`` for a name that is taken."""

    def read(self, row: CampaignRow, work: Callable[[LogReader], Result]) -> Result:
        """Run a block that reads one log."""

    def write(self, row: CampaignRow, work: Callable[[LogWriter], Result]) -> Result:
        """Run a block as the only writer of one log."""


def gone(row: CampaignRow) -> str:
    """What to say when a store no longer has a campaign."""
    return (
        f"campaign {row.name!r} is not in this database any more: another database was put in "
        "its place since it was opened; open it again; nothing of this request was kept"
    )
