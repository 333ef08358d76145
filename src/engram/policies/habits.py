"""Habits the transient memory is born with; ``benchmarks/habits_fit.py`` makes ``habits.json``.

Over procedural scenes, h's weights are about normal with this mean and covariance, in the order
of ``OutcomeTransform.features``: the memory's logit, the spatial model's logit and doubt, a
constant, and measured finds and blanks in each of the rings around the cell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._files import sha256_of

FILE = Path(__file__).with_name("habits.json")


@dataclass(frozen=True)
class Habits:
    """mean (k,) and covariance (k, k) of h's weights over areas."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def write(self, file: Path) -> None:
        """As JSON, four decimals, a row a line."""
        rows = [json.dumps([round(float(v), 4) for v in row]) for row in self.covariance]
        mean = json.dumps([round(float(v), 4) for v in self.mean])
        table = ",\n  ".join(rows)
        file.write_text(f'{{\n "mean": {mean},\n "covariance": [\n  {table}\n ]\n}}\n')


@cache
def fingerprint() -> str:
    """SHA-256 of the habits that are shipped."""
    return sha256_of([FILE])


@cache
def usual() -> Habits:
    """The habits that are shipped."""
    kept = json.loads(FILE.read_text())
    return Habits(np.array(kept["mean"]), np.array(kept["covariance"]))
