"""From a polygon or a raster of a real place to the grid of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS
from shapely.geometry import mapping
from shapely.geometry.base import BaseGeometry

from engram._files import sha256_of
from engram.errors import InputError
from engram.geo.coverage import shares
from engram.geo.crs import WGS84, Bounds, checked_bounds, chosen_crs, crs_name, crs_words, local_crs
from engram.geo.place import Place
from engram.geo.rasters import footprint, is_raster, on_cells
from engram.geo.travel import COST_KINDS, minutes_per_cell
from engram.geo.units import shown_side
from engram.geo.vectors import read_polygons, reprojected
from engram.grid import Grid

MOST_CELLS = 10_000_000
MOST_OPEN = 0.5
"""Share of a cell that must be open ground, at least, for the cell to be open."""
KEPT_CORNERS = 5000
"""Corners of the outline that is kept in the log; a finer one is simplified."""


@dataclass(frozen=True)
class Area:
    """The grid of a place.

    facts : what the log keeps beside the grid: files with their hashes, outline, no-go zones,
        what the cost means, and the cells nobody can cross
    notes : what was repaired or has to be known
    """

    grid: Grid
    facts: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def words(self, budget: float | None = None) -> str:
        """The area in a sentence."""
        grid, side = self.grid, Place(self.grid).side
        opened = len(grid.open_cells)
        km2 = grid.n_cells * side**2 / 1e6
        size = f"{km2:,.3g}" if km2 < 1000 else f"{km2:,.0f}"
        seen = "" if budget is None else f"; {budget:g} visits see {budget / opened:.1%}"
        return (
            f"{grid.n_cells:,} cells of {shown_side(side)} in {crs_words(str(grid.crs))}, "
            f"{opened:,} open, {size} km2{seen}".replace("%", " %")
        )


@dataclass(frozen=True)
class AreaPlan:
    """What a user says of an area.

    cell_size : side of a cell in metres
    crs       : name of the map, or nothing for one that fits
    no_go     : files of polygons nobody may enter
    cost      : raster of what a cell costs; ``cost_is`` says what its numbers are
    cell      : pixels of a cell, whose content is measured (1, 1 by default)
    """

    file: Path
    cell_size: float
    crs: str = ""
    no_go: Sequence[Path] = ()
    cost: Path | None = None
    cost_is: str = "minutes"
    channels: int = 1
    cell: tuple[int, int] = (1, 1)
    range: tuple[float, float] = (0.0, 1.0)


def read_area(plan: AreaPlan) -> Area:
    """The grid of a place: north-up, square cells, closed where they are mostly outside."""
    try:
        return _read(plan)
    except shapely.errors.ShapelyError as error:
        raise InputError(
            f"{plan.file}: its shapes, or those of the no-go zones, cannot be computed with "
            f"({error}); draw them again"
        ) from error


def _read(plan: AreaPlan) -> Area:
    raster = is_raster(plan.file)
    if raster:
        shape, own = footprint(plan.file)
        notes: list[str] = []
    else:
        shape, own, notes = read_polygons(plan.file)
    bounds = _bounds(shape, own, plan.file)
    crs, note = chosen_crs(plan.crs, bounds) if plan.crs else (local_crs(bounds, own), "")
    ground = _valid(reprojected(shape, own, crs))
    grid = _lattice(ground, plan, crs)
    barred, no_go_notes = _no_go(plan, ground, crs)
    inside = ground if barred is None else shapely.difference(ground, barred)
    share = _shares(inside, grid)
    if raster:
        share *= on_cells(plan.file, Place(grid)).share.reshape(share.shape)
    closed = share < MOST_OPEN
    if barred is not None:
        closed |= _contains_centre(barred, grid)
    blocked = np.zeros_like(closed) if barred is None else _shares(barred, grid) >= MOST_OPEN
    grid, blocked = _with_cost(replace(grid, closed=closed), plan, blocked)
    if grid.closed.all():
        raise InputError(
            f"{plan.file}: no cell of {shown_side(plan.cell_size)} lies mostly on open ground (the "
            f"area has {ground.area / 1e6:,.3g} km2); choose smaller cells, or other no-go zones"
        )
    facts = {
        "files": [_named(path) for path in (plan.file, *plan.no_go, plan.cost) if path is not None],
        "outline": None if raster else _kept(ground, plan.cell_size),
        "no_go": None if barred is None else _kept(barred, plan.cell_size),
        "cost": None if plan.cost is None else plan.cost_is,
        "blocked": [int(i) for i in np.flatnonzero(blocked)],
    }
    return Area(grid, facts, [*notes, *no_go_notes, *([note] if note else [])])


def _bounds(shape: BaseGeometry, own: CRS, path: Path) -> Bounds:
    points = shapely.get_coordinates(reprojected(shape, own, WGS84))
    return checked_bounds(points[:, 0], points[:, 1], str(path))


def _valid(shape: BaseGeometry) -> BaseGeometry:
    return shape if shape.is_valid else shapely.buffer(shapely.make_valid(shape), 0)


def _lattice(ground: BaseGeometry, plan: AreaPlan, crs: CRS) -> Grid:
    """All cells of the rectangle around a shape; corners at whole multiples of the side."""
    side = plan.cell_size
    west, south, east, north = ground.bounds
    left, top = np.floor(west / side), np.ceil(north / side)
    rows, cols = int(top - np.floor(south / side)), int(np.ceil(east / side) - left)
    if rows * cols > MOST_CELLS:
        raise InputError(
            f"cells of {shown_side(side)} give {rows * cols:,} cells, more than {MOST_CELLS:,}; "
            "choose larger cells or a smaller area"
        )
    if ground.area < MOST_OPEN * side**2:
        raise InputError(
            f"cells of {shown_side(side)} are larger than the area of "
            f"{ground.area / 1e6:,.3g} km2; choose smaller cells"
        )
    h, w = plan.cell
    transform = (side / w, 0.0, left * side, 0.0, -side / h, top * side)
    return Grid(
        rows * h, cols * w, plan.channels, plan.cell, plan.range,
        sides=(side, side), transform=transform, crs=crs_name(crs),
    )  # fmt: skip


def _shares(shape: BaseGeometry, grid: Grid) -> NDArray[np.float64]:
    place = Place(grid)
    x, y = (float(v) for v in place.xy(0, 0))
    return shares(shape, (x, y), place.side, grid.rows, grid.cols)


def _no_go(plan: AreaPlan, ground: BaseGeometry, crs: CRS) -> tuple[BaseGeometry | None, list[str]]:
    """All no-go zones as one shape, each of which has to touch the area."""
    zones, notes = [], []
    for path in plan.no_go:
        zone, _, said = read_polygons(path, crs)
        if not shapely.intersects(_valid(zone), ground):
            raise InputError(f"no-go zones of {path} do not touch the area; is it the right file?")
        zones.append(_valid(zone))
        notes += said
    return (shapely.union_all(zones) if zones else None), notes


def _contains_centre(shape: BaseGeometry, grid: Grid) -> NDArray[np.bool_]:
    """(rows, cols) True where the centre of a cell, to which a crew would walk, is in a shape."""
    shapely.prepare(shape)
    x, y = Place(grid).centres()
    return np.asarray(shapely.contains_xy(shape, x, y)).reshape(grid.rows, grid.cols)


def _with_cost(
    grid: Grid, plan: AreaPlan, blocked: NDArray[np.bool_]
) -> tuple[Grid, NDArray[np.bool_]]:
    """The grid with minutes to cross each cell; cells without a number cannot be crossed."""
    if plan.cost is None:
        return grid, blocked
    if plan.cost_is not in COST_KINDS:
        raise InputError(f"--cost-is {plan.cost_is!r}: choose one of {', '.join(COST_KINDS)}")
    found = on_cells(plan.cost, Place(grid))
    known = (found.share >= MOST_OPEN).reshape(grid.rows, grid.cols)
    if not (known & ~grid.closed).any():
        raise InputError(f"cost {plan.cost} does not cover the area; is it the right file?")
    values = found.values.reshape(grid.rows, grid.cols)
    minutes = minutes_per_cell(values[known], plan.cost_is, plan.cell_size, str(plan.cost))
    cost = np.full(known.shape, float(np.median(minutes)))
    cost[known] = minutes
    return replace(grid, cost=cost, closed=grid.closed | ~known), blocked | ~known


def _kept(shape: BaseGeometry, side: float) -> dict[str, Any]:
    """A shape for the log: GeoJSON on the grid's map, in centimetres, of not too many corners."""
    step = 0.01
    while shapely.get_num_coordinates(shape) > KEPT_CORNERS:
        step = max(2 * step, side / 100)
        shape = shapely.simplify(shape, step)

    def rounded(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [rounded(item) for item in value]
        return round(value, 2)

    found = mapping(shape)
    return {"type": found["type"], "coordinates": rounded(found["coordinates"])}


def _named(path: Path) -> dict[str, str]:
    file = Path(str(path).partition("|layername=")[0])
    return {"name": path.name, "sha256": sha256_of([file])}
