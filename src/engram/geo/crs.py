"""Coordinate systems: what a text or a file names, and which one an area gets.

A grid needs square cells in metres whose areas are what they claim. Wherever a UTM zone gives
that to a thousandth it is used; elsewhere a Lambert azimuthal equal-area map around the middle of
the area, on which areas are exact.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod, Proj, Transformer
from pyproj.aoi import AreaOfInterest
from pyproj.exceptions import CRSError, ProjError
from pyproj.network import set_network_enabled  # type: ignore[attr-defined]
from pyproj.transformer import TransformerGroup

from engram.errors import InputError, shown

set_network_enabled(False)

WGS84 = CRS.from_epsg(4326)
GEOD = Geod(ellps="WGS84")
TRUE_AREA = 1e-3
"""Relative error of a cell's area up to which a map is used without a word."""
WORST_AREA = 1e-2
"""Error up to which a map that was asked for is used, with a word about it."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """West, south, east and north of an area in degrees (WGS 84)."""

    west: float
    south: float
    east: float
    north: float

    @property
    def middle(self) -> tuple[float, float]:
        """(longitude, latitude)."""
        return (self.west + self.east) / 2, (self.south + self.north) / 2

    def samples(self) -> tuple[Array, Array]:
        """Longitudes and latitudes of 5 x 5 points, edges included."""
        lon, lat = np.meshgrid(
            np.linspace(self.west, self.east, 5), np.linspace(self.south, self.north, 5)
        )
        return lon.ravel(), lat.ravel()


def named_crs(text: str, option: str) -> CRS:
    """The coordinate system that a user names, such as EPSG:25833."""
    try:
        return _trusted(CRS.from_user_input(text.strip()))
    except (CRSError, ProjError, InputError, ValueError):
        raise InputError(
            f"{option} {shown(text)} is no coordinate system that is known; give a name like "
            "EPSG:25833"
        ) from None


def file_crs(text: str, where: str) -> CRS:
    """The coordinate system that a file describes (WKT or a name); files it names are refused."""
    try:
        return _trusted(CRS.from_user_input(text))
    except (CRSError, ProjError, ValueError):
        raise InputError(
            f"{where}: its coordinate system {shown(text)} is not known; save it in one that has "
            "a name, like EPSG:4326"
        ) from None


def _trusted(crs: CRS) -> CRS:
    """The same system without anything that would make the library read further files."""
    while crs.is_bound and crs.source_crs is not None:
        crs = crs.source_crs
    if crs.is_compound:
        crs = crs.sub_crs_list[0]
    code = crs.to_epsg()
    if code is not None:
        return CRS.from_epsg(code)
    if re.search(r"grids|\+init|file", crs.to_wkt(), re.IGNORECASE):
        raise InputError("a coordinate system that names further files is not read")
    if not (crs.is_geographic or crs.is_projected):
        raise InputError("a coordinate system is in degrees or on a map")
    return crs.to_2d()


def crs_name(crs: CRS) -> str:
    """EPSG:n where it has a number, otherwise its definition on one line."""
    authority = crs.to_authority()
    if authority is not None:
        return ":".join(authority)
    return crs.srs if crs.srs.startswith("+proj=laea ") else str(crs.to_wkt(pretty=False))


def crs_words(name: str) -> str:
    """The name of a coordinate system as it stands in a sentence."""
    around = re.match(r"\+proj=laea \+lat_0=(\S+) \+lon_0=(\S+) ", name)
    if around:
        return f"an equal-area map around {around[1]}, {around[2]}"
    if len(name) < 40:
        return name
    known = CRS.from_user_input(name).name
    return "a map of its own" if known == "unknown" else known


@lru_cache(maxsize=64)
def transformer(source: CRS, target: CRS) -> Transformer:
    """From one system to another, x (east) first, without grids that would have to be fetched."""
    return Transformer.from_crs(source, target, always_xy=True, allow_ballpark=True)


def moved(source: CRS, target: CRS, x: Any, y: Any) -> tuple[Array, Array]:
    """Coordinates in another system; infinite where it does not reach."""
    out_x, out_y = transformer(source, target).transform(
        np.asarray(x, np.float64), np.asarray(y, np.float64), errcheck=False
    )
    return np.asarray(out_x, np.float64), np.asarray(out_y, np.float64)


def pinned(crs: CRS, x: float, y: float) -> Transformer:
    """One single operation from a map to WGS 84, the best around a place, the same both ways.

    Between old datums several operations compete, metres apart; a round trip that took one there
    and another back would not end where it began.
    """
    lon, lat = moved(crs, WGS84, x, y)
    spot = AreaOfInterest(float(lon), float(lat), float(lon), float(lat))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the very best operation needs a grid nobody has
        group = TransformerGroup(crs, WGS84, always_xy=True, area_of_interest=spot)  # type: ignore[arg-type]
    return group.transformers[0] if group.transformers else transformer(crs, WGS84)


def checked_bounds(lon: Array, lat: Array, where: str) -> Bounds:
    """Bounds of places in degrees; refuses what is no place, the date line and the poles."""
    if not len(lon) or not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        raise InputError(f"{where}: its coordinates do not lie on Earth; is its CRS the right one?")
    west, east = float(lon.min()), float(lon.max())
    south, north = float(lat.min()), float(lat.max())
    if max(-south, north) > 90 + 1e-9 or max(-west, east) > 360:
        raise InputError(
            f"{where}: coordinates run to {east:g}, {north:g}, which are no degrees; name the "
            "coordinate system they are in (save the file with its CRS)"
        )
    if east - west > 180 or max(-west, east) > 180 + 1e-9 or max(-south, north) > 89.5:
        raise InputError(
            f"{where}: the area (longitude {west:g} to {east:g}, latitude {south:g} to {north:g}) "
            "lies across the date line or a pole, where a north-up grid breaks; cut it into parts"
        )
    return Bounds(west, south, east, north)


def area_error(crs: CRS, bounds: Bounds) -> float:
    """Largest relative error of areas on this map, within the bounds; infinite outside of it."""
    lon, lat = bounds.samples()
    geographic = crs.geodetic_crs
    if geographic is None:
        return float("inf")
    try:
        factors = Proj(crs).get_factors(*moved(WGS84, geographic, lon, lat), errcheck=False)
        scale = np.asarray(factors.areal_scale)
    except (CRSError, ProjError):
        return float("inf")
    return float(np.abs(scale - 1).max()) if np.isfinite(scale).all() else float("inf")


def in_metres(crs: CRS) -> bool:
    """True for a map in metres with x to the east."""
    return bool(
        crs.is_projected and all(axis.unit_conversion_factor == 1 for axis in crs.axis_info[:2])
    )


def local_crs(bounds: Bounds, own: CRS | None) -> CRS:
    """The map of an area: the file's own if it is true, else UTM, else equal-area around it."""
    if own is not None and in_metres(own) and area_error(own, bounds) <= TRUE_AREA:
        return own
    lon, lat = bounds.middle
    number = min(int((lon + 180) // 6) + 1, 60)
    zone = CRS.from_epsg((32600 if lat >= 0 else 32700) + number)
    if -80 <= lat <= 84 and area_error(zone, bounds) <= TRUE_AREA:
        return zone
    return equal_area_crs(lon, lat)


def equal_area_crs(lon: float, lat: float) -> CRS:
    """Lambert's azimuthal equal-area map around a place, rounded to a hundredth of a degree."""
    return CRS.from_user_input(
        f"+proj=laea +lat_0={lat:.2f} +lon_0={lon:.2f} +datum=WGS84 +units=m +no_defs +type=crs"
    )


def chosen_crs(text: str, bounds: Bounds) -> tuple[CRS, str]:
    """The map that was asked for, and what has to be said about its areas."""
    crs = named_crs(text, "--crs")
    if not in_metres(crs):
        raise InputError(
            f"--crs {shown(text)} is not a map in metres; leave it out, or give one, like a UTM "
            "zone (EPSG:32633)"
        )
    error = area_error(crs, bounds)
    if error > WORST_AREA:
        how = "is not made for this area" if np.isinf(error) else f"errs by {error:.1%} in areas"
        raise InputError(f"--crs {shown(text)} {how} there; leave it out, or give a local one")
    note = f"areas in {crs_name(crs)} err by {error:.2%} here" if error > TRUE_AREA else ""
    return crs, note
