"""A network that says in one evaluation what a memory says in eight views."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engram import Grid, InputError, Observation, WeightsError, load_memory
from engram.memory.denoiser import Known
from engram.memory.distilling import (
    COPIES,
    PLAN,
    Distiller,
    distil,
    mean_at_full_noise,
    symmetric_mean,
)
from engram.memory.library import fingerprint, memory_files
from engram.memory.permanent import PermanentMemory, symmetric_path
from engram.memory.recipes import source_from
from engram.observation import Observations
from engram.policies.imagination import measurements_of
from engram.policies.views import expected_image
from engram.symmetry import TURNS, turned
from engram.testing import tiny_memory

SCENES = source_from("scenes", size=(8, 8))
SHORT = replace(PLAN, steps=6, batch=4, checkpoint_every=2, warmup=2)


def known(seed: int = 0, count: int = 3) -> Known:
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.rand(count, 1, 8, 8, generator=generator) < 0.3).float()
    return Known(mask * torch.randn(count, 1, 8, 8, generator=generator), mask)


def test_the_symmetric_mean_is_the_average_of_eight_views() -> None:
    memory, grid = tiny_memory(), Grid(8, 8)
    cells = [(0, 1), (3, 4), (5, 5), (7, 2)]
    seen = Observations(grid, [Observation.checked(grid, c, 0.8, 1.0) for c in cells])
    measured = measurements_of(seen)
    ours = symmetric_mean(memory, Known(measured.values, measured.mask))
    theirs = expected_image(memory, measured, np.zeros(grid.n_cells, bool), grid, TURNS)
    free = measured.mask == 0
    torch.testing.assert_close(ours[free], theirs[free])


def test_the_symmetric_mean_turns_with_what_is_known() -> None:
    memory, told = tiny_memory(), known()
    mean = symmetric_mean(memory, told)
    assert (mean - mean_at_full_noise(memory, told)).abs().max() > 1e-3
    for k in range(TURNS):
        other = Known(turned(told.values, k), turned(told.weight, k))
        torch.testing.assert_close(symmetric_mean(memory, other), turned(mean, k))


def test_what_is_taught_is_the_symmetric_mean_of_each_turn() -> None:
    distiller = Distiller(tiny_memory(), SCENES, replace(SHORT, noisy=0.0))
    for _ in range(6):  # searches begin with nothing, which looks the same from all sides
        distiller.step()
    generator = torch.Generator().manual_seed(3)
    batch = distiller._batch(generator)
    assert len(batch.x0) == COPIES * SHORT.batch
    assert (batch.t == 1).all()
    goal, said = distiller._velocities(batch, batch.x0, generator)
    told = Known(batch.x0 * batch.mask, batch.mask)
    torch.testing.assert_close(-goal, symmetric_mean(distiller.memory, told))
    torch.testing.assert_close(-said, mean_at_full_noise(distiller.denoiser, told))


def test_training_brings_one_view_near_the_average_and_leaves_the_memory_as_it_is() -> None:
    memory = tiny_memory()
    before = [p.clone() for p in memory.denoiser.parameters()]
    plan = replace(PLAN, steps=60, batch=8, learning_rate=3e-3, warmup=5, ema=0.9)
    learnt = distil(memory, SCENES, plan, recipe="as told")
    made = learnt.card.symmetric
    assert made["error"] < 0.5 * made["error_of_one_view"]
    assert (made["steps"], made["recipe"]) == (60, "as told")
    for now, then in zip(memory.denoiser.parameters(), before, strict=True):
        assert torch.equal(now, then)
    symmetric = learnt.symmetric
    assert symmetric is not None
    told = known(7, 20)
    average = symmetric_mean(memory, told)
    near, far = (
        float((mean_at_full_noise(one, told) - average).square().mean())
        for one in (symmetric, memory)
    )
    assert near < far


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    memory, checkpoint = tiny_memory(), tmp_path / "tiny.distilling"
    whole = distil(memory, SCENES, SHORT)

    class StopError(Exception):
        pass

    def stop(step: int, steps: int, loss: float) -> None:
        if step == 5:
            raise StopError

    with pytest.raises(StopError):
        distil(memory, SCENES, SHORT, checkpoint=checkpoint, progress=stop)
    again = distil(memory, SCENES, SHORT, checkpoint=checkpoint)
    assert again.card.symmetric["sha256"] == whole.card.symmetric["sha256"]
    with pytest.raises(InputError, match="belongs to another training"):
        distil(memory, SCENES, replace(SHORT, focus=1.0), checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("conditioned", "size", "words"),
    [(False, 8, "told nothing"), (True, 12, "give the data it was trained on")],
)
def test_what_cannot_be_learnt_is_refused(conditioned: bool, size: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Distiller(tiny_memory(conditioned=conditioned), source_from("scenes", size=(size, size)))


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path))
    path = tmp_path / "memories" / "tiny.safetensors"
    tiny_memory().save(path)
    alone = load_memory("tiny")
    learnt = distil(alone, SCENES, SHORT)
    assert learnt.save(path).sha256 == alone.card.sha256  # the memory's own file is as it was
    return path


def test_a_symmetric_network_is_kept_beside_its_memory(saved: Path) -> None:
    back = PermanentMemory.load(saved)
    assert back.symmetric is not None
    assert "tiny" in memory_files()
    assert "tiny.symmetric" not in memory_files()
    told = known()
    one = mean_at_full_noise(back.symmetric, told)
    assert not torch.allclose(one, mean_at_full_noise(back, told))
    names = sorted(p.name for p in saved.parent.iterdir())
    assert names == ["tiny.json", "tiny.safetensors", "tiny.symmetric.safetensors"]


def test_a_memory_made_of_another_has_not_learnt_its_average(saved: Path) -> None:
    parent = load_memory("tiny")
    assert parent.card.symmetric
    child = PermanentMemory(parent.denoiser, replace(parent.card, name="child"))
    assert child.symmetric is None
    child.save(saved.with_name("child.safetensors"))
    assert load_memory("child").symmetric is None


def test_a_fingerprint_tells_memories_with_other_symmetric_networks_apart(saved: Path) -> None:
    card = PermanentMemory.load(saved).card
    assert fingerprint("tiny", symmetric=False) == card.sha256
    whole = fingerprint("tiny")
    assert whole != card.sha256
    memory = load_memory("tiny")
    distil(memory, SCENES, replace(SHORT, seed=1)).save(saved)
    assert fingerprint("tiny", symmetric=False) == card.sha256
    assert fingerprint("tiny") != whole


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_damaged_symmetric_network_is_refused(saved: Path, damage: str) -> None:
    beside = symmetric_path(saved)
    if damage == "gone":
        beside.unlink()
    elif damage == "cut":
        beside.write_bytes(beside.read_bytes()[:-20])
    else:
        beside.write_bytes(saved.read_bytes())
    with pytest.raises(WeightsError, match="symmetric"):
        PermanentMemory.load(saved)
