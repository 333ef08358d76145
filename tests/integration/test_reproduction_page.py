"""docs/reproduction.md from results of several runs: parts that were not run stay."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.run import read_digests, write_digest

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``benchmarks/reproduction.py`` with folders of its own."""
    spec = importlib.util.spec_from_file_location(
        "reproduction_script", ROOT / "benchmarks/reproduction.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    docs = tmp_path / "docs"
    images = docs / "images" / "reproduction"
    for name, folder in (("DOCS", docs), ("IMAGES", images), ("KEPT", tmp_path / "kept" / "paper")):
        folder.mkdir(parents=True)
        monkeypatch.setattr(module, name, folder)
    return module


def _run(folder: Path, name: str, parts: list[str], figures: list[str]) -> Path:
    """A run of some parts of an experiment by another commit."""
    kept = read_digests(PAPER)[name]
    some = {part: kept["parts"][part] for part in parts}
    write_digest(folder / "digests", {**kept, "commit": "new", "parts": some})
    (folder / "figures").mkdir()
    for figure in figures:
        (folder / "figures" / f"{figure}.png").write_text("new")
    return folder


def _keep(script: ModuleType, name: str, figures: list[str]) -> dict[str, Any]:
    kept = read_digests(PAPER)[name]
    write_digest(script.KEPT, kept)
    for figure in figures:
        (script.IMAGES / f"{figure}.png").write_text("old")
    return kept


def _shown(script: ModuleType) -> dict[str, str]:
    return {path.stem: path.read_text("latin-1")[:3] for path in sorted(script.IMAGES.iterdir())}


def test_parts_that_were_not_run_stay_with_their_figures(
    script: ModuleType, tmp_path: Path
) -> None:
    before = _keep(
        script, "transient", ["transient-balls", "transient-overhead", "transient-overhead-old"]
    )
    script.take(_run(tmp_path / "run", "transient", ["overhead"], ["transient-overhead", "cost"]))
    made = read_digests(script.KEPT)["transient"]
    assert made["parts"]["balls"]["commit"] == before["commit"]
    assert made["parts"]["overhead"]["commit"] == "new"
    assert _shown(script) == {"transient-balls": "old", "transient-overhead": "new"}
    assert script.links({"transient": made}) == {
        "transient": [f"images/reproduction/transient-{part}.png" for part in ("balls", "overhead")]
    }


def test_a_figure_of_all_parts_is_drawn_again(script: ModuleType, tmp_path: Path) -> None:
    _keep(script, "objects", ["objects"])
    script.take(_run(tmp_path / "run", "objects", ["7-balls"], ["objects"]))
    assert [*read_digests(script.KEPT)["objects"]["parts"]] == [f"{n}-balls" for n in range(5, 11)]
    assert _shown(script) == {"objects": "\x89PN"}


def test_what_pools_all_parts_goes_when_one_is_new(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(script, "overhead", ["overhead-all", "overhead-ship", "overhead-plane"])
    script.take(
        _run(tmp_path / "run", "overhead", ["plane", "all"], ["overhead-plane", "overhead-all"])
    )
    assert [*read_digests(script.KEPT)["overhead"]["parts"]] == ["vehicle", "plane", "ship"]
    assert _shown(script) == {"overhead-plane": "new", "overhead-ship": "old"}
    assert "overhead all: no longer kept" in capsys.readouterr().out


def test_a_quick_result_is_replaced_as_a_whole(script: ModuleType, tmp_path: Path) -> None:
    before = _keep(script, "transient", ["transient-balls", "transient-overhead"])
    write_digest(script.KEPT, {**before, "quick": True})
    script.take(_run(tmp_path / "run", "transient", ["overhead"], ["transient-overhead"]))
    assert [*read_digests(script.KEPT)["transient"]["parts"]] == ["overhead"]
    assert _shown(script) == {"transient-overhead": "new"}


def test_rows_taken_are_complete_when_none_is_missing(script: ModuleType) -> None:
    """Whether the run they are of was to search more says nothing."""
    part = EXPERIMENTS["kappa"].parts[1]
    found = json.loads((ROOT / "benchmarks/results/balls-paper-fair.json").read_text())
    found["complete"] = False

    def complete(rows: list[dict[str, Any]]) -> tuple[bool, int]:
        path = script.KEPT.parent / "some.json"
        path.write_text(json.dumps({**found, "rows": rows}))
        made = script._combined(part, "kappa:em-ptdm", ["some"])
        return made["complete"], len(made["rows"])

    rows = found["rows"]
    last = max(row["task"] for row in rows)
    assert complete(rows) == (True, 36)
    assert complete([row for row in rows if row["task"] != last]) == (True, 33)
    assert complete([row for row in rows if row["task"] != last - 1]) == (False, 33)
    script.take_rows("kappa:em-ptdm=some")
    assert not read_digests(script.KEPT)["kappa"]["complete"]
    assert _shown(script) == {"kappa-em-ptdm": "\x89PN"}


def test_the_page_is_that_of_the_results_kept(script: ModuleType) -> None:
    kept = read_digests(PAPER)
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    images = script.IMAGES
    for path in (ROOT / "docs" / "images" / "reproduction").iterdir():
        (images / path.name).write_bytes(b"")
    assert script.page(kept, script.links(kept)) == text
