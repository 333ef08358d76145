"""Files for the field and for a GIS: GeoPackage, GeoJSON, KML, GPX, GeoTIFF."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import shapely
from shapely.geometry import mapping

from engram._writing import write_files
from engram.campaign.campaign import Campaign
from engram.campaign.model import Query
from engram.geo.crs import crs_words
from engram.geo.fieldmap import FieldMap, Layer
from engram.geo.qgis import styles
from engram.geo.rasters import geotiff_of
from engram.geo.tours import Tour, tours_of

MOST_DRAWN = 20_000
"""Cells that a KML or GeoJSON file shows; a larger area is for the GeoPackage and the GeoTIFF."""
KML = "http://www.opengis.net/kml/2.2"
COLOURS = {"hit": "ff57b42f", "miss": "ff3b43d8", "out": "ffbf5f1f", "outline": "ff2f4a2b"}
"""Alpha, blue, green, red of KML's styles."""


def export_map(campaign: Campaign, path: Path) -> int:
    """Write a file by its suffix; returns how many measurements are in it."""
    found = FieldMap(campaign)
    forms: dict[str, Callable[[FieldMap], bytes]] = {
        ".gpkg": as_geopackage,
        ".geojson": as_geojson,
        ".kml": as_kml,
        ".gpx": lambda f: as_gpx(f, f.state.out(f.at), tours_of(f.campaign)),
        ".tif": as_geotiff,
        ".tiff": as_geotiff,
    }
    suffix = path.suffix.lower()
    contents: dict[Path, bytes | str] = {path: forms[suffix](found)}
    if suffix == ".gpkg":  # also for programs that do not look for styles inside
        contents[path.with_suffix(".qml")] = styles(_top(found))["cells"]
    write_files(contents)
    return len(found.state.measurements)


def _top(found: FieldMap) -> float:
    """The largest chance of a cell, for the colours."""
    return float(np.nanmax(found.beliefs()["probability"], initial=0.01))


# -- GeoPackage ------------------------------------------------------------------------------------


def as_geopackage(found: FieldMap) -> bytes:
    """Layers cells, queries, measurements, area and tours, with styles that QGIS finds inside."""
    layers = [found.area(), found.cells(), found.queries(), found.measurements()]
    tours = tours_of(found.campaign)
    if tours:
        layers.append(_tour_layer(tours))
    with tempfile.TemporaryDirectory(prefix="engram-") as folder:
        path = Path(folder) / "map.gpkg"
        for layer in layers:
            _add_layer(path, layer, found)
        _add_styles(path, styles(_top(found)), [layer.name for layer in layers])
        return path.read_bytes()


def _add_layer(path: Path, layer: Layer, found: FieldMap) -> None:
    import pyogrio.raw

    pyogrio.raw.write(
        str(path),
        geometry=np.asarray(shapely.to_wkb(layer.shapes), object),
        field_data=list(layer.columns.values()),
        fields=np.array(list(layer.columns), object),
        layer=layer.name,
        driver="GPKG",
        geometry_type=layer.kind,
        crs=found.place.crs.to_wkt(),
        append=path.exists(),
    )


def _add_styles(path: Path, found: dict[str, str], layers: Sequence[str]) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "CREATE TABLE layer_styles (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "
            "f_table_catalog TEXT, f_table_schema TEXT, f_table_name TEXT, "
            "f_geometry_column TEXT, styleName TEXT, styleQML TEXT, styleSLD TEXT, "
            "useAsDefault BOOLEAN, description TEXT, owner TEXT, ui TEXT, "
            "update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')))"
        )
        connection.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, "
            "last_change) VALUES ('layer_styles', 'attributes', 'layer_styles', '', "
            "strftime('%Y-%m-%dT%H:%M:%fZ','now'))"
        )
        for name in layers:
            connection.execute(
                "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, "
                "f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description, "
                "owner, ui) VALUES ('', '', ?, 'geom', ?, ?, '', 1, 'engram', '', '')",
                (name, name, found[name]),
            )
    connection.close()


def _tour_layer(tours: Sequence[Tour]) -> Layer:
    columns = {
        "crew": np.array([t.crew for t in tours], np.int32),
        "stops": np.array([len(t.queries) for t in tours], np.int32),
        "metres": np.array([t.metres for t in tours]),
        "minutes": np.array([t.minutes for t in tours]),
        "finds": np.array([t.finds for t in tours]),
    }
    lines = [shapely.LineString(t.line) for t in tours]
    return Layer("tours", "LineString", np.array(lines, object), columns)


# -- GeoJSON, KML, GPX -----------------------------------------------------------------------------


def as_geojson(found: FieldMap) -> bytes:
    """All layers as features in degrees (WGS 84), each with the name of its layer."""
    layers = [found.area(), found.queries(), found.measurements()]
    tours = tours_of(found.campaign)
    layers += [_tour_layer(tours)] if tours else []
    if found.state.grid.n_cells <= MOST_DRAWN:
        layers.append(found.cells(opened=True))
    return _features(found, layers)


def as_tour_json(found: FieldMap, queries: Sequence[Query], tours: Sequence[Tour]) -> bytes:
    """Some queries and tours as features in degrees."""
    return _features(found, [found.queries(queries), *([_tour_layer(tours)] if tours else [])])


def _features(found: FieldMap, layers: Sequence[Layer]) -> bytes:
    features = [
        {
            "type": "Feature",
            "geometry": _rounded(mapping(found.on_globe(geometry))),
            "properties": {"layer": layer.name, **row},
        }
        for layer in layers
        for geometry, row in zip(layer.shapes, layer.rows(), strict=True)
    ]
    whole = {"type": "FeatureCollection", "name": found.campaign.name, "features": features}
    return (json.dumps(whole, allow_nan=False) + "\n").encode()


def _rounded(value: Any) -> Any:
    """Coordinates to a centimetre."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_rounded(item) for item in value]
    return round(value, 7) if isinstance(value, float) else value


def as_kml(found: FieldMap) -> bytes:
    """Area, queries, measurements and tours as folders of placemarks."""
    Xml.register_namespace("", KML)
    root = Xml.Element(f"{{{KML}}}kml")
    document = _inside(root, "Document")
    _inside(document, "name", found.campaign.name)
    for name, colour in COLOURS.items():
        style = _inside(document, "Style")
        style.set("id", name)
        _inside(_inside(style, "IconStyle"), "color", colour)
        _inside(_inside(style, "LineStyle"), "color", colour)
        _inside(_inside(style, "PolyStyle"), "fill", "0")
    layers = [found.area(), found.queries(), found.measurements()]
    tours = tours_of(found.campaign)
    for layer in [*layers, *([_tour_layer(tours)] if tours else [])]:
        folder = _inside(document, "Folder")
        _inside(folder, "name", layer.name)
        for geometry, row in zip(layer.shapes, layer.rows(), strict=True):
            _placemark(folder, layer.name, row, found.on_globe(geometry))
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True))


def _inside(parent: Xml.Element, name: str, text: str = "") -> Xml.Element:
    child = Xml.SubElement(parent, f"{{{KML}}}{name}")
    child.text = clean(text) or None
    return child


def clean(text: str) -> str:
    """Text without the characters that XML does not have."""
    return "".join(c for c in text if c in "\t\n\r" or (c.isprintable() and c < "\ufffe"))


def _placemark(folder: Xml.Element, layer: str, row: dict[str, Any], geometry: Any) -> None:
    mark = _inside(folder, "Placemark")
    name, style, words = _words_of(layer, row)
    _inside(mark, "name", name)
    if words:
        _inside(mark, "description", words)
    _inside(mark, "styleUrl", f"#{style}")
    data = _inside(mark, "ExtendedData")
    for key, value in row.items():
        if value is not None:
            item = _inside(data, "Data")
            item.set("name", key)
            _inside(item, "value", str(value))
    _kml_shape(mark, geometry)


def _words_of(layer: str, row: dict[str, Any]) -> tuple[str, str, str]:
    """Name, style and description of a placemark."""
    match layer:
        case "queries":
            return f"Q{row['query']}", "out", row["why"]
        case "measurements":
            words = f"row {row['row']}, column {row['col']}, by {row['by']}, {row['at']}"
            return f"{row['outcome']:g}", "hit" if row["outcome"] > 0 else "miss", words
        case "tours":
            return f"crew {row['crew']}", "out", f"{row['stops']} stops"
    return row["zone"], "miss" if row["zone"] == "no_go" else "outline", ""


def _kml_shape(parent: Xml.Element, geometry: Any) -> None:
    if geometry.geom_type.startswith("Multi"):
        parent = _inside(parent, "MultiGeometry")
        for part in geometry.geoms:
            _kml_shape(parent, part)
        return
    shape = _inside(parent, geometry.geom_type)
    if geometry.geom_type == "Polygon":
        rings = [("outerBoundaryIs", geometry.exterior)]
        rings += [("innerBoundaryIs", ring) for ring in geometry.interiors]
        for name, ring in rings:
            _inside(_inside(_inside(shape, name), "LinearRing"), "coordinates", _lonlat(ring))
    else:
        _inside(shape, "coordinates", _lonlat(geometry))


def _lonlat(line: Any) -> str:
    return " ".join(f"{x:.7f},{y:.7f}" for x, y in line.coords)


def as_gpx(found: FieldMap, queries: Sequence[Query], tours: Sequence[Tour] = ()) -> bytes:
    """Waypoints Q1, Q2, ... with why in the description, and one route per crew in visiting order.

    Crews report by ending a waypoint's name with what they found (``Q12 yes``).
    """
    from gpxpy import gpx

    layer = found.queries(queries)
    file = gpx.GPX()
    file.name, file.creator = clean(found.campaign.name), "engram"
    file.description = f"on {crs_words(str(found.state.grid.crs))}"
    points: dict[int, tuple[float, float]] = {}
    for row in layer.rows():
        points[row["query"]] = row["latitude"], row["longitude"]
        file.waypoints.append(
            gpx.GPXWaypoint(
                row["latitude"],
                row["longitude"],
                name=f"Q{row['query']}",
                description=clean(row["why"]),
                symbol="Flag, Blue",
            )
        )
    for tour in tours:
        stops = [q for q in tour.queries if q in points]
        if not stops:
            continue
        route = gpx.GPXRoute(f"crew {tour.crew}", tour.words())
        lat, lon = (round(float(v), 7) for v in found.place.degrees(*tour.line[0]))
        route.points.append(gpx.GPXRoutePoint(lat, lon, name="start"))
        route.points += [gpx.GPXRoutePoint(*points[q], name=f"Q{q}") for q in stops]
        route.points.append(gpx.GPXRoutePoint(lat, lon, name="end"))
        file.routes.append(route)
        track = gpx.GPXTrack(f"way of crew {tour.crew}", tour.words())
        segment = gpx.GPXTrackSegment()
        lats, lons = found.place.degrees(*np.asarray(tour.line, float).T)
        segment.points = [
            gpx.GPXTrackPoint(round(float(a), 7), round(float(o), 7))
            for a, o in zip(lats, lons, strict=True)
        ]
        track.segments.append(segment)
        file.tracks.append(track)
    return str(file.to_xml()).encode()


# -- GeoTIFF ---------------------------------------------------------------------------------------


def as_geotiff(found: FieldMap) -> bytes:
    """A cloud-optimised GeoTIFF: probability, doubt, expected content per channel, visits.

    One pixel a cell, 32-bit floats; closed cells are nodata (NaN).
    """
    grid, beliefs = found.state.grid, found.beliefs()
    names = ["probability", "doubt", *(f"expected_{c}" for c in range(grid.channels)), "visits"]
    closed = np.array([found.state.is_closed(i) for i in range(grid.n_cells)])
    return geotiff_of(found.place, {n: np.where(closed, np.nan, beliefs[n]) for n in names})
