from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engram import InputError, WeightsError
from engram.memory.card import FORMAT, Card
from engram.memory.denoiser import CosineSchedule
from engram.memory.permanent import PermanentMemory
from engram.testing import tiny_memory


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "tiny.safetensors"
    tiny_memory().save(path)
    return path


def rewrite_card(path: Path, **changes: Any) -> None:
    card = path.with_suffix(".json")
    card.write_text(json.dumps({**json.loads(card.read_text()), **changes}))


def test_a_memory_survives_saving_and_loading(saved: Path) -> None:
    memory, back = tiny_memory(), PermanentMemory.load(saved)
    x, t = torch.randn(2, 1, 8, 8), torch.tensor(0.4)
    torch.testing.assert_close(
        back.estimate(x, t).x0, memory.estimate(x, t).x0, rtol=1e-2, atol=1e-2
    )
    assert back.card.sha256
    assert back.card.network == memory.card.network
    assert not any(p.requires_grad for p in back.denoiser.parameters())
    assert sorted(p.name for p in saved.parent.iterdir()) == ["tiny.json", "tiny.safetensors"]


def test_full_precision_is_exact_and_saving_is_repeatable(tmp_path: Path) -> None:
    memory = tiny_memory()
    cards = [memory.save(tmp_path / f"{i}.safetensors", half=False) for i in range(2)]
    assert cards[0].sha256 == cards[1].sha256
    back = PermanentMemory.load(tmp_path / "0.safetensors")
    x, t = torch.randn(2, 1, 8, 8), torch.tensor(0.4)
    assert torch.equal(back.estimate(x, t).x0, memory.estimate(x, t).x0)


def test_saving_twice_in_half_precision_gives_the_same_file(saved: Path, tmp_path: Path) -> None:
    again = PermanentMemory.load(saved).save(tmp_path / "again.safetensors")
    assert again.sha256 == PermanentMemory.load(saved).card.sha256


class Foreign(torch.nn.Module):
    """A denoiser of another make: it searches as well as any, and has no card of ours."""

    schedule = CosineSchedule()
    conditioned = False

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))


@pytest.mark.parametrize("foreign", ["denoiser", "card"])
def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path, foreign: str) -> None:
    memory, path = tiny_memory(), tmp_path / "other.safetensors"
    if foreign == "denoiser":
        memory = PermanentMemory(Foreign(), memory.card)  # type: ignore[arg-type]
    else:
        memory.card = replace(memory.card, network={**memory.card.network, "widths": [8]})
    with pytest.raises(InputError, match=r"memory 'tiny' cannot be saved: .* do not fit"):
        memory.save(path)
    assert not list(tmp_path.iterdir())


def test_areas_that_do_not_fit_are_refused() -> None:
    memory = tiny_memory()
    memory.card.fits(1)
    with pytest.raises(InputError, match=r"imagines 1 channel\(s\), the area has 3"):
        memory.card.fits(3)


def test_a_damaged_file_is_refused(saved: Path) -> None:
    blob = bytearray(saved.read_bytes())
    blob[-1] ^= 1
    saved.write_bytes(blob)
    with pytest.raises(WeightsError, match="damaged or does not belong to its card"):
        PermanentMemory.load(saved)


def test_a_file_cut_short_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:100])
    with pytest.raises(WeightsError, match="damaged"):
        PermanentMemory.load(saved)


def test_foreign_weights_are_refused_even_with_the_right_hash(saved: Path) -> None:
    import hashlib

    save_file({"layer.weight": torch.zeros(3)}, saved)
    rewrite_card(saved, sha256=hashlib.sha256(saved.read_bytes()).hexdigest())
    with pytest.raises(WeightsError, match="does not hold the weights of its card"):
        PermanentMemory.load(saved)


def test_no_safetensors_at_all(saved: Path) -> None:
    import hashlib

    saved.write_bytes(b"\x80\x04 this is a pickle, or anything")
    rewrite_card(saved, sha256=hashlib.sha256(saved.read_bytes()).hexdigest())
    with pytest.raises(WeightsError, match="does not hold the weights of its card"):
        PermanentMemory.load(saved)


def test_weights_of_another_network_are_refused(saved: Path) -> None:
    network = {**tiny_memory().card.network, "widths": [8]}
    rewrite_card(saved, network=network)
    with pytest.raises(WeightsError, match="does not hold the weights of its card"):
        PermanentMemory.load(saved)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not valid JSON"),
        ("[1, 2]", "not a memory card"),
        ("{}", "not an engram memory card"),
        (json.dumps({"format": FORMAT}), "not a valid memory card"),
        (json.dumps({"format": "other-2", "name": "x"}), "format 'other-2'"),
    ],
)
def test_wrong_cards_are_refused(saved: Path, text: str, words: str) -> None:
    saved.with_suffix(".json").write_text(text)
    with pytest.raises(WeightsError, match=words):
        PermanentMemory.load(saved)


def test_missing_files_are_named(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nowhere"):
        PermanentMemory.load(tmp_path / "nowhere.safetensors")
    saved.with_suffix(".json").unlink()
    with pytest.raises(WeightsError, match=r"tiny\.json"):
        PermanentMemory.load(saved)


def test_cards_go_through_json() -> None:
    card = tiny_memory().card
    assert Card.from_dict(json.loads(json.dumps(card.to_dict())), "here") == card
    with pytest.raises(WeightsError, match="here is not a valid memory card"):
        Card.from_dict({**card.to_dict(), "colour": "blue"}, "here")
