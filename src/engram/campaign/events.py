"""What events say: one class per kind, and how each stands in the log as JSON.

Plain frozen dataclasses: they cost nothing to import, where pydantic and cattrs cost more than
all of ``import engram`` may. Values are kept as they are in the log (a lease of ``60`` stays
``60``), so that ``plain`` gives back the JSON that was hashed. A field that this version does not
know, of a later version or of whoever passed a request on, is in ``more`` and stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, get_args

import numpy as np

from engram.campaign.beside import joined, parted
from engram.campaign.model import FORMAT, Spec, canonical, digest
from engram.detection import Detection
from engram.errors import DamagedError, InputError, NewerError
from engram.grid import Cell, Grid
from engram.observation import Observation

Reads = Mapping[str, Callable[[Any], Any]]


def _cell(value: Any) -> Cell:
    row, col = value
    return row, col


def _cells(value: Any) -> tuple[Cell, ...]:
    return tuple(map(_cell, value))


@dataclass(frozen=True)
class Part:
    """An object of the log's JSON."""

    more: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    reads: ClassVar[Reads] = {}
    """How fields that are more than a number, a text or a list are read."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The object as it stands in the log; ``KeyError`` for what is missing."""
        names: tuple[str, ...] = cls.__match_args__
        known = {name: data[name] for name in names}
        for name, read in cls.reads.items():
            known[name] = read(known[name])
        more = {} if len(data) == len(names) else {k: data[k] for k in data if k not in known}
        part = cls.__new__(cls)
        part.__dict__.update(known, more=more)  # as __init__ would, in one step: logs are long
        return part

    def plain(self) -> dict[str, Any]:
        """The object as JSON."""
        names: tuple[str, ...] = self.__match_args__
        known = {name: _plain(getattr(self, name)) for name in names}
        return {**self.more, **known}


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.plain()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Measured(Part):
    """A measurement. ``content``: the values of the cell's pixels, channel by channel.

    A visit that says itself how far it can be trusted has a further ``detection``.
    """

    reads: ClassVar[Reads] = {"cell": _cell}
    cell: Cell
    outcome: float
    content: list[float]
    noise: float

    @classmethod
    def told(cls, observation: Observation) -> Measured:
        """Of an observation; float32 contents survive the round trip exactly."""
        content = [float(str(v)) for v in observation.content.ravel()]
        seen = observation.detection
        more = {} if seen is None else {"detection": seen.to_dict()}
        return cls(observation.cell, observation.outcome, content, observation.noise, more=more)

    def observation(self, grid: Grid) -> Observation:
        content = np.array(self.content, np.float32).reshape(grid.content_shape)
        seen = self.more.get("detection")
        detection = None if seen is None else Detection.read(**seen)
        return Observation(self.cell, content, float(self.outcome), float(self.noise), detection)


MEASURED = Measured.__match_args__
"""Names of what a measurement is made of."""


@dataclass(frozen=True)
class HandedOut(Part):
    """A cell that was handed out, with the terms of its score."""

    reads: ClassVar[Reads] = {"cell": _cell}
    query: int
    cell: Cell
    terms: dict[str, float]


class Body(Part):
    """What an event of one kind says."""

    kind: ClassVar[str] = ""

    def kept(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The payload of the event, and what stands beside it (``campaign.beside``)."""
        return self.plain(), None

    @property
    def places(self) -> tuple[Cell, ...]:
        """The cells it is about."""
        return ()


@dataclass(frozen=True)
class Create(Body):
    """The terms of the campaign."""

    kind = "create"
    spec: Spec

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Create:
        spec, more = Spec.read(data)
        return cls(spec, more=more)

    def plain(self) -> dict[str, Any]:
        return {**self.more, **self.spec.to_dict()}

    def kept(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        payload, beside = parted(self.plain())
        return (payload | {"format": FORMAT}, beside) if beside else (payload, None)


@dataclass(frozen=True)
class Ask(Body):
    """Cells that were handed out.

    n, rank, start, lease : what was asked for
    basis, at             : the event and the time the cells were chosen at
    detail_sha256         : of the explanations that are kept with the event
    """

    kind = "ask"
    reads: ClassVar[Reads] = {
        "start": lambda value: None if value is None else _cell(value),
        "queries": lambda value: tuple(map(HandedOut.of, value)),
    }
    n: int
    rank: str
    start: Cell | None
    lease: float | None
    basis: int
    at: float
    queries: tuple[HandedOut, ...]
    detail_sha256: str

    @property
    def places(self) -> tuple[Cell, ...]:
        return tuple(item.cell for item in self.queries)

    @property
    def pool(self) -> int:
        """Cells that tours of crews were chosen from; 0 where none were made."""
        return int(self.more.get("outing", {}).get("pool", 0))


@dataclass(frozen=True)
class Tell(Body):
    """Measurements, each with the query it answers."""

    kind = "tell"
    reads: ClassVar[Reads] = {"items": lambda value: tuple(map(Measured.of, value))}
    items: tuple[Measured, ...]
    queries: list[int | None]

    @property
    def places(self) -> tuple[Cell, ...]:
        return tuple(item.cell for item in self.items)


class OneCell(Body):
    """A body about one cell."""

    cell: Cell

    @property
    def places(self) -> tuple[Cell, ...]:
        return (self.cell,)


@dataclass(frozen=True)
class Fail(OneCell):
    """A cell that could not be measured. ``wait``: seconds until it is tried again, None never."""

    kind = "fail"
    reads: ClassVar[Reads] = {"cell": _cell}
    cell: Cell
    query: int | None
    wait: float | None
    reason: str


@dataclass(frozen=True)
class Correct(OneCell):
    """A measurement that was replaced. ``change``: what was asked for."""

    kind = "correct"
    reads: ClassVar[Reads] = {"cell": _cell, "old": Measured.of, "new": Measured.of}
    cell: Cell
    change: dict[str, Any]
    reason: str
    old: Measured
    new: Measured


@dataclass(frozen=True)
class Retract(OneCell):
    """A measurement that was withdrawn."""

    kind = "retract"
    reads: ClassVar[Reads] = {"cell": _cell, "old": Measured.of}
    cell: Cell
    reason: str
    old: Measured


@dataclass(frozen=True)
class ManyCells(Body):
    """A body about cells and nothing else."""

    reads: ClassVar[Reads] = {"cells": _cells}
    cells: tuple[Cell, ...]
    reason: str

    @property
    def places(self) -> tuple[Cell, ...]:
        return self.cells


class Close(ManyCells):
    """Nobody may measure these cells."""

    kind = "close"


class Open(ManyCells):
    """These cells may be measured (again)."""

    kind = "open"


@dataclass(frozen=True)
class Extend(Body):
    """An addition to the budget."""

    kind = "extend"
    by: float


@dataclass(frozen=True)
class Merge(Body):
    """A copy of the campaign that was used apart: its events, and what they put in force here.

    base      : number of the last event that both logs begin with
    known     : how many of the other's events behind it were merged before
    events    : all events of the other copy behind the base, as they stand there
    decisions : conflicts, and which side was taken: cell, here, there, take
    told      : measurements that come into force: cell, outcome, content, noise, who, at, query
    withdrawn, closed, opened : cells
    waits     : cells that are not to be tried for so many seconds
    queries   : what the other copy had handed out, under new numbers
    settled   : queries of here that were answered or failed there: number and state
    extra     : budget that was added there
    """

    kind = "merge"
    reads: ClassVar[Reads] = {"withdrawn": _cells, "closed": _cells, "opened": _cells}
    base: int
    known: int
    events: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    told: list[dict[str, Any]]
    withdrawn: tuple[Cell, ...]
    closed: tuple[Cell, ...]
    opened: tuple[Cell, ...]
    waits: list[dict[str, Any]]
    queries: list[dict[str, Any]]
    settled: list[list[Any]]
    extra: float
    reason: str = ""

    @property
    def places(self) -> tuple[Cell, ...]:
        return tuple(_cell(item["cell"]) for item in self.told)

    def foreign(self) -> list[Event]:
        """The other copy's events behind the base."""
        return [Event(**item) for item in self.events]


AnyBody = Create | Ask | Tell | Fail | Correct | Retract | Close | Open | Extend | Merge

DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What an event that cannot have been written leads to when it is read."""

KINDS: dict[str, type[AnyBody]] = {body.kind: body for body in get_args(AnyBody)}


@dataclass(frozen=True)
class Event:
    """One line of the log. ``hash`` chains it to the event before it; ``beside`` are long lists
    that the payload names by their hashes."""

    seq: int
    kind: str
    at: float
    who: str
    key: str
    payload: dict[str, Any]
    hash: str = ""
    beside: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def saying(cls, seq: int, at: float, who: str, key: str, body: Body) -> Event:
        """An event that says this."""
        payload, beside = body.kept()
        return cls(seq, body.kind, at, who, key, payload, beside=beside)

    @cached_property
    def body(self) -> AnyBody:
        """What the event says; ``DamagedError`` when it cannot have been written."""
        kind = KINDS.get(self.kind)
        if kind is None:
            raise NewerError(
                f"event {self.seq} is of kind {self.kind!r}, which this version of engram "
                "does not know: update engram"
            )
        try:
            return kind.of(self.payload if not self.parted else joined(self.payload, self.beside))
        except (NewerError, DamagedError):
            raise
        except DAMAGE as error:
            raise self.damaged(error) from error

    @property
    def parted(self) -> bool:
        """Whether parts of what the event says stand beside it."""
        written = self.payload.get("format")
        return self.kind == Create.kind and isinstance(written, int) and written >= 2

    def damaged(self, error: Exception) -> DamagedError:
        """Whatever the event lacks or has wrong is damage of the log, and named."""
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__} {error}"
        return DamagedError(f"event {self.seq} ({self.kind}) is damaged: {reason}")

    def rechained(self, previous: str) -> str | None:
        """The hash an event should have; None when its payload cannot have been written."""
        try:
            return self.chained(previous, canonical(self.payload))
        except ValueError:  # NaN, or text that is no text
            return None

    def chained(self, previous: str, payload_text: str) -> str:
        """Hash of this event given the hash of its predecessor."""
        return digest(
            previous, str(self.seq), self.kind, repr(self.at), self.who, self.key, payload_text
        )
