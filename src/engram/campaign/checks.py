"""What requests are checked for before they are written."""

from __future__ import annotations

from numpy.typing import ArrayLike

from engram.campaign.files import default_content
from engram.campaign.model import Measurement
from engram.campaign.state import State
from engram.errors import ConflictError, InputError, NotFoundError, shown
from engram.grid import Cell, Grid
from engram.observation import Observation

TEXT = 2000
"""Characters that a name or a reason may have."""


def check_text(value: object, name: str) -> str:
    """A text that every database keeps as it is: no bytes, no zero, nothing that is not UTF-8."""
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)}: give a text")
    if len(value) > TEXT or "\0" in value:
        raise InputError(f"{name}={shown(value)}: give up to {TEXT} characters, none of them zero")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name}={shown(value)} is not text in UTF-8; write it anew") from None
    return value


def show(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"


def measured(state: State, cell: Cell) -> Measurement:
    found = state.measurements.get(state.grid.index(cell))
    if found is None:
        raise NotFoundError(f"cell {show(cell)} has no measurement in force")
    return found


def check_tell(state: State, cell: Cell, seen: set[int], label: str) -> int:
    index = state.grid.index(cell)
    if index in state.measurements:
        raise ConflictError(f"{label}cell {show(cell)} was measured already; correct it instead")
    if index in seen:
        raise InputError(f"{label}cell {show(cell)} is given twice")
    if state.is_closed(index):
        raise ConflictError(f"{label}cell {show(cell)} is closed; open it first")
    return index


def corrected_content(
    grid: Grid, old: Observation, content: ArrayLike | None, outcome: float | None
) -> ArrayLike:
    """The new content; one that merely stood for the outcome follows the outcome."""
    if content is not None:
        return content
    if outcome is not None and grid.channels == 1:
        stood = default_content(grid, old.outcome)
        if (old.content == stood).all():
            return default_content(grid, outcome)
    return old.content
