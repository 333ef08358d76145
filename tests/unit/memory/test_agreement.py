from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.memory import agreement as told
from engram.memory import comparing
from engram.memory.agreement import CHANNELS, agreement, nothing_said
from engram.memory.comparing import BOTH_BLANK, BOTH_FOUND, DIFFERENT, NEAR, REACH, SHARPNESS, UNIT
from engram.memory.denoiser import NetworkDenoiser
from engram.memory.permanent import fresh_network, grown_network
from engram.memory.unet import UNet, UNetConfig
from engram.symmetry import TURNS, turned

Array = NDArray[np.float64]
L = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]], float)


def measured(
    shape: tuple[int, int], share: float, seed: int, *, doubt: float = 0.6
) -> tuple[Tensor, Tensor]:
    """Values times weight and weight of random reports, some of them in doubt."""
    rng = np.random.default_rng(seed)
    weight = (rng.random(shape) < share) * rng.choice([1.0, 1.0, doubt], shape)
    values = np.where(rng.random(shape) < 0.4, 1.0, -1.0) * weight
    return torch.tensor(values).float()[None], torch.tensor(weight).float()[None]


def by_definition(values: Tensor, weight: Tensor) -> Array:
    """(CHANNELS, H, W) cell by cell, as the docstring says it."""
    r = REACH
    w = weight[0].double().numpy()
    found = np.clip((w + values[0].double().numpy()) / 2, 0, w)
    blank = w - found
    height, width = w.shape
    both = np.pad(np.stack([found, blank]), ((0, 0), (r, r), (r, r)))
    near = np.array(
        [
            [both[0, i : i + 2 * r + 1, j : j + 2 * r + 1].any() for j in range(width)]
            for i in range(height)
        ]
    )
    out = np.empty((CHANNELS, height, width))
    for channel in range(CHANNELS):
        out[channel] = nothing_said(SHARPNESS[channel // 4])
    for i, j in np.argwhere(near & (w < 1)):
        sums = np.zeros((len(SHARPNESS), 2, 2))
        x = both[:, i : i + 2 * r + 1, j : j + 2 * r + 1]
        for k, m in np.argwhere(near & (w > 0)):
            if max(abs(i - k), abs(j - m)) <= NEAR:
                continue
            z = both[:, k : k + 2 * r + 1, m : m + 2 * r + 1]
            for turn in range(TURNS):
                f, o = (turned(torch.tensor(part), turn).numpy() for part in z)
                units = BOTH_FOUND * (x[0] * f).sum() + BOTH_BLANK * (x[1] * o).sum()
                units -= DIFFERENT * ((x[0] * o).sum() + (x[1] * f).sum())
                nats = UNIT * min(units, comparing.MOST)
                for s, sharp in enumerate(SHARPNESS):
                    says = np.exp(sharp * nats) * np.array([found[k, m], blank[k, m]])
                    sums[s, 1] += says
                    sums[s, 0] += says if turn == 0 else 0
        for s, sharp in enumerate(SHARPNESS):
            said = np.log(told.FLOOR + sums[s]) / sharp / told.SCALE
            out[4 * s : 4 * s + 4, i, j] = said.ravel()
    return out


@pytest.mark.parametrize(("share", "seed", "doubt"), [(0.08, 0, 0.6), (0.2, 1, 0.6), (0.2, 1, 1.0)])
def test_it_is_what_its_definition_says(share: float, seed: int, doubt: float) -> None:
    values, weight = measured((17, 13), share, seed, doubt=doubt)
    said = agreement(values, weight)[0].double().numpy()
    np.testing.assert_allclose(said, by_definition(values, weight), atol=2e-5)


def test_where_nothing_was_found_nothing_is_said() -> None:
    values, weight = measured((20, 20), 0.3, 2)
    said = agreement(-weight, weight)
    floors = torch.tensor([nothing_said(s) for s in SHARPNESS for _ in range(4)])
    assert torch.equal(said, floors[None, :, None, None].expand_as(said))
    assert torch.equal(agreement(values[:0], weight[:0]), said[:0])


@pytest.mark.parametrize("turn", range(1, TURNS))
def test_a_turned_area_is_told_the_same_turned(turn: int) -> None:
    values, weight = measured((24, 24), 0.15, 3)
    there = agreement(turned(values, turn), turned(weight, turn))
    here = agreement(values, weight)
    torch.testing.assert_close(there, turned(here, turn))
    pairs = [torch.cat([one, turned(one, turn)]) for one in (values, weight)]
    assert torch.equal(agreement(*pairs), torch.cat([here, turned(here, turn)]))


def test_it_is_computed_in_full_precision_where_a_network_is_not() -> None:
    values, weight = measured((16, 16), 0.3, 7)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = agreement(values, weight)
    assert torch.equal(mixed, agreement(values, weight))


def test_areas_of_a_batch_do_not_mix() -> None:
    parts = [measured((16, 16), share, 4) for share in (0.1, 0.0, 0.4)]
    values, weight = (torch.cat(part) for part in zip(*parts, strict=True))
    alone = torch.cat([agreement(*part) for part in parts])
    assert torch.equal(agreement(values, weight), alone)


def placed(*figures: tuple[Array, int, int]) -> Array:
    area = np.zeros((24, 24))
    for figure, top, left in figures:
        area[top : top + figure.shape[0], left : left + figure.shape[1]] = figure
    return area


def said_of(second: Array, at: list[tuple[int, int]]) -> tuple[Array, Array, Array]:
    """(24, 24) nats for target beyond blank, the same way round and in all turns, where an L is
    measured with all around it and a second figure at some cells; which cells of it are open."""
    truth = placed((L, 4, 4), (second, 14, 14))
    mask = np.zeros((24, 24))
    mask[3:9, 3:8] = 1
    mask[tuple(np.array(at).T)] = 1
    values = torch.tensor((2 * truth - 1) * mask).float()[None]
    said = agreement(values, torch.tensor(mask).float()[None])[0].numpy() * told.SCALE
    return said[0] - said[1], said[2] - said[3], (placed((second, 14, 14)) > 0) & (mask == 0)


def test_a_copy_of_what_was_outlined_is_told_cell_by_cell() -> None:
    same, _, _ = said_of(L, [(14, 14), (17, 14), (17, 16)])
    inside = [same[row, col] for row, col in ((15, 14), (16, 14), (17, 15))]
    outside = [same[row, col] for row, col in ((14, 15), (15, 15), (16, 16), (18, 15), (17, 17))]
    assert min(inside) > 0.5 > -0.5 > max(outside)


def test_a_turned_copy_is_told_by_turns_alone() -> None:
    at = [(14, 16), (16, 16), (16, 14), (16, 13), (13, 16), (14, 15)]
    same, turns, free = said_of(np.rot90(L), at)
    assert turns[free].mean() > same[free].mean() + 1


def small(*, agreement: bool) -> UNetConfig:
    return UNetConfig(3, 1, True, widths=(8, 16), blocks=1, time_features=8, agreement=agreement)


def awake(network: UNet) -> UNet:
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.2, generator=generator)
    return network.requires_grad_(False)


def test_a_network_begins_with_what_its_parent_knew_and_listens_to_agreement() -> None:
    parent = awake(fresh_network(small(agreement=False), 1))
    child = grown_network(parent, small(agreement=True), 0).requires_grad_(False)
    values, weight = measured((16, 16), 0.2, 5)
    inputs, t = torch.stack([torch.randn(16, 16), values[0], weight[0]])[None], torch.ones(1)
    torch.testing.assert_close(child(inputs, t), parent(inputs, t))
    torch.nn.init.normal_(child.stem.weight[:, 3 * 4 :])
    assert float((child(inputs, t) - parent(inputs, t)).abs().max()) > 1e-3
    again = grown_network(child, small(agreement=True), 0)
    assert torch.equal(again.stem.weight, child.stem.weight)


def test_agreement_is_that_of_the_last_channel_and_what_was_measured() -> None:
    config = UNetConfig(5, 2, True, widths=(8,), blocks=1, time_features=8, agreement=True)
    network = awake(fresh_network(config, 0))
    network.stem.weight.data[:, : 5 * 4] = 0  # all it hears is agreement
    values, weight = measured((16, 16), 0.2, 6)
    x = torch.randn(1, 5, 16, 16)
    x[:, -2], x[:, -1] = values, weight
    before = network(x, torch.ones(1))
    x[:, :3] = torch.randn(1, 3, 16, 16)
    assert torch.equal(network(x, torch.ones(1)), before)
    x[:, -2] = -x[:, -2]
    assert not torch.equal(network(x, torch.ones(1)), before)
    assert NetworkDenoiser(network).conditioned


def test_networks_without_agreement_are_written_as_before() -> None:
    assert "agreement" not in small(agreement=False).to_dict()
    assert UNetConfig.from_dict(small(agreement=True).to_dict()) == small(agreement=True)
    with pytest.raises(ValueError, match="told nothing"):
        UNetConfig(1, 1, agreement=True)
