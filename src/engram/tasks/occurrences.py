"""Records of who was seen where and when, and the filters on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError

Box = tuple[float, float, float, float]
"""South, north, west, east in degrees."""
Years = tuple[int | None, int | None]
"""First and last year, both included; None = open."""


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Records of one or several tables, all arrays (n,).

    year, month, uncertainty (metres) are NaN where unknown, common_name and species empty;
    count is the number of individuals (1 where unknown); present is False for a visit that
    found nothing. ``known`` names the fields for which the table had a column.
    """

    species: NDArray[np.str_]
    common_name: NDArray[np.str_]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    year: NDArray[np.float64]
    month: NDArray[np.float64]
    uncertainty: NDArray[np.float64]
    count: NDArray[np.float64]
    present: NDArray[np.bool_]
    known: frozenset[str]
    origin: str

    def __len__(self) -> int:
        return len(self.latitude)

    @classmethod
    def pooled(cls, parts: Sequence[Occurrences]) -> Occurrences:
        """Records of several tables as one; a field counts as known when all know it."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS
        }
        known = frozenset.intersection(*(part.known for part in parts))
        return cls(**columns, known=known, origin=" + ".join(part.origin for part in parts))

    def take(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Occurrences:
        """The records of a mask or of positions."""
        columns: dict[str, Any] = {name: getattr(self, name)[keep] for name in COLUMNS}
        return replace(self, **columns)

    def matching(self, name: str) -> NDArray[np.bool_]:
        """(n,) True for a species: its scientific name, its genus or its common name.

        'Poecile atricapillus' also matches subspecies and names with an author behind them,
        'Papilio' every species of that genus. Case does not count.
        """
        wanted = name.strip().lower()
        names = np.char.lower(self.species)
        hit = (names == wanted) | np.char.startswith(names, wanted + " ")
        return np.asarray(hit | (np.char.lower(self.common_name) == wanted), bool)

    def of_species(self, names: str | Sequence[str]) -> Occurrences:
        """Records of these species; a species without any is refused."""
        keep = np.zeros(len(self), bool)
        for name in [names] if isinstance(names, str) else names:
            hit = self.matching(name) if name.strip() else np.zeros(len(self), bool)
            if not hit.any():
                raise InputError(self._unknown(name))
            keep |= hit
        return self.take(keep)

    def most_common(self, limit: int | None = None) -> list[str]:
        """Species by number of records, then by name."""
        names, counts = np.unique(self.species[self.species != ""], return_counts=True)
        order = np.lexsort((names, -counts))[:limit]
        return [str(names[i]) for i in order]

    def names(self) -> set[str]:
        """Every scientific and common name of the table."""
        return {*self.most_common(), *map(str, np.unique(self.common_name))} - {""}

    def _unknown(self, name: str) -> str:
        if not {"species", "common_name"} & self.known:
            return (
                f"{self.origin} has no column of species, so {name!r} cannot be chosen; name it "
                "with --column species=NAME or leave the species out"
            )
        close = get_close_matches(name, sorted(self.names()), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        shown = self.most_common(12)
        rest = len(self.most_common()) - len(shown)
        more = f" and {rest} more" if rest > 0 else ""
        return (
            f"no record of species {name!r} in {self.origin}; {hint}most records: "
            f"{', '.join(shown)}{more}"
        )

    def filtered(
        self,
        *,
        years: Years | None = None,
        max_uncertainty: float | None = None,
        box: Box | None = None,
    ) -> Occurrences:
        """Records of these years, at most so many metres uncertain, in a box (edges included).

        A record that does not state its year or uncertainty does not pass a filter on it.
        """
        keep = np.ones(len(self), bool)
        if years is not None:
            self._need("year", "years")
            first, last = (-np.inf if years[0] is None else years[0], years[1] or np.inf)
            if first > last:
                raise InputError(f"years={years}: the first is after the last")
            keep &= (self.year >= first) & (self.year <= last)
        if max_uncertainty is not None:
            self._need("uncertainty", "coordinate uncertainty")
            keep &= self.uncertainty <= max_uncertainty
        if box is not None:
            south, north, west, east = checked_box(box)
            keep &= (self.latitude >= south) & (self.latitude <= north)
            keep &= (self.longitude >= west) & (self.longitude <= east)
        if not keep.any():
            wanted = f"years={years}, max_uncertainty={max_uncertainty}, box={box}"
            raise InputError(f"none of the {len(self)} records of {self.origin} passes {wanted}")
        return self.take(keep)

    def _need(self, field: str, what: str) -> None:
        if field not in self.known:
            raise InputError(
                f"{self.origin} has no column for a filter on {what}; name it with "
                f"--column {field}=NAME or leave the filter out"
            )


COLUMNS = tuple(f.name for f in fields(Occurrences) if f.name not in ("known", "origin"))


def checked_box(box: Box) -> Box:
    """The box, if it is one on Earth."""
    south, north, west, east = (float(v) for v in box)
    if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
        raise InputError(
            f"box south={south:g}, north={north:g}, west={west:g}, east={east:g}: give "
            "south < north in -90..90 and west < east in -180..180"
        )
    return south, north, west, east
