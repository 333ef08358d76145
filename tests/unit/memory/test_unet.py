from __future__ import annotations

import pytest
import torch

from engram.memory.permanent import fresh_network
from engram.memory.unet import Attention, UNet, UNetConfig

SMALL = UNetConfig(3, 1, conditioned=True, widths=(8, 16), blocks=1, time_features=8)


def awake(config: UNetConfig, seed: int = 0) -> UNet:
    """A network whose last layers are not zero, so that its output depends on its input."""
    network = fresh_network(config, seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.2, generator=generator)
    return network.requires_grad_(False)


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (30, 34), (5, 7), (4, 64), (1, 1)])
def test_any_size_goes_in_and_comes_out(size: tuple[int, int]) -> None:
    out = awake(SMALL)(torch.randn(2, 3, *size), torch.rand(2))
    assert out.shape == (2, 1, *size)
    assert out.isfinite().all()


@pytest.mark.parametrize(
    "config",
    [
        UNetConfig(1, 1, patch=1, widths=(4,), blocks=1, time_features=4, attention=False),
        UNetConfig(3, 3, patch=2, widths=(8,), blocks=2),
        UNetConfig(7, 3, True, patch=4, widths=(8, 8, 12), blocks=1),
        UNetConfig(3, 1, True, widths=(8, 16), blocks=1, fine="all"),
        UNetConfig(3, 1, True, widths=(8, 16), blocks=1, fine="measured"),
    ],
)
def test_channels_and_depths(config: UNetConfig) -> None:
    out = awake(config)(torch.randn(2, config.inputs, 18, 22), torch.rand(2))
    assert out.shape == (2, config.outputs, 18, 22)
    assert UNetConfig.from_dict(config.to_dict()) == config


def test_inputs_of_image_networks() -> None:
    assert UNetConfig.for_image(3, conditioned=True).inputs == 7
    assert UNetConfig.for_image(3, conditioned=False).inputs == 3
    assert UNetConfig.for_image(1, conditioned=True, patch=4, widths=(8, 8)).multiple == 8


def test_the_output_is_zero_at_birth() -> None:
    out = fresh_network(SMALL, 0)(torch.randn(2, 3, 16, 16), torch.rand(2))
    assert not out.any()


def test_initial_weights_depend_on_the_seed_alone() -> None:
    before = torch.random.get_rng_state()
    one, two, other = (fresh_network(SMALL, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.stem.weight, other.stem.weight)


def test_samples_of_a_batch_do_not_mix() -> None:
    network = awake(SMALL)
    x, t = torch.randn(5, 3, 12, 12), torch.rand(5)
    torch.testing.assert_close(network(x, t)[2:3], network(x[2:3], t[2:3]), rtol=1e-4, atol=1e-5)


def test_the_output_depends_on_time_and_on_far_pixels() -> None:
    network = awake(SMALL)
    x = torch.randn(1, 3, 32, 32)
    late, early = (network(x, torch.tensor([t])) for t in (0.9, 0.1))
    assert not torch.allclose(late, early)
    y = x.clone()
    y[..., -1, -1] += 3.0
    change = (network(y, torch.tensor([0.9])) - late).abs()
    assert float(change[..., 0, 0]) > 0


def test_gradients_reach_every_weight() -> None:
    network = awake(SMALL).requires_grad_(True)
    network(torch.randn(2, 3, 16, 16), torch.rand(2)).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in network.parameters())


def test_attention_to_what_was_measured_takes_nothing_from_the_rest() -> None:
    torch.manual_seed(0)
    attention = Attention(8).requires_grad_(False)
    torch.nn.init.normal_(attention.out.weight)
    x, seen = torch.randn(2, 8, 3, 4), torch.zeros(2, 3, 4, dtype=torch.bool)
    seen[0, 1, 2] = True  # nothing was measured in the second area
    said = attention(x, seen)
    assert said.isfinite().all()
    for row, col, heard in ((1, 2, True), (2, 0, False)):
        y = x.clone()
        y[:, 0, row, col] += 2.0
        change = (attention(y, seen) - said).abs().amax(dim=1)
        change[:, row, col] = 0.0  # each position looks at itself
        assert bool((change[0] > 1e-4).any()) == heard
        assert not change[1].any()


def test_fine_attention_looks_where_the_mask_says_and_tells_across_the_area() -> None:
    config = UNetConfig(
        3, 1, True, widths=(8,), blocks=1, time_features=4, attention=False, fine="measured"
    )
    network, x = awake(config), torch.randn(1, 3, 32, 32)
    x[:, -1] = 0.0
    for measured in (False, True):
        x[:, -1, 30, 30] = float(measured)
        y = x.clone()
        y[:, 1, 30, 30] += 3.0
        t = torch.ones(1)
        change = float((network(y, t) - network(x, t))[..., :4, :4].abs().max())
        assert (change > 1e-6) == measured


def test_a_network_without_fine_attention_is_written_as_before() -> None:
    assert "fine" not in SMALL.to_dict()
    with pytest.raises(ValueError, match="choose one of all, measured"):
        UNetConfig.from_dict({**SMALL.to_dict(), "fine": "some"})
    with pytest.raises(ValueError, match="told nothing"):
        UNetConfig(1, 1, fine="measured")
