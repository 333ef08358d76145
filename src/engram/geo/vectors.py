"""Shapes from GeoJSON, GeoPackage, Shapefile and KML: one way in, within bounds.

Each format has a reader of its own that sees the bytes of the file given (and of the parts of a
Shapefile) and nothing else: no format is guessed, no reference followed, no file beside it opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from pyproj import CRS
from shapely.geometry import shape
from shapely.geometry.base import BaseGeometry

from engram._arrays import check_file
from engram._files import read_json
from engram.errors import InputError, shown
from engram.geo.crs import WGS84, file_crs, moved
from engram.geo.markup import child_text, read_xml, under

LARGEST, LARGEST_TEXT = 512 * 2**20, 64 * 2**20
"""Bytes of a file of shapes that is read, and of one of text, which takes many times its size."""
FARTHEST = 1e9
"""No coordinate of a place on Earth is as large, in any unit in use."""
MOST_POINTS = 5_000_000
"""Corners of all shapes together."""


@dataclass(frozen=True)
class Shapes:
    """Shapes of a file with their attributes, in the coordinate system of the file."""

    shapes: list[BaseGeometry]
    crs: CRS
    attributes: list[dict[str, Any]] = field(default_factory=list)


def read_shapes(path: Path) -> Shapes:
    """Everything a file of shapes holds; ``FILE.gpkg|layername=NAME`` names one layer."""
    file, layer = _layer_of(path)
    readers: dict[str, Callable[[Path, str], Shapes]] = {
        ".geojson": _geojson,
        ".json": _geojson,
        ".gpkg": _geopackage,
        ".shp": _shapefile,
        ".zip": _shapefile,
        ".kml": _kml,
    }
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: give shapes as .geojson, .gpkg, .shp (or .zip with one) or .kml, or a raster "
            "as .tif"
        )
    most = LARGEST_TEXT if file.suffix.lower() in (".geojson", ".json", ".kml") else LARGEST
    if check_file(file).stat().st_size > most:
        raise InputError(
            f"{file} has {file.stat().st_size / 1e6:,.0f} MB; at most {most / 1e6:,.0f} MB of "
            "shapes are read: simplify or cut it, or give a GeoPackage"
        )
    try:
        found = reader(file, layer)
        if sum(shapely.get_num_coordinates(found.shapes)) > MOST_POINTS:
            raise InputError(f"{file} has more than {MOST_POINTS:,} corners; simplify it")
        return Shapes(list(shapely.force_2d(found.shapes)), found.crs, found.attributes)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{file} does not fit into memory; simplify or cut it") from error
    except Exception as error:  # what damaged bytes do to the parsers has no other name
        words = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"cannot read {file}: {words}; save it again") from error


def _layer_of(path: Path) -> tuple[Path, str]:
    text, mark, layer = str(path).partition("|layername=")
    return (Path(text), layer) if mark else (path, "")


def read_polygons(path: Path, target: CRS | None = None) -> tuple[BaseGeometry, CRS, list[str]]:
    """All polygons of a file as one shape, its system (or ``target``), and what was repaired."""
    found = read_shapes(path)
    notes: list[str] = []
    parts = shapely.get_parts(np.array(found.shapes, dtype=object))
    while any(part.geom_type == "GeometryCollection" for part in parts):
        parts = shapely.get_parts(parts)
    polygons = [p for p in parts if p.geom_type in ("Polygon", "MultiPolygon") and not p.is_empty]
    if not polygons:
        raise InputError(f"{path} holds no polygon; draw the area as one, or give a raster")
    corners = np.abs(shapely.get_coordinates(polygons))
    if not (corners < FARTHEST).all():
        raise InputError(f"{path}: a corner of a polygon lies beyond any map; save it again")
    if target is not None:
        polygons = [reprojected(p, found.crs, target) for p in polygons]
    wrong = [p for p in polygons if not p.is_valid]
    if wrong:
        notes.append(f"{path.name}: {len(wrong)} self-crossing polygon(s) repaired")
        polygons = [_surface(shapely.make_valid(p)) for p in polygons]
    whole = shapely.union_all(polygons)
    if whole.is_empty or not whole.area > 0:
        raise InputError(f"{path}: its polygons have no area; draw them again")
    return whole, found.crs if target is None else target, notes


def _surface(geometry: BaseGeometry) -> BaseGeometry:
    """The polygons of a shape, without lines and points that repairing left over."""
    parts = [g for g in shapely.get_parts(geometry) if g.geom_type in ("Polygon", "MultiPolygon")]
    return shapely.union_all(parts)


def reprojected(geometry: BaseGeometry, source: CRS, target: CRS) -> BaseGeometry:
    """A shape on another map; long edges are cut so that they stay where they were."""
    if source == target:
        return geometry
    west, south, east, north = geometry.bounds
    step = max(east - west, north - south) / 64
    dense = shapely.segmentize(geometry, step) if step > 0 else geometry
    if shapely.get_num_coordinates(dense) > MOST_POINTS:
        dense = geometry

    def move(points: Any) -> Any:
        return np.stack(moved(source, target, points[:, 0], points[:, 1]), axis=1)

    out = shapely.transform(dense, move)
    if not np.isfinite(shapely.get_coordinates(out)).all():
        raise InputError("a shape reaches places that the map does not have; is its CRS right?")
    return out


# -- formats -----------------------------------------------------------------------------------


def _geojson(path: Path, layer: str) -> Shapes:
    data = read_json(path)
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "FeatureCollection":
        features = data.get("features")
    elif kind == "Feature":
        features = [data]
    elif isinstance(data, dict) and ("coordinates" in data or "geometries" in data):
        features = [{"geometry": data, "properties": {}}]
    else:
        raise InputError(f"{path} is not GeoJSON: it has no features and no coordinates")
    if not isinstance(features, list) or not all(isinstance(f, dict) for f in features):
        raise InputError(f"{path}: its features are not a list of objects; save it again")
    with_shape = [f for f in features if isinstance(f.get("geometry"), dict)]
    attributes = [
        f["properties"] if isinstance(f.get("properties"), dict) else {} for f in with_shape
    ]
    return Shapes([shape(f["geometry"]) for f in with_shape], _json_crs(data, path), attributes)


def _json_crs(data: dict[str, Any], path: Path) -> CRS:
    """WGS 84, as the standard says, or what an older file names; a link is not followed."""
    named = data.get("crs")
    if named is None:
        return WGS84
    properties = named.get("properties") if isinstance(named, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str):
        raise InputError(f"{path}: its crs {shown(named)} has no name, and links are not followed")
    return WGS84 if "CRS84" in name else file_crs(name, str(path))


def _kml(path: Path, layer: str) -> Shapes:
    root = read_xml(path, "kml")
    found = []
    for polygon in under(root, "Polygon"):
        rings = [
            [
                _kml_points(child_text(ring, "coordinates"), path)
                for ring in under(edge, "LinearRing")
            ]
            for name in ("outerBoundaryIs", "innerBoundaryIs")
            for edge in under(polygon, name)
        ]
        flat = [ring for edge in rings for ring in edge]
        if flat:
            found.append(shapely.Polygon(flat[0], flat[1:]))
    return Shapes(found, WGS84)


def _kml_points(text: str, path: Path) -> list[tuple[float, float]]:
    try:
        tuples = [item.split(",") for item in text.split()]
        return [(float(item[0]), float(item[1])) for item in tuples]
    except (ValueError, IndexError):
        raise InputError(
            f"{path}: coordinates {shown(text[:60])} are not lon,lat[,height]"
        ) from None


def _geopackage(path: Path, layer: str) -> Shapes:
    from engram.geo.geopackage import read_layer

    definition, blobs, attributes = read_layer(path, layer)
    return Shapes(_from_wkb(blobs), file_crs(definition, str(path)), attributes)


def _from_wkb(blobs: Sequence[bytes]) -> list[BaseGeometry]:
    return list(shapely.from_wkb(np.array(blobs, dtype=object)))


def _shapefile(path: Path, layer: str) -> Shapes:
    from engram.geo.shapefile import read_shapefile

    definition, blobs = read_shapefile(path, LARGEST)
    return Shapes(_from_wkb(blobs), file_crs(definition, str(path)))
