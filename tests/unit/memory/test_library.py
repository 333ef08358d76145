from __future__ import annotations

import json
from pathlib import Path

import pytest

from engram import InputError, WeightsError, load_memory
from engram.memory.library import SHIPPED, memory_files, memory_path, read_card, user_folder
from engram.testing import tiny_memory


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path))
    return user_folder()


def test_memories_of_the_user_are_found_by_name_and_by_path(home: Path) -> None:
    tiny_memory().save(home / "mine.safetensors")
    assert memory_files()["mine"] == home / "mine.safetensors"
    assert load_memory("mine").card.name == "tiny"
    assert load_memory(str(home / "mine.safetensors")) is load_memory("mine")
    assert read_card("mine").licence == "Apache-2.0"


def test_a_file_that_changed_is_read_again(home: Path) -> None:
    import os

    path = home / "mine.safetensors"
    tiny_memory().save(path)
    first = load_memory("mine")
    tiny_memory(conditioned=False).save(path)
    os.utime(path, (1, 1))
    assert first.conditioned
    assert not load_memory("mine").conditioned


def test_unknown_memories_are_refused(home: Path) -> None:
    tiny_memory().save(home / "mine.safetensors")
    with pytest.raises(InputError, match=r"unknown memory 'yours'; choose one of .*mine"):
        load_memory("yours")
    with pytest.raises(InputError, match="no memory file at"):
        memory_path("yours.safetensors")


def test_unreadable_cards_are_named(home: Path) -> None:
    tiny_memory().save(home / "mine.safetensors")
    for text in ("{", "[]", json.dumps({"format": "other"})):
        (home / "mine.json").write_text(text)
        with pytest.raises(WeightsError, match=r"mine\.json"):
            read_card("mine")


def test_weights_without_a_card_are_not_listed(home: Path) -> None:
    tiny_memory().save(home / "mine.safetensors")
    (home / "mine.json").unlink()
    assert "mine" not in memory_files()


@pytest.mark.parametrize(
    "path",
    sorted(p.with_suffix(".safetensors") for p in SHIPPED.glob("*.json")),
    ids=lambda p: p.stem,
)
def test_shipped_memories_load_and_say_what_they_are(path: Path) -> None:
    memory = load_memory(path.stem)
    card = memory.card
    assert card.name == path.stem
    assert card.parameters == sum(p.numel() for p in memory.denoiser.parameters())
    assert memory.denoiser.network.config.outputs == card.channels
    assert path.stat().st_size < 8_000_000


def test_large_areas_have_a_default_of_their_own() -> None:
    from engram.memory.library import WINDOWED, default_memory, read_card
    from engram.policies.local import LARGEST

    assert default_memory(32, 45) == default_memory(64, 20) == "universal-copyist"
    assert read_card(default_memory(64, 64)).network["agreement"]
    assert default_memory(65, 20) == "universal"  # by windows
    assert WINDOWED == LARGEST
