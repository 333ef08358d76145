"""The measurements of a search as local forecasters need them: what is new, what leaves doubt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engram.blocks import Array
from engram.detection import doubtful
from engram.layout import Blocks
from engram.observation import Observation, Observations


@dataclass(frozen=True, eq=False)
class Told:
    """In order: cells (flat index), outcomes, and what reports add to log-odds, each (n,)."""

    items: list[Observation]
    index: NDArray[np.intp]
    values: Array
    factors: Array

    @classmethod
    def of(cls, seen: Observations) -> Told:
        return cls(list(seen.items), seen.indices, seen.outcomes, seen.factors)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def doubted(self) -> bool:
        """Whether some report left doubt."""
        return bool(np.isfinite(self.factors).any())

    def continues(self, before: Told) -> bool:
        """Whether these are the measurements of ``before``, and perhaps further ones, and worth as
        much."""
        n = len(before)
        same = self.items[:n] == before.items and np.array_equal(self.factors[:n], before.factors)
        return same and (n == 0 or self.doubted == before.doubted)

    @cached_property
    def odds(self) -> dict[int, float]:
        """What all its reports add to the log-odds of a cell, where they left doubt."""
        if not self.doubted:
            return {}
        cells, place = np.unique(self.index, return_inverse=True)
        total = np.zeros(len(cells))
        np.add.at(total, place, self.factors)
        unsure = doubtful(total)
        return dict(zip(cells[unsure].tolist(), total[unsure].tolist(), strict=True))

    def odds_in(self, layout: Blocks, block: int, cells: int) -> Array:
        """(cells,) the same of the cells of a block, 0 where there is no doubt."""
        out = np.zeros(cells)
        for position, odds in self._by_block(layout).get(block, ()):
            out[position] = odds
        return out

    def _by_block(self, layout: Blocks) -> dict[int, list[tuple[int, float]]]:
        if "_grouped" not in self.__dict__:
            found: dict[int, list[tuple[int, float]]] = {}
            for index, odds in self.odds.items():
                block, position = layout.find(index)
                found.setdefault(block, []).append((position, odds))
            self.__dict__["_grouped"] = found
        grouped: dict[int, list[tuple[int, float]]] = self.__dict__["_grouped"]
        return grouped


NOTHING = Told([], np.zeros(0, np.intp), np.zeros(0), np.zeros(0))
