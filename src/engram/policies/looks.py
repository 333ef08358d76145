r"""What a dreamt area looks like: contents for cells of which only target or blank is known.

A dream (``dreams``) says where target is. A memory of one channel sees nothing but that: a target
cell has the mean content of those measured, a blank one that of blanks (:class:`Plain`). A memory
of cells (``memory.layers``) also sees what cells look like, and there what was measured is laid
over what is imagined (:class:`Seen`):

* blanks come from an area that agrees with the measurements (a particle of the E-step), turned at
  random; where it has target itself, from the nearest cell that is none;
* each object of the dream has the looks of measured targets that lie beside each other, as many as
  it has cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, label

from engram.observation import Observations
from engram.policies.forecast import Array
from engram.policies.outlines import EIGHT, Mask, views


class Looks(Protocol):
    """Contents for dreamt areas."""

    @property
    def channels(self) -> int: ...

    def draw(self, target: Mask, rng: np.random.Generator) -> Array:
        """(rows, cols) where target is -> (C, rows, cols) contents in model units."""
        ...


@dataclass(frozen=True)
class Plain:
    """One content for blank cells and one for target cells, in model units."""

    blank: float = -1.0
    target: float = 1.0

    @property
    def channels(self) -> int:
        return 1

    @classmethod
    def of(cls, observations: Observations) -> Plain:
        """Mean content of blank and of target cells; black and white where none was measured."""
        contents = observations.grid.to_model(observations.contents)
        means = contents.reshape(len(contents), -1).mean(axis=1)
        hits = observations.outcomes > 0
        blank, target = (means[kind] for kind in (~hits, hits))
        return cls(
            float(blank.mean()) if len(blank) else cls.blank,
            float(target.mean()) if len(target) else cls.target,
        )

    def draw(self, target: Mask, rng: np.random.Generator) -> Array:
        return np.where(target, self.target, self.blank)[None].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Seen:
    """Contents that were measured and imagined.

    areas   : (P, C, rows, cols) particles in model units;  targets : (P, rows, cols) target in them
    places  : (n, 2) measured targets;  looks : (n, C) their contents in model units
    """

    areas: NDArray[np.float32]
    targets: Mask
    places: NDArray[np.int64]
    looks: NDArray[np.float32]

    @property
    def channels(self) -> int:
        return int(self.areas.shape[1])

    @classmethod
    def of(cls, areas: NDArray[np.float32], targets: Mask, observations: Observations) -> Seen:
        hits = observations.outcomes > 0
        contents = observations.grid.to_model(observations.contents)[hits]
        places = np.array([item.cell for item in observations], np.int64).reshape(-1, 2)[hits]
        return cls(areas, targets, places, contents.reshape(len(contents), areas.shape[1]))

    def draw(self, target: Mask, rng: np.random.Generator) -> Array:
        k, turn = int(rng.integers(len(self.areas))), int(rng.integers(8))
        stacked = np.concatenate([self.areas[k], self.targets[k][None]])
        ways = [np.asarray(view) for view in views(stacked.transpose(1, 2, 0))]
        same = [view for view in ways if view.shape[:2] == target.shape]
        area = same[turn % len(same)].transpose(2, 0, 1).astype(np.float64)
        out, other = area[:-1].copy(), area[-1] > 0
        if not other.all():
            nearest = distance_transform_edt(other, return_distances=False, return_indices=True)
            out[:, other] = out[:, *nearest[:, other]]
        objects, count = label(target, EIGHT)
        for number in range(1, count + 1):
            cells = objects == number
            out[:, cells] = self._beside(int(cells.sum()), rng).T
        out[-1] = np.where(target, 1.0, -1.0)
        return out

    def _beside(self, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """(count, C) looks of measured targets around one of them, in random order."""
        one = self.places[int(rng.integers(len(self.places)))]
        near = np.square(self.places - one).sum(axis=1).argsort(kind="stable")[:count]
        chosen: NDArray[np.float32] = self.looks[rng.permutation(np.resize(near, count))]
        return chosen
