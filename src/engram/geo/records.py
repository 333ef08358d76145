"""Records of who was seen where (GBIF, iNaturalist) as layers, targets and surveys of an area."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError
from engram.geo.place import Place
from engram.geo.units import shown_length
from engram.tasks.occurrences import Occurrences

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RecordMaps:
    """Records on the cells of an area.

    bands : name -> (n_cells,): effort, log(1 + records of anything), which says where people
        looked; target, log(1 + records of the species); presence, 1 where it was recorded and 0
        where only others were, NaN where nobody looked
    notes : how many records were used, and why others were not
    """

    bands: dict[str, Array]
    notes: list[str]


def record_maps(
    records: Occurrences, place: Place, species: Sequence[str], farthest: float | None = None
) -> RecordMaps:
    """Records on cells; those whose place is less certain than a cell are left out.

    species  : names of what is looked for; none: every record is of it
    farthest : metres of uncertainty up to which records are used (default: the side of a cell)
    """
    limit = place.side if farthest is None else farthest
    vague = records.uncertainty > limit
    x, y = place.on_map(records.latitude, records.longitude)
    row, col = place.rowcol(x, y)
    rows, cols = place.grid.rows, place.grid.cols
    with np.errstate(invalid="ignore"):
        inside = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
    used = inside & ~vague
    if not used.any():
        raise InputError(
            f"none of the {len(records):,} records of {records.origin} lies in the area, known to "
            f"{shown_length(limit)} ({int((inside & vague).sum())} are less certain); give a "
            "larger --max-uncertainty, or records of this place"
        )
    cells = row[used].astype(np.intp) * cols + col[used].astype(np.intp)
    kept = records.take(used)
    wanted = np.zeros(len(kept), bool)
    for name in species:
        if not records.matching(name).any():
            records.of_species(name)  # says which names there are
        wanted |= kept.matching(name)
    hit = (wanted if species else np.ones(len(kept), bool)) & kept.present
    n = place.grid.n_cells
    effort, target = (np.bincount(c, minlength=n).astype(float) for c in (cells, cells[hit]))
    presence = np.where(effort > 0, (target > 0).astype(float), np.nan)
    notes = [
        f"{int(used.sum()):,} of {len(records):,} records used: {int((~inside).sum()):,} outside, "
        f"{int((inside & vague).sum()):,} less certain than {shown_length(limit)}",
        f"{int((effort > 0).sum()):,} cells with records, {int((target > 0).sum()):,} of them with "
        f"{', '.join(species) if species else 'any present'}",
    ]
    bands = {"effort": np.log1p(effort), "target": np.log1p(target), "presence": presence}
    return RecordMaps(bands, notes)


def surveys_of(maps: RecordMaps, place: Place) -> str:
    """Cells where somebody looked as a table that can be told: row, col, outcome."""
    closed = place.grid.closed.ravel()
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["row", "col", "outcome", "note"])
    for index in np.flatnonzero(np.isfinite(maps.bands["presence"]) & ~closed):
        row, col = place.grid.at(int(index))
        writer.writerow([row, col, maps.bands["presence"][index], "from records"])
    return text.getvalue()
