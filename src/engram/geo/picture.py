"""Pictures of an area: which cells are open, where zones and ways lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.geo.place import Place
from engram.geo.units import shown_length, shown_side
from engram.grid import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from engram.campaign.model import Query
    from engram.geo.fieldmap import FieldMap
    from engram.geo.tours import Tour

OPEN, SHUT, BARRED, EDGE = "#cfe3c4", "#eceae6", "#d8433b", "#2b4a2f"
WAYS = ("#1f5fbf", "#b0561f", "#7a3fa0", "#12806a", "#9c2b52", "#5d6a00")
ZONES: dict[str, dict[str, Any]] = {
    "outline": {"ec": EDGE, "fc": "none", "lw": 1.4},
    "no_go": {"ec": BARRED, "fc": "none", "lw": 1.2, "hatch": "////"},
}
FEW_CELLS = 4000
"""Up to so many cells their edges are drawn."""


def draw_area(
    grid: Grid, facts: dict[str, Any], title: str, tours: Sequence[dict[str, Any]] = ()
) -> bytes:
    """A PNG of an area in kilometres on its map, with the ways of crews if there are any."""
    from engram.report.canvas import png

    wide = 6.4
    tall = min(9.0, max(3.2, wide * grid.rows / grid.cols)) + 0.9

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _cells(axes, grid)
        for name, style in ZONES.items():
            if facts.get(name):
                _shape(axes, facts[name], style)
        for i, tour in enumerate(tours):
            _way(axes, tour, WAYS[i % len(WAYS)])
        if tours:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes.set_title(title, loc="left", wrap=True)
        axes.set_xlabel("east, km")
        axes.set_ylabel("north, km")
        axes.set_aspect("equal")
        axes.grid(False)
        axes.ticklabel_format(useOffset=False, style="plain")

    return png(draw, wide + (1.4 if tours else 0.0), tall)


def draw_tours(found: FieldMap, queries: Sequence[Query], tours: Sequence[Tour]) -> bytes:
    """A PNG of the cells that were handed out and the ways through them."""
    numbers = {query.query: found.state.grid.index(query.cell) for query in queries}
    shown = [
        {
            "line": tour.line,
            "stops": np.stack(found.place.centres([numbers[q] for q in tour.queries]), axis=1),
            "label": f"crew {tour.crew}: {len(tour.queries)} visits,\n"
            f"{shown_length(tour.metres)}, {tour.minutes / 60:.1f} h",
        }
        for tour in tours
    ]
    grid, name = found.state.grid, found.campaign.name
    return draw_area(grid, found.state.spec.area, f"{name}: {len(queries)} cells", shown)


def _cells(axes: Axes, grid: Grid) -> None:
    from matplotlib.colors import ListedColormap

    x, y = Place(grid).xy([0, grid.rows], [0, grid.cols])
    edges: dict[str, Any] = (
        {"edgecolors": "#ffffff", "linewidth": 0.3} if grid.n_cells <= FEW_CELLS else {}
    )
    axes.pcolormesh(
        np.linspace(x[0], x[1], grid.cols + 1) / 1000,
        np.linspace(y[0], y[1], grid.rows + 1) / 1000,
        grid.closed.astype(float),
        cmap=ListedColormap([OPEN, SHUT]),
        vmin=0,
        vmax=1,
        rasterized=True,
        **edges,
    )


def _shape(axes: Axes, geojson: dict[str, Any], style: dict[str, Any]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline
    from shapely.geometry import shape

    whole = shape(geojson)
    for polygon in getattr(whole, "geoms", [whole]):
        rings = [polygon.exterior, *polygon.interiors]
        paths = [Outline(np.asarray(ring.coords)[:, :2] / 1000, closed=True) for ring in rings]
        axes.add_patch(PathPatch(Outline.make_compound_path(*paths), **style))


def _way(axes: Axes, tour: dict[str, Any], colour: str) -> None:
    line = np.asarray(tour["line"], float) / 1000
    stops = np.asarray(tour["stops"], float).reshape(-1, 2) / 1000
    axes.plot(*line.T, color=colour, lw=1.6, label=tour["label"])
    axes.plot(*stops.T, "o", color=colour, ms=6, mec="white", mew=0.8)
    axes.plot(*line[0], "s", color="#1b1d1f", ms=7, mec="white", mew=0.8)
    for number, (x, y) in enumerate(stops, 1):
        axes.annotate(str(number), (x, y), textcoords="offset points", xytext=(5, 4), fontsize=7)


def area_title(name: str, grid: Grid) -> str:
    """What stands above the picture of an area."""
    cells = f"{len(grid.open_cells):,} of {grid.n_cells:,} cells open"
    return f"{name}: {cells}, {shown_side(Place(grid).side)}"
