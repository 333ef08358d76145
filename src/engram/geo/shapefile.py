"""Shapefiles: the parts are read here, put together in memory, and parsed there."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path

from engram._arrays import check_room
from engram.errors import InputError

MAGIC = b"\x00\x00\x27\x0a"
"""How a .shp and a .shx begin (9994)."""
PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")


def read_shapefile(path: Path, largest: int) -> tuple[str, list[bytes]]:
    """(coordinate system, WKB of every shape) of a .shp with its parts, or of a .zip with one."""
    parts = _from_zip(path) if path.suffix.lower() == ".zip" else _from_files(path, largest)
    for part in (".shp", ".shx"):
        if part not in parts:
            raise InputError(f"{path}: its part {part} is missing; give all parts of the Shapefile")
        if parts[part][:4] != MAGIC:
            raise InputError(f"{path}: its part {part} is not one of a Shapefile; save it again")
    if ".prj" not in parts:
        raise InputError(
            f"{path} does not say its coordinate system; give the .prj beside it as well"
        )
    import pyogrio.raw

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for part in (".shp", ".shx"):  # attributes are not needed; the .prj is read here
            archive.writestr(f"shapes{part}", parts[part])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on damaged shapes, which are judged where they are used
        _, _, shapes, _ = pyogrio.raw.read(packed.getvalue(), columns=[])
    crs = parts[".prj"].decode("utf-8", "replace").strip("\ufeff \n\r\0")
    return crs, [blob for blob in shapes if blob is not None]


def _from_files(path: Path, largest: int) -> dict[str, bytes]:
    """The parts that lie beside a .shp, whatever the case of their endings."""
    found = {}
    for part in PARTS:
        for name in (path.with_suffix(part), path.with_suffix(part.upper())):
            if part not in found and name.is_file() and name.stat().st_size <= largest:
                found[part] = name.read_bytes()
    return found


def _from_zip(path: Path) -> dict[str, bytes]:
    """The parts of the only Shapefile of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            check_room(sum(e.file_size for e in entries), path.stat().st_size, str(path))
            shapes = [e.filename for e in entries if e.filename.lower().endswith(".shp")]
            if len(shapes) != 1:
                raise InputError(f"{path} holds {len(shapes)} Shapefiles; give an archive with one")
            stem = shapes[0][:-4]
            return {
                e.filename[len(stem) :].lower(): archive.read(e)
                for e in entries
                if e.filename.startswith(stem) and e.filename[len(stem) :].lower() in PARTS
            }
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise InputError(f"cannot read {path}: {error}; pack it again") from error
