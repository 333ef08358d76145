"""Cards say what a memory has seen."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from engram.memory.consolidation import ConsolidationPlan, consolidate
from engram.memory.library import SHIPPED, read_card
from engram.memory.permanent import PermanentMemory
from engram.memory.recipes import source_from, train_memory
from engram.memory.training import TrainingPlan
from engram.seeding import particle_noise
from engram.testing import tiny_memory

NAMES = sorted(path.stem for path in SHIPPED.glob("*.json"))
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_card_says_what_was_seen_and_the_page_repeats_it(name: str) -> None:
    card = read_card(name)
    assert card.seen
    assert not card.seen.endswith(".")
    described = " ".join((ROOT / "docs" / "memories.md").read_text(encoding="utf-8").split())
    assert f"* `{name}`: {card.seen}." in described


def test_what_matters_for_the_benchmarks_is_named() -> None:
    for name in ("universal", "universal-64", "universal-copyist", "natural"):
        assert "equal discs" in read_card(name).seen
    for name in ("figures", "copyist"):
        card = read_card(name)
        assert "no discs" in card.seen
        assert card.parent == read_card("digits").sha256  # which has not seen discs either
        assert shlex.split(card.recipe)[3] == "repeats"
    species = read_card("species")
    for word in shlex.split(species.recipe):
        if word.endswith(".csv.gz"):
            table = word.removesuffix(".csv.gz")
            assert table in species.seen or table == "feederwatch_2021"
    assert "FeederWatch 2021" in species.seen
    for excluded in species.recipe.split('"')[1::2]:
        assert excluded in species.seen.partition("no record named")[2]


def test_a_card_without_the_field_still_loads(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    before = tiny_memory().save(path)
    data = json.loads(path.with_suffix(".json").read_text())
    del data["seen"]
    path.with_suffix(".json").write_text(json.dumps(data))
    assert PermanentMemory.load(path).card == before


def test_words_on_the_card_are_no_part_of_the_hash(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    before = tiny_memory().save(path)
    data = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps({**data, "seen": "hills"}))
    after = PermanentMemory.load(path).card
    assert (after.seen, after.sha256) == ("hills", before.sha256)


def test_training_and_consolidation_write_it() -> None:
    source, start = source_from("scenes", size=(8, 8)), tiny_memory(size=8)
    plan, words = TrainingPlan(steps=1, batch=4), {"summary": "", "licence": ""}
    config = start.denoiser.network.config
    alone = train_memory(source, config, plan, name="a", **words)
    assert alone.card.seen == source.description
    later = train_memory(source, config, plan, name="b", start=alone, **words)
    assert later.card.seen == f"{source.description}; before that, as 'a': {source.description}"
    lessons = particle_noise(0, "train", (), 3, (1, 8, 8))
    wiser = consolidate(later, [lessons], ConsolidationPlan(steps=1, batch=4, rehearsed=2))
    assert wiser.card.seen.startswith(f"{later.card.seen}; since then 3 areas that it imagined")
