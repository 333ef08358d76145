"""New campaigns: areas given as sizes, drawn or uploaded, and what they look like beforehand.

What is done here is done in the processes that compute: files are read, memories loaded.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign import DEFAULT_POLICY, create_campaign
from engram.campaign.files import plain_array
from engram.campaign.masks import read_mask
from engram.detection import Detection
from engram.errors import InputError, shown
from engram.grid import Grid
from engram.layers import Layers

Answer = tuple[dict[str, Any], bytes]

SHOWN = 1_000_000
"""Cells of the largest area that is shown before a campaign is made of it."""
MOST_CELLS = 2_000_000
"""Cells of the largest area that is made a campaign of over HTTP."""
POINTS = 33
"""Rows and columns of the lattice of known places."""


def lattice(grid: Grid) -> dict[str, Any] | None:
    """Latitude and longitude of some corners of cells; between them they change evenly.

    rows, cols : which corners, in cells from the top left; lat, lon : (rows, cols) degrees
    """
    if grid.transform is None or grid.crs is None:
        return None
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.place import Place

    rows = np.unique(np.linspace(0, grid.rows, min(POINTS, grid.rows + 1)).round())
    cols = np.unique(np.linspace(0, grid.cols, min(POINTS, grid.cols + 1)).round())
    where = Place(grid)
    lat, lon = where.degrees(*where.xy(rows[:, None], cols[None, :]))
    return {
        "rows": [int(v) for v in rows],
        "cols": [int(v) for v in cols],
        "lat": lat.round(9).tolist(),
        "lon": lon.round(9).tolist(),
    }


def preview(args: dict[str, Any]) -> Answer:
    """What an area would be cut into; nothing is written."""
    grid, facts, words, notes = _read(args["area"], args.get("blob", b""), args.get("terms", {}))
    if grid.n_cells > SHOWN:
        raise InputError(f"{words}: more than {SHOWN:,} cells are not shown; choose larger cells")
    area = {name: getattr(grid, name) for name in ("height", "width", "channels", "crs")}
    lists = {name: getattr(grid, name) for name in ("cell", "range", "sides", "transform")}
    return {
        "area": {
            **area,
            **{name: None if v is None else list(v) for name, v in lists.items()},
            "rows": grid.rows,
            "cols": grid.cols,
        },
        "open": len(grid.open_cells),
        "closed": [int(i) for i in np.flatnonzero(grid.closed)],
        "words": words,
        "notes": notes,
        "lattice": lattice(grid),
        "outline": facts.get("outline"),
    }, b""


def create(db: str | None, args: dict[str, Any]) -> Answer:
    """A new campaign: its policy is built once to see that it can be."""
    _check_prior(args)
    crews = {who: tuple(start) for who, start in args.pop("crews").items()}
    given, area, blob = args.pop("grid"), args.pop("area"), args.pop("blob", b"")
    facts: dict[str, Any] = {}
    if area is None:
        grid = _grid(given)
    else:
        grid, facts, _, _ = _read(area, blob, given)
    args["detection"] = Detection.read(args["detection"], args.pop("false_alarm"))
    args["layers"] = _layers(grid, args.pop("layers"), args.pop("belief"))
    campaign = create_campaign(db=db, grid=grid, crews=crews, area=facts, **args)
    return {"uid": campaign.row.uid, "name": campaign.name}, b""


def _layers(
    grid: Grid, given: list[dict[str, Any]], belief: list[list[float]] | None
) -> Layers | None:
    """What is known beforehand: rows of numbers, or of texts, which are categories."""
    if not given and belief is None:
        return None
    names = [one["name"] for one in given]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"layer {shown(name)} is given twice; name each layer once")
    values = {one["name"]: _known(one["name"], one["values"]) for one in given}
    expected = {one["name"]: one["expected"] for one in given if one["expected"]}
    prior = None if belief is None else plain_array(belief, "belief")
    return Layers.of(grid, values, belief=prior, expected=expected)


def _known(name: str, rows: list[list[float | str | None]]) -> NDArray[Any]:
    """(rows, cols) numbers with NaN, or texts with an empty one, where nothing is known."""
    flat = [value for row in rows for value in row]
    texts = [isinstance(value, str) for value in flat if value is not None]
    if any(texts) and not all(texts):
        raise InputError(f"layer {shown(name)}: give numbers, or texts for categories, not both")
    missing: float | str = "" if any(texts) else np.nan
    if len({len(row) for row in rows}) != 1:
        raise InputError(f"layer {shown(name)}: its rows are not of one length")
    return np.array([[missing if value is None else value for value in row] for row in rows])


def _grid(area: dict[str, Any]) -> Grid:
    """The area of a new campaign; ``closed`` lists cells, ``cost`` rows of numbers."""
    closed, cost = area.pop("closed"), area.pop("cost")
    h, w = area["cell"]
    if (area["height"] // h) * (area["width"] // w) > MOST_CELLS:
        raise InputError(
            f"an area of {area['height'] // h}x{area['width'] // w} cells is more than the "
            f"{MOST_CELLS:,} that are taken here; choose larger cells or a smaller area"
        )
    grid = Grid(**{**area, "cell": tuple(area["cell"]), "range": tuple(area["range"])})
    if cost is not None:
        grid = replace(grid, cost=plain_array(cost, "cost"))
    return grid.with_closed([(row, col) for row, col in closed])


def _read(
    area: dict[str, Any], blob: bytes, terms: dict[str, Any]
) -> tuple[Grid, dict[str, Any], str, list[str]]:
    """The grid of a file: a real place where a cell size is given, else a mask of pixels."""
    low, high = terms.get("range", (0.0, 1.0))
    h, w = terms.get("cell", (1, 1))
    channels = terms.get("channels", 1)
    with tempfile.TemporaryDirectory(prefix="engram-") as folder:
        path = Path(folder) / f"area{area['suffix']}"
        path.write_bytes(blob)
        if not area["cell_size"]:
            masked = read_mask(path, (h, w))
            rows, cols = masked.closed.shape
            grid = Grid(rows * h, cols * w, channels, (h, w), (low, high), masked.closed)
            return grid, {}, masked.words, []
        from engram.geo import needs_geo

        needs_geo()
        from engram.geo.area import AreaPlan, read_area
        from engram.geo.units import length

        plan = AreaPlan(
            path,
            length(area["cell_size"], "cell_size"),
            area["crs"],
            channels=channels,
            cell=(h, w),
            range=(low, high),
        )
        found = read_area(plan)
        return found.grid, found.facts, found.words(), found.notes


def _check_prior(args: dict[str, Any]) -> None:
    """Memories are chosen by name here: which files a machine has is not for strangers."""
    from engram.memory.library import AUTO, memory_files
    from engram.policies.spec import PolicyChoice

    text = args["policy"] or DEFAULT_POLICY
    choice = PolicyChoice.parse(text, preset=args["preset"], prior=args["prior"] or "")
    known = memory_files()
    for name in (choice.prior or AUTO).split("+"):
        if name != AUTO and name not in known:
            raise InputError(
                f"prior {shown(name)}: choose one of {', '.join(sorted(known))}, several with +, "
                f"or {AUTO}"
            )
