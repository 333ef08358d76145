"""Count maps of square regions, from points or from a lattice of cell centres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.tasks.occurrences import Occurrences

PERIODS = ("all", "year", "month")
LAYOUTS = ("points", "cells")
RECORD_CAP, INDIVIDUAL_CAP = 3.0, 255.0
"""Number of records of a pixel, or of individuals of a cell, that is content 1."""


@dataclass(frozen=True)
class Region:
    """A square in degrees; row 0 of its maps is the north."""

    south: float
    west: float
    degrees: float

    @classmethod
    def around(cls, latitude: float, longitude: float, degrees: float) -> Region:
        return cls(latitude - degrees / 2, longitude - degrees / 2, degrees)

    def rows_and_columns(
        self, latitude: NDArray[np.float64], longitude: NDArray[np.float64], size: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pixels of places; those outside get numbers outside 0..size-1."""
        north = self.south + self.degrees
        rows = np.floor((north - latitude) * (size / self.degrees))
        cols = np.floor((longitude - self.west) * (size / self.degrees))
        return rows.astype(np.intp), cols.astype(np.intp)

    def pixel_centres(self, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitudes and longitudes (size * size,) of the pixels, row by row."""
        step = (np.arange(size) + 0.5) * (self.degrees / size)
        latitude, longitude = np.meshgrid(
            self.south + self.degrees - step, self.west + step, indexing="ij"
        )
        return latitude.ravel(), longitude.ravel()


@dataclass(frozen=True, eq=False)
class CountMap:
    """counts (size, size); surveyed (size, size) where anybody looked, None = everywhere."""

    counts: NDArray[np.float64]
    surveyed: NDArray[np.bool_] | None


def log_counts(counts: NDArray[np.float64], cap: float) -> NDArray[np.float32]:
    r"""Content of counts in [0, 1]: :math:`\min(1, \log(1 + n) / \log(1 + cap))`.

    The scale is fixed, not taken from the map: the unmeasured maximum would give it away. Low
    caps make content say 'is it here' more than 'how many', which is what a search needs; as
    a predictor of unmeasured blocks every cap from 3 to 127 was as good as the others.
    """
    return np.asarray(np.minimum(np.log1p(counts) / np.log1p(cap), 1.0), np.float32)


def _on_sphere(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Unit vectors (n, 3), so that distances are the same at every latitude."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


class Lattice:
    """The distinct places of a whole table, and how far each lies from the next."""

    def __init__(self, table: Occurrences) -> None:
        from scipy.spatial import KDTree

        places = np.unique(np.stack([table.latitude, table.longitude], axis=1), axis=0)
        self.count = len(places)
        vectors = _on_sphere(places[:, 0], places[:, 1])
        self._tree = KDTree(vectors)
        gaps = self._tree.query(vectors, k=min(5, self.count))[0].reshape(self.count, -1)
        self._first_gap, self._fourth_gap = gaps[:, min(1, self.count - 1)], gaps[:, -1]

    @property
    def even(self) -> bool:
        """True when the places are a lattice: their gaps are alike, which points' never are.

        The ratio of the 90 % to the 10 % quantile is about 1 on a square lattice, 1.8 on a
        global hexagon grid, 4.7 for points at random and larger for clustered ones.
        """
        low, high = np.quantile(self._first_gap, [0.1, 0.9])
        return self.count >= 20 and bool(high < 2.5 * low)

    def places_of(self, records: Occurrences) -> NDArray[np.intp]:
        """(n,) number of the place of each record of the table."""
        vectors = _on_sphere(records.latitude, records.longitude)
        return np.asarray(self._tree.query(vectors)[1], np.intp)

    def nearest(self, region: Region, size: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """(size, size) each: nearest place of every pixel, and whether it is near enough.

        A place reaches 0.75 times the gap to its fourth neighbour: a corner of a square cell is
        0.71 gaps away, and a cell of a grid in degrees may be narrower than it is high.
        """
        reach = 0.75 * np.minimum(self._fourth_gap, 1.5 * np.median(self._fourth_gap))
        distance, index = self._tree.query(_on_sphere(*region.pixel_centres(size)))
        near = np.asarray(distance <= reach[index])
        return np.asarray(index, np.intp).reshape(size, size), near.reshape(size, size)


def lattice_of(table: Occurrences, layout: str = "auto") -> Lattice | None:
    """The lattice of a table of cell centres, None for a table of points."""
    if layout not in ("auto", *LAYOUTS):
        raise InputError(f"layout {layout!r}: choose auto or {', '.join(LAYOUTS)}")
    if layout == "points":
        return None
    lattice = Lattice(table)
    return lattice if layout == "cells" or lattice.even else None


class Regions:
    """Count maps of any square region, from the records of one species.

    Without a lattice a pixel counts the records inside it. With one, the places are centres
    of cells wider than a pixel, and a pixel has the count of the nearest centre.
    """

    def __init__(
        self, records: Occurrences, lattice: Lattice | None = None, period: str = "auto"
    ) -> None:
        self.origin = records.origin
        self.absences = "present" in records.known and not records.present.all()
        self._records = records.take(np.argsort(records.latitude, kind="stable"))
        self._lattice = lattice
        self._place = None if lattice is None else lattice.places_of(self._records)
        if period == "auto":
            dated = {"year", "month"} <= records.known
            monthly = lattice is not None and dated and not self.absences
            period = "month" if monthly else "all"
        self.period = period
        self.periods, self._period_of = _periods(self._records, period)

    def __len__(self) -> int:
        return len(self._records)

    def place(self, i: int) -> tuple[float, float]:
        """Latitude and longitude of record i, counted from the south."""
        return float(self._records.latitude[i]), float(self._records.longitude[i])

    @property
    def cells(self) -> bool:
        """True when maps come from a lattice of cell centres."""
        return self._lattice is not None

    @property
    def cap(self) -> float:
        """A fitting cap for ``log_counts``."""
        return INDIVIDUAL_CAP if self.cells and "count" in self._records.known else RECORD_CAP

    @property
    def extent(self) -> str:
        lat, lon = self._records.latitude, self._records.longitude
        return (
            f"latitude {lat.min():.1f}..{lat.max():.1f}, longitude {lon.min():.1f}..{lon.max():.1f}"
        )

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """What a record adds to its pixel: 1, or the individuals of a cell's record."""
        return np.where(self._records.present, self._records.count if self.cells else 1.0, 0.0)

    @cached_property
    def total(self) -> float:
        """Records (individuals, for cells) of all places and periods."""
        return float(self._weights.sum())

    def _inside(self, region: Region, period: int) -> NDArray[np.intp]:
        """Positions of the records of a region and period."""
        records = self._records
        low, high = np.searchsorted(records.latitude, [region.south, region.south + region.degrees])
        part = slice(int(low), int(high))
        lon = records.longitude[part]
        keep = (lon >= region.west) & (lon < region.west + region.degrees)
        keep &= self._period_of[part] == period
        return np.flatnonzero(keep) + int(low)

    def records(self, region: Region, period: int = 0) -> float:
        """Records (individuals, for cells) that a region holds."""
        return float(self._weights[self._inside(region, period)].sum())

    def map(self, region: Region, period: int, size: int) -> CountMap:
        """Counts of every pixel of a region."""
        if self._lattice is not None and self._place is not None:
            return self._cell_map(self._lattice, self._place, region, period, size)
        inside = self._inside(region, period)
        records = self._records
        rows, cols = region.rows_and_columns(
            records.latitude[inside], records.longitude[inside], size
        )
        pixel = np.clip(rows, 0, size - 1) * size + np.clip(cols, 0, size - 1)
        counts = np.bincount(pixel, self._weights[inside], size * size)
        visits = np.bincount(pixel, minlength=size * size) > 0
        return CountMap(
            np.asarray(counts, np.float64).reshape(size, size),
            visits.reshape(size, size) if self.absences else None,
        )

    def _cell_map(
        self, lattice: Lattice, place: NDArray[np.intp], region: Region, period: int, size: int
    ) -> CountMap:
        now = self._period_of == period
        counts = np.bincount(place[now], self._weights[now], lattice.count)
        visited = np.bincount(place[now], minlength=lattice.count) > 0
        index, near = lattice.nearest(region, size)
        surveyed = near & visited[index] if self.absences else None
        return CountMap(np.where(near, counts[index], 0.0), surveyed)


def _periods(records: Occurrences, period: str) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the periods, and which of them each record belongs to (-1 = none)."""
    if period == "all":
        return ["all"], np.zeros(len(records), np.intp)
    needed = {"year": {"year"}, "month": {"year", "month"}}[period]
    if not needed <= records.known:
        lacking = ", ".join(sorted(needed - records.known))
        raise InputError(
            f"{records.origin} has no column for {lacking}, so there are no maps by {period}; "
            "name it with --column or choose --period all"
        )
    dated = np.isfinite(records.year)
    code = np.where(dated, records.year * 12, 0.0)
    if period == "month":
        dated &= np.isfinite(records.month)
        code = code + np.where(dated, records.month - 1, 0.0)
    if not dated.any():
        raise InputError(f"no record of {records.origin} is dated; choose --period all")
    codes, which = np.unique(code[dated].astype(np.intp), return_inverse=True)
    member = np.full(len(records), -1, np.intp)
    member[dated] = which
    names = [f"{c // 12}" if period == "year" else f"{c // 12}-{c % 12 + 1:02d}" for c in codes]
    return names, member
