"""Files of places that are damaged, lie, or try to make a reader open something else.

``cases`` gives them all, in a fixed order. ``TRAP`` stands for a folder of files that nobody may
open, ``URL`` for a server that nobody may call; both are filled in when a case is run.
"""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

TRAP, URL = "@TRAP@", "@URL@"
RING = [[13.22, 52.46], [13.28, 52.46], [13.28, 52.5], [13.22, 52.5], [13.22, 52.46]]
GRIDS = f"+proj=longlat +ellps=bessel +nadgrids={TRAP}/secret.txt +type=crs"


@dataclass(frozen=True)
class Case:
    """A file, what is wrong with it, and the files that lie beside it as bait."""

    about: str
    name: str
    data: bytes
    beside: dict[str, bytes] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


@cache
def cases() -> list[Case]:
    """Every hostile file; made once."""
    makers: tuple[Callable[[], Iterator[Case]], ...] = (
        _geojson, _kml, _gpx, _geopackage, _shapefile, _geotiffs, _tables,
    )  # fmt: skip
    return [case for make in makers for case in make()]


def _damaged(kind: str, name: str, good: bytes, cuts: int, flips: int) -> Iterator[Case]:
    """A good file cut short, and with some of its bytes changed."""
    rng = Random(f"hostile {kind}")
    for i in range(cuts):
        at = len(good) * i // cuts
        yield Case(f"{kind} cut to {at} of {len(good)} bytes", name, good[:at])
    for i in range(flips):
        data = bytearray(good)
        for _ in range(1 + 3 * i):
            data[rng.randrange(len(data))] = rng.randrange(256)
        yield Case(f"{kind} with {1 + 3 * i} bytes changed", name, bytes(data))


# -- text ------------------------------------------------------------------------------------------


def polygon(**more: Any) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [RING], **more}


def _geojson() -> Iterator[Case]:
    good = json.dumps(polygon()).encode()
    yield from _damaged("GeoJSON", "a.geojson", good, 4, 6)
    nested: Any = polygon()
    for _ in range(150):
        nested = {"type": "GeometryCollection", "geometries": [nested]}
    strange: dict[str, Any] = {
        "no object": [1, 2],
        "null": None,
        "features that are no list": {"type": "FeatureCollection", "features": {"a": 1}},
        "features that are numbers": {"type": "FeatureCollection", "features": [1, 2]},
        "no geometry": {"type": "Feature", "geometry": None, "properties": {}},
        "an unknown geometry": {"type": "Teapot", "coordinates": [[0, 0]]},
        "a ring of two corners": polygon(coordinates=[RING[:2]]),
        "corners that are texts": polygon(coordinates=[[["x", "y"]] * 4]),
        "corners of one number": polygon(coordinates=[[[1.0]] * 4]),
        "corners too deep": polygon(coordinates=[[[RING]]]),
        "no corners": polygon(coordinates=[]),
        "numbers beyond any map": polygon(coordinates=[[[1e300, 1], [2e300, 2], [3e300, 1]]]),
        "corners at one place": polygon(coordinates=[[[13, 52]] * 5]),
        "150 collections in each other": nested,
        "a link for a CRS": polygon(crs={"type": "link", "properties": {"href": f"{URL}/x"}}),
        "a CRS that names a file": polygon(crs={"properties": {"name": GRIDS}}),
        "a CRS that is an address": polygon(crs={"properties": {"name": f"{URL}/crs"}}),
        "a CRS that is a path": polygon(crs={"properties": {"name": f"{TRAP}/secret.prj"}}),
        "a CRS that does not exist": polygon(crs={"properties": {"name": "EPSG:0"}}),
        "a CRS that is a list": polygon(crs=[1]),
        "an area across the date line": polygon(coordinates=[[[179, 0], [-179, 0], [0, 1]]]),
        "an area at the pole": polygon(coordinates=[[[0, 89.9], [120, 89.9], [240, 89.9]]]),
    }
    for about, data in strange.items():
        yield Case(f"GeoJSON: {about}", "a.geojson", json.dumps(data).encode())
    plain = {
        "numbers of 400 digits": good.replace(b"13.22", b"9" * 400),
        "NaN for a corner": good.replace(b"13.22", b"NaN"),
        "an infinite corner": good.replace(b"13.22", b"1e999"),
        "100,000 brackets": b"[" * 100_000,
        "UTF-16": good.decode().encode("utf-16"),
        "bytes that are no text": bytes(range(256)) * 4,
        "nothing": b"",
        "a zip bomb by this name": _bomb(),
    }
    for about, raw in plain.items():
        yield Case(f"GeoJSON: {about}", "a.geojson", raw)


KML = (
    '<?xml version="1.0"?>{dtd}<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{more}'
    "<Placemark><Polygon><outerBoundaryIs><LinearRing><coordinates>{corners}</coordinates>"
    "</LinearRing></outerBoundaryIs></Polygon></Placemark></Document></kml>"
)
CORNERS = " ".join(f"{x},{y}" for x, y in RING)
LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
DTDS = {
    "a billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>',
    "an entity that is a file": f'<!DOCTYPE x [<!ENTITY l9 SYSTEM "file://{TRAP}/secret.txt">]>',
    "an entity from a server": f'<!DOCTYPE x [<!ENTITY l9 SYSTEM "{URL}/x">]>',
    "a document type from a server": f'<!DOCTYPE x SYSTEM "{URL}/x.dtd">',
    "a document type from a file": f'<!DOCTYPE x SYSTEM "{TRAP}/secret.dtd">',
    "a parameter entity": f'<!DOCTYPE x [<!ENTITY % p SYSTEM "file://{TRAP}/secret.dtd"> %p;]>',
    "an entity of a gigabyte": f'<!DOCTYPE x [<!ENTITY l9 "{"a" * 10_000}">]>',
    "an empty document type": "<!DOCTYPE x>",
}
INSIDE = {
    "a link to a server": f"<NetworkLink><Link><href>{URL}/x.kml</href></Link></NetworkLink>",
    "a picture of a server": f"<Overlay><Icon><href>{URL}/x.png</href></Icon></Overlay>",
    "a style of a server": f"<styleUrl>{URL}/x.kml#s</styleUrl>",
    "an included file": '<x:include xmlns:x="http://www.w3.org/2001/XInclude" '
    f'href="file://{TRAP}/secret.txt" parse="text"/>',
}


def _kml() -> Iterator[Case]:
    def made(dtd: str = "", more: str = "", corners: str = CORNERS) -> bytes:
        return KML.format(dtd=dtd, more=more, corners=corners).encode()

    yield from _damaged("KML", "a.kml", made(), 3, 4)
    for about, dtd in DTDS.items():
        corners = "&l9;" if "ENTITY l" in dtd else CORNERS
        yield Case(f"KML with {about}", "a.kml", made(dtd, corners=corners))
    for about, more in INSIDE.items():
        yield Case(f"KML with {about}", "a.kml", made(more=more))
    for corners in ("", "1", "a,b c,d", "1,2 3,4", "1e999,1 2,2 3,1", "13,52 " * 3):
        yield Case(f"KML with corners {corners[:12]!r}", "a.kml", made(corners=corners))
    yield Case("KML that is GPX", "a.kml", b"<gpx/>")
    yield Case("KML of 5,000 elements in each other", "a.kml", b"<kml>" + b"<a>" * 5000)
    yield Case("KML in a zip (KMZ) by this name", "a.kml", _bomb())


GPX = '<?xml version="1.0"?>{dtd}<gpx version="1.1" creator="x">{points}</gpx>'


def _gpx() -> Iterator[Case]:
    point = '<wpt lat="{}" lon="{}"><name>{} yes</name></wpt>'
    good = GPX.format(dtd="", points=point.format(52.48, 13.25, "Q1")).encode()
    yield from _damaged("GPX", "tell.gpx", good, 3, 4)
    for about, dtd in DTDS.items():
        points = point.format(52.48, 13.25, "&l9;" if "ENTITY l" in dtd else "Q1")
        yield Case(f"GPX with {about}", "tell.gpx", GPX.format(dtd=dtd, points=points).encode())
    places = (
        ("", ""), ("nan", "nan"), ("inf", "13"), ("1e999", "13"), ("91", "13"), ("13.25", "52.48"),
        ("52.48", "x"), ("52.2", "13.2"), ("-90", "0"), ("9" * 400, "1"),
    )  # fmt: skip
    for lat, lon in places:
        points = point.format(lat, lon, "Q1")
        data = GPX.format(dtd="", points=points).encode()
        yield Case(f"GPX with a waypoint at {lat[:9]},{lon[:9]}", "tell.gpx", data)
    yield Case("GPX without waypoints", "tell.gpx", GPX.format(dtd="", points="").encode())
    yield Case("GPX that is KML", "tell.gpx", b"<kml/>")
    link = f'<link href="{URL}/x"/><extensions><x href="file://{TRAP}/secret.txt"/></extensions>'
    yield Case("GPX with links", "tell.gpx", GPX.format(dtd="", points=link).encode())


def _tables() -> Iterator[Case]:
    rows = {
        "no columns": "",
        "a place that is no number": "lat,lon,outcome\nx,y,1\n",
        "a place that is infinite": "lat,lon,outcome\ninf,inf,1\n",
        "a place beyond numbers": f"lat,lon,outcome\n{'9' * 400},1,1\n",
        "a place at the pole": "lat,lon,outcome\n90,0,1\n",
        "an outcome of words": "lat,lon,outcome\n52.48,13.25,perhaps\n",
        "an outcome beyond 1": "lat,lon,outcome\n52.48,13.25,7\n",
        "a count below 0": "lat,lon,count\n52.48,13.25,-7\n",
        "coordinates swapped": "lat,lon,outcome\n13.25,52.48,1\n",
        "quotes that never end": 'lat,lon,outcome\n52.48,13.25,"1\n',
        "zero bytes": "lat,lon,outcome\n52.48,13.25,\0\n",
        "columns twice": "lat,lat,lon,outcome\n1,1,1,1\n",
        "too few fields": "lat,lon,outcome\n52.48\n",
        "metres without a map": "x,y,outcome\n381000,5815000,1\n",
        "a formula": "lat,lon,outcome,note\n52.48,13.25,1,=cmd|' /C calc'!A0\n",
        "a note of a million letters": f"lat,lon,outcome,note\n52.48,13.25,1,{'a' * 10**6}\n",
    }
    for about, text in rows.items():
        yield Case(f"table with {about}", "tell.csv", text.encode())
    yield Case("table in UTF-16", "tell.csv", "lat,lon,outcome\n1,1,1\n".encode("utf-16"))
    yield Case("table that is a zip", "tell.csv", _bomb())
    yield Case("table of control characters", "tell.csv", b"\x1b[2J,lat,lon\n1,2,3\n")


# -- databases and archives ------------------------------------------------------------------------


def _bomb() -> bytes:
    """A small archive that unfolds to gigabytes, by what it says and in part by what it is."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.shp", "a.shx", "a.prj", "a.dbf"):
            archive.writestr(name, bytes(8 * 2**20))
    data = bytearray(packed.getvalue())
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def _gpkg(change: Callable[[sqlite3.Connection], None] | None = None, blob: bytes = b"") -> bytes:
    """A GeoPackage of one polygon, perhaps changed."""
    import shapely

    shape = b"GP\0\1" + struct.pack("<i", 4326) + shapely.to_wkb(shapely.Polygon(RING))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.gpkg"
        base = sqlite3.connect(path)
        base.executescript(
            "CREATE TABLE gpkg_geometry_columns (table_name, column_name, srs_id);"
            "CREATE TABLE gpkg_spatial_ref_sys (srs_id, organization, organization_coordsys_id, "
            "definition);"
            "CREATE TABLE park (fid INTEGER PRIMARY KEY, geom BLOB, name TEXT);"
            "INSERT INTO gpkg_geometry_columns VALUES ('park', 'geom', 4326);"
            "INSERT INTO gpkg_spatial_ref_sys VALUES (4326, 'EPSG', 4326, '');"
        )
        base.execute("INSERT INTO park (geom, name) VALUES (?, 'x')", (blob or shape,))
        if change is not None:
            change(base)
        base.commit()
        base.close()
        return path.read_bytes()


def _run(*statements: str) -> Callable[[sqlite3.Connection], None]:
    return lambda base: [base.execute(text) for text in statements] and None  # type: ignore[func-returns-value]


def _geopackage() -> Iterator[Case]:
    yield from _damaged("GeoPackage", "a.gpkg", _gpkg(), 4, 8)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS fid, "
    header = b"GP\0\1" + struct.pack("<i", 4326)
    changes: dict[str, tuple[str, ...]] = {
        "a view without end for a layer": (
            f"CREATE VIEW v AS {endless} NULL AS geom FROM c",
            "UPDATE gpkg_geometry_columns SET table_name = 'v'",
        ),
        "a layer that is not there": ("UPDATE gpkg_geometry_columns SET table_name = 'nobody'",),
        "a name made of SQL": (
            'ALTER TABLE park RENAME TO "a""; DROP TABLE x; --"',
            "UPDATE gpkg_geometry_columns SET table_name = 'a\"; DROP TABLE x; --'",
        ),
        "no coordinate system": ("DELETE FROM gpkg_spatial_ref_sys",),
        "an undefined coordinate system": ("UPDATE gpkg_geometry_columns SET srs_id = -1",),
        "a CRS that names a file": (
            f"UPDATE gpkg_spatial_ref_sys SET organization='x', definition='{GRIDS}'",
        ),
        "a CRS number that is none": (
            "UPDATE gpkg_spatial_ref_sys SET organization_coordsys_id = 'x'",
        ),
        "no features": ("DELETE FROM park",),
        "no layers": ("DELETE FROM gpkg_geometry_columns",),
        "shapes that are texts": ("UPDATE park SET geom = 'POINT(1 2)'",),
        "no tables of a GeoPackage": ("DROP TABLE gpkg_geometry_columns",),
        "a trigger": (
            "CREATE TRIGGER t AFTER INSERT ON park BEGIN SELECT load_extension('x'); END",
        ),
    }
    for about, statements in changes.items():
        yield Case(f"GeoPackage with {about}", "a.gpkg", _gpkg(_run(*statements)))
    blobs = {
        "a shape cut short": header + b"\1\3",
        "a shape of two billion corners": header + struct.pack("<BIII", 1, 3, 1, 2**31 - 1),
        "a shape of unknown kind": header + struct.pack("<BI", 1, 999),
        "an envelope of unknown kind": b"GP\0\x0f" + struct.pack("<i", 4326),
        "a shape without a header": b"XX" + bytes(40),
        "500 collections in each other": header + struct.pack("<BII", 1, 7, 1) * 500,
    }
    for about, blob in blobs.items():
        yield Case(f"GeoPackage with {about}", "a.gpkg", _gpkg(blob=blob))
    journals = {f"a.gpkg-{part}": b"bait" for part in ("journal", "wal", "shm")}
    yield Case("GeoPackage with a journal beside it", "a.gpkg", _gpkg(), journals)
    wal = bytearray(_gpkg())
    wal[18:20] = b"\2\2"
    yield Case("GeoPackage in WAL mode with a log beside it", "a.gpkg", bytes(wal), journals)
    yield Case("GeoPackage that is GeoJSON", "a.gpkg", json.dumps(polygon()).encode())


def _shape_parts() -> dict[str, bytes]:
    import pyogrio.raw
    import shapely

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.shp"
        pyogrio.raw.write(
            path, geometry=np.array([shapely.to_wkb(shapely.Polygon(RING))], object),
            field_data=[np.array([1])], fields=["n"], geometry_type="Polygon", crs="EPSG:4326",
        )  # fmt: skip
        return {p.suffix: p.read_bytes() for p in Path(folder).iterdir()}


def _shapefile() -> Iterator[Case]:
    parts = _shape_parts()

    def made(about: str, changed: dict[str, bytes]) -> Case:
        whole = {**parts, **changed}
        beside = {f"a{s}": d for s, d in whole.items() if s != ".shp" and d}
        return Case(f"Shapefile with {about}", "a.shp", whole[".shp"], beside, tuple(beside))

    for case in _damaged("Shapefile", "a.shp", parts[".shp"], 3, 5):
        yield made(case.about, {".shp": case.data})
    lying = bytearray(parts[".shp"])
    lying[104:108] = struct.pack(">i", 2**30)
    many = bytearray(parts[".shp"])
    many[152:156] = struct.pack("<i", 2**31 - 1)
    yield made("a record longer than the file", {".shp": bytes(lying)})
    yield made("two billion corners", {".shp": bytes(many)})
    yield made("no index", {".shx": b""})
    yield made("an index of something else", {".shx": bytes(200)})
    yield made("no CRS", {".prj": b""})
    yield made("a CRS of garbage", {".prj": bytes(range(200))})
    yield made("a CRS that names a file", {".prj": GRIDS.encode()})
    yield made("a VRT by its name", {".shp": _vrt_of_shapes()})
    yield Case("zip that is no zip", "a.zip", b"PK\3\4 nothing")
    yield Case("zip bomb", "a.zip", _bomb())
    for about, names in {
        "two Shapefiles": ("a.shp", "b.shp"),
        "no Shapefile": ("a.txt",),
        "paths that climb": ("../../a.shp", "../../a.shx", "../../a.prj"),
        "parts missing": ("a.shp",),
    }.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name in names:
                archive.writestr(name, parts.get(Path(name).suffix, b"x"))
        yield Case(f"zip with {about}", "a.zip", packed.getvalue())
    locked = bytearray(packed.getvalue())
    locked[6] |= 1
    yield Case("zip that asks for a password", "a.zip", bytes(locked))


def _vrt_of_shapes() -> bytes:
    return (
        f'<OGRVRTDataSource><OGRVRTLayer name="a"><SrcDataSource>{TRAP}/secret.geojson'
        "</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    ).encode()


# -- rasters ---------------------------------------------------------------------------------------


def tif(values: Any = None, **more: Any) -> bytes:
    import warnings

    from rasterio.io import MemoryFile
    from rasterio.transform import from_origin

    pixels = np.ones((40, 40), np.float32) if values is None else values
    settings = {"crs": "EPSG:32633", "transform": from_origin(379_000, 5_818_000, 100, 100), **more}
    with warnings.catch_warnings(), MemoryFile() as memory:
        warnings.simplefilter("ignore")
        with memory.open(
            driver="GTiff", height=pixels.shape[0], width=pixels.shape[1], count=1,
            dtype=pixels.dtype, **settings,
        ) as file:  # fmt: skip
            file.write(pixels, 1)
        return bytes(memory.read())


def _tagged(data: bytes, tag: int, value: int) -> bytes:
    """A TIFF with another number in one of its tags."""
    out = bytearray(data)
    at = struct.unpack("<I", out[4:8])[0]
    for i in range(struct.unpack("<H", out[at : at + 2])[0]):
        entry = at + 2 + 12 * i
        if struct.unpack("<H", out[entry : entry + 2])[0] == tag:
            out[entry + 2 : entry + 12] = struct.pack("<HII", 4, 1, value)
    return bytes(out)


def _geotiffs() -> Iterator[Case]:
    good = tif()
    packed = tif(compress="deflate")
    yield from _damaged("GeoTIFF", "a.tif", good, 5, 10)
    yield from _damaged("packed GeoTIFF", "cost.tif", packed, 4, 8)
    vrt = (
        '<VRTDataset rasterXSize="40" rasterYSize="40"><VRTRasterBand dataType="Byte" band="1">'
        f"<SimpleSource><SourceFilename>{TRAP}/secret.tif</SourceFilename></SimpleSource>"
        "</VRTRasterBand></VRTDataset>"
    ).encode()
    others = {
        "a VRT": vrt,
        "a VRT behind the mark of a TIFF": b"II*\0" + vrt,
        "a VRT of a server": vrt.replace(f"{TRAP}/secret.tif".encode(), f"/vsicurl/{URL}".encode()),
        "a WMS": f"<GDAL_WMS><Service><ServerUrl>{URL}</ServerUrl></Service></GDAL_WMS>".encode(),
        "a pipeline": json.dumps({"type": "gdal_streamed_alg", "command_line": "x"}).encode(),
        "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "an HDF5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "a NetCDF": b"CDF\1" + bytes(100),
        "a SQLite file": _gpkg(),
        "nothing": b"",
        "four bytes": b"II*\0",
    }
    for about, data in others.items():
        yield Case(f"GeoTIFF that is {about}", "a.tif", data)
    width, height, rows = 256, 257, 278
    changed = {
        "a billion columns": _tagged(good, width, 10**9),
        "a billion rows": _tagged(good, height, 10**9),
        "a million by a million pixels": _tagged(_tagged(packed, width, 10**6), height, 10**6),
        "no columns": _tagged(good, width, 0),
        "a strip of four billion rows": _tagged(good, rows, 2**32 - 1),
        "values of 60,000 bits": _tagged(good, 258, 60_000),
        "60,000 values a pixel": _tagged(good, 277, 60_000),
        "an unknown compression": _tagged(good, 259, 60_001),
        "a directory that is its own next": _own_next(good),
        "a directory beyond the end": good[:4] + struct.pack("<I", 2**31) + good[8:],
        "a BigTIFF mark": b"II+\0" + good[4:],
        "no place": tif(crs=None),
        "complex numbers": tif(np.ones((40, 40), np.complex64)),
        "nodata everywhere": tif(np.full((40, 40), -9, np.float32), nodata=-9),
        "NaN everywhere": tif(np.full((40, 40), np.nan, np.float32)),
        "a transform that is a line": tif(transform=_flat()),
        "degrees beyond the globe": tif(crs="EPSG:4326"),
    }
    for about, data in changed.items():
        yield Case(f"GeoTIFF with {about}", "a.tif", data)
    baits = {
        "a.tif.aux.xml": vrt, "a.tif.ovr": good, "a.tif.msk": good, "a.tfw": b"1\n0\n0\n-1\n0\n0\n",
        "a.aux.xml": vrt, "a.prj": b"x", "a.tab": b"x", "a.wld": b"x", "a.tif.xml": vrt,
        "a.rpb": b"x", "a_rpc.txt": b"x", "a.imd": b"x", "a_metadata.txt": b"x", "a.hdr": b"x",
    }  # fmt: skip
    yield Case("GeoTIFF among a dozen sidecars", "a.tif", good, baits)
    yield Case("GeoTIFF without a place among sidecars", "a.tif", tif(crs=None), baits)
    for name in ("GTIFF_DIR:1:secret.tif", "vrt:secret.tif", "GTIFF_RAW:secret.tif", "zip+x.tif"):
        yield Case(f"GeoTIFF named {name}", name, good, {"secret.tif": good})
    yield Case("cost raster below 0", "cost.tif", tif(np.full((40, 40), -5, np.float32)))
    yield Case("cost raster of infinite minutes", "cost.tif", tif(np.full((40, 40), np.inf, "f4")))
    yield Case("cost raster elsewhere", "cost.tif", tif(crs="EPSG:32733"))


def _flat() -> Any:
    from affine import Affine

    return Affine(1, 1, 379_000, 1, 1, 5_818_000)


def _own_next(data: bytes) -> bytes:
    out = bytearray(data)
    at = struct.unpack("<I", out[4:8])[0]
    count = struct.unpack("<H", out[at : at + 2])[0]
    out[at + 2 + 12 * count : at + 6 + 12 * count] = struct.pack("<I", at)
    return bytes(out)
