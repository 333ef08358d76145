"""What the weights of the transient memory usually are; ``benchmarks/hyperprior_fit.py`` makes
the files here.

Over areas of a kind, h's weights are about normal with this mean and covariance, in the order
of ``OutcomeTransform.features``: the memory's logit, the spatial model's logit and doubt, a
constant, and measured finds and blanks in each of the rings around the cell. ``any.json`` was
learnt in procedural scenes; ``map.json`` in maps of records, for memories that see such maps:
their targets are scattered points rather than shapes. The field ``made`` of a file says what
made it (``engram.origins.Made``); it is no part of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._writing import write_file
from engram.memory.layers import MAP
from engram.origins import Made

KINDS = ("any", "map")


@dataclass(frozen=True)
class Hyperprior:
    """mean (k,) and covariance (k, k) of h's weights over areas."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def figures(self) -> str:
        """As JSON, four decimals, a row a line."""
        rows = [json.dumps([round(float(v), 4) for v in row]) for row in self.covariance]
        mean = json.dumps([round(float(v), 4) for v in self.mean])
        table = ",\n  ".join(rows)
        return f'{{\n "mean": {mean},\n "covariance": [\n  {table}\n ]\n}}\n'

    def write(self, file: Path, made: Made) -> None:
        """The figures, and before them what made them."""
        origin = json.dumps(made, indent=2).replace("\n", "\n ")
        write_file(file, f'{{\n "made": {origin},{self.figures()[1:]}')


def file_of(kind: str) -> Path:
    """Where the hyperprior of a kind is kept."""
    return Path(__file__).with_name(f"{kind}.json")


@cache
def fingerprint() -> str:
    """SHA-256 of the hashes of the hyperpriors that are shipped, their figures alone."""
    figures = [hashlib.sha256(usual(kind).figures().encode()).hexdigest() for kind in KINDS]
    return hashlib.sha256("\n".join(figures).encode()).hexdigest()


def made_by(kind: str = "any") -> Made:
    """What made the hyperprior that is shipped."""
    made: Made = json.loads(file_of(kind).read_text())["made"]
    return made


@cache
def usual(kind: str = "any") -> Hyperprior:
    """The hyperprior that is shipped."""
    kept = json.loads(file_of(kind).read_text())
    return Hyperprior(np.array(kept["mean"]), np.array(kept["covariance"]))


def hyperprior_for(layers: Sequence[str]) -> Hyperprior:
    """The hyperprior for areas that a memory with these layers sees."""
    return usual("map" if tuple(layers) == MAP else "any")
