from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engram import InputError
from engram.bench.journal import NAME, Journal

IDENTITY: dict[str, Any] = {"format": "x", "commit": "c1", "options": {"budget": 5, "at": [1, 5]}}


def _filled(folder: Path, count: int = 2) -> Path:
    with Journal(folder, IDENTITY) as journal:
        for i in range(count):
            journal.add(f"unit {i}", {"value": i})
    return folder / NAME


def test_nothing_is_written_before_the_first_row(tmp_path: Path) -> None:
    with Journal(tmp_path / "new", IDENTITY):
        pass
    assert not (tmp_path / "new").exists()


def test_rows_come_back(tmp_path: Path) -> None:
    _filled(tmp_path)
    with Journal(tmp_path, IDENTITY) as journal:
        assert journal.rows == {"unit 0": {"value": 0}, "unit 1": {"value": 1}}
        journal.add("unit 2", {"value": 2})
    with Journal(tmp_path, IDENTITY) as journal:
        assert list(journal.rows) == ["unit 0", "unit 1", "unit 2"]


@pytest.mark.parametrize("lost", range(1, 40, 3))
def test_a_cut_last_line_is_dropped_and_written_again(tmp_path: Path, lost: int) -> None:
    path = _filled(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    with Journal(tmp_path, IDENTITY) as journal:
        assert list(journal.rows) == ["unit 0"]
        journal.add("unit 1", {"value": 1})
    assert path.read_bytes() == whole


def test_a_journal_cut_inside_its_header_starts_anew(tmp_path: Path) -> None:
    path = _filled(tmp_path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:10])
    with Journal(tmp_path, IDENTITY) as journal:
        assert journal.rows == {}
        journal.add("unit 0", {"value": 0})
    assert path.read_bytes() == whole


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    path = _filled(tmp_path, 3)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1][5:], *lines[2:]]))
    with pytest.raises(InputError, match=r"line 2 of .* is damaged"), Journal(tmp_path, IDENTITY):
        pass


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"commit": "c2"}, 'commit was "c1" and is "c2" now'),
        ({"options": {"budget": 6, "at": [1, 5]}}, "budget was 5 and is 6 now"),
        ({"options": {"budget": 5, "at": [1, 5], "seeds": 2}}, "seeds was null and is 2 now"),
    ],
)
def test_results_of_another_run_are_refused(
    tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    path = _filled(tmp_path)
    before = path.read_bytes()
    other = {**IDENTITY, **change}
    with pytest.raises(InputError) as refusal, Journal(tmp_path, other):
        pass
    assert word in str(refusal.value)
    assert "--fresh" in str(refusal.value)
    assert path.read_bytes() == before


def test_fresh_discards_only_when_there_is_something_new(tmp_path: Path) -> None:
    path = _filled(tmp_path)
    before = path.read_bytes()
    other = {**IDENTITY, "commit": "c2"}
    with Journal(tmp_path, other, fresh=True):
        pass
    assert path.read_bytes() == before
    with Journal(tmp_path, other, fresh=True) as journal:
        journal.add("a", {})
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first == other
    assert second == {"key": "a", "row": {}}


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    _filled(tmp_path)
    with (
        Journal(tmp_path, IDENTITY),
        pytest.raises(InputError, match="another run is writing"),
        Journal(tmp_path, IDENTITY),
    ):
        pass


def test_two_runs_that_start_in_an_empty_folder_do_not_mix(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY) as late:
        _filled(tmp_path)
        with pytest.raises(InputError, match="cannot write"):
            late.add("unit 9", {})
    with Journal(tmp_path, IDENTITY) as journal:
        assert "unit 9" not in journal.rows


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"), Journal(tmp_path / "file", IDENTITY):
        pass
