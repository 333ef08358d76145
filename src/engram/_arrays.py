"""NumPy files, read within bounds.

``np.load`` believes what a header says: a file of three megabytes may ask for gigabytes, and a
damaged one ends in any of a dozen exceptions. Here every array is checked against the bytes that
are there before room is made for it, and every fault is an ``InputError``.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from engram.errors import InputError

LEAST_ROOM = 2**29
FOLD = 32
"""A file may unfold to ``LEAST_ROOM`` bytes, or to ``FOLD`` times its size where that is more."""


def room_of(packed: int) -> int:
    """Bytes that may come out of a file of so many bytes."""
    return max(LEAST_ROOM, FOLD * packed)


def check_room(unfolded: int, packed: int, where: str) -> None:
    """Refuse what would unfold to far more than is in the file."""
    if unfolded > room_of(packed):
        raise InputError(
            f"{where} unfolds to {unfolded / 1e6:,.0f} MB, {packed / 1e6:,.1f} MB are in the file; "
            f"at most {room_of(packed) / 1e6:,.0f} MB are unpacked: cut or reduce it"
        )


def check_file(path: Path) -> Path:
    """Refuse what is not there, and pipes and devices, which may never end."""
    if not path.is_file():
        raise InputError(f"no file at {path}")
    return path


def check_numbers(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Refuse arrays of text, complex numbers, times or records, and empty ones."""
    if array.dtype.kind not in "buif":
        raise InputError(f"{where} holds {array.dtype}, not numbers; save it as real numbers")
    if not array.size:
        raise InputError(f"{where} is empty (shape {array.shape})")
    return array


def read_arrays(path: Path, needed: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Every array of an .npz file; those in ``needed`` must be there."""
    arrays = _arrays(path)
    if "" in arrays:
        raise InputError(f"{path} holds a single array (NPY); give an .npz file with named arrays")
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InputError(
            f"{path} has no array {', '.join(map(repr, missing))}; it has "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    return arrays


def read_array(path: Path, names: Sequence[str] = ()) -> NDArray[Any]:
    """The array of an .npy file; of an .npz file the one named so, or the only one."""
    arrays = _arrays(path)
    wanted = [name for name in names if name in arrays]
    if not wanted and len(arrays) == 1:
        wanted = list(arrays)
    if not wanted:
        remedy = f"name the one to use {names[0]!r}" if names else "give a file with one"
        raise InputError(
            f"{path} holds {len(arrays)} arrays ({', '.join(sorted(arrays))}); {remedy}"
        )
    return arrays[wanted[0]]


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Name -> array of an .npz file; '' -> array of an .npy file, whatever they are called."""
    check_file(path)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                file.seek(0)
                return {"": _array(file, size, str(path))}
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                check_room(sum(entry.file_size for entry in entries), size, str(path))
                return {
                    entry.filename.removesuffix(".npy"): _member(archive, entry, path)
                    for entry in entries
                }
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory; cut or reduce it") from error
    except Exception as error:  # what damaged bytes do to the parsers has no other name
        raise InputError(
            f"cannot read {path} as a NumPy file: {error or type(error).__name__}; fetch or save "
            "it again"
        ) from error


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    with archive.open(entry) as file:
        array = _array(file, entry.file_size, f"{path}, array {entry.filename!r}")
        file.read(1)  # behind the last byte the checksum is compared
    return array


def _array(file: IO[bytes], size: int, where: str) -> NDArray[Any]:
    """One array in NPY format, of which ``size`` bytes are said to be there."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"{where} holds records or is of version {version}; save plain numbers")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, by_column, dtype = read(file)
    except Exception as error:  # NumPy's words are about Python's syntax
        raise InputError(f"{where}: its header is damaged; fetch or save it again") from error
    if dtype.hasobject or dtype.fields or dtype.subdtype or not dtype.itemsize:
        raise InputError(f"{where} holds {dtype}, not plain numbers or texts")
    if min(shape, default=0) < 0:
        raise InputError(f"{where} has shape {shape}; sizes are not below 0")
    count = math.prod(shape)
    wanted, there = count * dtype.itemsize, size - file.tell()
    if wanted > there:
        raise InputError(
            f"{where}: its header says {wanted:,} bytes (shape {shape}, {dtype}), {there:,} are "
            "there; the file is cut short or damaged"
        )
    data = bytearray(wanted)
    filled = 0
    with memoryview(data) as view:
        while filled < wanted:
            taken = file.readinto(view[filled:])  # type: ignore[attr-defined]
            if not taken:
                raise InputError(f"{where} ends after {filled:,} of {wanted:,} bytes")
            filled += taken
    flat = np.frombuffer(data, dtype, count)
    return flat.reshape(shape, order="F" if by_column else "C")
