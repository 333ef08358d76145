"""What memories have seen is said beside every table, and no experiment searches it."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from engram.bench.runner import Executor, Plan, run_bench
from engram.bench.seen import NOT_SAID, seen_lines
from engram.cli.main import main
from engram.memory.library import read_card
from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.digest import digest
from engram.reproduction.experiments import Part
from engram.reproduction.memories import noise_memory
from engram.reproduction.page import page
from engram.testing import tiny_memory

DISCS = "Memory `universal` has seen fields of equal discs, which is what ball tasks are"
PARTS = [
    pytest.param(part, id=f"{experiment.name} {part.name}")
    for experiment in EXPERIMENTS.values()
    for part in experiment.parts
    if part.suite == "species"
]


def test_memories_are_looked_up_by_their_hash() -> None:
    universal = read_card("universal").sha256
    assert seen_lines({"universal": universal}, None)[0].startswith(DISCS)
    assert seen_lines({"universal": "another"}, {}) == [f"Memory `universal`: {NOT_SAID}."]
    recorded = {"/somewhere/mine.safetensors": "hills"}
    lines = seen_lines({"/somewhere/mine.safetensors": "x", "universal": universal}, recorded)
    assert lines[0] == "Memory `mine` has seen hills."
    assert lines[1].startswith(DISCS)


def test_a_run_keeps_what_its_memories_have_seen(
    tmp_path: Path,
    here: Executor,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_memory().save(Path("tiny.safetensors"))
    policies = "em-ptdm[preset=default],em-ptdm[prior=tiny.safetensors],random"
    plan = Plan.checked("balls", policies, tasks=(0, 1), budget=2)
    results = run_bench(plan, Path("out"), executor=here)
    assert results["seen"] == {"tiny.safetensors": "", "universal": read_card("universal").seen}
    assert main(["bench", "report", "out"]) == 0
    table, printed = Path("out/table.md").read_text(), capfd.readouterr().out
    for text in (table, printed):
        assert DISCS in text
        assert f"Memory `tiny`: {NOT_SAID}." in text


def test_the_page_says_it_in_every_section(tmp_path: Path, here: Executor) -> None:
    experiment = EXPERIMENTS["noise-memory"]
    noise = str(noise_memory(tmp_path))
    plan = Plan.checked(
        "balls", f"em-ptdm,em-ptdm[prior={noise}]", tasks=(0, 1), budget=2, prior="digits"
    )
    results = run_bench(plan, tmp_path / "out", executor=here)
    made = digest(experiment, {"balls": results}, quick=True)
    text = page({experiment.name: made}, {})
    assert f"Memory `digits` has seen {read_card('digits').seen}." in text
    assert "Memory `noise` has seen nothing: its weights are random." in text


@pytest.mark.parametrize("part", PARTS)
def test_no_experiment_searches_what_its_memory_was_trained_on(part: Part) -> None:
    recipe = shlex.split(read_card(part.prior).recipe)
    excluded = [name for flag, name in pairwise(recipe) if flag == "--exclude"]
    files = {Path(file).name for file in part.data}
    assert part.settings["species"] in excluded or not files & set(recipe)
