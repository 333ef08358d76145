"""Options of real places, shared by ``engram campaign`` and ``engram area``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli._campaign import cell_of, say_note, show_queries
from engram.cli._printing import say, say_json
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.campaign import Campaign
    from engram.campaign.answers import Told
    from engram.campaign.model import Query
    from engram.cli._remote import OverHttp
    from engram.geo.area import Area
    from engram.geo.crews import Crews
    from engram.geo.tours import Tour

PLACE, TOURS = "Real places", "Tours"

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
CrewCount = Annotated[
    int | None,
    typer.Option(help="Crews that go on tours and share up to -n cells.", rich_help_panel=TOURS),
]
Hours = Annotated[float | None, typer.Option(help="Hours of each crew.", rich_help_panel=TOURS)]
Speed = Annotated[
    str, typer.Option(help="Of crews, like 3km/h, where no cost raster is.", rich_help_panel=TOURS)
]
VisitMinutes = Annotated[
    float, typer.Option("--minutes-per-visit", help="Time at a cell.", rich_help_panel=TOURS)
]
Gpx = Annotated[
    Path | None,
    typer.Option("--gpx", help="Write waypoints and routes to this file.", rich_help_panel=PLACE),
]
GeoJson = Annotated[
    Path | None,
    typer.Option("--geojson", help="Write cells and tours to this file.", rich_help_panel=PLACE),
]
TourPicture = Annotated[
    Path | None, typer.Option("--preview", help="Draw cells and tours.", rich_help_panel=PLACE)
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


# -- asking ----------------------------------------------------------------------------------------


def at_hand(campaign: Campaign | OverHttp, option: str) -> Campaign:
    """The campaign itself; what is done on the map is done where the database is."""
    from engram.cli._remote import OverHttp

    if isinstance(campaign, OverHttp):
        raise InputError(f"{option} works where the database is; leave it out with a server")
    return campaign


def outing_of(
    campaign: Campaign | OverHttp,
    n: int,
    crews: int | None,
    start: str | None,
    hours: float | None,
    speed: str,
    minutes_per_visit: float,
) -> Crews | None:
    """The crews that go out, where they were asked for."""
    if crews is None:
        if hours is not None:
            raise InputError("--hours needs --crews, like --crews 3")
        return None
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.crews import Crews
    from engram.geo.place import Place
    from engram.geo.telling import place_at
    from engram.geo.units import speed as speed_of

    Place(at_hand(campaign, "--crews").grid)
    if start is None or hours is None:
        raise InputError("--crews needs --from LAT,LON, where tours begin and end, and --hours")
    _, lat, lon = place_at(start, "", "--from")
    return Crews(crews, n, (lat, lon), hours, speed_of(speed, "--speed"), minutes_per_visit)


def start_cell(campaign: Campaign | OverHttp, start: str) -> tuple[int, int]:
    """Where a crew begins: R,C in whole numbers, or LAT,LON where the campaign has a place."""
    if "." not in start or campaign.grid.crs is None:
        return cell_of(start, "--from")
    campaign = at_hand(campaign, "--from LAT,LON")
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.place import Place
    from engram.geo.telling import place_at

    place = Place(campaign.grid)
    _, lat, lon = place_at(start, "", "--from")
    x, y = (float(v) for v in place.on_map(lat, lon))
    near = place.nearest(x, y, ~campaign.state.base_closed)
    assert near is not None
    return near[0]


def tours_with(campaign: Campaign | OverHttp, queries: Sequence[Query]) -> list[Tour]:
    """Tours of the log that lead through these queries."""
    campaign = at_hand(campaign, "--crews")
    from engram.geo.tours import tours_of

    wanted = {query.query for query in queries}
    return [tour for tour in tours_of(campaign, all_of_them=True) if wanted & set(tour.queries)]


def show_tours(
    rows: Sequence[dict[str, Any]], tours: Sequence[Tour], as_json: bool, title: str
) -> None:
    """Cells and the tours through them."""
    if as_json:
        say_json({"queries": list(rows), "tours": [tour.to_dict() for tour in tours]})
        return
    show_queries(rows, False, title)
    for tour in tours:
        stops = " ".join(f"Q{query}" for query in tour.queries)
        say(f"crew {tour.crew}: {stops}; {tour.words()}")


@dataclass(frozen=True)
class FieldFiles:
    """Files that an ask writes for the field."""

    gpx: Path | None
    geojson: Path | None
    preview: Path | None

    def check(self, campaign: Campaign | OverHttp) -> None:
        """Refuse what cannot be written before anything is reserved."""
        names = {".gpx": self.gpx, ".geojson": self.geojson, ".png": self.preview}
        for suffix, path in names.items():
            if path is not None and path.suffix.lower() != suffix:
                raise InputError(f"{path}: name a file that ends in {suffix}")
        if any(names.values()):
            from engram.geo import needs_geo

            needs_geo()
            from engram.geo.place import Place

            Place(at_hand(campaign, "--gpx, --geojson or --preview").grid)

    def write(
        self,
        campaign: Campaign | OverHttp,
        queries: Sequence[Query],
        tours: Sequence[Tour],
        done: str,
    ) -> None:
        """Write the files; ``done`` is true already, and said when they cannot be written."""
        if self.gpx is None and self.geojson is None and self.preview is None:
            return
        campaign = at_hand(campaign, "--gpx, --geojson or --preview")
        from engram._writing import write_files
        from engram.geo.fieldfiles import as_gpx, as_tour_json
        from engram.geo.fieldmap import FieldMap
        from engram.geo.picture import draw_tours

        found = FieldMap(campaign)
        contents: dict[Path, bytes | str] = {}
        if self.gpx is not None:
            contents[self.gpx] = as_gpx(found, queries, tours)
        if self.geojson is not None:
            contents[self.geojson] = as_tour_json(found, queries, tours)
        if self.preview is not None:
            contents[self.preview] = draw_tours(found, queries, tours)
        try:
            write_files(contents)
        except InputError as error:
            raise InputError(f"{done}; only the files were not written: {error}") from error
