"""``engram area``: look at a real place before a campaign is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engram.cli._campaign import emit
from engram.cli.geo import AreaOptions, CostIs, Crs, NoGo, Preview, draw_preview

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
