"""What is sent about campaigns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from engram.server.schemas.base import LARGEST, By, Cell, Cells, Key, Reason, Seconds, Taken


class Drawn(Taken):
    """A place that was drawn: polygons in degrees, and how large its cells are."""

    geojson: dict[str, Any]
    cell_size: str = Field(min_length=1, max_length=30, description="With its unit: 250m.")
    crs: str = Field("", max_length=200, description="Map of the grid, like EPSG:25833.")


class KnownLayer(Taken):
    """What is known of every cell beforehand: rows of numbers or texts, null where it is not."""

    name: str = Field(min_length=1, max_length=100)
    values: list[list[float | str | None]] = Field(min_length=1, max_length=10_000)
    expected: Literal["", "more", "less"] = Field(
        "", description="Whether more of it is thought to go with more target, or with less."
    )


Chance = Annotated[
    float, Field(gt=0, le=1, description="That a visit finds a target that is there.")
]
FalseAlarm = Annotated[
    float, Field(ge=0, lt=1, description="That a visit reports a target that is not there.")
]


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
    detection: Chance | Literal["learn"] | None = None
    false_alarm: FalseAlarm | None = None
    layers: list[KnownLayer] = Field([], max_length=100)
    belief: list[list[float]] | None = Field(
        None, description="Probability of target of every cell, as somebody sees it: rows."
    )


class Signed(Taken):
    """What is written to the log has somebody's name, and may have a key."""

    by: By = None
    key: Key = None


class Outing(Taken):
    """Crews that go on tours through up to ``n`` cells, from a start and back, within hours."""

    crews: int = Field(ge=1, le=50)
    start: list[float] = Field(min_length=2, max_length=2, description="Latitude, longitude.")
    hours: float = Field(gt=0, le=240)
    speed: str = Field("3km/h", max_length=30)
    minutes_per_visit: float = Field(10.0, ge=0, le=14_400)


class Ask(Signed):
    n: int = Field(1, ge=1, le=10_000)
    lease: Seconds | None = None
    rank: Literal["score", "per-cost"] | None = None
    start: Cell | None = Field(None, description="Where the crew starts.")
    outing: Outing | None = Field(None, description="Tours, where the campaign has a place.")


class Measurement(Taken):
    """What was found in a cell."""

    cell: Cell
    outcome: float = Field(ge=0, le=1, description="Share of target in the cell.")
    value: list[float] | None = Field(
        None, min_length=1, max_length=100_000, description="Content per channel (and pixel)."
    )
    noise: float = Field(0.0, ge=0, description="Standard deviation of the content.")
    detection: Chance | None = Field(None, description="Of this visit; default: the campaign's.")
    false_alarm: FalseAlarm | None = Field(
        None, description="Of this visit; default: the campaign's."
    )
    note: str = Field("", max_length=2000, description="Kept with the measurement.")
    photo: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="A photo that was sent before."
    )


class Tell(Measurement, Signed):
    pass


class TellMany(Signed):
    items: list[Measurement] = Field(min_length=1, max_length=10_000)


class Fail(Signed):
    """A cell that could not be measured: name the query or the cell."""

    query: int | None = Field(None, ge=1, le=LARGEST)
    cell: Cell | None = None
    retry: float | None = Field(
        86400.0, ge=0, le=3.2e9, description="Seconds until it is tried again; null for never."
    )
    reason: Reason = ""


class Correct(Signed):
    cell: Cell
    outcome: float | None = Field(None, ge=0, le=1)
    value: list[float] | None = Field(None, min_length=1, max_length=100_000)
    noise: float | None = Field(None, ge=0)
    reason: Reason = ""


class Retract(Signed):
    cell: Cell
    reason: Reason = ""


class CellsBody(Signed):
    cells: Cells
    reason: Reason = ""


class Extend(Signed):
    amount: float = Field(gt=0, description="Measurements, or cost.")
