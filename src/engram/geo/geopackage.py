"""GeoPackage read as what it is, a SQLite file: read-only, plain tables, nothing beside it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from engram._writing import DATABASE
from engram.errors import InputError

ENVELOPE = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
"""Bytes of the bounding box in a geometry's header, by its code."""
STEPS, PATIENCE = 100_000, 20_000
"""Instructions of SQLite between two looks, and looks before a query is given up."""
MOST = 1_000_000
"""Features of a layer that are read."""


def read_layer(path: Path, layer: str) -> tuple[str, list[bytes], list[dict[str, Any]]]:
    """(coordinate system, WKB of every feature, attributes) of a layer, or of the only one.

    Only tables are read; a view could be a program. The file is taken as it stands
    (``immutable``), so that no journal beside it is looked at.
    """
    with path.open("rb") as file:
        if file.read(len(DATABASE)) != DATABASE:
            raise InputError(f"{path} is not a GeoPackage; save it again")
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
    looks = iter(range(PATIENCE))
    connection.set_progress_handler(lambda: next(looks, None) is None, STEPS)
    try:
        return _layer(connection, path, layer)
    except sqlite3.Error as error:
        raise InputError(f"{path} is not a GeoPackage that can be read: {error}") from error
    finally:
        connection.close()


def _layer(
    connection: sqlite3.Connection, path: Path, layer: str
) -> tuple[str, list[bytes], list[dict[str, Any]]]:
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    }
    if not {"gpkg_geometry_columns", "gpkg_spatial_ref_sys"} <= tables:
        raise InputError(f"{path} is a database, but not a GeoPackage; save it again")
    layers = {
        str(name): (str(column), srs)
        for name, column, srs in connection.execute(
            "SELECT table_name, column_name, srs_id FROM gpkg_geometry_columns"
        )
        if name in tables
    }
    if layer and layer not in layers:
        raise InputError(f"{path} has no layer {layer!r}; it has {', '.join(layers) or 'none'}")
    if not layer and len(layers) != 1:
        raise InputError(
            f"{path} has {len(layers)} layers ({', '.join(layers)}); name one: "
            f"'{path.name}|layername=NAME'"
        )
    name = layer or next(iter(layers))
    column, srs = layers[name]
    found = connection.execute(
        "SELECT organization, organization_coordsys_id, definition FROM gpkg_spatial_ref_sys "
        "WHERE srs_id = ?",
        (srs,),
    ).fetchone()
    if found is None or srs in (0, -1):
        raise InputError(f"{path}: layer {name!r} does not say its coordinate system; set its CRS")
    crs = f"EPSG:{found[1]}" if str(found[0]).upper() == "EPSG" else str(found[2])
    cursor = connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT {MOST}")
    names = [item[0] for item in cursor.description]
    blobs, attributes = [], []
    for row in cursor:
        values = dict(zip(names, row, strict=True))
        blob = values.pop(column, None)
        if isinstance(blob, bytes):
            blobs.append(_wkb(blob, path))
            attributes.append(values)
    return crs, blobs, attributes


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _wkb(blob: bytes, path: Path) -> bytes:
    """The well-known binary behind the header of a geometry."""
    if len(blob) < 8 or blob[:2] != b"GP" or (blob[3] >> 1 & 7) not in ENVELOPE:
        raise InputError(f"{path}: a geometry of it is damaged; save it again")
    return blob[8 + ENVELOPE[blob[3] >> 1 & 7] :]
