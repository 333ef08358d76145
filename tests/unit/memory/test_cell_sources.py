"""Areas of cells to train on, and networks that go on from others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engram.errors import InputError
from engram.memory.cell_sources import MapSource, PhotoSource
from engram.memory.denoiser import Known, NetworkDenoiser
from engram.memory.layers import MAP, PHOTO
from engram.memory.permanent import fresh_network, grown_network
from engram.memory.training import Trainer, TrainingPlan
from engram.memory.unet import UNetConfig


def photos() -> PhotoSource:
    images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
    return PhotoSource(images, 2, "noise")


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_photographs_get_targets() -> None:
    source = photos()
    areas = source.draw(40, generator())
    assert areas.shape == (40, len(PHOTO), 8, 8)
    assert areas.min() >= -1
    assert areas.max() <= 1
    share, presence = areas[:, -2], areas[:, -1]
    assert torch.equal(presence > 0, share > -1)
    present = (presence > 0).float().mean(dim=(1, 2))
    assert (present > 0).float().mean() > 0.9
    assert 0.02 < present.mean() < 0.4
    assert torch.equal(areas, photos().draw(40, generator()))


def test_maps_have_targets_where_something_was_counted() -> None:
    images = np.zeros((4, 8, 8), np.uint8)
    images[:, 2, 3] = 255
    areas = MapSource(images, 2, "one record").draw(9, generator())
    assert areas.shape == (9, len(MAP), 4, 4)
    assert ((areas[:, 1] > 0).sum(dim=(1, 2)) == 1).all()
    assert torch.equal(areas[:, 0] > -1, areas[:, 1] > 0)


def test_grey_photographs_and_single_ones_are_refused() -> None:
    with pytest.raises(InputError, match="colour"):
        PhotoSource(np.zeros((4, 8, 8), np.uint8), 2, "grey")
    with pytest.raises(InputError, match="at least 2"):
        MapSource(np.zeros((1, 8, 8), np.uint8), 2, "one")


def config(channels: int, widths: tuple[int, ...] = (8, 16)) -> UNetConfig:
    return UNetConfig.for_image(channels, conditioned=True, widths=widths)


def test_a_grown_network_knows_what_its_parent_knew() -> None:
    parent = fresh_network(config(1), 1)
    for parameter in parent.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=generator())
    child = grown_network(parent, config(3), 5)
    g = generator()
    x, values = (torch.randn(2, 3, 8, 8, generator=g) for _ in range(2))
    weight = (torch.rand(2, 1, 8, 8, generator=g) < 0.3).float()
    t = torch.tensor([0.3, 1.0])
    before = NetworkDenoiser(parent).velocity(x[:, 2:], t, Known(values[:, 2:], weight))
    after = NetworkDenoiser(child).velocity(x, t, Known(values, weight))
    assert torch.allclose(after[:, 2:], before, atol=1e-5)
    assert not after[:, :2].any()


def test_fine_attention_begins_without_influence() -> None:
    parent = fresh_network(config(1), 1)
    for parameter in parent.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=generator())
    child = grown_network(parent, replace(config(1), fine="all"), 5)
    x = torch.randn(2, 3, 8, 8, generator=generator())
    t = torch.tensor([0.3, 1.0])
    assert child.fine is not None
    assert child.fine.qkv.weight.any()
    assert torch.allclose(child(x, t), parent(x, t), atol=1e-5)


def test_only_the_same_kind_of_network_can_be_grown() -> None:
    with pytest.raises(InputError, match="cannot start"):
        grown_network(fresh_network(config(1), 0), config(3, (8, 24)), 0)
    with pytest.raises(InputError, match="cannot start"):
        grown_network(fresh_network(config(3), 0), config(1), 0)


def test_searches_practised_on_cells_hunt_presence() -> None:
    plan = TrainingPlan(steps=4, batch=8, emphasis=6.0)
    trainer = Trainer(fresh_network(config(len(PHOTO)), 0), photos(), plan)
    losses = [trainer.step() for _ in range(4)]
    assert np.isfinite(losses).all()
    assert float(trainer.episodes.masks.sum()) > 0
