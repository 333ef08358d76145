"""What is answered about campaigns and the server; the settings of a page go both ways."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from engram.server.roles import Role
from engram.server.schemas.base import Given, Taken


class Receipt(Given):
    """The acknowledgement of a request."""

    seq: int = Field(description="Number of the event.")
    kind: str
    at: float
    cells: list[list[int]]
    repeated: bool = Field(description="The key was known; nothing was added.")
    note: str = Field(description="What is odd about it, such as the clock.")
    head: str = Field(description="Hash of the last event now, which is the ETag.")
    budget: float | None = Field(None, description="After extend: the budget now.")
    skipped: int = Field(0, description="Reports of a file that were known exactly so.")
    left_out: int = Field(0, description="Reports of a file that lie outside.")


class Query(Given):
    """A cell that was handed out."""

    query: int
    cell: list[int]
    by: str
    at: float
    until: float | None
    seq: int
    terms: dict[str, float | None]
    state: Literal["asked", "told", "failed", "expired"]


class Tour(Given):
    """What one crew does: queries in visiting order, and the way it takes."""

    crew: int
    queries: list[int]
    line: list[list[float]] = Field(description="Latitude and longitude of the way.")
    metres: float
    minutes: float
    finds: float
    words: str


class Tours(Given):
    tours: list[Tour]


class Queries(Given):
    queries: list[Query]
    note: str
    head: str
    tours: list[Tour] = Field([], description="Where an outing was asked for.")


class Suggestion(Given):
    cell: list[int]
    terms: dict[str, float | None]


class Suggestions(Given):
    suggestions: list[Suggestion]


class CampaignLine(Given):
    """A campaign at a glance."""

    name: str
    uid: str = Field(description="Stands for the name in a path.")
    created: str
    role: Role
    problem: str = Field("", description="Why it cannot be opened.")
    policy: str = ""
    told: int = 0
    found: int = 0
    asked: int = 0
    budget_left: float = 0.0
    events: int = 0


class Campaigns(Given):
    campaigns: list[CampaignLine]


class Area(Given):
    """The grid of a campaign."""

    height: int
    width: int
    channels: int
    cell: list[int]
    rows: int
    cols: int
    range: list[float]
    sides: list[float] | None
    transform: list[float] | None
    crs: str | None


class Trusted(Given):
    """How far a visit can be trusted that does not say so itself."""

    chance: float | Literal["learn"] = Field(description="That it finds a target that is there.")
    false_alarm: float


class CampaignFacts(Given):
    """What a campaign was created with, and what you may do in it."""

    name: str
    uid: str
    created: str
    area: Area
    budget: float
    budget_kind: str
    policy: str
    options: dict[str, Any]
    preset: str
    prior: str
    seed: int
    lease: float | None
    rank: str
    travel: float
    crews: dict[str, list[int]]
    stop_yield: float
    detection: Trusted
    layers: list[str] = Field(description="Names of what is known of every cell beforehand.")
    belief: bool = Field(description="Whether somebody's map of chances came with it.")
    role: Role
    crew: str = Field(description="The name you ask and tell under.")
    seq: int
    head: str


class MeasuredCell(Given):
    cell: list[int]
    outcome: float
    by: str
    at: float
    seq: int
    query: int | None
    visits: int = Field(1, description="How often it was visited; the outcome is the latest one.")
    settled: bool = Field(True, description="False where another visit may find what was missed.")


class OneVisit(Given):
    """A visit of a cell that is in force; how far it can be trusted, where it said so itself."""

    outcome: float
    by: str
    at: float
    seq: int
    query: int | None
    detection: float | None
    false_alarm: float | None


class CellLine(Given):
    """An event of the log that is about one cell."""

    seq: int
    at: str
    kind: str
    by: str
    via: str = ""
    key: str
    text: str
    facts: dict[str, Any] = Field({}, description="What was kept beside a measurement.")
    payload: dict[str, Any]


class CellHistory(Given):
    cell: list[int]
    state: Literal["open", "out", "measured", "visited", "waiting", "closed"] = Field(
        description="visited: another visit may find what was missed."
    )
    visits: list[OneVisit] = Field(description="In force, the latest last.")
    events: list[CellLine]
    queries: list[Query]
    head: str


class Lattice(Given):
    """Degrees of some corners of cells; between them they change evenly."""

    rows: list[int]
    cols: list[int]
    lat: list[list[float]]
    lon: list[list[float]]


class PlaceFacts(Given):
    """Where the cells lie on Earth; null where a campaign has no place."""

    lattice: Lattice | None
    outline: dict[str, Any] | None = Field(description="GeoJSON on the grid's own map.")


class Preview(Given):
    """What an area would be cut into."""

    area: Area
    open: int
    closed: list[int] = Field(description="Flat indices, row * cols + col.")
    words: str
    notes: list[str]
    lattice: Lattice | None
    outline: dict[str, Any] | None


class Photo(Given):
    photo: str = Field(description="Its SHA-256: name it when you tell.")
    width: int
    height: int
    bytes: int


class Point(Given):
    """Where the search was after an event."""

    seq: int
    told: int
    found: int


class Left(Given):
    """What was left to find then, with its interval."""

    seq: int
    told: int
    expected: float
    low: float
    high: float
    level: float


class Curves(Given):
    """Finds over the measurements, and what was left at some moments."""

    finds: list[Point]
    left: list[Left]
    head: str


class PageSettings(Taken):
    """What the page of a campaign shows beside it."""

    tiles: str = Field("", max_length=500, description="URL of map tiles, with {z} {x} {y}.")
    credit: str = Field("", max_length=500, description="Whose background it is.")
    picture: str = Field(
        "", pattern="^([0-9a-f]{64})?$", description="A photo that lies under the cells."
    )
    corners: list[Annotated[float, Field(ge=-180, le=180)]] | None = Field(
        None, min_length=4, max_length=4, description="Its south, west, north and east, in degrees."
    )


class WaitingCell(Given):
    cell: list[int]
    until: float


class CellsInForce(Given):
    """What is in force at one moment of the log."""

    seq: int
    head: str
    at: float
    rows: int
    cols: int
    budget: float
    budget_left: float
    measured: list[MeasuredCell]
    out: list[Query]
    waiting: list[WaitingCell]
    closed: list[int] = Field(description="Flat indices, row * cols + col.")


class Line(Given):
    """An event of the log."""

    seq: int
    at: str
    kind: str
    by: str
    via: str = Field("", description="The account that sent it, where it acted for another.")
    key: str
    text: str
    payload: dict[str, Any]


class History(Given):
    events: list[Line]
    more: bool = Field(description="There are events behind these.")
    head: str


class Verification(Given):
    ok: bool
    events: int
    asks: int
    suggestions: int
    older: int = Field(description="Suggestions of a policy that is no longer there.")
    faults: list[str]


class Layers(Given):
    """Maps as rows of numbers."""

    seq: int
    head: str
    rows: int
    cols: int
    rule: str
    alpha: float | None
    layers: dict[str, list[list[float | None]]]


class Explanation(Given):
    """Why a cell was suggested, as it was kept then, and the same in words."""

    query: int
    state: str
    cell: list[int]
    words: str
    model_config = ConfigDict(extra="allow")


class ServerFacts(Given):
    version: str
    database: str
    uptime: float
    listeners: int
    computed: int
    workers: list[int]
    memory: dict[str, int] = Field(description="Resident bytes: server, workers.")
    loop: dict[str, float] = Field(
        description="Longest stall of the event loop so far, in ms: wall; queued for a processor "
        "and stolen by other virtual machines meanwhile; ours: the longest without what was "
        "stolen; worked: its own processor time at most."
    )
