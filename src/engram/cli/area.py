"""``engram area``: look at a real place before a campaign is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli._campaign import Db, emit
from engram.cli.geo import AreaOptions, CostIs, Crs, NoGo, Preview, draw_preview
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.grid import Grid

app = typer.Typer(no_args_is_help=True, help="Real places: grids, pictures and layers of an area.")

File = Annotated[Path, typer.Argument(help="Polygons or a raster of the area.", show_default=False)]
Size = Annotated[str, typer.Option("--cell-size", help="Side of a cell: 250m, 0.5km, 800ft.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a sentence.")]


@app.command()
def show(
    area: File,
    cell_size: Size,
    crs: Crs = None,
    no_go: NoGo = None,
    cost: Annotated[Path | None, typer.Option(help="Raster of costs (.tif).")] = None,
    cost_is: CostIs = "minutes",
    budget: Annotated[int | None, typer.Option(help="Visits, to say what they see.")] = None,
    preview: Preview = None,
    as_json: AsJson = False,
) -> None:
    """Say, and draw, the grid that an area gives; nothing else is written."""
    options = AreaOptions(area, cell_size, crs, no_go, cost_is, preview)
    options.check()
    found = options.read(cost)
    grid = found.grid
    if budget is not None:
        grid.check_budget(budget)
    if preview is not None:
        draw_preview(found, area.stem, preview)
    facts = {
        "cells": [grid.rows, grid.cols],
        "open": len(grid.open_cells),
        "crs": grid.crs,
        "transform": grid.transform,
        "words": found.words(budget),
        "note": "; ".join(found.notes),
    }
    emit(facts, as_json, found.words(budget))


@app.command()
def layers(
    area: Annotated[
        Path,
        typer.Argument(help="Polygons or a raster, or the name of a campaign.", show_default=False),
    ],
    records: Annotated[
        list[Path],
        typer.Option(help="Occurrence table (Darwin Core, GBIF, iNaturalist); repeatable."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="GeoTIFF to write.")],
    species: Annotated[
        list[str] | None, typer.Option(help="What is looked for; repeatable. Default: anything.")
    ] = None,
    cell_size: Annotated[
        str | None, typer.Option("--cell-size", help="Side of a cell: 250m.")
    ] = None,
    crs: Crs = None,
    no_go: NoGo = None,
    max_uncertainty: Annotated[
        str | None, typer.Option(help="Leave out less certain places (default: the cell size).")
    ] = None,
    surveys: Annotated[
        Path | None, typer.Option(help="Also write cells where people looked, to be told (.csv).")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Turn records into layers of an area: effort, target, presence."""
    from engram.geo import needs_geo

    needs_geo()
    from engram._writing import write_files
    from engram.geo.place import Place
    from engram.geo.rasters import geotiff_of, is_raster
    from engram.geo.records import record_maps, surveys_of
    from engram.geo.units import length
    from engram.tasks.tables import read_occurrences

    if not is_raster(out) or (surveys is not None and surveys.suffix.lower() != ".csv"):
        raise InputError("name the layers .tif (--out) and the surveys .csv (--surveys)")
    options = AreaOptions(area, cell_size, crs, no_go, "minutes", None)
    place = Place(options.read().grid if cell_size else _grid_of(area, db))
    limit = None if max_uncertainty is None else length(max_uncertainty, "--max-uncertainty")
    maps = record_maps(read_occurrences(records), place, species or [], limit)
    contents: dict[Path, bytes | str] = {out: geotiff_of(place, maps.bands)}
    if surveys is not None:
        contents[surveys] = surveys_of(maps, place)
    write_files(contents)
    facts = {"file": str(out), "bands": list(maps.bands), "note": "; ".join(maps.notes)}
    emit(facts, as_json, f"{out}: bands {', '.join(maps.bands)}")


def _grid_of(name: Path, db: str | None) -> Grid:
    """The grid of a campaign; an area alone needs --cell-size."""
    if name.is_file():
        raise InputError(f"{name}: give --cell-size, like 250m, or the name of a campaign")
    from engram.cli._campaign import needs_database

    needs_database()
    from engram.campaign import open_campaign

    return open_campaign(str(name), db=db).grid
