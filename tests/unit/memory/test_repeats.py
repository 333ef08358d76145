"""Scenes in which figures repeat."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import label

from engram.memory import repeats
from engram.memory.repeats import (
    EIGHT,
    FIGURES,
    Way,
    drawn,
    figure,
    repeated_figures,
    spread_out,
)
from engram.memory.scenes import REPEATS, WORLDS, scene

Mask = NDArray[np.bool_]


def disc(radius: float) -> Mask:
    yy, xx = np.mgrid[-40:41, -40:41]
    return np.asarray(yy**2 + xx**2 <= radius**2)


def test_a_disc_is_the_most_compact_figure() -> None:
    assert spread_out(disc(35)) == pytest.approx(1.0, abs=0.01)
    assert spread_out(np.ones((60, 60), bool)) == pytest.approx(np.pi / 3, abs=0.01)
    assert spread_out(np.ones((20, 80), bool)) > 2


@pytest.mark.parametrize("maker", FIGURES)
def test_figures_are_connected_and_nothing_like_a_disc(
    maker: repeats.Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "FIGURES", (maker,))
    rng = np.random.default_rng(3)
    made = [figure(rng) for _ in range(20)]
    for mask in made:
        assert label(mask, EIGHT)[1] == 1
        assert spread_out(mask) > 1.15  # a disc has 1.00, a square 1.05
        assert all(edge.any() for edge in (mask[0], mask[-1], mask[:, 0], mask[:, -1]))
    assert len({mask.tobytes() for mask in made}) == 20


def test_a_copy_has_about_the_cells_that_were_wanted_whichever_way_it_lies() -> None:
    mask = figure(np.random.default_rng(8))
    for angle in (0.0, 0.7, 2.0):
        copy = drawn(mask, Way(angle, False, 60.0))
        assert abs(copy.sum() - 60) < 15
    straight, turned, mirrored = (
        drawn(mask, way)
        for way in (Way(0.0, False, 60.0), Way(np.pi / 2, False, 60.0), Way(0.0, True, 60.0))
    )
    for other, expected in ((turned, np.rot90(straight)), (mirrored, straight[:, ::-1])):
        assert abs(other.shape[0] - expected.shape[0]) <= 1
        rows, cols = (min(a, b) for a, b in zip(other.shape, expected.shape, strict=True))
        same = other[:rows, :cols] == expected[:rows, :cols]
        assert (
            max(same.mean(), (np.rot90(other, 2)[:rows, :cols] == expected[:rows, :cols]).mean())
            > 0.75
        )


def _objects(image: NDArray[np.float32]) -> list[Mask]:
    """Everything that is connected and does not touch the border."""
    parts, count = label(image > 0.5, EIGHT)
    objects = []
    for number in range(1, count + 1):
        ys, xs = np.nonzero(parts == number)
        if ys.min() > 0 and xs.min() > 0 and ys.max() < 31 and xs.max() < 31:
            objects.append(parts[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] == number)
    return objects


def _alike(objects: list[Mask]) -> float:
    """Share of the objects that look exactly like another, in one of eight views."""
    seen = []
    for mask in objects:
        ways = [np.rot90(m, k) for m in (mask, mask[:, ::-1]) for k in range(4)]
        seen.append(min((way.shape, way.tobytes()) for way in ways))
    return float(np.mean([seen.count(one) > 1 for one in seen]))


def test_most_objects_of_an_area_are_copies_of_each_other() -> None:
    rng = np.random.default_rng(21)
    areas = [_objects(repeated_figures(rng, 32, 32)) for _ in range(150)]
    shares = [_alike(objects) for objects in areas if len(objects) >= 3]
    assert len(shares) > 40
    assert np.mean(shares) > 0.4  # the others lie at any angle, or differ in size


def test_areas_are_rare_and_rich_and_never_blank() -> None:
    rng = np.random.default_rng(22)
    shares = [float(repeated_figures(rng, 32, 32).mean()) for _ in range(150)]
    assert min(shares) > 0
    assert np.quantile(shares, 0.2) < 0.05 < 0.15 < np.quantile(shares, 0.8)


@pytest.mark.parametrize("size", [(32, 32), (28, 40), (8, 8), (64, 64)])
def test_areas_of_any_size(size: tuple[int, int]) -> None:
    images = [repeated_figures(np.random.default_rng(k), *size) for k in range(10)]
    for image in images:
        assert image.shape == size
        assert image.dtype == np.float32
        assert set(np.unique(image)) <= {0.0, 1.0}


def test_the_world_of_repeats_has_no_discs_and_adds_up() -> None:
    assert {"shape_group", "mixed_shapes"}.isdisjoint(REPEATS)
    assert sum(share for _, share in REPEATS.values()) == pytest.approx(1.0)
    one, two = (scene(np.random.default_rng(5), 32, 32, WORLDS["repeats"]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_the_world_of_both_is_half_of_each() -> None:
    assert WORLDS["both"].keys() == WORLDS["scenes"].keys() | WORLDS["repeats"].keys()
    for name, (family, share) in WORLDS["both"].items():
        parts = [WORLDS[world][name] for world in ("scenes", "repeats") if name in WORLDS[world]]
        assert all(one is family for one, _ in parts)
        assert share == pytest.approx(sum(part for _, part in parts) / 2)
