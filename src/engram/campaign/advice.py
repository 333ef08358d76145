r"""Whether to go on: what the measurements left can still find, against the yield set.

Stop is advised when the chance that all measurements left together reach the yield is below
``DOUBT`` (and outside the interval that is shown, should that be wider), so that the upper end of
what they can find is below the yield; neither they nor the next few may be expected to reach it.
Before the search had a fair chance, which is when half of the area lies within ``NEAR`` cells of
a measurement, the advice is to go on. A campaign that is after separate targets counts those that
its measurements would touch for the first time, in the place of finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign.prospect import Prospect
from engram.grid import Grid

DOUBT = 0.05
"""Chance of reaching the yield below which Stop is advised."""

NEAR = 2
"""Cells to either side of a measurement that count as looked at: a patch of five by five cells
around a cell that is not looked at may have been missed."""

FAIR = 0.5
"""Share of the area that has to be looked at before Stop is advised."""


@dataclass(frozen=True)
class Aim:
    """What measurements do, as words of the advice."""

    verb: str
    these: str
    things: str


CELLS = Aim("find", "", "finds")
TARGETS = Aim("touch", " more separate targets", "more separate targets")


@dataclass(frozen=True)
class Advice:
    """stop: whether to; words: the reason; and, while there are measurements left, worthwhile:
    finds (or targets) they must bring; chance: that they do; looked_at: share of the area near a
    measurement; yield_soon: finds (or targets) per measurement of the next few."""

    stop: bool
    words: str
    worthwhile: float | None = None
    chance: float | None = None
    looked_at: float | None = None
    yield_soon: float | None = None

    def to_dict(self) -> dict[str, Any]:
        facts = {
            "stop": self.stop,
            "worthwhile": _rounded(self.worthwhile, 3),
            "chance": _rounded(self.chance, 4),
            "looked_at": _rounded(self.looked_at, 3),
            "words": self.words,
            "yield": _rounded(self.yield_soon, 4),
        }
        return {name: value for name, value in facts.items() if value is not None}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def looked_at(grid: Grid, cells: NDArray[np.intp], searchable: NDArray[np.bool_]) -> float:
    """Share of the measured and searchable cells that are at most NEAR cells from a measured one
    (rows and columns apart)."""
    from scipy.ndimage import maximum_filter

    measured = np.zeros((grid.rows, grid.cols), bool)
    measured.flat[cells] = True
    area = searchable.reshape(measured.shape) | measured
    near = maximum_filter(measured, size=2 * NEAR + 1)
    return float((near & area).sum() / max(int(area.sum()), 1))


def advise(rest: Prospect, soon: Prospect, least: float, seen: float, aim: Aim = CELLS) -> Advice:
    """The advice while there are measurements left.

    rest, soon : what all measurements left and the next few would find, or touch
    least      : finds a measurement below which going on is not worthwhile
    seen       : share of the area looked at
    aim        : what is counted
    """
    worthwhile = least * rest.measurements
    chance, doubt = rest.chance(worthwhile), min(DOUBT, (1 - rest.level) / 2)
    left = f"the {rest.measurements} measurement(s) left"
    limit = f"{worthwhile:.3g} {aim.things} (a yield of {least:g})"
    low, high = rest.interval
    if chance >= doubt or rest.expected >= worthwhile:
        words = (
            f"Go on: {left} should {aim.verb} about {rest.expected:.1f}{aim.these} ({low} to "
            f"{high} at {rest.level:.0%}). The chance that they bring {limit} is "
            f"{_percent(chance)}; Stop is advised below {_percent(doubt)}."
        )
    elif soon.measurements and soon.expected >= least * soon.measurements:
        words = (
            f"Go on for now: the next {soon.measurements} should {aim.verb} about "
            f"{soon.expected:.1f}{aim.these}, a yield above {least:g}; the chance that {left} "
            f"bring {limit} is {_percent(chance)}."
        )
    elif seen < FAIR:
        words = (
            f"Go on: the chance that {left} bring {limit} is {_percent(chance)}, but only "
            f"{seen:.0%} of the area lies within {NEAR} cells of a measurement; {FAIR:.0%} is a "
            "fair chance."
        )
    else:
        words = f"Stop: the chance that {left} bring {limit} is {_percent(chance)}."
    pace = soon.expected / max(soon.measurements, 1)
    return Advice(words.startswith("Stop"), words, worthwhile, chance, seen, pace)


def _percent(chance: float) -> str:
    return "below 1%" if chance < 0.01 else f"{chance:.0%}"
