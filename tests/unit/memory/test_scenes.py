from __future__ import annotations

import hashlib

import numpy as np
import pytest

from engram.memory.scenes import FAMILIES, KINDS, scene, stamp


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [(32, 32), (28, 40), (4, 4)])
def test_scenes_are_images(family: str, size: tuple[int, int]) -> None:
    make = FAMILIES[family][0]
    scenes = [make(np.random.default_rng(k), *size) for k in range(15)]
    for image in scenes:
        assert image.shape == size
        assert image.dtype == np.float32
        assert np.isfinite(image).all()
        assert image.min() >= 0
        assert image.max() <= 1
    assert len({image.tobytes() for image in scenes}) > 3


@pytest.mark.parametrize("family", FAMILIES)
def test_scenes_are_seldom_blank(family: str) -> None:
    make = FAMILIES[family][0]
    spread = [np.ptp(make(np.random.default_rng(k), 32, 32)) > 0.2 for k in range(40)]
    assert np.mean(spread) > 0.85


def test_scenes_depend_on_the_generator_alone() -> None:
    one, two = (scene(np.random.default_rng(5), 32, 32) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_shares_of_the_families_add_up() -> None:
    assert sum(share for _, share in FAMILIES.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_where_they_are_put(kind: str) -> None:
    yy, xx = np.mgrid[0:33, 0:33].astype(np.float32)
    pixels = stamp(kind, yy, xx, 16, 16, 6.0, 0.4, 0.5)
    assert 5 < pixels.sum() < 200
    ys, xs = np.nonzero(pixels)
    assert abs(ys.mean() - 16) < 1.5
    assert abs(xs.mean() - 16) < 1.5
    moved = stamp(kind, yy, xx, 18, 13, 6.0, 0.4, 0.5)
    np.testing.assert_array_equal(np.roll(pixels, (2, -3), (0, 1)), moved)


def test_binary_scenes_are_the_same_on_every_machine() -> None:
    rng = np.random.default_rng(11)
    stack = np.stack([FAMILIES["shape_group"][0](rng, 32, 32) for _ in range(20)])
    assert set(np.unique(stack)) == {0.0, 1.0}
    assert (
        hashlib.sha256(np.packbits(stack > 0).tobytes()).hexdigest()
        == "78aa3cf04fabe28b51259cee08579230a19d55df7045762025d1f458b1fffaea"
    )
