"""Which records a species task is made of, and how: the settings of ``species``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engram.errors import InputError
from engram.grid import Grid
from engram.tasks.occurrences import Box, Years, checked_box
from engram.tasks.regions import PERIODS, Region
from engram.tasks.settings import SPECIES, box_of, columns_of, names_of, option, years_of

PAPER_BOX: Box = (25.6, 55.0, -123.1, -75.0)
OUTCOMES = ("presence", "share")
WHOLE = (16, 4096)
"""Cells along the longer side of the box when it is searched as a whole."""


@dataclass(frozen=True)
class SpeciesPlan:
    """Which records, and how regions are chosen and turned into tasks.

    species     : scientific or common names, or genera, pooled; none where the table has one
    column      : field -> name of a column that is not recognised
    years       : first and last, both included; None = open
    max_uncertainty : largest uncertainty of coordinates, in metres
    box         : where centres may lie (south, north, west, east)
    degrees     : side of a region
    size, block : pixels per side of a region, and of a query
    min_records : records (individuals in gridded counts) a region must hold
    max_share   : largest share of target blocks, above which there is little to search for;
                  None = 0.75 for points, 0.5 for cells
    period      : 'all', 'year' or 'month': the time one map covers; 'auto' is a month for
                  gridded counts that state it, else all
    layout      : 'points', or 'cells' for gridded counts; 'auto' looks at the coordinates
    cap         : number that is content 1; None = 3 records, or 255 individuals of a cell
    effort_layer : whether the number of records of other species is a layer, ``effort``
    whole       : cells along the longer side of the box, which is searched as a whole then (degrees
                  and size say nothing); None = regions are drawn
    visits      : whether cells without a record of any species are closed: nobody was there, and a
                  visited cell without the species is a true absence
    seed        : of the draw of regions
    """

    species: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "Scientific or common name, or a genus; several are pooled.",
            panel=SPECIES,
            several=True,
            read=names_of,
        ),
    )
    column: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            "FIELD=NAME of a column that is not recognised, like latitude=Y.",
            panel=SPECIES,
            several=True,
            read=columns_of,
        ),
    )
    years: Years | None = field(
        default=None,
        metadata=option("First and last, like 2008-2016.", panel=SPECIES, read=years_of),
    )
    max_uncertainty: float | None = field(
        default=None, metadata=option("Of coordinates, in metres.", panel=SPECIES)
    )
    box: Box = field(
        default=PAPER_BOX,
        metadata=option(
            "Where centres may lie: south,north,west,east (default: the paper's).",
            panel=SPECIES,
            read=box_of,
        ),
    )
    degrees: float = field(
        default=5.0, metadata=option("Side of a region (default: 5).", panel=SPECIES)
    )
    size: int = field(default=64, metadata=option("Pixels per side of a task."))
    block: int = 2
    min_records: int = field(
        default=60, metadata=option("Records a region must hold (default: 60).", panel=SPECIES)
    )
    max_share: float | None = field(
        default=None, metadata=option("Largest share of target in a task.")
    )
    outcome: str = "presence"
    period: str = field(
        default="auto",
        metadata=option("Time one map covers: auto, all, year, month.", panel=SPECIES),
    )
    layout: str = "auto"
    cap: float | None = None
    effort_layer: bool = field(
        default=False,
        metadata=option(
            "Records of other species, counted in every cell, are known beforehand.",
            panel=SPECIES,
        ),
    )
    visits: bool = field(
        default=False,
        metadata=option(
            "Cells without a record of any species were never visited and are closed.",
            panel=SPECIES,
        ),
    )
    whole: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checked_box(self.box)
        if self.whole is not None and not WHOLE[0] <= self.whole <= WHOLE[1]:
            raise InputError(
                f"whole={self.whole}: give {WHOLE[0]} to {WHOLE[1]} cells for the longer side of "
                "the box"
            )
        if self.outcome not in OUTCOMES:
            raise InputError(f"outcome {self.outcome!r}: choose one of {', '.join(OUTCOMES)}")
        if self.period not in ("auto", *PERIODS):
            raise InputError(f"period {self.period!r}: choose auto or {', '.join(PERIODS)}")
        if not 0 < self.degrees <= 60:
            raise InputError(f"degrees={self.degrees:g}: a region has between 0 and 60 degrees")
        if self.min_records < 1:
            raise InputError(f"min_records={self.min_records}: give at least 1")
        if self.max_share is not None and not 0 < self.max_share <= 1:
            raise InputError(f"max_share={self.max_share:g}: give a share in (0, 1]")
        if self.cap is not None and self.cap < 1:
            raise InputError(f"cap={self.cap:g}: give at least 1")
        self.grid()

    def grid(self) -> Grid:
        """The grid of every task, all cells open."""
        if self.whole is None:
            return Grid(self.size, self.size, cell=(self.block, self.block))
        south, north, west, east = self.box
        across = max(north - south, east - west)
        height, width = (
            self.block * max(1, round(side * self.whole / across))
            for side in (north - south, east - west)
        )
        return Grid(height, width, cell=(self.block, self.block))

    @property
    def around(self) -> Region:
        """The square of which the box, searched as a whole, is the north-west."""
        south, north, west, east = self.box
        across = max(north - south, east - west)
        return Region(north - across, west, across)
