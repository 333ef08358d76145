"""Keys of what is computed from a campaign: they name everything it rests on.

A key is a chain of hashes: of the area and the terms first, then of one group of measurements after
the other. What was computed is kept under its key and found again by whoever has the same in force.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.campaign.beside import shortened
from engram.campaign.events import Measured
from engram.campaign.model import Spec, canonical, digest
from engram.observation import Observation

HEAD = "engram-state-1"
"""What every chain begins with."""


def policy_terms(spec: Spec) -> str:
    """All that a policy's state rests on beside code, area, budget and measurements."""
    told = [] if spec.layers is None else [spec.layers.sha256]
    plain = [spec.policy, spec.preset, spec.options, spec.seed, spec.prior_sha256]
    if not spec.detection.perfect:
        told.append(canonical(spec.detection.to_dict()))
    return canonical([*plain, *told])


class Keys:
    """Keys that are known: each measurement is hashed once, until one that they rest on changes."""

    def __init__(self) -> None:
        self._area: str | None = None
        self._chains: dict[str, list[str]] = {}

    def forget(self) -> None:
        """A measurement was changed or taken back."""
        self._chains.clear()

    def forget_area(self) -> None:
        """A cell that was closed from the beginning is open now."""
        self._area = None

    def area(self, spec: Spec, closed: NDArray[np.bool_]) -> str:
        """The area in one line; ``closed`` (n_cells,) are the cells closed from the beginning."""
        if self._area is None:
            cells = [int(i) for i in np.flatnonzero(closed)]
            area = {"grid": spec.to_dict()["grid"], "closed": cells}
            self._area = canonical(list(shortened(area, {}).values()))
        return self._area

    def after(self, start: str, groups: Sequence[Sequence[Observation]]) -> list[str]:
        """The key ``start``, and that after each group of measurements."""
        keys = self._chains.setdefault(start, [start])
        for group in groups[len(keys) - 1 :]:
            text = canonical([Measured.told(o).plain() for o in group])
            keys.append(digest(keys[-1], text))
        return list(keys)
