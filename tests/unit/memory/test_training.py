from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engram import InputError
from engram.memory.denoiser import Known
from engram.memory.permanent import fresh_network
from engram.memory.sources import ArraySource
from engram.memory.training import Batch, Trainer, TrainingPlan
from engram.memory.unet import UNet, UNetConfig
from engram.testing import tiny_memory


def stripes() -> ArraySource:
    """Images of two kinds: left half bright, or right half bright."""
    images = np.zeros((40, 8, 8), np.uint8)
    images[::2, :, :4] = 255
    images[1::2, :, 4:] = 255
    return ArraySource(images, description="stripes", held_out=0.1)


def network(*, conditioned: bool = True, seed: int = 0) -> UNet:
    inputs = 3 if conditioned else 1
    return fresh_network(UNetConfig(inputs, 1, conditioned, 2, (16,), 1, 8, attention=False), seed)


def trainer(
    steps: int = 12,
    *,
    conditioned: bool = True,
    seed: int = 0,
    focus: float = 0.0,
    mixed: bool = False,
) -> Trainer:
    plan = TrainingPlan(
        steps=steps,
        batch=16,
        learning_rate=1e-2,
        warmup=3,
        ema=0.9,
        checkpoint_every=4,
        seed=seed,
        focus=focus,
        mixed=mixed,
    )
    return Trainer(network(conditioned=conditioned), stripes(), plan)


def weights(one: Trainer) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": value.clone()
        for name, module in (("net", one.denoiser), ("ema", one.averaged))
        for key, value in module.state_dict().items()
    }


@pytest.mark.parametrize("conditioned", [True, False])
def test_training_lowers_the_loss(conditioned: bool) -> None:
    one = trainer(70, conditioned=conditioned)
    before = one.held_out_loss(4)
    seen: list[tuple[int, int]] = []
    one.run(lambda step, steps, loss: seen.append((step, steps)))
    assert seen == [(step, 70) for step in range(1, 71)]
    assert one.held_out_loss(4) < (0.7 if conditioned else 0.85) * before


@pytest.mark.parametrize("focus", [0.0, 4.0])
def test_a_trained_network_tells_what_it_was_told(focus: float) -> None:
    """After measuring two pixels of the left half, the whole image is known."""
    one = trainer(50, focus=focus)
    one.run()
    values, weight = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 8, 8)
    weight[..., 3, 1:3] = 1.0
    for sign in (1.0, -1.0):
        values[..., 3, 1:3] = sign
        with torch.no_grad():
            mean = one.averaged.estimate(
                torch.zeros(1, 1, 8, 8), torch.tensor(1.0), Known(values, weight)
            ).x0
        assert sign * float(mean[..., :4].mean()) > 0.4


def test_the_focus_lies_on_exact_measurements_at_full_noise() -> None:
    one = trainer(focus=4.0)
    x0, mask = torch.full((3, 1, 8, 8), -1.0), torch.zeros(3, 1, 8, 8)
    x0[..., 4, 4], mask[..., 4, 4] = 1.0, 1.0
    sigma = torch.tensor([0.0, 0.0, 0.3]).reshape(3, 1, 1, 1)
    weights = one._focus(Batch(x0, torch.tensor([1.0, 0.5, 1.0]), mask, sigma))
    assert float(weights.mean()) == pytest.approx(1.0)
    assert float(weights[0, 0, 4, 5] / weights[0, 0, 0, 0]) == pytest.approx(5.0)
    assert len(weights[1:].unique()) == 1


def test_passes_in_bfloat16_give_nearly_the_same_loss_and_lower_it() -> None:
    exact, mixed = trainer(70), trainer(70, mixed=True)
    before = mixed.held_out_loss(4)
    losses = [(exact.step(), mixed.step()) for _ in range(3)]
    assert losses[2][0] != losses[2][1]
    assert losses[2][1] == pytest.approx(losses[2][0], rel=0.01)
    mixed.run()
    assert all(p.dtype == torch.float32 for p in mixed.averaged.parameters())
    assert mixed.held_out_loss(4) < 0.7 * before


def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    whole = trainer()
    whole.run()
    first = trainer()
    for _ in range(4):
        first.step()
    first.checkpoint(path)
    second = trainer()
    second.run(checkpoint=path)
    assert second.step_count == 12
    assert second.loss == pytest.approx(whole.loss, rel=1e-12)
    expected = weights(whole)
    for key, value in weights(second).items():
        assert torch.equal(value, expected[key]), key
    assert torch.equal(second.episodes.masks, whole.episodes.masks)
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_finished_run_is_not_trained_further(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    one = trainer()
    one.run(checkpoint=path)
    again = trainer()
    again.run(lambda *_: pytest.fail("nothing is left to do"), checkpoint=path)
    expected = weights(one)
    assert all(torch.equal(v, expected[k]) for k, v in weights(again).items())


def test_training_depends_on_the_seed_alone() -> None:
    runs = [trainer(4, seed=s) for s in (0, 0, 1)]
    for one in runs:
        one.run()
    states = [weights(one)["net.network.stem.weight"] for one in runs]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_the_held_out_loss_is_repeatable_and_changes_nothing() -> None:
    one = trainer(4)
    assert one.held_out_loss(2) == one.held_out_loss(2)
    twin = trainer(4)
    one.run()
    twin.run()
    assert torch.equal(
        weights(one)["net.network.stem.weight"], weights(twin)["net.network.stem.weight"]
    )


def test_checkpoints_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    trainer().checkpoint(path)
    with pytest.raises(InputError, match="another training"):
        trainer(seed=1).resume(path)
    with pytest.raises(InputError, match="another training"):
        trainer(conditioned=False).resume(path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="cannot resume from"):
        trainer().resume(path)


def test_a_memory_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    tiny_memory().save(path)
    with pytest.raises(InputError):
        trainer().resume(path)


def test_plans_that_cannot_be_are_refused() -> None:
    for plan in (TrainingPlan(steps=0), TrainingPlan(batch=3)):
        with pytest.raises(InputError, match="need at least 1 and 4"):
            Trainer(network(), stripes(), plan)
    for refused, word in (
        (TrainingPlan(focus=-1.0), "focus=-1"),
        (TrainingPlan(unprompted=1.5), "unprompted=1.5"),
        (TrainingPlan(batch=4, episodes=0.7), "batch=4: too small"),
    ):
        with pytest.raises(InputError, match=word):
            Trainer(network(), stripes(), refused)


def test_the_learning_rate_warms_up_and_falls() -> None:
    plan = TrainingPlan(steps=100, warmup=10, learning_rate=1.0)
    rates = [plan.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert 0 < rates[-1] < 0.05
