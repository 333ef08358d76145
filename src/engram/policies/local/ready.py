"""What a process of a large area had computed when a search was put away.

All of it follows from the measurements, which with thousands of them is seconds of work. Kept are
mean and doubt of the blocks of which something is known, after so many measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engram.blocks import Stored
from engram.layout import Blocks
from engram.policies.forecast import Array

if TYPE_CHECKING:
    from torch import Tensor

NAME = "process/"


@dataclass(frozen=True, eq=False)
class Ready:
    """told : measurements it rests on;  blocks : (n,);  mean, doubt : (cells of all these blocks,),
    one block after the other."""

    told: int
    blocks: NDArray[np.intp]
    mean: Array
    doubt: Array

    @classmethod
    def of(cls, told: int, mean: Stored, doubt: Stored) -> Ready:
        """Of all blocks that have values of their own."""
        blocks = np.flatnonzero(mean.label < 0)
        both = (np.concatenate([one.values[b] for b in blocks.tolist()]) for one in (mean, doubt))
        return cls(told, blocks, *both)

    @classmethod
    def read(cls, state: dict[str, Tensor]) -> Ready | None:
        """As it was kept, None where it was not."""
        if f"{NAME}told" not in state:
            return None
        blocks, mean, doubt = (state[NAME + name].numpy() for name in ("blocks", "mean", "doubt"))
        return cls(int(state[f"{NAME}told"]), blocks.astype(np.intp), mean, doubt)

    def state(self) -> dict[str, Tensor]:
        """To be kept."""
        from torch import from_numpy, tensor

        arrays = {"blocks": self.blocks.astype(np.int64), "mean": self.mean, "doubt": self.doubt}
        kept = {NAME + name: from_numpy(array) for name, array in arrays.items()}
        return {f"{NAME}told": tensor(self.told), **kept}

    def each(self, layout: Blocks) -> Iterator[tuple[int, Array, Array]]:
        """Block, mean and doubt of its cells."""
        begin = 0
        for block in self.blocks.tolist():
            end = begin + len(layout.cells(block))
            yield block, self.mean[begin:end], self.doubt[begin:end]
            begin = end
