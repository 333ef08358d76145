"""The h-network of the paper is of the size of its appendix N.1, for each kind of area."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engram import Grid, make_policy
from engram.memory.denoiser import CosineSchedule, Known
from engram.memory.layers import LayerSet
from engram.memory.permanent import PermanentMemory
from engram.policies.papersearch import PaperSearch, h_network
from engram.testing import tiny_memory

MAPS, OVERHEAD = ("density", "presence"), ("red", "green", "blue", "contrast", "presence")


def memory_of(channels: int, layers: tuple[str, ...] = ()) -> PermanentMemory:
    memory = tiny_memory(len(layers) or channels)
    memory.card = replace(memory.card, layers=LayerSet(layers))
    return memory


@pytest.mark.parametrize(
    ("memory", "size", "widths", "time_features"),
    [
        (memory_of(1), (28, 28), (32, 64), 32),  # MNIST to balls
        (memory_of(1), (32, 32), (32, 64), 32),
        (memory_of(1), (33, 20), (32, 64, 128), 32),  # larger than these: as for maps
        (memory_of(1, MAPS[1:]), (32, 32), (32, 64, 128), 32),  # species
        (memory_of(1, MAPS), (20, 20), (32, 64, 128), 32),
        (memory_of(3), (32, 32), (32, 64, 128), 128),  # ImageNet to DOTA
        (memory_of(3, OVERHEAD), (32, 32), (32, 64, 128), 128),
    ],
    ids=["digits", "balls", "larger", "presence", "maps", "colour", "overhead"],
)
def test_h_has_the_widths_and_time_features_of_the_paper(
    memory: PermanentMemory, size: tuple[int, int], widths: tuple[int, ...], time_features: int
) -> None:
    """By its weights: what it is made of, and not what it was asked to be."""
    network = h_network(memory, Grid(*size, memory.channels), seed=0).network
    shapes = {name: tuple(weight.shape) for name, weight in network.named_parameters()}
    steps = range(len(widths) - 1)
    down = [shapes["stem.weight"][0], *(shapes[f"shrink.{i}.weight"][0] for i in steps)]
    assert tuple(down) == widths
    assert len(network.shrink) == len(network.grow) == len(widths) - 1
    assert shapes["time.project.weight"][1] == time_features == 2 * len(network.time.freqs)
    stages = (*network.down, network.bottom, *network.up, network.tail.stage)
    assert [len(stage.blocks) for stage in stages] == [1] * len(stages)


@pytest.mark.parametrize(
    ("channels", "size", "widths"), [(1, (32, 32), (32, 64)), (3, (20, 20), (32, 64, 128))]
)
def test_a_search_learns_such_an_h(
    channels: int, size: tuple[int, int], widths: tuple[int, ...]
) -> None:
    grid, memory = Grid(*size, channels), memory_of(channels)
    policy = make_policy("em-ptdm", grid, 5, memory=memory, preset="paper")
    assert isinstance(policy, PaperSearch)
    body = policy.transient.body
    assert body.network.config.widths == widths
    x, t = torch.ones(1, channels, *size), torch.tensor([0.5])
    known, signal = Known(x, torch.ones(1, 1, *size)), CosineSchedule().a(t).reshape(1, 1, 1, 1)
    delta = body(x, x, t, known, signal)
    assert delta.shape == x.shape
    assert not delta.any()  # zero at birth
