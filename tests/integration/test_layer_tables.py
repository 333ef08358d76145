"""Tables of layers from several runs: rows are taken once, and say of which code they are."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engram.bench.runner import read_results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``benchmarks/layers.py`` with a folder of results of its own."""
    spec = importlib.util.spec_from_file_location("layers_script", ROOT / "benchmarks/layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "layers_script", module)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def kept_run() -> dict[str, Any]:
    """A run that is kept, of six or more regions."""
    return read_results(ROOT / "benchmarks/results/layers-chickadee.json")


def part(tasks: list[int], commit: str, **options: Any) -> dict[str, Any]:
    """Some tasks of it, as if another code had searched them."""
    run = kept_run()
    rows = [{k: v for k, v in row.items() if k != "commit"} for row in run["rows"]]
    rows = [row for row in rows if row["task"] in tasks]
    return {**run, "rows": rows, "commit": commit, "options": {**run["options"], **options}}


def test_runs_of_some_tasks_are_one_table(script: ModuleType, tmp_path: Path) -> None:
    runs = [part([0, 1], "a" * 40), part([1, 2], "b" * 40)]
    script.keep("chickadee", runs, "engram bench run")
    found = read_results(tmp_path / "layers-chickadee.json")
    assert [row["task"] for row in found["rows"]] == [0] * 3 + [1] * 3 + [2] * 3
    assert [row.get("commit") for row in found["rows"]] == ["a" * 40] * 3 + [None] * 6
    assert found["commit"] == "b" * 40
    text = (tmp_path / "layers-chickadee.md").read_text()
    planned = script.PLANS["chickadee"].tasks
    assert f"3 tasks of {planned}: the run was stopped" in text
    assert "em-ptdm on 1 tasks at aaaaaaa" in text
    assert "bbbbbbb" not in text.rpartition("Searched before")[2]


def test_rows_of_other_settings_are_left_out(script: ModuleType) -> None:
    other = part([0], "a" * 40, budget=100)
    assert {row["task"] for row in script.merged([other, part([2], "b" * 40)])["rows"]} == {2}


def test_tasks_that_a_policy_has_not_searched_wait(script: ModuleType, tmp_path: Path) -> None:
    run = part([0, 1], "a" * 40)
    run["rows"] = [r for r in run["rows"] if (r["policy"], r["task"]) != ("gp", 1)]
    script.keep("chickadee", [run], "engram bench run")
    found = read_results(tmp_path / "layers-chickadee.json")
    assert {row["task"] for row in found["rows"]} == {0}


def test_policies_of_another_table_are_taken_from_it(script: ModuleType, tmp_path: Path) -> None:
    script.keep("chickadee", [part([0, 1, 2], "a" * 40)], "engram bench run")
    run = part([0, 1], "b" * 40)
    names = script.PLANS["chickadee-noise"].policies.split(",")
    run["rows"] = [
        {**row, "policy": names[["em-ptdm", "gp", "layer-order"].index(row["policy"])]}
        for row in run["rows"]
    ]
    script.keep("chickadee-noise", [run], "engram bench run")
    found = read_results(tmp_path / "layers-chickadee-noise.json")
    own = {row["task"]: row for row in found["rows"] if row["policy"] == "em-ptdm[layers=effort]"}
    assert own.keys() == {0, 1}
    assert {row["commit"] for row in own.values()} == {"a" * 40}
    changed = json.loads((tmp_path / "layers-chickadee.json").read_text())
    changed["options"]["memories"] = {"species": "0" * 64}
    (tmp_path / "layers-chickadee.json").write_text(json.dumps(changed))
    with pytest.raises(SystemExit, match="memories is not that of this table"):
        script.keep("chickadee-noise", [run], "engram bench run")
