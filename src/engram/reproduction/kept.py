"""The rows kept with a result file, small, and what can be computed from them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engram.bench.tables import interval, paired, per_task
from engram.bench.units import Row

SLACK = 2e-4
"""Result files and rows are rounded: as far apart the same figure may be."""

_PER_BUDGET = ("sr", "random", "objects")
PER_ROW = {
    "evidence": "evidence_mean",
    "seconds": "seconds_per_observation",
    "evaluations": "network_evaluations_per_observation",
}
"""Names that rows have here, and in results."""


def kept_rows(rows: Sequence[Row]) -> list[Row]:
    """One small row for each policy, task and seed; what depends on the budget is keyed by it.

    seconds and evaluations are those of a measurement, evidence is the mean log-likelihood of
    an outcome before it was seen.
    """
    return [
        {
            **{name: row[name] for name in ("policy", "task", "seed")},
            **{
                name: {b: round(value, 6) for b, value in row[name].items()} for name in _PER_BUDGET
            },
            **{short: _rounded(row.get(name)) for short, name in PER_ROW.items()},
        }
        for row in rows
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def differing(part: dict[str, Any]) -> list[str]:
    """Figures of a part that its rows do not give; nothing where no rows were kept."""
    rows: Sequence[Row] | None = part.get("rows")
    if not rows:
        return []
    found = []
    for policy, cells in part["rates"].items():
        for budget, cell in cells.items():
            values = per_task(rows, policy, lambda row, b=budget: row["sr"].get(b))  # type: ignore[misc]
            if not values or not _close(interval([*values.values()]), cell):
                found.append(f"SR of {policy} at {budget}")
    for pair in part["paired"]:
        again = paired(rows, pair["policy"], pair["minus"], pair["budget"])
        if not _close(again, pair):
            found.append(f"{pair['policy']} - {pair['minus']} at {pair['budget']}")
    return found


def _close(again: dict[str, Any], kept: dict[str, Any]) -> bool:
    one, other = ([c["mean"], *(c["ci95"] or ())] for c in (again, kept))
    if None in (one[0], other[0]):
        return bool(one[0] == other[0])
    return again["n"] == kept["n"] and all(
        abs(a - b) <= SLACK for a, b in zip(one, other, strict=True)
    )


def as_text(digest: dict[str, Any]) -> str:
    """A result file: readable, with one kept row a line."""
    lines: list[str] = []

    def marked(row: Row) -> str:
        lines.append(json.dumps(row, allow_nan=False))
        return f"row {len(lines) - 1}"

    parts = {
        name: {**part, "rows": [marked(row) for row in part["rows"]]} if "rows" in part else part
        for name, part in digest["parts"].items()
    }
    text = json.dumps({**digest, "parts": parts}, indent=1, allow_nan=False)
    for number, line in enumerate(lines):
        text = text.replace(f'"row {number}"', line, 1)
    return text + "\n"
