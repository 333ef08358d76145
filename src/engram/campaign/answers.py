"""What a campaign answers: one class per answer, the same for Python, command line and server.

``to_dict`` is the answer as JSON; its names and their order are relied on by scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engram.campaign.advice import Advice
from engram.campaign.fitness import Fitness
from engram.campaign.model import Query
from engram.campaign.prospect import Prospect
from engram.campaign.remaining import Remaining
from engram.detection import Detection
from engram.grid import Cell
from engram.layer_effects import Effect
from engram.policies.base import Suggestion


class Plain:
    """An answer whose JSON is its fields."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Receipt(Plain):
    """The acknowledgement of a request. ``repeated``: its key was known, nothing was added;
    ``note``: what is odd about it, such as the clock."""

    seq: int
    kind: str
    at: float
    cells: list[list[int]]
    repeated: bool = False
    note: str = ""


@dataclass(frozen=True)
class Told(Receipt):
    """The acknowledgement of measurements.

    skipped  : reports of a file that were known exactly so
    left_out : reports of a file whose place lies outside, left out as asked
    """

    skipped: int = 0
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        plain = {"told": len(self.cells), **super().to_dict()}
        quiet = [name for name in ("skipped", "left_out") if not plain[name]]
        return {name: value for name, value in plain.items() if name not in quiet}


@dataclass(frozen=True)
class Merged(Plain):
    """What a merge did, or would do.

    events    : of the other copy that are new here;  told, withdrawn : measurements
    queries   : cells the other copy had handed out, under new numbers
    conflicts : cells measured differently, with both outcomes and which side was taken
    """

    seq: int
    written: bool
    events: int
    told: int
    withdrawn: int
    queries: int
    conflicts: list[dict[str, Any]]


@dataclass(frozen=True)
class Extended(Receipt):
    """The acknowledgement of more budget. ``budget``: what it is now."""

    budget: float = 0.0


@dataclass(frozen=True)
class NextCell:
    """A cell to measure next, with the terms of its score; ``query`` when it was handed out."""

    cell: Cell
    terms: dict[str, float]
    query: int | None = None
    by: str = ""
    until: float | None = None

    @classmethod
    def handed_out(cls, query: Query) -> NextCell:
        return cls(query.cell, query.terms, query.query, query.by, query.until)

    @classmethod
    def looked_at(cls, pick: Suggestion) -> NextCell:
        return cls(pick.cell, {**pick.terms, "rank": pick.rank})

    def to_dict(self) -> dict[str, Any]:
        plain = {"cell": list(self.cell), **self.terms}
        if self.query is None:
            return plain
        return {"query": self.query, **plain, "by": self.by, "until": self.until}


PLACE_NAMES = ("crs", "place")
"""Names of an outline that stand there only for a real place."""


@dataclass(frozen=True)
class Outline(Plain):
    """What a campaign was created with. ``cells``: rows and columns; ``mask``: what was read of
    the raster the area came from; ``place``: the real place it is, in words."""

    name: str
    cells: list[int]
    open: int
    mask: str | None
    budget: float
    budget_kind: str
    policy: str
    options: dict[str, Any]
    prior: str
    seed: int
    database: str
    crs: str | None = None
    place: str | None = None

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        return plain if self.place else {k: v for k, v in plain.items() if k not in PLACE_NAMES}


@dataclass(frozen=True)
class Explanation:
    """Why a query's cell was suggested, as it was kept when it was suggested.

    rule, weights, tilt : which rule made the score, what the chance weighs, what h added; not
        there in explanations of early versions
    layers              : what each added to the log-odds of target, by name
    picture             : the neighbourhood as small tables
    kept                : all of it as it is in the database, with what later versions may add
    """

    query: int
    state: str
    cell: Cell
    rank: int
    candidates: int
    ranked_by: str
    measured: int
    found: int
    policy: str
    prior: str
    terms: dict[str, float]
    expected_outcome: float
    expected_content: list[float] | None
    out: list[list[int]]
    runners_up: list[dict[str, Any]]
    picture: dict[str, Any]
    cost: float | None = None
    rule: str = ""
    weights: dict[str, float] = field(default_factory=dict)
    tilt: float | None = None
    layers: dict[str, float] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, query: int, state: str, kept: Mapping[str, Any]) -> Explanation:
        """The explanation that is kept for a query, in its present state."""
        known = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        row, col = kept["cell"]
        return cls(**{**known, "query": query, "state": state, "cell": (row, col), "kept": kept})

    def to_dict(self) -> dict[str, Any]:
        return {"query": self.query, "state": self.state, **self.kept}


@dataclass(frozen=True)
class LogLine(Plain):
    """One event of the log: ``text`` tells it in a few words, ``at`` is its time in ISO 8601;
    ``via`` is who sent it to a server, where that was in another's name."""

    seq: int
    at: str
    kind: str
    by: str
    key: str
    text: str
    payload: dict[str, Any]
    via: str = ""

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        return plain if self.via else {k: v for k, v in plain.items() if k != "via"}


@dataclass(frozen=True)
class Exported(Plain):
    """A file that was written, and how many entries it has."""

    file: str
    count: int


@dataclass(frozen=True)
class Trust:
    """How far visits can be trusted, as it is believed now; ``again``: cells that were visited and
    may still hold target."""

    detection: Detection
    again: int
    expected: float

    def to_dict(self) -> dict[str, Any]:
        seen = self.detection
        learnt = ", learnt from the visits" if seen.learnt else ""
        alarm = f", false alarms {seen.false_alarm:.0%}" if seen.false_alarm else ""
        words = (
            f"a visit finds a target that is there with {seen.chance:.0%}{learnt}{alarm}; "
            f"{self.again} visited cell(s) may still hold about {self.expected:.1f}"
        )
        return {
            "chance": round(seen.chance, 4),
            "false_alarm": seen.false_alarm,
            "learnt": seen.learnt,
            "visited_and_open": self.again,
            "expected_missed": round(self.expected, 3),
            "words": words,
        }


@dataclass(frozen=True)
class Targets:
    """Separate targets of a campaign whose goal these are.

    touched        : groups of finds that touch each other, by a side or a corner
    extent         : side of a square of a target's area in cells, as it was given or as the shares
        of target in the finds say; None before the first find
    apart          : expected number of separate targets that were touched: finds that lie apart
        may be of one
    untouched      : targets nobody has touched;  wide : the same at 95 %
    prospect, next : how many of these all measurements left, and the next few, would touch
    """

    touched: int
    extent: float | None
    apart: float
    untouched: Remaining
    wide: Remaining
    prospect: Prospect
    next: Prospect

    @property
    def words(self) -> str:
        left, size = self.untouched, ""
        if self.extent is not None:
            size = f", about {self.extent:.1f} cells across"
        ends = dict.fromkeys(
            f"{part.low} to {part.high} at {part.level:.0%}" for part in (left, self.wide)
        )
        return (
            f"about {self.apart:.1f} touched (finds in {self.touched} group(s){size}); not "
            f"touched: about {left.expected:.1f} ({', '.join(ends)}), chance of any: "
            f"{left.chance:.0%}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "goal": "objects",
            "touched": self.touched,
            "extent": self.extent,
            "apart": self.apart,
            "untouched": self.untouched.to_dict(),
            "wide": self.wide.to_dict(),
            "prospect": self.prospect.to_dict(),
            "next": self.next.to_dict(),
            "words": self.words,
        }


@dataclass(frozen=True)
class Status:
    """Where a campaign stands.

    told, asked, failed, expired : measurements in force, cells that are out, queries by state
    queries, events              : how many there were
    found, closed                : cells with target; cells nobody may measure
    remaining                    : target cells nobody has found yet
    remaining_by_policy          : the sum of the policy's corrected chances
    layers                       : what they do to the odds of target, the strongest first
    detection                    : what visits may miss, where they may
    targets                      : separate targets, where the campaign is after these
    prospect, next               : finds that all measurements left, and the next few, would bring
    advice                       : whether to go on; by separate targets where these are the goal
    """

    name: str
    policy: str
    prior: str
    told: int
    asked: int
    failed: int
    expired: int
    queries: int
    budget: float
    budget_kind: str
    budget_left: float
    found: int
    closed: int
    remaining: Remaining
    events: int
    remaining_by_policy: float
    prospect: Prospect
    next: Prospect
    advice: Advice
    prior_fitness: Fitness
    layers: list[Effect] = field(default_factory=list)
    detection: Trust | None = None
    targets: Targets | None = None

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name == "remaining":
                left = value.to_dict()
                chance = left.pop("chance")
                facts |= {"remaining": left, "chance_remaining": chance}
            elif name in ("detection", "targets"):
                facts |= {} if value is None else {name: value.to_dict()}
            elif name == "layers":
                if value:
                    facts["layers"] = [effect.to_dict() for effect in value]
            elif name == "next":
                expected = round(value.expected, 3)
                facts["next"] = {"measurements": value.measurements, "expected_finds": expected}
            else:
                facts[name] = value.to_dict() if hasattr(value, "to_dict") else value
        return facts


@dataclass(frozen=True)
class CampaignLine:
    """One campaign of a database. ``problem``: why it cannot be opened, and nothing else then."""

    name: str
    created: str
    policy: str = ""
    told: int = 0
    found: int = 0
    asked: int = 0
    budget_left: float = 0.0
    events: int = 0
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        if self.problem:
            return {"name": self.name, "created": self.created, "problem": self.problem}
        order = ("name", "policy", "told", "found", "asked", "budget_left", "events", "created")
        return {name: getattr(self, name) for name in order}
