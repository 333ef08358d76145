"""The search area: pixels cut into cells, which of them are open, what a visit costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError, shown
from engram.geometry import Geometry

Scalar = TypeVar("Scalar", bound=np.generic)
Cell = tuple[int, int]
"""(row, column) of a cell, from the top left."""
Affine = tuple[float, float, float, float, float, float]

LARGEST, FINEST = 1e18, 1e-5
"""Content values are at most this large, and a range is at least this part of them: contents
are kept in single precision, and their squares have to be finite there."""
CHEAPEST, DEAREST = 1e-6, 1e12
"""What a visit may cost."""
MOST_CELLS = 100_000_000
"""More cells than this are a mistake: their table of costs alone would take a gigabyte."""
SLIMMEST = 1e-3
"""The shorter side of a cell on the ground is at least this part of the longer one."""


def whole(value: Any) -> int | None:
    """The value as an int when it is a whole number, else None."""
    try:
        if isinstance(value, complex | np.complexfloating):
            return None
        number = int(value)
        return number if number == value else None
    except (TypeError, ValueError, OverflowError):
        return None


def _finite(given: Any, name: str, count: int) -> tuple[float, ...]:
    """A tuple of so many finite numbers."""
    try:
        numbers = tuple(float(v) for v in given)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise InputError(f"{name}={shown(given)}: give {count} finite numbers, or None")
    return numbers


@dataclass(frozen=True, eq=False)
class Grid:
    """H x W x C pixels cut into cells of h x w pixels.

    closed : (rows, cols) bool, True where nobody may measure (no-go areas, nodata)
    cost   : (rows, cols) positive floats, what a visit costs (1 everywhere by default)
    range  : (low, high) of the content values a measurement can bring back
    sides  : (height, width) of a cell on the ground, in any unit; None = as in pixels
    transform : affine map (a, b, c, d, e, f) of pixel (column, row) to x = a column + b row + c,
        y = d column + e row + f, or None; kept, and used by nothing here
    crs    : name of the coordinate system that x and y are in, or None; kept alike

    Grids are equal when all of these are.
    """

    height: int
    width: int
    channels: int = 1
    cell: tuple[int, int] = (1, 1)
    range: tuple[float, float] = (0.0, 1.0)
    closed: NDArray[np.bool_] = field(default=None, repr=False)  # type: ignore[arg-type]
    cost: NDArray[np.float64] = field(default=None, repr=False)  # type: ignore[arg-type]
    sides: tuple[float, float] | None = None
    transform: Affine | None = None
    crs: str | None = None

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels"):
            given = getattr(self, name)
            value = whole(given)
            if value is None or value < 1:
                raise InputError(f"grid {name}={given!r}: give a whole number of at least 1")
            object.__setattr__(self, name, value)
        h, w = self._checked_cell()
        if self.height % h or self.width % w:
            raise InputError(
                f"an area of {self.height}x{self.width} pixels cannot be cut into cells of "
                f"{h}x{w}: {self.height % h} rows and {self.width % w} columns would be left over; "
                "choose a cell size that divides the area, or crop or pad the area"
            )
        if self.n_cells > MOST_CELLS:
            raise InputError(
                f"an area of {self.rows}x{self.cols} cells is more than the {MOST_CELLS:,} that "
                "can be searched; choose larger cells or a smaller area"
            )
        self._check_range()
        self._check_place()
        shape = (self.rows, self.cols)
        closed = np.zeros(shape, bool) if self.closed is None else np.array(self.closed, bool)
        cost = np.ones(shape) if self.cost is None else np.array(self.cost, np.float64)
        for name, array in (("closed", closed), ("cost", cost)):
            if array.shape != shape:
                raise InputError(
                    f"{name} has shape {array.shape}; the grid has {self.rows}x{self.cols} cells"
                )
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (np.isfinite(cost).all() and (cost > 0).all()):
            raise InputError("cost must be finite and above 0 in every cell")
        if cost.min() < CHEAPEST or cost.max() > DEAREST:
            raise InputError(
                f"cost runs from {cost.min():g} to {cost.max():g}; give {CHEAPEST:g} to "
                f"{DEAREST:g}, in another unit if need be"
            )

    def _checked_cell(self) -> tuple[int, int]:
        try:
            h, w = (whole(v) or 0 for v in self.cell)
        except (TypeError, ValueError):
            h = w = 0
        if h < 1 or w < 1:
            raise InputError(
                f"cell={self.cell!r}: give two whole numbers (height, width), 1 or more"
            )
        object.__setattr__(self, "cell", (h, w))
        return h, w

    def _check_range(self) -> None:
        try:
            low, high = (float(v) for v in self.range)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InputError(f"range={shown(self.range)}: give two finite numbers, low < high")
        largest, span = max(abs(low), abs(high)), high - low
        if largest > LARGEST or span < max(1 / LARGEST, largest * FINEST):
            raise InputError(
                f"range={shown(self.range)}: single precision does not tell such values apart; "
                f"give numbers up to {LARGEST:g} that differ by {1 / LARGEST:g} and by a "
                "hundred-thousandth of themselves at least"
            )
        object.__setattr__(self, "range", (low, high))

    def _check_place(self) -> None:
        """Shape of a cell, transform and name of the coordinate system."""
        for name, count in (("sides", 2), ("transform", 6)):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _finite(given, name, count))
        if self.sides is not None:
            short, long = sorted(self.sides)
            if not (0 < short <= long <= LARGEST and short >= SLIMMEST * long):
                raise InputError(
                    f"sides={shown(self.sides)}: give the height and width of a cell, both above 0 "
                    f"and one at most {1 / SLIMMEST:g} times the other"
                )
        if self.transform is not None:
            a, b, _, d, e, _ = self.transform
            if a * e == b * d:
                raise InputError(
                    f"transform={shown(self.transform)}: it maps the area onto a line; give "
                    "(a, b, c, d, e, f) with a * e other than b * d"
                )
        if self.crs is not None and not (isinstance(self.crs, str) and self.crs.strip()):
            raise InputError(f"crs={shown(self.crs)}: give a name, like EPSG:4326, or None")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.height, self.width, self.channels, self.cell, self.range))

    @cached_property
    def geometry(self) -> Geometry:
        """Distances, neighbourhoods and windows of the cells."""
        return Geometry.of(self.rows, self.cols, self.sides or self.cell)

    @property
    def rows(self) -> int:
        return self.height // self.cell[0]

    @property
    def cols(self) -> int:
        return self.width // self.cell[1]

    @property
    def n_cells(self) -> int:
        return self.rows * self.cols

    @property
    def content_shape(self) -> tuple[int, int, int]:
        """(C, h, w) of one cell's content."""
        return self.channels, self.cell[0], self.cell[1]

    @property
    def open_cells(self) -> NDArray[np.intp]:
        """Flat indices of the cells that may be measured."""
        return np.flatnonzero(~self.closed)

    def index(self, cell: Cell) -> int:
        """Flat index of a cell; refuses cells outside the grid."""
        try:
            row, col = (whole(v) for v in cell)
        except (TypeError, ValueError):
            row = col = None
        if row is None or col is None:
            raise InputError(f"cell {shown(cell)} is not a pair of whole numbers (row, column)")
        if not (0 <= row < self.rows and 0 <= col < self.cols):
            raise InputError(
                f"cell {shown((row, col))} is outside the grid of {self.rows} rows and {self.cols} "
                "columns (counted from 0)"
            )
        return row * self.cols + col

    def at(self, index: int) -> Cell:
        """Cell of a flat index."""
        return int(index) // self.cols, int(index) % self.cols

    def block(self, cell: Cell) -> tuple[slice, slice]:
        """Pixel rows and columns of a cell."""
        (h, w), (row, col) = self.cell, cell
        return slice(row * h, row * h + h), slice(col * w, col * w + w)

    def content_of(self, image: NDArray[np.float32], cell: Cell) -> NDArray[np.float32]:
        """Content (C, h, w) of a cell in an image (C, H, W)."""
        rows, cols = self.block(cell)
        return image[:, rows, cols]

    def cells_of(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """(..., H, W) -> (..., rows * cols, h, w): the pixels of every cell."""
        h, w = self.cell
        lead = image.shape[:-2]
        split = image.reshape(*lead, self.rows, h, self.cols, w)
        return np.moveaxis(split, -3, -2).reshape(*lead, self.n_cells, h, w)

    def pixels(self, per_cell: NDArray[Scalar]) -> NDArray[Scalar]:
        """(rows * cols,) or (rows, cols) -> (H, W), each cell's value on all its pixels."""
        table = np.asarray(per_cell).reshape(self.rows, self.cols)
        return np.repeat(np.repeat(table, self.cell[0], 0), self.cell[1], 1)

    def with_closed(self, cells: Iterable[Cell]) -> Grid:
        """The same grid with further cells closed."""
        closed = self.closed.copy()
        for cell in cells:
            closed.flat[self.index(cell)] = True
        return replace(self, closed=closed)

    def check_budget(self, budget: int) -> int:
        """The budget, if it can be spent in full on this grid."""
        available = len(self.open_cells)
        number = whole(budget)
        if number is None or number < 1:
            raise InputError(f"budget={budget!r}: give a whole number of at least 1")
        if number > available:
            raise InputError(
                f"budget={budget} is larger than the {available} open "
                f"cell{'' if available == 1 else 's'}; lower it or open cells"
            )
        return number

    def to_model(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Content values -> the memories' range [-1, 1]."""
        low, high = self.range
        scaled = (np.asarray(values, np.float32) - low) * (2 / (high - low)) - 1
        return np.asarray(scaled, np.float32)

    def from_model(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The memories' range [-1, 1] -> content values."""
        low, high = self.range
        scaled = (np.asarray(values, np.float32) + 1) * ((high - low) / 2) + low
        return np.asarray(scaled, np.float32)
