"""Options of real places, shared by ``engram campaign`` and ``engram area``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli._campaign import say_note
from engram.cli._printing import say
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.campaign.answers import Told
    from engram.geo.area import Area

PLACE = "Real places"

AreaFile = Annotated[
    Path | None,
    typer.Option(
        "--area",
        help="Polygons (.geojson, .gpkg, .shp, .kml) or a raster (.tif; nodata is outside).",
        rich_help_panel=PLACE,
    ),
]
CellSize = Annotated[
    str | None,
    typer.Option(help="Side of a cell with its unit: 250m, 0.5km, 800ft.", rich_help_panel=PLACE),
]
Crs = Annotated[
    str | None,
    typer.Option("--crs", help="Map of the grid, like EPSG:25833.", rich_help_panel=PLACE),
]
NoGo = Annotated[
    list[Path] | None,
    typer.Option("--no-go", help="Polygons nobody may enter; repeatable.", rich_help_panel=PLACE),
]
CostIs = Annotated[
    str,
    typer.Option(
        help="Numbers of a cost raster: minutes (per cell), slope (degrees), slope-percent.",
        rich_help_panel=PLACE,
    ),
]
Preview = Annotated[
    Path | None, typer.Option(help="Draw the area to this PNG.", rich_help_panel=PLACE)
]
At = Annotated[
    str | None,
    typer.Option(
        "--at", help="Latitude,longitude; with --crs of a map: east,north.", rich_help_panel=PLACE
    ),
]
TellCrs = Annotated[
    str | None,
    typer.Option("--crs", help="System that places are given in.", rich_help_panel=PLACE),
]
Combine = Annotated[
    str,
    typer.Option(help="Many points in a cell: any, share or mean.", rich_help_panel=PLACE),
]
Fix = Annotated[
    bool,
    typer.Option(
        "--fix",
        help="Turn round swapped coordinates and leave out places outside; both are said.",
        rich_help_panel=PLACE,
    ),
]


@dataclass(frozen=True)
class AreaOptions:
    """The options of a place as they were given."""

    area: Path | None
    cell_size: str | None
    crs: str | None
    no_go: Sequence[Path] | None
    cost_is: str
    preview: Path | None

    def check(self) -> None:
        """Options of a place mean nothing without one."""
        given = {
            "--cell-size": self.cell_size,
            "--crs": self.crs,
            "--no-go": self.no_go,
            "--preview": self.preview,
        }
        names = [name for name, value in given.items() if value]
        if self.area is None and names:
            raise InputError(f"{names[0]} needs --area FILE, the place it is about")
        if self.area is not None and self.cell_size is None:
            raise InputError("--area needs --cell-size, like 250m")
        check_png(self.preview)

    def read(
        self,
        cost: Path | None = None,
        cell: tuple[int, int] = (1, 1),
        channels: int = 1,
        value_range: tuple[float, float] = (0.0, 1.0),
    ) -> Area:
        """The grid of the place."""
        from engram.geo import needs_geo

        needs_geo()
        from engram.geo.area import AreaPlan, read_area
        from engram.geo.units import length

        assert self.area is not None
        plan = AreaPlan(
            self.area,
            length(self.cell_size or "", "--cell-size"),
            self.crs or "",
            tuple(self.no_go or ()),
            cost,
            self.cost_is,
            channels,
            cell,
            value_range,
        )
        return read_area(plan)


def told_words(told: Told) -> str:
    """What was recorded, and what was not."""
    again = " (known already)" if told.repeated else ""
    words = f"{len(told.cells)} measurement(s) recorded as event {told.seq}{again}"
    if not told.cells:
        words = "nothing new"
    for count, what in ((told.skipped, "known already"), (told.left_out, "left out")):
        words += f", {count} {what}" if count else ""
    return words


def check_png(path: Path | None) -> None:
    """Pictures are PNG files."""
    if path is not None and path.suffix.lower() != ".png":
        raise InputError(f"{path}: the picture is a PNG; name a file that ends in .png")


def show_place(area: Area, name: str, budget: float, preview: Path | None, as_json: bool) -> None:
    """The sentence, notes and picture of a place of which a campaign was made."""
    if preview is not None:
        try:
            draw_preview(area, name, preview)
        except InputError as error:
            raise InputError(f"{name} was created; only its picture was not: {error}") from error
    if not as_json:
        say(area.words(budget))
        for note in area.notes:
            say_note(note)


def draw_preview(area: Area, name: str, path: Path) -> None:
    """Draw an area to a PNG."""
    from engram._writing import write_file
    from engram.geo.picture import area_title, draw_area

    write_file(path, draw_area(area.grid, area.facts, area_title(name, area.grid)))
