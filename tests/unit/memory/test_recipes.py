from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engram import InputError, load_memory
from engram.memory.recipes import sample_memory, source_from, train_memory, write_sheet
from engram.memory.training import TrainingPlan
from engram.memory.unet import UNetConfig
from engram.testing import tiny_memory

PLAN = TrainingPlan(steps=4, batch=6, warmup=1, checkpoint_every=2)
CONFIG = UNetConfig(3, 1, True, patch=2, widths=(4,), blocks=1, time_features=4, attention=False)


class StopError(Exception):
    """Stands for a machine that goes down."""


def _folder(path: Path, count: int = 4) -> Path:
    path.mkdir()
    for i in range(count):
        Image.fromarray(np.full((10, 14, 3), 40 * i, np.uint8)).save(path / f"{i}.png")
    return path


def test_every_origin_gives_a_source(tmp_path: Path) -> None:
    assert source_from("scenes").shape == (1, 32, 32)
    assert source_from("scenes", size=(8, 12)).shape == (1, 8, 12)
    folder = _folder(tmp_path / "folder")
    assert source_from(folder, size=(8, 8)).shape == (1, 8, 8)
    assert source_from(folder, size=(8, 8), channels=3).shape == (3, 8, 8)
    np.savez(tmp_path / "a.npz", images=np.zeros((5, 6, 7, 3), np.uint8), grey=np.zeros((5, 6, 7)))
    assert source_from(tmp_path / "a.npz").shape == (3, 6, 7)
    assert source_from(tmp_path / "a.npz", channels=1, size=(8, 8)).shape == (1, 8, 8)
    assert source_from(tmp_path / "a.npz", key="grey", channels=3).shape == (3, 6, 7)
    raw = struct.pack(">IIII", 2051, 3, 6, 6) + bytes(108)
    (tmp_path / "a.idx").write_bytes(raw)
    assert source_from(tmp_path / "a.idx", size=(8, 8)).shape == (1, 8, 8)


def test_channels_are_averaged_or_repeated(tmp_path: Path) -> None:
    images = np.zeros((4, 6, 6, 3), np.uint8)
    images[..., 0] = 255
    np.savez(tmp_path / "a.npz", images=images)
    generator = torch.Generator().manual_seed(0)
    drawn = source_from(tmp_path / "a.npz", channels=1).draw(2, generator)
    assert float(drawn.max()) == pytest.approx(2 / 3 - 1, abs=0.01)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"origin": "absent"}, "no training data at absent"),
        ({"origin": "scenes", "channels": 3}, "scenes have 1 channel"),
        ({"origin": "scenes", "channels": 2}, "channels=2"),
        ({"origin": "scenes", "size": (2, 8)}, "size=2,8"),
        ({"origin": "scenes", "affine": 3.0}, "affine=3"),
    ],
)
def test_bad_origins_are_named(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        source_from(**options)  # type: ignore[arg-type]


def test_a_trained_memory_has_a_complete_card_and_loads(tmp_path: Path) -> None:
    seen: list[tuple[int, float, float]] = []
    memory = train_memory(
        source_from("scenes", size=(8, 8)),
        CONFIG,
        PLAN,
        name="small",
        summary="a test",
        licence="none",
        recipe="engram prior train ...",
        progress=lambda *state: seen.append(state),
    )
    assert [step for step, _, _ in seen] == [1, 2, 3, 4]
    assert all(np.isfinite(state).all() for state in seen)
    card = memory.save(tmp_path / "small.safetensors")
    assert (card.channels, card.height, card.width, card.steps) == (1, 8, 8, 4)
    assert card.parameters == sum(p.numel() for p in memory.denoiser.parameters())
    assert card.loss > 0
    assert "scenes" in card.data
    loaded = load_memory(str(tmp_path / "small.safetensors"))
    assert loaded.card == card
    samples = sample_memory(loaded, 3, steps=2)
    assert samples.shape == (3, 1, 8, 8)
    assert (samples.min() >= 0) & (samples.max() <= 1)


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    source = source_from("scenes", size=(8, 8))
    words = {"name": "a", "summary": "", "licence": ""}
    whole = train_memory(source, CONFIG, PLAN, **words)

    def stop(step: int, loss: float, held_out: float) -> None:
        if step == 3:
            raise StopError

    checkpoint = tmp_path / "new" / "a.checkpoint"
    with pytest.raises(StopError):
        train_memory(source, CONFIG, PLAN, **words, checkpoint=checkpoint, progress=stop)
    assert checkpoint.exists()
    again = train_memory(source, CONFIG, PLAN, **words, checkpoint=checkpoint)
    for one, other in zip(whole.denoiser.parameters(), again.denoiser.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    words = {"name": "a", "summary": "", "licence": ""}
    checkpoint = tmp_path / "a.checkpoint"
    train_memory(source_from("scenes", size=(8, 8)), CONFIG, PLAN, **words, checkpoint=checkpoint)
    with pytest.raises(InputError, match="shape differ"):
        train_memory(
            source_from("scenes", size=(8, 12)), CONFIG, PLAN, **words, checkpoint=checkpoint
        )
    source, mixed = source_from("scenes", size=(8, 8)), replace(PLAN, mixed=True)
    with pytest.raises(InputError, match="mixed differ"):
        train_memory(source, CONFIG, mixed, **words, checkpoint=checkpoint)


def test_samples_depend_on_their_own_number_alone() -> None:
    for conditioned in (True, False):
        memory = tiny_memory(conditioned=conditioned)
        few, many = (sample_memory(memory, n, steps=3, seed=5) for n in (2, 4))
        np.testing.assert_allclose(few, many[:2], atol=1e-5)
    with pytest.raises(InputError, match="count=0"):
        sample_memory(memory, 0)


def test_a_sheet_holds_every_image(tmp_path: Path) -> None:
    images = np.linspace(0, 1, 5, dtype=np.float32).reshape(5, 1, 1, 1) * np.ones((1, 1, 4, 6))
    path = write_sheet(images.astype(np.float32), tmp_path / "new" / "sheet.png", scale=1)
    with Image.open(path) as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape == (2 * (4 + 2) + 2, 3 * (6 + 2) + 2, 3)
    assert set(np.unique(pixels)) == {0, 64, 128, 191, 255}
    assert [p.name for p in path.parent.iterdir()] == ["sheet.png"]
    colours = np.zeros((1, 3, 4, 4), np.float32)
    write_sheet(colours, tmp_path / "colours.png")
