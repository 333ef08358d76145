"""Where the network of a memory runs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engram import Grid, InputError, load_memory, make_policy
from engram.memory.denoiser import CosineSchedule, CountedDenoiser, Estimate, Known
from engram.memory.permanent import PermanentMemory
from engram.testing import tiny_memory


class Elsewhere(torch.nn.Module):
    """A denoiser that works on a device without numbers, and answers as another device would."""

    schedule, conditioned = CosineSchedule(), True

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        assert {x_t.device.type, t.device.type} == {"meta"}
        assert known is None or known.values.device.type == known.weight.device.type == "meta"
        return Estimate(torch.ones(x_t.shape), torch.zeros(x_t.shape))


def test_questions_go_to_the_device_and_answers_come_back() -> None:
    memory = PermanentMemory(Elsewhere(), tiny_memory().card, device="meta")
    x = torch.zeros(2, 1, 4, 4)
    known = Known(x, x)
    for told in (None, known):
        found = memory.estimate(x, torch.ones(1), told)
        assert found.x0.device.type == found.eps.device.type == "cpu"
        assert bool((found.x0 == 1).all())


@pytest.mark.parametrize("device", ["tpu", "cuda:x", ""])
def test_unknown_devices_are_refused(device: str) -> None:
    with pytest.raises(InputError, match=r"device=.*: choose one of cpu, cuda, mps"):
        tiny_memory().on(device)


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match=r"device='cuda:1': this machine has 1 of that kind"):
        load_memory("digits", device="cuda:1")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device='mps': this machine has 0 of that kind.*cpu"):
        make_policy("em-ptdm", Grid(8, 8), 5, memory=tiny_memory(conditioned=True), device="mps")


def test_the_usual_device_is_the_memory_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tiny_memory()
    assert memory.on("cpu") is memory
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    other = PermanentMemory(CountedDenoiser(memory), memory.card)
    with pytest.raises(InputError, match="is no torch module and stays on the cpu"):
        other.on("cuda")
