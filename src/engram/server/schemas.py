"""What requests and answers look like: the types that the published OpenAPI is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from engram.server.roles import Role

LARGEST = 2**31 - 1
Index = Annotated[int, Field(ge=0, le=LARGEST)]
Cell = Annotated[
    list[Index], Field(min_length=2, max_length=2, description="Row and column, from 0.")
]
Cells = Annotated[list[Cell], Field(min_length=1, max_length=100_000)]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="Repeating a request with its key is harmless. Also as Idempotency-Key.",
    ),
]
By = Annotated[
    str | None,
    Field(max_length=200, description="In whose name; crews act in their own. Default: yours."),
]
Reason = Annotated[str, Field(max_length=2000, description="Why, for the log.")]
Seconds = Annotated[float, Field(gt=0, le=3.2e9)]


class Taken(BaseModel):
    """A body: unknown fields, texts in place of numbers, and numbers that are none are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Given(BaseModel):
    """An answer."""

    model_config = ConfigDict(allow_inf_nan=False)


# -- what is sent ------------------------------------------------------------------------------


class Drawn(Taken):
    """A place that was drawn: polygons in degrees, and how large its cells are."""

    geojson: dict[str, Any]
    cell_size: str = Field(min_length=1, max_length=30, description="With its unit: 250m.")
    crs: str = Field("", max_length=200, description="Map of the grid, like EPSG:25833.")


class Create(Taken):
    """A new campaign, as ``engram campaign create`` takes it."""

    name: str = Field(min_length=1, max_length=200)
    size: list[Annotated[int, Field(ge=1, le=LARGEST)]] | None = Field(
        None, min_length=2, max_length=2, description="Height and width in pixels."
    )
    area: Drawn | None = Field(None, description="A real place, instead of a size.")
    budget: float = Field(gt=0, description="Measurements, or cost.")
    cell: list[Annotated[int, Field(ge=1, le=LARGEST)]] = Field(
        [1, 1], min_length=2, max_length=2, description="Height and width of a cell in pixels."
    )
    channels: int = Field(1, ge=1, le=1000)
    range: list[float] = Field([0.0, 1.0], min_length=2, max_length=2)
    closed: list[Cell] = Field([], max_length=1_000_000)
    cost: list[list[float]] | None = Field(None, description="Cost of each cell: rows of numbers.")
    sides: list[float] | None = Field(None, min_length=2, max_length=2)
    transform: list[float] | None = Field(None, min_length=6, max_length=6)
    crs: str | None = Field(None, max_length=10_000)
    budget_kind: Literal["measurements", "cost"] = "measurements"
    prior: str | None = Field(None, max_length=200, description="Memory by name.")
    policy: str | None = Field(None, max_length=200, description="Like gp or em-ptdm[h=off].")
    preset: str = Field("default", max_length=50)
    seed: int = Field(0, ge=0, lt=2**53)
    lease: Seconds | None = None
    rank: Literal["score", "per-cost"] = "score"
    travel: float = Field(0.0, ge=0)
    crews: dict[str, Cell] = Field({}, max_length=1000)
    stop_yield: float = Field(0.02, ge=0, le=1)


class Outing(Taken):
    """Crews that go on tours through up to ``n`` cells, from a start and back, within hours."""

    crews: int = Field(ge=1, le=50)
    start: list[float] = Field(min_length=2, max_length=2, description="Latitude, longitude.")
    hours: float = Field(gt=0, le=240)
    speed: str = Field("3km/h", max_length=30)
    minutes_per_visit: float = Field(10.0, ge=0, le=14_400)


class Ask(Taken):
    n: int = Field(1, ge=1, le=10_000)
    by: By = None
    lease: Seconds | None = None
    rank: Literal["score", "per-cost"] | None = None
    start: Cell | None = Field(None, description="Where the crew starts.")
    outing: Outing | None = Field(None, description="Tours, where the campaign has a place.")
    key: Key = None


class Measurement(Taken):
    """What was found in a cell."""

    cell: Cell
    outcome: float = Field(ge=0, le=1, description="Share of target in the cell.")
    value: list[float] | None = Field(
        None, min_length=1, max_length=100_000, description="Content per channel (and pixel)."
    )
    noise: float = Field(0.0, ge=0, description="Standard deviation of the content.")
    note: str = Field("", max_length=2000, description="Kept with the measurement.")
    photo: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="A photo that was sent before."
    )


class Tell(Measurement):
    by: By = None
    key: Key = None


class TellMany(Taken):
    items: list[Measurement] = Field(min_length=1, max_length=10_000)
    by: By = None
    key: Key = None


class Fail(Taken):
    """A cell that could not be measured: name the query or the cell."""

    query: int | None = Field(None, ge=1, le=LARGEST)
    cell: Cell | None = None
    retry: float | None = Field(
        86400.0, ge=0, le=3.2e9, description="Seconds until it is tried again; null for never."
    )
    reason: Reason = ""
    by: By = None
    key: Key = None


class Correct(Taken):
    cell: Cell
    outcome: float | None = Field(None, ge=0, le=1)
    value: list[float] | None = Field(None, min_length=1, max_length=100_000)
    noise: float | None = Field(None, ge=0)
    reason: Reason = ""
    by: By = None
    key: Key = None


class Retract(Taken):
    cell: Cell
    reason: Reason = ""
    by: By = None
    key: Key = None


class CellsBody(Taken):
    cells: Cells
    reason: Reason = ""
    by: By = None
    key: Key = None


class Extend(Taken):
    amount: float = Field(gt=0, description="Measurements, or cost.")
    by: By = None
    key: Key = None


class SignIn(Taken):
    token: str = Field(min_length=1, max_length=500)


class AccountBody(Taken):
    name: str = Field(min_length=1, max_length=100)
    role: Role | None = Field(None, description="A role in all campaigns.")


class AccountChange(Taken):
    disabled: bool


class GrantBody(Taken):
    role: Role
    crew: str = Field("", max_length=200, description="Name to ask and tell under.")


class TokenBody(Taken):
    label: str = Field("", max_length=100)
    lifetime: float | None = Field(None, gt=0, le=400 * 86400, description="Seconds.")


class LinkBody(Taken):
    """A sign-in link; an account that does not exist yet is made."""

    account: str = Field(min_length=1, max_length=100)
    role: Literal["viewer", "crew", "planner"] = "crew"
    crew: str = Field("", max_length=200)
    lifetime: float | None = Field(None, gt=0, le=400 * 86400, description="Seconds.")


# -- what is answered --------------------------------------------------------------------------


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
    state: Literal["open", "out", "measured", "waiting", "closed"]
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


class Interval(Given):
    expected: float
    low: float
    high: float
    level: float
    model_config = ConfigDict(extra="allow")


class Status(Given):
    """Where a campaign stands, as ``engram campaign status --json``."""

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
    remaining: Interval
    chance_remaining: float
    events: int
    remaining_by_policy: float
    prospect: Interval
    next: dict[str, float]
    advice: dict[str, Any]
    prior_fitness: dict[str, Any]


class Explanation(Given):
    """Why a cell was suggested, as it was kept then, and the same in words."""

    query: int
    state: str
    cell: list[int]
    words: str
    model_config = ConfigDict(extra="allow")


class TokenFacts(Given):
    id: int
    kind: Literal["api", "link", "session", "owner"]
    label: str
    created: float
    expires: float
    used: bool
    revoked: bool


class NewToken(Given):
    token: str = Field(description="The secret; it is shown this once.")
    facts: TokenFacts


class Tokens(Given):
    tokens: list[TokenFacts]


class Link(Given):
    """A sign-in link: good once."""

    account: str
    link: str = Field(description="Open it in a browser; it is shown this once.")
    qr: str = Field(description="The link as a QR code: an SVG drawing.")
    expires: float


class Person(Given):
    account: str
    role: Role
    crew: str


class People(Given):
    people: list[Person]


class Account(Given):
    name: str
    created: float
    disabled: bool
    role: Role | None = Field(description="The role in all campaigns.")


class Accounts(Given):
    accounts: list[Account]


class Me(Given):
    """Who you are here."""

    account: str
    role: Role | None = Field(description="Your role in all campaigns.")
    expires: float
    campaigns: dict[str, Role] = Field(description="Your role by name of the campaign.")


class ServerFacts(Given):
    version: str
    database: str
    uptime: float
    listeners: int
    computed: int
    workers: list[int]
    memory: dict[str, int] = Field(description="Resident bytes: server, workers.")
    loop: dict[str, float] = Field(
        description="Longest stall of the event loop so far: wall, and processor time, in ms."
    )
