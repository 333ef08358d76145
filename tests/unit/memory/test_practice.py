from __future__ import annotations

import pytest
import torch

from engram.memory.practice import Episodes, near_finds, scattered_masks


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [(32, 32), (9, 13), (2, 3)])
def test_scattered_masks_are_masks(size: tuple[int, int]) -> None:
    masks = scattered_masks(40, *size, generator())
    assert masks.shape == (40, 1, *size)
    assert set(masks.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(masks, scattered_masks(40, *size, generator()))


def test_scattered_masks_have_all_densities() -> None:
    density = scattered_masks(400, 32, 32, generator()).mean(dim=(1, 2, 3))
    assert float(density.min()) < 0.01
    assert 0.4 < float(density.max()) < 0.75


def test_pixels_near_a_find_are_told_by_what_was_measured_alone() -> None:
    images, masks = torch.full((1, 1, 8, 8), -1.0), torch.zeros(1, 1, 8, 8)
    images[0, 0, 2, 2] = images[0, 0, 6, 6] = 1.0
    masks[0, 0, 2, 2] = masks[0, 0, 2, 3] = 1.0
    near = near_finds(images, masks, reach=1)
    assert float(near.sum()) == 7  # the ring of 8 but for the measured neighbour
    assert float(near[0, 0, 2, 3]) == 0
    unseen = torch.where(masks > 0, images, -images)
    assert torch.equal(near, near_finds(unseen, masks, reach=1))


def searched(images: torch.Tensor, steps: int = 12) -> Episodes:
    """Searches in which a stand-in network sees measured pixels only."""
    episodes = Episodes(images)
    g, fresh = generator(1), torch.zeros_like(images)
    episodes.advance(
        torch.zeros_like(images), lambda n: images[:n], g
    )  # all begin with these images
    for _ in range(steps):
        seen = episodes.masks * episodes.images
        mean = torch.nn.functional.avg_pool2d(seen, 3, stride=1, padding=1)
        episodes.advance(mean, lambda n: fresh[:n], g)
    return episodes


def test_masks_never_depend_on_what_was_not_measured() -> None:
    images = torch.rand(24, 1, 12, 12, generator=generator(2)) * 2 - 1
    masks = searched(images).masks
    other = torch.where(masks > 0, images, -images)
    assert not torch.equal(other, images)
    going = searched(images, 3).masks
    changed = torch.where(going > 0, images, torch.rand(images.shape, generator=generator(3)))
    assert torch.equal(searched(changed, 3).masks, going)


def test_searches_grow_and_start_again() -> None:
    images = torch.rand(16, 1, 12, 12, generator=generator(2)) * 2 - 1
    episodes, g = Episodes(images), generator(0)
    fresh = torch.full_like(images, 0.25)
    shares, restarts = [], 0
    for _ in range(60):
        before = episodes.masks.sum(dim=(1, 2, 3))
        episodes.advance(episodes.images, lambda n: fresh[:n], g)
        after = episodes.masks.sum(dim=(1, 2, 3))
        restarts += int((after < before).sum())
        grown = after[after >= before] - before[after >= before]
        assert (grown >= 0).all()
        assert set(episodes.masks.unique().tolist()) <= {0.0, 1.0}
        shares.append(float(episodes.masks.mean()))
    assert restarts > 10
    assert max(shares) < 0.5
    assert ((episodes.limit >= 0.05) & (episodes.limit <= 0.4)).all()
    assert (episodes.images == 0.25).flatten(1).all(dim=1).sum() > 8


def test_most_searches_look_at_the_bright_side() -> None:
    images = torch.zeros(200, 1, 10, 10)
    images[..., :5] = 1.0
    episodes, g = Episodes(images), generator(0)
    for _ in range(5):
        episodes.advance(images, lambda n: images[:n], g)
    left, right = episodes.masks[..., :5].sum(), episodes.masks[..., 5:].sum()
    assert left > 1.7 * right


def test_state_is_a_round_trip() -> None:
    images = torch.rand(6, 1, 8, 8, generator=generator(2))
    one, two = searched(images), Episodes(torch.zeros_like(images))
    two.restore(one.state())
    for episodes in (one, two):
        episodes.advance(episodes.images, lambda n: images[:n], generator(5))
    assert torch.equal(one.masks, two.masks)
    assert torch.equal(one.images, two.images)
    assert torch.equal(one.limit, two.limit)
