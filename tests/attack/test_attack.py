"""A bounded number of cases of the attack, and proof that it notices what it looks for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import attack_case
from attack_case import Session, Tally
from attack_lines import SECRET
from attack_run import KINDS, attack

from engram.cli import main as entry


@pytest.mark.parametrize("kind", KINDS)
def test_the_attack_finds_nothing(kind: str) -> None:
    tally = attack(75, seed=12, kinds=(kind,))
    assert not tally.faults, "\n\n".join(tally.examples)
    assert tally.cases[kind] >= 75
    assert tally.codes[0] > 0
    assert tally.codes[2] > 0


def _faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: object) -> dict[str, int]:
    """What the attack says of a command line that behaves like ``main``."""
    monkeypatch.setattr(entry, "main", main)
    monkeypatch.chdir(tmp_path)
    tally = Tally()
    (tmp_path / "old.csv").write_text("old")
    session = Session("files", "0", tally, tmp_path, verbose=False)
    session.case(["campaign", "export", "f", "--json"])
    return dict(tally.faults)


def test_the_attack_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(words: list[str]) -> int:
        raise KeyError("x")

    def hangs(words: list[str]) -> int:
        while True:
            pass

    def leaks(words: list[str]) -> int:
        sys.stderr.write(f"error: {SECRET}\n")
        return 2

    def chatters(words: list[str]) -> int:
        sys.stderr.write("error: one\nand two\n")
        return 2

    def cuts(words: list[str]) -> int:
        Path("old.csv").write_text("o")
        sys.stderr.write("error: disk full\n")
        return 2

    def leaves(words: list[str]) -> int:
        Path(".old.csv.0.partial").write_text("o")
        sys.stdout.write("{}")
        return 0

    def half(words: list[str]) -> int:
        Path("old.csv").write_text("row,col,outcome,noise,value\n0,0")
        sys.stdout.write("{}")
        return 0

    def no_json(words: list[str]) -> int:
        sys.stdout.write("{'a'}")
        return 0

    monkeypatch.setattr(attack_case, "SECONDS", 0.2)
    expected = {
        raises: "tracebacks",
        hangs: "hangs",
        leaks: "leaks",
        chatters: "messages",
        cuts: "half-written",
        leaves: "half-written",
        half: "half-written",
        no_json: "JSON",
    }
    for main, kind in expected.items():
        folder = tmp_path / main.__name__
        folder.mkdir()
        assert _faults(folder, monkeypatch, main).keys() == {kind}, main.__name__


def test_the_attack_notices_what_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tally = Tally()
    session = Session("files", "0", tally, tmp_path, verbose=False)
    line = "campaign create f --size 4,4 --budget 4 --policy random --db campaigns.db --json"
    assert session.case(line.split()).code == 0
    tell = "campaign tell f --cell 0,0 --outcome 1 --db campaigns.db --json"
    told = session.case(tell.split())
    assert told.code == 0
    session.settle()
    assert (dict(tally.faults), tally.acknowledged) == ({}, 1)
    session.acknowledged.append(("f", 3, "tell"))
    session.settle()
    assert dict(tally.faults) == {"lost": 1}
