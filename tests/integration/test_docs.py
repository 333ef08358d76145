"""Pages quote result files as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from engram.bench.seen import NOT_SAID, seen_lines
from engram.cli.main import app

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

    commands = paths(typer.main.get_command(app), "engram")
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
