"""Occurrence tables: who was seen where and when.

CSV, TSV (both also gzipped) and Parquet. The column names of GBIF, iNaturalist and eBird
downloads are recognised, whatever their case and punctuation; others are named by the caller.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._files import Paths, as_paths, read_text
from engram.errors import InputError
from engram.tasks.occurrences import Occurrences

FIELDS: dict[str, tuple[str, ...]] = {
    "species": ("species", "scientificname", "taxonspeciesname", "taxonname"),
    "common_name": ("commonname", "vernacularname"),
    "latitude": ("decimallatitude", "latitude", "lat"),
    "longitude": ("decimallongitude", "longitude", "lon", "lng", "long"),
    "year": ("year",),
    "month": ("month",),
    "date": ("eventdate", "observedon", "observationdate", "date"),
    # iNaturalist publishes blurred coordinates of rare species: their accuracy is the public one.
    "uncertainty": (
        "coordinateuncertaintyinmeters",
        "publicpositionalaccuracy",
        "positionalaccuracy",
    ),
    "count": ("individualcount", "observationcount", "count", "howmany"),
    "present": ("occurrencestatus", "present"),
}
"""Field -> column names that mean it, in lower case without punctuation, the best first."""

MISSING = {"", "na", "nan", "null", "none", "\\n"}
WORDS = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "present"), True),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n", "absent"), False),
}


def read_occurrences(paths: Paths, columns: Mapping[str, str] | None = None) -> Occurrences:
    """Read one or several tables as one.

    ``columns`` names columns that are not recognised, e.g. ``{"latitude": "Y_WGS84"}``; its
    keys are those of ``FIELDS``.
    """
    parts = [_read_one(path, dict(columns or {})) for path in as_paths(paths)]
    return parts[0] if len(parts) == 1 else Occurrences.pooled(parts)


def _read_one(path: Path, columns: dict[str, str]) -> Occurrences:
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the table file inside")
    parquet = path.suffix.lower() in (".parquet", ".pq")
    raw = _parquet_columns(path, columns) if parquet else _csv_columns(path, columns)
    reader = _Reader(path, raw)
    latitude, longitude = reader.numbers("latitude"), reader.numbers("longitude")
    placed = np.isfinite(latitude) & np.isfinite(longitude)
    if not placed.any():
        raise InputError(f"{path}: none of its {len(placed)} records has coordinates")
    for field, values, limit in (("latitude", latitude, 90), ("longitude", longitude, 180)):
        reader.check(
            field,
            np.abs(values) > limit,
            f"is outside -{limit}..{limit}; are latitude and longitude exchanged, or are these "
            "metres of a map projection? Decimal degrees are needed",
        )
    count = np.nan_to_num(reader.convert("count", _count_of), nan=1.0)
    reader.check("count", count < 0, "is below 0; correct it or leave it empty")
    year = reader.numbers("year")
    if "date" in raw.values:
        year = np.where(np.isfinite(year), year, reader.convert("date", _year_of))
    known = set(raw.values) | ({"year"} if "date" in raw.values else set())
    table = Occurrences(
        species=reader.texts("species"),
        common_name=reader.texts("common_name"),
        latitude=latitude,
        longitude=longitude,
        year=year,
        month=reader.numbers("month"),
        uncertainty=reader.numbers("uncertainty"),
        count=count,
        present=(reader.convert("present", _present_of) != 0) & (count > 0),
        known=frozenset(known),
        origin=path.name,
    )
    return table.take(placed)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Values of the recognised columns, their names, and where each row stands in the file."""

    values: dict[str, list[object]]
    names: dict[str, str]
    rows: Sequence[int]


class _Reader:
    """Turns raw columns into arrays; faults are named with the row."""

    def __init__(self, path: Path, raw: _Columns) -> None:
        self.path, self.raw = path, raw

    def texts(self, field: str) -> NDArray[np.str_]:
        values = self.raw.values.get(field)
        if values is None:
            return np.full(len(self.raw.rows), "", dtype=np.str_)
        texts = [str(v).strip() for v in values]
        return np.array(["" if t.lower() in MISSING else t for t in texts], dtype=np.str_)

    def numbers(self, field: str) -> NDArray[np.float64]:
        try:  # a column without gaps or faults, in one go
            whole = np.array(self.raw.values.get(field, []), np.float64)
        except (ValueError, TypeError):
            return self.convert(field, float)
        clean = len(whole) and not np.isinf(whole).any()
        return whole if clean else self.convert(field, float)

    def convert(self, field: str, parse: Callable[[str], float]) -> NDArray[np.float64]:
        """The column through ``parse``; NaN for missing values or a missing column."""
        values = self.raw.values.get(field)
        out = np.full(len(self.raw.rows), np.nan)
        for i, value in enumerate(values or ()):
            text = str(value).strip()
            if text.lower() in MISSING:
                continue
            try:
                out[i] = parse(text)
            except ValueError:
                out[i] = np.inf
            if np.isinf(out[i]):
                raise InputError(
                    f"{self._where(field, i)}: cannot read {text!r} as {field}; correct the row "
                    "or leave the value empty"
                )
        return out

    def check(self, field: str, wrong: NDArray[np.bool_], message: str) -> None:
        """Refuse the table when a value is wrong, naming the first."""
        if wrong.any():
            i = int(np.argmax(wrong))
            value, many = self.raw.values[field][i], int(wrong.sum())
            also = f" ({many} rows are so)" if many > 1 else ""
            raise InputError(f"{self._where(field, i)}: {field} {value} {message}{also}")

    def _where(self, field: str, i: int) -> str:
        return f"{self.path}, row {self.raw.rows[i]}, column {self.raw.names[field]!r}"


def _year_of(text: str) -> float:
    found = re.search(r"(?<!\d)(1[5-9]|20)\d\d(?!\d)", text)
    return float(found.group()) if found else np.nan


def _count_of(text: str) -> float:
    """A number of individuals; eBird writes X for 'present, not counted'."""
    return np.nan if text.upper() == "X" else float(text)


def _present_of(text: str) -> float:
    if text.lower() not in WORDS:
        raise ValueError(text)
    return float(WORDS[text.lower()])


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _recognised(path: Path, header: Sequence[str], columns: dict[str, str]) -> dict[str, int]:
    """Field -> position of its column."""
    found: dict[str, int] = {}
    plain = [_plain(name) for name in header]
    listed = ", ".join(header)
    for field, column in columns.items():
        if field not in FIELDS:
            raise InputError(f"unknown field {field!r}; the fields are {', '.join(FIELDS)}")
        if column not in header:
            raise InputError(f"{path} has no column {column!r} (for {field}); it has {listed}")
        found[field] = list(header).index(column)
    for field, names in FIELDS.items():
        position = next((plain.index(name) for name in names if name in plain), None)
        if field not in found and position is not None:
            found[field] = position
    for field in ("latitude", "longitude"):
        if field not in found:
            raise InputError(
                f"{path} has no column recognised as {field}; it has {listed}. Name it with "
                f"--column {field}=NAME"
            )
    return found


def _csv_columns(path: Path, columns: dict[str, str]) -> _Columns:
    text = read_text(path)
    first = text.partition("\n")[0]
    delimiter = max("\t,;", key=first.count)
    # Tab-separated downloads (GBIF, eBird) do not quote: a lone quotation mark is a character.
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
    )
    header = [name.strip() for name in next(_rows(path, reader), [])]
    if not any(header):
        raise InputError(f"{path} is empty")
    found = _recognised(path, header, columns)
    values: dict[str, list[object]] = {field: [] for field in found}
    lines: list[int] = []
    for row in _rows(path, reader):
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(
                f"{path}, row {reader.line_num}: {len(row)} fields where the header has "
                f"{len(header)}; is a field with a {delimiter!r} in it not quoted?"
            )
        for field, position in found.items():
            values[field].append(row[position])
        lines.append(reader.line_num)
    if not lines:
        raise InputError(f"{path} has a header but no records")
    return _Columns(values, {f: header[i] for f, i in found.items()}, lines)


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"{path} is not a valid table: {error}") from error


def _parquet_columns(path: Path, columns: dict[str, str]) -> _Columns:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; run pip install 'engram[parquet]', or give "
            "the table as CSV"
        ) from error
    try:
        header = list(pq.read_schema(path).names)
        found = _recognised(path, header, columns)
        names = {field: header[i] for field, i in found.items()}
        table = pq.read_table(path, columns=sorted(set(names.values())))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path} as Parquet: {error}") from error
    if not table.num_rows:
        raise InputError(f"{path} has columns but no records")
    lists = {name: table.column(name).to_pylist() for name in set(names.values())}
    return _Columns({f: lists[n] for f, n in names.items()}, names, range(1, table.num_rows + 1))
