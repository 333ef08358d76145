"""Beliefs of large areas: what a measurement changes is its neighbourhood, nothing else.

``patches`` is the Gaussian process by patches, ``process`` its forecaster, ``windows`` the memory
by windows of its own size, ``memory`` its forecaster, ``lookahead`` the rule of the process. All
keep what they say by blocks (``engram.blocks``), so that an answer costs what has changed.
"""

from __future__ import annotations

from engram.grid import Grid

LARGEST = 64
"""Cells a side up to which an area is looked at as a whole."""


def is_large(grid: Grid) -> bool:
    """Whether an area is computed by windows."""
    return max(grid.rows, grid.cols) > LARGEST
