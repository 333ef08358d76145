"""What requests are checked for before they are written."""

from __future__ import annotations

from numpy.typing import ArrayLike

from engram.campaign.files import default_content
from engram.campaign.model import Measurement
from engram.campaign.state import State
from engram.errors import InputError
from engram.grid import Cell, Grid
from engram.observation import Observation


def show(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"


def measured(state: State, cell: Cell) -> Measurement:
    found = state.measurements.get(state.grid.index(cell))
    if found is None:
        raise InputError(f"cell {show(cell)} has no measurement in force")
    return found


def check_tell(state: State, cell: Cell, seen: set[int], label: str) -> int:
    index = state.grid.index(cell)
    if index in state.measurements:
        raise InputError(f"{label}cell {show(cell)} was measured already; correct it instead")
    if index in seen:
        raise InputError(f"{label}cell {show(cell)} is given twice")
    if state.is_closed(index):
        raise InputError(f"{label}cell {show(cell)} is closed; open it first")
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
