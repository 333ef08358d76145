"""What is printed is data, exactly, and what was done is said even when it cannot be printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engram.campaign import open_campaign
from engram.cli import _printing as printing
from engram.cli.main import main

Captured = pytest.CaptureFixture[str]
DB = "--db=campaigns.db"
EVIL = "x\x1b[31m\n   9  2026-01-01T00:00:00+00:00  tell     boss       (0, 0) outcome 1\u202e"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> int:
    return main(["campaign", *arguments, DB])


def create(name: str = "field") -> None:
    assert run("create", name, "--size=4,4", "--budget=12", "--policy=random") == 0


def test_json_is_what_was_given(capfd: Captured) -> None:
    create()
    capfd.readouterr()
    names = ["run:100:a", "[/x] [bold]b[/bold]", ":smile:", "tab\tbell\x07", "é \u202e", "\\[x]"]
    for i, who in enumerate(names):
        assert run("tell", "field", f"--cell=0,{i % 4}", "--outcome=1", "--by", who, "--json") in (
            0,
            2,
        )
        assert run("fail", "field", f"--cell=1,{i % 4}", "--reason", who, "--json") == 0
    capfd.readouterr()
    assert run("history", "field", "--json") == 0
    events = json.loads(capfd.readouterr().out)
    assert [e["by"] for e in events if e["kind"] == "tell"] == names[:4]
    assert [e["payload"]["reason"] for e in events if e["kind"] == "fail"] == names


@pytest.mark.parametrize("name", ["[/x]", "[bold]b", ":100:", "a[link=x]b"])
def test_names_are_not_markup(name: str, capfd: Captured) -> None:
    create(name)
    assert name in capfd.readouterr().out
    for command in ("ask", "peek", "status"):
        assert run(command, name) == 0
        assert name in capfd.readouterr().out
    assert run("list") == 0
    assert name in capfd.readouterr().out


def test_control_characters_are_shown_and_lines_cannot_be_forged(capfd: Captured) -> None:
    create()
    assert run("fail", "field", "--cell=0,0", "--reason", EVIL, "--by", EVIL) == 0
    capfd.readouterr()
    assert run("history", "field") == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "x\\x1b[31m\\n   9" in lines[1]
    assert "\\u202e" in lines[1]
    assert all(line.isprintable() for line in lines)
    assert run("explain", EVIL, "--query=1") == 2
    errors = capfd.readouterr().err
    assert errors.count("\n") == 1
    assert errors.strip().isprintable()


def test_numbers_that_are_not_finite_are_null_in_json() -> None:
    assert json.loads(printing.to_json({"a": [float("nan"), 1.5], "b": float("inf")})) == {
        "a": [None, 1.5],
        "b": None,
    }


def test_a_terminal_of_few_characters_gets_escapes(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(1, "w", encoding="ascii", closefd=False) as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        printing.say("café ☃")
    assert capfdbinary.readouterr().out == b"caf\\xe9 \\u2603\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_what_was_done_is_said_when_the_answer_cannot_be_printed(
    capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()
    capfd.readouterr()
    done = {
        "tell field --cell=0,0 --outcome=1": "1 measurement(s) recorded as event 2",
        "tell field --cell=0,1 --outcome=1 --json": "1 measurement(s) recorded as event 3",
        "ask field -n 2": "reserved: query 1 at",
        "ask field --json": "reserved: query 3 at",
        "fail field --query=1": "failure recorded as event",
        "extend field --add=1": "the budget is 13 now",
        "export field --out=a.csv": "2 entries in a.csv",
    }
    for command, words in done.items():
        with monkeypatch.context() as patch, open("/dev/full", "w") as full:
            patch.setattr(sys, "stdout", full)
            assert run(*command.split()) == 2
            patch.undo()
            with pytest.raises(OSError, match="No space"):
                full.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
        errors = capfd.readouterr().err
        assert words in errors, command
        assert "only the answer was not printed" in errors
        assert errors.count("\n") == 1
    kinds = [event.kind for event in open_campaign("field", db="campaigns.db").events]
    assert kinds == ["create", "tell", "tell", "ask", "ask", "fail", "extend"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_process_whose_output_is_full_ends_with_one_line() -> None:
    command = [sys.executable, "-m", "engram", "--version"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot write to standard output: No space left on device" in done.stderr
