"""A campaign as layers of a map: cells with beliefs, queries, measurements, area, tours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import shape
from shapely.geometry.base import BaseGeometry

from engram.campaign.campaign import Campaign
from engram.campaign.model import Query, iso
from engram.errors import EngramError
from engram.geo.place import Place

TERMS = ("exploration", "likelihood", "reward", "exploitation", "total", "probability", "doubt")


@dataclass(frozen=True, eq=False)
class Layer:
    """Shapes on the grid's map with a table of attributes, each column (n,)."""

    name: str
    kind: str
    shapes: NDArray[Any]
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.shapes)

    def rows(self) -> list[dict[str, Any]]:
        """Attributes of each shape as plain values; what is not finite is None."""
        plain = {name: [_value(v) for v in column] for name, column in self.columns.items()}
        return [{name: plain[name][i] for name in plain} for i in range(len(self))]


def _value(value: Any) -> Any:
    item = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(item, float) and not np.isfinite(item) else item


class FieldMap:
    """All that is known of a campaign with a place, as layers and rasters."""

    def __init__(self, campaign: Campaign) -> None:
        campaign.refresh()
        self.campaign, self.state = campaign, campaign.state
        self.place = Place(campaign.grid)
        self.at = campaign.now()

    def beliefs(self) -> dict[str, NDArray[np.float64]]:
        """(n_cells,) probability, doubt, every term, expected content per channel, visits.

        The chance of a measured cell is what was found there, and its doubt 0.
        """
        grid, view = self.state.grid, self.campaign.policy().view()
        columns = {n: np.array(getattr(view.scores, n), np.float64) for n in TERMS}
        chance = np.clip(columns["probability"], 0, 1)
        visits = np.zeros(grid.n_cells)
        for index, told in self.state.measurements.items():
            chance[index] = float(told.observation.outcome > 0)
            visits[index] = 1
        doubt = np.where(visits > 0, 0.0, columns["doubt"])
        content = np.full((grid.channels, grid.n_cells), np.nan)
        if view.mean is not None and view.shows == "content":
            content = grid.cells_of(view.mean).mean(axis=(-1, -2)).reshape(grid.channels, -1)
        for index, told in self.state.measurements.items():
            content[:, index] = told.observation.content.mean(axis=(1, 2))
        expected = {f"expected_{c}": content[c] for c in range(grid.channels)}
        return {**columns, "probability": chance, "doubt": doubt, **expected, "visits": visits}

    def cells(self, *, opened: bool = False) -> Layer:
        """Every cell (or open ones alone) with what is believed of it; nothing of closed ones."""
        grid = self.state.grid
        closed = np.array([self.state.is_closed(i) for i in range(grid.n_cells)])
        chosen = np.flatnonzero(~closed) if opened else np.arange(grid.n_cells)
        rows, cols = np.divmod(chosen, grid.cols)
        status = np.where(closed, "closed", "open").astype(object)
        status[[grid.index(cell) for cell in self.state.pending(self.at)]] = "out"
        status[list(self.state.measurements)] = "measured"
        outcome = np.full(grid.n_cells, np.nan)
        for index, told in self.state.measurements.items():
            outcome[index] = told.observation.outcome
        lat, lon = self.place.degrees(*self.place.centres(chosen))
        columns: dict[str, NDArray[Any]] = {
            "row": rows.astype(np.int32),
            "col": cols.astype(np.int32),
            "latitude": np.round(lat, 7),
            "longitude": np.round(lon, 7),
            "status": status[chosen],
            "outcome": outcome[chosen],
            "cost": grid.cost.ravel()[chosen],
            **{n: np.where(closed, np.nan, v)[chosen] for n, v in self.beliefs().items()},
        }
        return Layer("cells", "Polygon", self.place.outlines(chosen), columns)

    def queries(self, wanted: Sequence[Query] | None = None) -> Layer:
        """Cells that were handed out, with their state and why they were chosen."""
        found = list(self.state.queries.values()) if wanted is None else list(wanted)
        columns: dict[str, list[Any]] = {
            "query": [q.query for q in found],
            "row": [q.cell[0] for q in found],
            "col": [q.cell[1] for q in found],
            "state": [q.state_at(self.at) for q in found],
            "by": [q.by for q in found],
            "asked": [iso(q.at) for q in found],
            "until": ["" if q.until is None else iso(q.until) for q in found],
            "chance": [float(q.terms.get("probability", np.nan)) for q in found],
            "score": [float(q.terms.get("total", np.nan)) for q in found],
            "why": [self.why(q) for q in found],
        }
        return self._points("queries", [q.cell for q in found], columns)

    def why(self, query: Query) -> str:
        """Why a cell was handed out, in a line."""
        chance = query.terms.get("probability", float("nan"))
        words = f"chance of target {chance:.2f}, score {query.terms.get('total', 0.0):.3g}"
        try:
            kept = self.campaign.explain(query.query)
        except EngramError:
            return words
        rule = f" by {kept.rule}" if kept.rule else ""
        return (
            f"{words}, number {kept.rank} of {kept.candidates}{rule}, after {kept.measured} "
            f"measurements with {kept.found} finds"
        )

    def measurements(self) -> Layer:
        """Measurements in force."""
        told = list(self.state.measurements.values())
        columns: dict[str, list[Any]] = {
            "row": [m.observation.cell[0] for m in told],
            "col": [m.observation.cell[1] for m in told],
            "outcome": [m.observation.outcome for m in told],
            "noise": [m.observation.noise for m in told],
            "by": [m.who for m in told],
            "at": [iso(m.at) for m in told],
            "event": [m.seq for m in told],
            "query": [-1 if m.query is None else m.query for m in told],
        }
        for channel in range(self.state.grid.channels):
            columns[f"value_{channel}" if self.state.grid.channels > 1 else "value"] = [
                float(m.observation.content[channel].mean()) for m in told
            ]
        return self._points("measurements", [m.observation.cell for m in told], columns)

    def _points(self, name: str, cells: Sequence[Any], columns: dict[str, list[Any]]) -> Layer:
        indices = [self.state.grid.index(cell) for cell in cells]
        x, y = self.place.centres(indices)
        lat, lon = self.place.degrees(x, y)
        table = {key: _column(values) for key, values in columns.items()}
        table |= {"latitude": np.round(lat, 7), "longitude": np.round(lon, 7)}
        return Layer(name, "Point", np.asarray(shapely.points(x, y)), table)

    def area(self) -> Layer:
        """The outline of the area and its no-go zones."""
        facts = self.state.spec.area
        zones = {name: shape(facts[name]) for name in ("outline", "no_go") if facts.get(name)}
        if "outline" not in zones:
            zones["outline"] = shapely.union_all(self.place.outlines(self.state.grid.open_cells))
        names = list(zones)
        size = np.array([zones[name].area / 1e6 for name in names])
        shapes = [shapely.MultiPolygon(shapely.get_parts(zones[name]).tolist()) for name in names]
        columns = {"zone": np.array(names, object), "km2": size}
        return Layer("area", "MultiPolygon", np.array(shapes, object), columns)

    def on_globe(self, geometry: BaseGeometry) -> BaseGeometry:
        """A shape in degrees, corner by corner: (longitude, latitude)."""

        def move(points: NDArray[np.float64]) -> NDArray[np.float64]:
            lat, lon = self.place.degrees(points[:, 0], points[:, 1])
            return np.stack([lon, lat], axis=1)

        return shapely.transform(geometry, move)


def _column(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(v, str) for v in values):
        return np.array(values, object)
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    return np.array(values, np.int32 if whole else np.float64)
