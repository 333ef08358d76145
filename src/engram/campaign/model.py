"""What a campaign is made of: its terms, the queries it sent out, the measurements in force."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from engram.detection import PERFECT, Detection
from engram.errors import (
    ConflictError,
    DamagedError,
    InputError,
    Kind,
    NewerError,
    UnavailableError,
    shown,
)
from engram.grid import DEAREST, Cell, Grid
from engram.layers import Layers
from engram.observation import Observation

if TYPE_CHECKING:
    from engram.campaign.timeline import Span

FORMAT = 2
"""Version of the event payloads; a log with a higher one is refused. Format 2 is that of terms of
which long lists stand beside the event; all others are written in format 1."""

RANKINGS = ("score", "per-cost")
BUDGETS = ("measurements", "cost")
PLACE = ("sides", "transform", "crs")
"""Facts of a grid that stand in the log only where they are given."""


UNSAID: tuple[tuple[str, Any], ...] = (
    ("area", {}),
    ("rules", 1),
    ("layers", None),
    ("detection", PERFECT),
)
"""Terms that stand in the log only where they are something else."""


RULES = 12
"""How a new campaign chooses cells: 1, by policies that are told afterwards which cells are out,
closed or too dear; 2, by policies that know it when they rank; 3, by those of before copies were
recognised; 4, by those of before layers were judged; 5, by those that saw an area in eight views;
6, by those that saw small windows of large areas in four; 7, by those that did not ask where
another copy has room; 8, by those that recognised no copies in large areas; 9, by those that did
not follow finds where these are rare; 10, after separate targets by the largest gap unless a cell
promised clearly more; 11, by those that took room in large areas for a share of that of untouched
land to the end; 12, by policies as they usually are today (``older_rules`` has what they were)."""


LARGEST = 1e12
"""The largest budget, cost of the whole area, or cost of a cell's way: sums of such numbers are
exact to far below what anybody counts."""


LONGEST = 100 * 366 * 86400.0
"""The longest lease or wait, in seconds."""


TEXT = 2000
"""Characters that a name or a reason may have."""


class StorageError(UnavailableError):
    """The database could not be read or written; nothing of the request was kept."""


class BrokenFileError(StorageError):
    """The file of a database is not one, or is damaged."""

    kind: ClassVar[Kind] = "damaged"


class StaleError(StorageError):
    """The database does not have the log that was read from it before."""

    kind: ClassVar[Kind] = "conflict"


class ChangedError(ConflictError):
    """The log has gone on since the request was prepared."""


def canonical(data: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(*parts: str) -> str:
    """SHA-256 over texts, each closed by a zero byte."""
    return hashlib.sha256("".join(f"{part}\0" for part in parts).encode()).hexdigest()


def iso(at: float) -> str:
    """A time of the log in ISO 8601, UTC."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # no calendar reaches there
        return f"{at:g} s after 1970"


@dataclass(frozen=True, eq=False)
class Spec:
    """The terms a campaign was created with; they never change.

    budget_kind : 'measurements' (every visit counts 1) or 'cost' (a visit counts its cost)
    travel      : cost of one cell of distance from a crew's starting point; the side of a square
                  of a cell's area counts 1
    lease       : seconds after which an unanswered query is given back; None for never
    stop_yield  : finds per measurement below which the advice is to stop
    version     : of engram, when the campaign was created
    rules       : how cells are chosen (``RULES``)
    layers      : what was known of every cell beforehand; all of it stands in the log
    detection   : how far a visit can be trusted that does not say so itself
    area        : facts of the real place the grid was made of (``geo.area``); none without one
    """

    grid: Grid
    budget: float
    policy: str
    seed: int = 0
    budget_kind: str = "measurements"
    prior: str = ""
    prior_sha256: str = ""
    preset: str = "default"
    options: dict[str, Any] = field(default_factory=dict)
    lease: float | None = None
    rank: str = "score"
    travel: float = 0.0
    crews: dict[str, Cell] = field(default_factory=dict)
    stop_yield: float = 0.02
    version: str = ""
    area: dict[str, Any] = field(default_factory=dict)
    layers: Layers | None = None
    rules: int = 1
    detection: Detection = PERFECT

    def __post_init__(self) -> None:
        if self.budget_kind not in BUDGETS:
            raise InputError(
                f"budget kind {self.budget_kind!r}: choose one of {', '.join(BUDGETS)}"
            )
        check_budget(self.budget, self.budget_kind)
        if self.budget_kind == "measurements":
            self.grid.check_budget(int(self.budget))
        if self.rank not in RANKINGS:
            raise InputError(f"rank={self.rank!r}: choose one of {', '.join(RANKINGS)}")
        if self.lease is not None and not self.lease > 0:
            raise InputError(f"lease={self.lease}: give a time above 0, or none")
        if not 0 <= self.travel <= DEAREST:
            raise InputError(f"travel={self.travel}: give a cost per cell of 0 to {DEAREST:g}")
        if not 0 <= self.stop_yield <= 1:
            raise InputError(f"stop yield {self.stop_yield}: give a number in [0, 1]")
        for start in self.crews.values():
            self.grid.index(start)

    def cost_of(self, index: int) -> float:
        """What a measurement of this cell takes from the budget."""
        return float(self.grid.cost.flat[index]) if self.budget_kind == "cost" else 1.0

    def to_dict(self) -> dict[str, Any]:
        plain = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("grid", "crews", "options") and (key, value) not in UNSAID
        }
        if self.layers is not None:
            plain["layers"] = {"sha256": self.layers.sha256, **self.layers.to_dict()}
        if not self.detection.perfect:
            plain["detection"] = self.detection.to_dict()
        return {
            **plain,
            "format": 1,
            "grid": _grid_to_dict(self.grid),
            "crews": {name: list(start) for name, start in self.crews.items()},
            "options": dict(self.options),
        }

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> tuple[Spec, dict[str, Any]]:
        """The terms as they stand in a log, and what this version does not know of them."""
        terms = dict(data)
        written = terms.pop("format", None)
        if not isinstance(written, int) or written > FORMAT:
            raise NewerError(
                f"this campaign was written in log format {written!r}; this version of engram "
                f"reads formats up to {FORMAT}: update engram"
            )
        rules = terms.get("rules", 1)
        if not isinstance(rules, int) or not 1 <= rules <= RULES:
            raise NewerError(
                f"this campaign chooses cells by rules {rules!r}; this version of engram knows "
                f"rules up to {RULES}: update engram"
            )
        known = {item.name for item in fields(cls)}
        more = {name: terms.pop(name) for name in terms.keys() - known}
        terms["grid"] = _grid_from_dict(terms["grid"])
        terms["crews"] = {name: (int(r), int(c)) for name, (r, c) in terms["crews"].items()}
        if "detection" in terms:
            terms["detection"] = Detection.read(**terms["detection"])
        if "layers" in terms:
            terms["layers"] = _layers_from_dict(terms["layers"], terms["grid"])
        return cls(**terms), more


def _layers_from_dict(data: Mapping[str, Any], grid: Grid) -> Layers:
    """The layers of a log; they have to be the very ones whose hash stands there."""
    layers = Layers.from_dict(data, grid)
    if layers.sha256 != data["sha256"]:
        raise DamagedError(
            f"the layers of the campaign have the hash {layers.sha256[:12]}, the log says "
            f"{str(data['sha256'])[:12]}; restore a copy of the database"
        )
    return layers


def check_text(value: object, name: str) -> str:
    """A text that every database keeps as it is: no bytes, no zero, nothing that is not UTF-8."""
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)}: give a text")
    if len(value) > TEXT or "\0" in value:
        raise InputError(f"{name}={shown(value)}: give up to {TEXT} characters, none of them zero")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name}={shown(value)} is not text in UTF-8; write it anew") from None
    return value


def check_budget(amount: float, kind: str) -> float:
    """A budget, or an addition to one, that is a positive number of its kind."""
    if not (np.isfinite(amount) and amount > 0):
        raise InputError(f"budget={amount}: give a number above 0")
    if kind == "measurements" and int(amount) != amount:
        raise InputError(f"budget={amount}: measurements are counted in whole numbers")
    return amount


def check_bounds(spec: Spec) -> None:
    """Refuse terms whose sums could not be held; asked at the door, old logs are read as before."""
    grid = spec.grid
    check_amount(spec.budget, "budget")
    check_amount(float(grid.cost.sum()), "cost of all cells together")
    check_amount(spec.travel * grid.geometry.diagonal, "cost of the longest way")
    if spec.lease is not None:
        check_length(spec.lease, "lease")


def check_amount(amount: float, name: str) -> float:
    """A number that may be added to others of its kind."""
    if not amount <= LARGEST:
        raise InputError(f"{name} {amount:g}: the largest that can be counted with is {LARGEST:g}")
    return amount


def check_length(seconds: float, name: str) -> float:
    """A time that may be added to a date."""
    if not seconds <= LONGEST:
        raise InputError(f"{name}={seconds:g}: give at most {LONGEST:g} seconds (a hundred years)")
    return seconds


def _grid_to_dict(grid: Grid) -> dict[str, Any]:
    uniform = bool((grid.cost == 1).all())
    return {
        "height": grid.height,
        "width": grid.width,
        "channels": grid.channels,
        "cell": list(grid.cell),
        "range": list(grid.range),
        "closed": [int(i) for i in np.flatnonzero(grid.closed)],
        "cost": None if uniform else [float(v) for v in grid.cost.ravel()],
        **{name: getattr(grid, name) for name in PLACE if getattr(grid, name) is not None},
    }


def _grid_from_dict(data: Mapping[str, Any]) -> Grid:
    h, w = data["cell"]
    rows, cols = data["height"] // h, data["width"] // w
    closed = np.zeros(rows * cols, bool)
    closed[data["closed"]] = True
    cost = np.ones(rows * cols) if data["cost"] is None else np.array(data["cost"], float)
    low, high = data["range"]
    return Grid(
        data["height"],
        data["width"],
        data["channels"],
        (h, w),
        (low, high),
        closed.reshape(rows, cols),
        cost.reshape(rows, cols),
        **{name: data[name] for name in PLACE if name in data},
    )


def grid_with_closed(grid: Grid, closed: NDArray[np.bool_]) -> Grid:
    """The same grid with exactly these cells closed (flat mask)."""
    return replace(grid, closed=closed.reshape(grid.rows, grid.cols))


@dataclass
class Query:
    """A cell that was handed out. ``state``: asked, told or failed; expiry depends on the time."""

    query: int
    cell: Cell
    by: str
    at: float
    lease: Span | None
    seq: int
    terms: dict[str, float]
    state: str = "asked"

    @property
    def until(self) -> float | None:
        """When the lease ends."""
        return None if self.lease is None else self.lease.until

    def expired(self, at: float) -> bool:
        """True when it is unanswered and its lease is over."""
        return self.state == "asked" and self.lease is not None and self.lease.over(at)

    def state_at(self, at: float) -> str:
        return "expired" if self.expired(at) else self.state

    def to_dict(self, at: float) -> dict[str, Any]:
        return {
            "query": self.query,
            "cell": list(self.cell),
            "by": self.by,
            "at": self.at,
            "until": self.until,
            "seq": self.seq,
            "terms": self.terms,
            "state": self.state_at(at),
        }


@dataclass(frozen=True)
class Measurement:
    """A measurement in force: the observation and where in the log it stands.

    place : which it is of those that were told together
    """

    seq: int
    observation: Observation
    who: str
    at: float
    query: int | None
    place: int = 0
