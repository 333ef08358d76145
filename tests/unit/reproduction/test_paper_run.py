"""``engram bench paper`` as a whole, on an experiment that takes a moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from engram.cli.main import main
from engram.reproduction import catalogue, page, run
from engram.reproduction.command import duration
from engram.reproduction.experiments import Experiment, Part
from engram.reproduction.page import overview
from engram.reproduction.published import Published
from engram.reproduction.run import read_digests

Captured = pytest.CaptureFixture[str]

TOY = Experiment(
    "toy",
    "A toy",
    "Table 0",
    "Is spread better than random?",
    ("rates", "trials", "distances", "evidence"),
    "spread",
    tuple(
        Part(f"{n}-balls", "balls", ("spread", "random"), (10, 20), 2, 2, settings={"balls": n})
        for n in (5, 6)
    ),
    (Part("5-balls", "balls", ("spread", "random"), (10,), 1, settings={"balls": 5}),),
    Published(
        "Table 0", "toys", (10, 20), {"spread": (0.5, 0.6), "random": (0.2, 0.3)}, (0.2, 0.3)
    ),
    pool="all",
    bear="A toy.",
)
NEEDY = Experiment("needy", "N", "none", "?", ("objects", "cost"), "random",
                   (Part("", "tumour", ("random",), (9,), 1, data=("extra/none.npz",)),
                    Part("6-balls", "balls", ("random",), (9,), 2, settings={"balls": 6})),
                   (Part("6-balls", "balls", ("random",), (9,), 1),))  # fmt: skip
READER = Experiment("reader", "R", "none", "?", ("objects",), "spread", reads="toy")


def _here(work: Any, units: Sequence[Any], **_: Any) -> Iterator[tuple[int, Any]]:
    """Units in this process."""
    for i, unit in enumerate(units):
        yield i, work(unit, lambda taken, found: None)


def _at_commit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in ("runner", "provenance"):
        monkeypatch.setattr(f"engram.bench.{module}.commit", lambda: name)


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = {e.name: e for e in (TOY, NEEDY, READER)}
    for module in (catalogue, page, run):
        monkeypatch.setattr(module, "EXPERIMENTS", toys)
    monkeypatch.setattr("engram.bench.runner.run_pool", _here)
    _at_commit(monkeypatch, "one")


def _paper(out: Path, *more: str) -> int:
    return main(["bench", "paper", "--out", str(out), "--workers", "1", *more])


def test_everything_is_written_and_nothing_run_twice(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _paper(tmp_path) == 0
    output, errors = capfd.readouterr()
    assert "3 experiments" in output
    assert "needy: extra/none.npz" in errors
    for name in (
        "toy-5-balls",
        "toy-all",
        "toy-6-balls-paired",
        "toy-all-trials",
        "reader",
        "needy",
    ):
        for suffix in ("md", "csv", "tex"):
            assert (tmp_path / "tables" / f"{name}.{suffix}").read_text()
    for path in (tmp_path / "figures").iterdir():
        with Image.open(path) as image:
            assert image.width > 400
    text = (tmp_path / "report.md").read_text()
    assert "## A toy" in text
    assert "* needy: needs `extra/none.npz`" in text
    assert "**Bear in mind.** A toy." in text
    for link in ("figures/toy-all.png", "figures/toy-5-balls-distances.png"):
        assert f"({link})" in text
        assert (tmp_path / link).exists()
    digests = read_digests(tmp_path / "digests")
    assert [*digests] == ["toy", "needy", "reader"]
    assert digests["toy"]["parts"]["all"]["tasks"] == 4
    assert digests["toy"]["parts"]["5-balls"]["trials"]["random"]["20"]["n"] == 2
    assert (tmp_path / "digests/toy.json").stat().st_size < 20_000
    head, lines = overview(digests)
    assert [line[0] for line in lines] == ["toy 5-balls", "toy 6-balls", "toy all"]
    assert lines[0][head.index("gap closed, paper")] == "43%"
    assert [line[head.index("tasks")] for line in lines] == ["2", "2", "4"]
    assert str(tmp_path) not in text

    def none_left(work: Any, units: Sequence[Any], **_: Any) -> Iterator[Any]:
        assert not units, "a finished unit was run again"
        yield from ()

    monkeypatch.setattr("engram.bench.runner.run_pool", none_left)
    before = (tmp_path / "toy/5-balls/journal.jsonl").read_bytes()
    (tmp_path / "report.md").unlink()
    assert _paper(tmp_path) == 0
    assert (tmp_path / "toy/5-balls/journal.jsonl").read_bytes() == before
    assert (tmp_path / "report.md").read_text() == text


def test_a_part_is_run_alone_and_the_rest_later(tmp_path: Path, capfd: Captured) -> None:
    assert _paper(tmp_path, "--quick", "--only", "toy:6-balls") == 2
    assert "'6-balls' of toy with --quick; choose among toy:5-balls" in capfd.readouterr().err
    assert _paper(tmp_path, "--only", "toy:6-balls") == 0
    assert [*read_digests(tmp_path / "digests")["toy"]["parts"]] == ["6-balls"]
    assert not (tmp_path / "toy" / "5-balls").exists()
    assert _paper(tmp_path, "--only", "toy") == 0
    assert [*read_digests(tmp_path / "digests")["toy"]["parts"]] == ["5-balls", "6-balls", "all"]


def test_kinds_and_versions_are_not_mixed(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _paper(tmp_path, "--quick", "--only", "toy") == 0
    assert "A quick run" in (tmp_path / "report.md").read_text()
    assert _paper(tmp_path, "--only", "toy") == 2
    assert "holds a quick run" in capfd.readouterr().err
    _at_commit(monkeypatch, "another")
    assert _paper(tmp_path, "--quick", "--only", "toy") == 2
    assert "holds results of another run" in capfd.readouterr().err
    assert _paper(tmp_path, "--quick", "--only", "needy") == 0
    _, errors = capfd.readouterr()
    assert "toy: its results are of another version" in errors
    assert "## A toy" not in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "paper.json").read_text()) == {"quick": True}


def test_faults_are_named(tmp_path: Path, capfd: Captured) -> None:
    for more, message in (
        (("--only", "toys"), "unknown experiment 'toys'"),
        (("--data-root", str(tmp_path / "x")), "no folder of data"),
        (("--tasks", "0"), "tasks=0"),
        (("--engine", "abacus"), "unknown executor"),
    ):
        assert _paper(tmp_path / "out", *more) == 2
        assert message in capfd.readouterr().err


def test_durations() -> None:
    assert [duration(s) for s in (5, 90, 4000, 7200)] == ["5 s", "2 min", "67 min", "2.0 h"]
