"""What a search will take, said before it begins: memory, and seconds of an answer.

Rates are rough and from above (``MADE`` says what they were compared with): they tell minutes from
seconds and gigabytes from megabytes, no more. Areas of up to 64 cells a side are looked at as a
whole, larger ones by windows (``policies.local``), where a measurement costs its neighbourhood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engram.grid import Grid
from engram.origins import Made
from engram.policies import POLICIES
from engram.policies.local import is_large

MADE: Made = {
    "command": "python benchmarks/scale.py",
    "commit": "b81961dee69bdfbd9851a654a049264dca53ca88",
    "memories": {},
    "data": "areas of 32 and 1,024 cells a side with 200 measurements, em-ptdm and gp",
    "note": "compared with benchmarks/results/scale.md, which lies below what they say; bytes and "
    "seconds of further measurements, and all rates of areas as a whole, were set by hand",
}


@dataclass(frozen=True)
class Rates:
    """What a policy takes.

    base : bytes of a process that has loaded what it needs
    cell, value, measurement : bytes of each cell, value of the picture, and measurement
    pair : bytes of each cell and measurement
    answer, look, take : seconds of an answer, per cell of it, and per measurement that is new
    """

    base: float
    cell: float
    value: float
    measurement: float
    pair: float
    answer: float
    look: float
    take: float


PLAIN = Rates(70e6, 500, 16, 2e3, 0, 0.05, 4e-7, 1e-4)
PROCESS = Rates(90e6, 4_000, 16, 2e3, 16, 0.05, 2e-5, 5e-3)
MEMORY = Rates(520e6, 16_000, 200, 2e3, 16, 0.1, 1e-4, 2e-2)
PROCESS_BY_WINDOWS = Rates(120e6, 150, 16, 30e3, 0, 0.1, 4e-7, 1e-3)
MEMORY_BY_WINDOWS = Rates(450e6, 400, 16, 40e3, 0, 0.2, 4e-7, 2e-2)


def at_once(preset: str, options: Mapping[str, Any]) -> str:
    """Which preset or option of a policy looks at all cells at once, in words; empty if none."""
    if preset != "default":
        return f"with preset {preset}"
    if options.get("windows") is False:
        return "with windows=off"
    for name in ("dreams", "base_rate"):
        if options.get(name):
            return f"with {name}={options[name]}"
    return "with rule=paper" if options.get("rule") == "paper" else ""


BY_WINDOWS = ("gp", "em-ptdm", "auto")
"""Policies that compute large areas by windows; all others look at every cell."""


@dataclass(frozen=True)
class Estimate:
    """bytes : memory of the process;  first : seconds of the first answer, with all measurements
    new to it;  answer : seconds of an answer after that."""

    bytes: float
    first: float
    answer: float

    @property
    def words(self) -> str:
        """In one line."""
        return (
            f"estimate: about {_rounded(self.bytes / 1e6)} MB of memory and "
            f"{_rounded(self.answer)} s an answer once a process has the measurements; "
            f"{_rounded(self.first)} s to take in as many as the budget at once"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "memory_mb": round(self.bytes / 1e6),
            "seconds": round(self.answer, 3),
            "first_seconds": round(self.first, 3),
        }


def rates_of(policy: str, grid: Grid, *, whole: bool = False) -> Rates:
    """The rates of a policy on an area; ``whole`` where something keeps it from windows."""
    plan = POLICIES.get(policy)
    local = is_large(grid) and not whole and policy in BY_WINDOWS
    if plan is not None and plan.needs_memory:
        return MEMORY_BY_WINDOWS if local else MEMORY
    if policy == "gp":
        return PROCESS_BY_WINDOWS if local else PROCESS
    return PLAIN


def estimate(policy: str, grid: Grid, measurements: int, *, whole: bool = False) -> Estimate:
    """What a policy will take on an area after so many measurements, roughly and from above."""
    rates, cells = rates_of(policy, grid, whole=whole), grid.n_cells
    values = grid.height * grid.width * grid.channels
    room = cells * (rates.cell + rates.pair * measurements) + values * rates.value
    room += rates.base + rates.measurement * measurements
    answer = rates.answer + rates.look * cells
    return Estimate(room, answer + rates.take * measurements, answer)


def _rounded(value: float) -> str:
    """To two figures, as a number somebody would say."""
    return f"{float(f'{value:.2g}'):g}"
