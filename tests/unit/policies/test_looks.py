"""What dreamt areas look like to a memory that sees more than target."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engram import Grid, Observation, Observations
from engram.policies.looks import Seen

GRID = Grid(6, 6, channels=2)
RNG = np.random.default_rng(0)
NORTH, SOUTH = 0.8, 0.2
"""What the measured targets of the two objects look like, in the range of the grid."""


def told() -> Observations:
    """Two targets above, two below, and a blank."""
    observations = Observations(GRID)
    for (row, col), look, hit in (
        ((0, 0), NORTH, 1.0),
        ((0, 1), NORTH, 1.0),
        ((5, 4), SOUTH, 1.0),
        ((5, 5), SOUTH, 1.0),
        ((2, 2), 0.5, 0.0),
    ):
        content = np.array([look, hit], np.float32).reshape(2, 1, 1)
        observations.add(Observation((row, col), content, hit))
    return observations


def striped(target: NDArray[np.bool_]) -> Seen:
    """Imagined areas whose columns look like their number, with target where it is given."""
    looks = np.tile(np.linspace(-0.5, 0.5, 6, dtype=np.float32), (6, 1))
    looks = np.where(target, np.float32(-1.0), looks)
    area = np.stack([looks, np.where(target, 1.0, -1.0).astype(np.float32)])
    return Seen.of(area[None], target[None], told())


def test_blanks_look_as_they_are_imagined_and_targets_as_they_were_measured() -> None:
    nothing = np.zeros((6, 6), bool)
    seen, target = striped(nothing), nothing.copy()
    target[1:3, 1:3] = True
    drawn = seen.draw(target, np.random.default_rng(1))
    assert drawn.shape == (2, 6, 6)
    assert seen.channels == 2
    np.testing.assert_array_equal(drawn[-1], np.where(target, 1.0, -1.0))
    assert set(np.unique(drawn[0][target]).round(3)) <= {0.6, -0.6}
    blanks = drawn[0][~target]
    assert set(np.unique(blanks.round(3))) <= set(np.linspace(-0.5, 0.5, 6).round(3))


def test_an_object_looks_like_targets_that_lie_beside_each_other() -> None:
    seen, target = striped(np.zeros((6, 6), bool)), np.zeros((6, 6), bool)
    target[1, 1:3] = target[4, 3:5] = True
    pairs = set()
    for seed in range(30):
        drawn = seen.draw(target, np.random.default_rng(seed))[0]
        for one in (drawn[1, 1:3], drawn[4, 3:5]):
            assert one[0] == one[1]
            pairs.add(round(float(one[0]), 3))
    assert pairs == {0.6, -0.6}


def test_what_was_imagined_as_target_looks_like_the_nearest_blank() -> None:
    imagined = np.zeros((6, 6), bool)
    imagined[:, 2:4] = True
    drawn = striped(imagined).draw(np.zeros((6, 6), bool), np.random.default_rng(3))
    assert (drawn[-1] == -1).all()
    assert (drawn[0] > -0.9).all()  # nothing looks like target
    along = drawn[0] if np.ptp(drawn[0], axis=0).max() < 1e-6 else drawn[0].T
    assert np.ptp(along, axis=0).max() == pytest.approx(0.0)  # columns look as before


def test_backgrounds_are_turned_where_the_area_allows_it() -> None:
    nothing = np.zeros((6, 6), bool)
    seen = striped(nothing)
    drawn = [seen.draw(nothing, np.random.default_rng(seed))[0] for seed in range(40)]
    assert len({one.tobytes() for one in drawn}) == 4  # of eight turns, four look the same
    oblong = np.zeros((4, 6), bool)
    area = np.zeros((1, 2, 4, 6), np.float32)
    assert Seen.of(area, oblong[None], told()).draw(oblong, RNG).shape == (2, 4, 6)
