"""``Place``: where the cells of a grid lie on Earth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection

from engram.errors import InputError
from engram.geo.crs import file_crs, pinned
from engram.grid import Cell, Grid

Array = NDArray[np.float64]

ON_EDGE = 1e-6
"""Cells by which a place may lie beyond the edge of the grid and still count as on it."""


@dataclass(frozen=True, eq=False)
class Place:
    """A grid with a transform and a coordinate system: cells <-> coordinates <-> degrees."""

    grid: Grid

    def __post_init__(self) -> None:
        if self.grid.transform is None or self.grid.crs is None:
            raise InputError(
                "this campaign has no place on Earth; cells are named by row and column (--cell "
                "R,C). Campaigns made with --area FILE have one"
            )

    @cached_property
    def crs(self) -> CRS:
        return file_crs(str(self.grid.crs), "the campaign's area")

    @cached_property
    def _globe(self) -> Transformer:
        """From the grid's map to longitude and latitude."""
        x, y = self.xy(self.grid.rows / 2, self.grid.cols / 2)
        return pinned(self.crs, float(x), float(y))

    @cached_property
    def _matrix(self) -> tuple[Array, Array]:
        """A (2, 2) and b (2,) of (x, y) = A (column, row) + b, in cells instead of pixels."""
        assert self.grid.transform is not None
        a, b, c, d, e, f = self.grid.transform
        h, w = self.grid.cell
        return np.array([[a * w, b * h], [d * w, e * h]]), np.array([c, f])

    @cached_property
    def sides(self) -> tuple[float, float]:
        """Height and width of a cell in units of the map, which are metres for our own grids."""
        matrix, _ = self._matrix
        return float(np.hypot(*matrix[:, 1])), float(np.hypot(*matrix[:, 0]))

    @property
    def side(self) -> float:
        """The side of a square of a cell's area."""
        return float(np.sqrt(self.sides[0] * self.sides[1]))

    def xy(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """Coordinates of places given in cells: (0.5, 0.5) is the centre of the first cell."""
        matrix, offset = self._matrix
        col, row = np.asarray(cols, np.float64), np.asarray(rows, np.float64)
        x = matrix[0, 0] * col + matrix[0, 1] * row + offset[0]
        y = matrix[1, 0] * col + matrix[1, 1] * row + offset[1]
        return np.asarray(x), np.asarray(y)

    def rowcol(self, x: Any, y: Any) -> tuple[Array, Array]:
        """The inverse of ``xy``: (row, column) in cells, not rounded."""
        matrix, offset = self._matrix
        inverse = np.linalg.inv(matrix)
        dx, dy = np.asarray(x, np.float64) - offset[0], np.asarray(y, np.float64) - offset[1]
        with np.errstate(invalid="ignore"):  # places that no map has
            row = inverse[1, 0] * dx + inverse[1, 1] * dy
            col = inverse[0, 0] * dx + inverse[0, 1] * dy
        return np.asarray(row), np.asarray(col)

    def centres(self, indices: Any = None) -> tuple[Array, Array]:
        """x and y of the centres of cells, given by flat index (all of them without)."""
        chosen = np.arange(self.grid.n_cells) if indices is None else np.asarray(indices, np.intp)
        rows, cols = np.divmod(chosen, self.grid.cols)
        return self.xy(rows + 0.5, cols + 0.5)

    def degrees(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Latitude and longitude of coordinates on the grid's map."""
        lon, lat = self._globe.transform(np.asarray(x), np.asarray(y), errcheck=False)
        return np.asarray(lat), np.asarray(lon)

    def latlon(self, cell: Cell) -> tuple[float, float]:
        """Latitude and longitude of the centre of a cell."""
        lat, lon = self.degrees(*self.centres([self.grid.index(cell)]))
        return float(lat[0]), float(lon[0])

    def on_map(self, lat: Any, lon: Any) -> tuple[Array, Array]:
        """Coordinates on the grid's map of latitude and longitude."""
        x, y = self._globe.transform(
            np.asarray(lon, np.float64),
            np.asarray(lat, np.float64),
            direction=TransformDirection.INVERSE,
            errcheck=False,
        )
        return np.asarray(x), np.asarray(y)

    def cell_at(self, x: float, y: float) -> Cell | None:
        """The cell that holds a place, or None outside the grid (its outer edge is inside)."""
        row, col = (float(v) for v in self.rowcol(x, y))
        rows, cols = self.grid.rows, self.grid.cols
        inside = -ON_EDGE <= row <= rows + ON_EDGE and -ON_EDGE <= col <= cols + ON_EDGE
        if not inside:  # also where a coordinate is not finite
            return None
        return min(max(int(row), 0), rows - 1), min(max(int(col), 0), cols - 1)

    def nearest(self, x: float, y: float, among: NDArray[np.bool_]) -> tuple[Cell, float] | None:
        """The nearest of some cells (flat mask) and the metres to its edge; None without any."""
        chosen = np.flatnonzero(among)
        if not len(chosen):
            return None
        rows, cols = np.divmod(chosen, self.grid.cols)
        row, col = (float(v) for v in self.rowcol(x, y))
        if not (np.isfinite(row) and np.isfinite(col)):
            row, col = self.grid.rows / 2, self.grid.cols / 2
        down = np.maximum(np.abs(row - rows - 0.5) - 0.5, 0) * self.sides[0]
        right = np.maximum(np.abs(col - cols - 0.5) - 0.5, 0) * self.sides[1]
        away = np.hypot(down, right)
        best = int(np.argmin(away))
        return self.grid.at(int(chosen[best])), float(away[best])

    def outlines(self, indices: Any = None) -> NDArray[Any]:
        """Polygons (shapely) of cells on the grid's map, given by flat index."""
        import shapely

        chosen = np.arange(self.grid.n_cells) if indices is None else np.asarray(indices, np.intp)
        rows, cols = np.divmod(chosen, self.grid.cols)
        corners = [self.xy(rows + dr, cols + dc) for dr, dc in ((0, 0), (0, 1), (1, 1), (1, 0))]
        rings = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
        return np.asarray(shapely.polygons(rings))
