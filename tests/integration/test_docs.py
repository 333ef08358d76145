"""Pages quote result files as they are."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engram.bench.seen import NOT_SAID, seen_lines
from engram.cli.main import ROOMS, command_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS = [
    path
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if json.loads(path.read_text(encoding="utf-8")).get("format") == "engram-bench-1"
]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_what_memories_have_seen_stands_beside_every_table(path: Path) -> None:
    results = json.loads(path.read_text(encoding="utf-8"))
    table = path.with_suffix(".md").read_text(encoding="utf-8")
    for line in seen_lines(results["options"]["memories"], results.get("seen")):
        assert line in table
        assert NOT_SAID not in line


def test_every_command_is_on_a_page() -> None:
    """A command that no page names is found by nobody."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)

    def paths(command: Any, path: str) -> list[str]:
        inside = getattr(command, "commands", None)
        if inside is None:
            return [path]
        return [p for name, sub in inside.items() for p in paths(sub, f"{path} {name}")]

    commands = paths(command_of(*ROOMS), "engram")
    assert len(commands) > 20
    table = "".join(line for line in text.splitlines() if line.startswith("| `"))  # of campaigns
    for path in commands:
        name = path.rpartition(" ")[2]
        listed = path.startswith("engram campaign") and re.search(rf"`{name}[` ]", table)
        assert listed or path in text, f"no page names {path!r}"


def test_pages_agree_with_the_result_files_they_quote() -> None:
    script = ROOT / "benchmarks" / "include_results.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def script() -> ModuleType:
    """``benchmarks/include_results.py``."""
    spec = importlib.util.spec_from_file_location(
        "include_results", ROOT / "benchmarks" / "include_results.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_claims_are_computed_from_the_rows_kept(script: ModuleType) -> None:
    """Whatever stood between the marks: above, below or not told apart, by the intervals."""
    rows = json.loads((ROOT / "benchmarks/results/balls-digits.json").read_text())["rows"]
    rate = {(r["policy"], r["task"]): r["sr"]["250"] for r in rows}
    gains = [rate["em-ptdm", k] - rate["random", k] for k in range(20)]
    mark = "<!-- says balls-digits: random - em-ptdm -->"
    found = script.included(f"x {mark}best everywhere<!-- said --> y")
    assert found.startswith(f"x {mark}below at 150, 200, 250 (-")
    assert f"{-sum(gains) / 20:+.3f} ±" in found
    assert found.endswith("<!-- said --> y")
    assert "best" not in found
    with pytest.raises(SystemExit, match="no tasks that both nobody and gp searched"):
        script.included("<!-- says balls-digits: nobody - gp --><!-- said -->")


def test_claims_compare_rows_of_two_files_on_the_tasks_of_both(script: ModuleType) -> None:
    """Of the same policy too, as it was and as it is."""
    rate = {}
    for name, tasks in (("balls-universal", 40), ("balls-digits", 20)):
        rows = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())["rows"]
        own = {r["task"]: r["sr"]["250"] for r in rows if r["policy"] == "em-ptdm"}
        assert len(own) == tasks
        rate[name] = own
    gain = sum(rate["balls-universal"][k] - rate["balls-digits"][k] for k in range(20)) / 20
    mark = "<!-- says balls-universal: em-ptdm - balls-digits: em-ptdm -->"
    found = script.included(f"{mark}older words<!-- said -->")
    assert found.startswith(mark)
    assert f"{gain:+.3f} ±" in found
    assert "older" not in found
    with pytest.raises(SystemExit, match="balls-digits and overhead are not of the same suite"):
        script.included("<!-- says balls-digits: gp - overhead: gp --><!-- said -->")
