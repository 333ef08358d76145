r"""Minutes from place to place: straight, or over cells that take different times to cross.

Over cells the way goes from centre to centre of eight neighbours, and a step between cells of
:math:`m_i` and :math:`m_j` minutes takes :math:`\tfrac12 (m_i + m_j)` times 1 or
:math:`\sqrt 2`. Cells that are blocked (no-go zones, no number in the raster) are not entered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.errors import InputError

COST_KINDS = ("minutes", "slope", "slope-percent")
"""What the numbers of a cost raster are: minutes to cross a cell, or how steep it is."""
WALKING = 6.0
"""Kilometres per hour of Tobler's hiking function at its best."""

Array = NDArray[np.float64]


def minutes_per_cell(values: Array, kind: str, side: float, where: str) -> Array:
    r"""Minutes to cross cells of a side in metres.

    A slope :math:`s` (rise over run) is walked at :math:`6 e^{-3.5 |s|}` km/h: Tobler's hiking
    function without its preference for gentle descents, since a way is gone in both directions.
    """
    if kind == "minutes":
        if not (values > 0).all():
            raise InputError(
                f"cost {where}: {float(values.min()):g} minutes for a cell; give more than 0, and "
                "nodata where nobody can go"
            )
        return values
    rise = np.tan(np.radians(values)) if kind == "slope" else values / 100
    if (values < 0).any() or (kind == "slope" and (values >= 90).any()):
        raise InputError(
            f"cost {where}: slopes run from {float(values.min()):g} to {float(values.max()):g}; "
            "give degrees from 0 to below 90 (--cost-is slope) or percent (slope-percent)"
        )
    speed = np.maximum(WALKING * np.exp(-3.5 * np.abs(rise)), 0.05)
    return np.asarray(side / 1000 / speed * 60)
