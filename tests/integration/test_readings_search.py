"""Searches by readings of the paper: some alone, and a table of those there are."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from engram import ball_task
from engram.policies.spec import PolicyChoice

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``benchmarks/readings_search.py``, whose searches take no time."""
    spec = importlib.util.spec_from_file_location(
        "readings_search_script", ROOT / "benchmarks/readings_search.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = {"150": 0.5, "200": 0.6, "250": 0.7, "seconds": 0.1}
    monkeypatch.setattr(module, "searched", lambda spec, number: {"task": number, **made})
    return module


def _run(monkeypatch: pytest.MonkeyPatch, script: ModuleType, out: Path, *more: str) -> list[str]:
    """Readings in the table."""
    monkeypatch.setattr(sys, "argv", ["readings_search.py", "--out", str(out), *more])
    script.main()
    lines = out.with_suffix(".md").read_text().splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {8}
    return [line.split(" | ")[0][2:] for line in lines[2:] if line.startswith("|")]


def test_some_readings_alone(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "some.json"
    dps = [name for name in script.SEARCHES if name.endswith("guided by DPS")]
    assert _run(monkeypatch, script, out, "--tasks", "0:2", "--only", "by DPS") == dps
    more = _run(monkeypatch, script, out, "--tasks", "2:3", "--only", "joint", "--only", "shared")
    assert len(more) == 4
    assert (
        "`python benchmarks/readings_search.py --tasks 0:3`" in out.with_suffix(".md").read_text()
    )
    assert [row["task"] for row in json.loads(out.read_text())["rows"]] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(SystemExit, match="--only 'pigeon': no reading"):
        _run(monkeypatch, script, out, "--only", "pigeon")


def test_readings_are_what_their_names_say(script: ModuleType) -> None:
    kept = json.loads((ROOT / "benchmarks/results/readings-search.json").read_text())["rows"]
    for row in kept:
        before, now = (
            PolicyChoice.parse(spec, preset="default", prior="digits")
            for spec in (row["spec"], script.SEARCHES[row["reading"]])
        )
        assert (now.name, dict(now.options)) == (before.name, dict(before.options))
    chosen = dict(_choice(script, script.CHOSEN).options)
    for name, guidance in script.GUIDANCES.items():
        other = _choice(script, f"{script.CHOSEN}, guided by {name}")
        assert dict(other.options) == {**chosen, "guidance": guidance}
        alone = _choice(script, f"raw Eq. 12, no h, guided by {name}")
        assert alone.name == "diffatd"
        alone.build(ball_task(0), 250, 0)


def _choice(script: ModuleType, reading: str) -> PolicyChoice:
    return PolicyChoice.parse(script.SEARCHES[reading], preset="default", prior="digits")


def test_what_is_said_of_readings_follows_from_their_rows(script: ModuleType) -> None:
    def rows(reading: str, rates: tuple[float, ...]) -> list[dict[str, object]]:
        return [
            {"reading": reading, "task": k, **{str(b): rate for b in script.AT}}
            for k, rate in enumerate(rates)
        ]

    kept = rows(script.CHOSEN, (0.70, 0.80, 0.90)) + rows(script.WITHOUT, (0.60, 0.71, 0.79))
    kept += rows("normalised Eq. 12, no h", (0.75, 0.70, 0.95))
    first, second = script.words(kept)
    assert first.startswith(f"* Below the chosen reading at 250: {script.WITHOUT}. Above it: none")
    assert "the memory told measurements: +0.100 ±0.025 at 150 (above)" in second
