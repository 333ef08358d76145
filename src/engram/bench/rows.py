"""What a row of a benchmark has to hold: files may have been changed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from engram.errors import InputError, shown

_BY_BUDGET = ("sr", "mass", "recall", "objects", "random")
_COUNTS = ("task", "seed")
_NUMBERS = (
    "seconds_per_observation",
    "network_evaluations_per_observation",
    "updates_accepted",
    "updates_rolled_back",
    "peak_rss_mb",
)
_BINS = ("count", "forecast", "hits")


def check_rows(rows: object, where: str) -> None:
    """Refuse rows that tables and figures cannot be made of; the first fault is named."""
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InputError(f"{where} is damaged: rows is not a list; restore it, or run again")
    for number, row in enumerate(rows, 1):
        fault = _fault(row)
        if fault:
            raise InputError(
                f"{where} is damaged: in row {number}, {fault}; restore it, or discard its results "
                "with --fresh"
            )


def check_options(results: Mapping[str, Any], where: str) -> None:
    """Refuse results whose options do not say which budgets, tasks and settings they are of."""
    options, rows = results.get("options"), results["rows"]
    good = (
        isinstance(options, Mapping)
        and _is_count(options.get("budget"))
        and _rises(options.get("at"))
        and all(str(b) in row[n] for b in options["at"] for row in rows for n in _BY_BUDGET)
        and isinstance(options.get("tasks"), list)
        and len(options["tasks"]) == 2
        and isinstance(options.get("settings"), Mapping)
        and isinstance(options.get("memories"), Mapping)
        and isinstance(results.get("seen") or {}, Mapping)
        and {"suite", "prior"} <= options.keys()
        and "commit" in results
    )
    if not good:
        raise InputError(f"{where} is damaged: its options are not those of its rows; run it again")


def _fault(row: object) -> str:
    """What is wrong with a row, or nothing; a sequence keeps its searches in ``steps``."""
    if not isinstance(row, Mapping):
        return f"{shown(row)} is not a row"
    searches = row.get("steps", [row])
    if not isinstance(searches, list) or not all(isinstance(s, Mapping) for s in searches):
        return "steps is not a list of rows"
    faults = (
        *([] if isinstance(row.get("policy"), str) else ["policy is not a text"]),
        *(f"{n}={shown(row.get(n))} is not a count" for n in _COUNTS if not _is_count(row.get(n))),
        *(f"{n}={shown(row.get(n))} is no number" for n in _NUMBERS if not _is_number(row.get(n))),
        *(f"{n} is not a table of numbers" for n in _BY_BUDGET if not _is_table(row.get(n))),
        *([] if _are_bins(row.get("calibration")) else ["calibration is not a table of bins"]),
        *map(_fault_of_search, searches),
    )
    return next(filter(None, faults), "")


def _fault_of_search(row: Mapping[str, Any]) -> str:
    for name in ("targets", "cells"):
        if not _is_count(row.get(name)) or not row[name]:
            return f"{name}={shown(row.get(name))} is not a number of cells"
    if not (isinstance(row.get("policy"), str) and _is_count(row.get("task"))):
        return "policy or task is missing"
    return "" if _rises(row.get("hits")) else "hits is not a list of rising counts"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(v is None or _is_number(v) for v in value.values())


def _rises(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(map(_is_count, value))
        and all(a < b for a, b in pairwise(value))
    )


def _are_bins(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, Mapping) or not all(isinstance(value.get(n), list) for n in _BINS):
        return False
    lists = [value[n] for n in _BINS]
    return len({len(v) for v in lists}) == 1 and all(map(_is_number, chain(*lists)))
