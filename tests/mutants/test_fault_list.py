"""The list of deliberate faults is in step with the code (``make mutants`` runs it)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mutants import (
    FAILED,
    NEVER_ENDED,
    PASSED,
    SOURCE,
    TESTS,
    Fault,
    Verdict,
    Workshop,
    read_faults,
)

FAULTS = read_faults()


def functions(path: Path) -> set[str]:
    return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}


def test_there_are_enough_faults_and_no_two_are_the_same() -> None:
    assert len(FAULTS) >= 45
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies_once_and_its_test_exists(fault: Fault) -> None:
    path = SOURCE / "engram" / fault.file
    compile(fault.applied(path.read_text()), fault.file, "exec")
    file, _, name = fault.test.partition("::")
    assert name.partition("[")[0] in functions(TESTS / file)


@pytest.mark.parametrize("old", ["nowhere in this file", "alpha"])
def test_a_fault_that_no_longer_fits_is_named(old: str) -> None:
    text = (SOURCE / "engram/pacing.py").read_text()
    with pytest.raises(ValueError, match=f"'stale'.*{text.count(old)} times in pacing.py"):
        Fault("stale", "pacing.py", old, "", "none").applied(text)


def test_what_counts_as_killed() -> None:
    def killed(code: int) -> bool:
        return Verdict(FAULTS[0], code, 0.0, "").killed

    assert killed(FAILED)
    assert killed(NEVER_ENDED)
    assert not killed(PASSED)
    assert not killed(2)  # the fault kept the test from running at all


def test_a_copy_is_judged_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = Workshop(tmp_path)
    fault = FAULTS[0]
    seen = []

    def run(tests: list[str]) -> tuple[int, str]:
        seen.append((workshop.source / "engram" / fault.file).read_text())
        return FAILED, ""

    monkeypatch.setattr(workshop, "run", run)
    assert workshop.judge(fault).killed
    sound = (SOURCE / "engram" / fault.file).read_text()
    assert seen == [fault.applied(sound)]
    assert (workshop.source / "engram" / fault.file).read_text() == sound
