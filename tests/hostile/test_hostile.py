"""A part of the hostile files, and proof that the run notices what it looks for."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import hostile_run
from hostile_files import Case, cases


def test_there_are_two_hundred_of_all_kinds() -> None:
    found = cases()
    assert len(found) >= 200
    assert len({case.about for case in found}) == len(found)
    assert {Path(case.name).suffix for case in found} == {
        ".geojson", ".kml", ".gpx", ".gpkg", ".shp", ".zip", ".tif", ".csv",
    }  # fmt: skip


def test_hostile_files_do_no_harm() -> None:
    verdicts = hostile_run.attack(every=7)
    assert [v for v in verdicts if v.fault] == []
    assert sum(v.code == 2 for v in verdicts) > 20


def test_sidecars_are_left_alone() -> None:
    """Files among others that a library would look for, and names it would take apart."""
    baited = [i for i, case in enumerate(cases()) if case.beside and not case.parts]
    verdicts = hostile_run.attack(only=baited)
    assert len(verdicts) == 8
    assert [v.fault for v in verdicts] == [""] * 8


def test_the_run_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "secret.txt").write_text("bait")

    def peeks(words: list[str]) -> int:
        (tmp_path / "trap" / "secret.txt").read_text()
        return 0

    def beside(words: list[str]) -> int:
        (tmp_path / "given" / "a.prj").read_text()
        return 0

    def raises(words: list[str]) -> int:
        raise KeyError("x")

    def chatters(words: list[str]) -> int:
        sys.stderr.write("error: a\nerror: b\n")
        return 2

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        def calls(words: list[str]) -> int:
            with pytest.raises((URLError, TimeoutError)):
                urlopen(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.1)
            return 0

        expected = {
            peeks: "opened secret.txt",
            beside: "opened a.prj",
            raises: "traceback",
            chatters: "exit code 2",
            calls: "called a server",
        }
        for main, words in expected.items():

            def speaking(given: list[str], main: object = main) -> int:
                sys.stdout.write("done\n")
                return main(given)  # type: ignore[operator, no-any-return]

            monkeypatch.setattr(hostile_run.entry, "main", speaking)
            case = Case("x", "tell.csv", b"x", {"a.prj": b"x"})
            found = hostile_run.judged(case, tmp_path, tmp_path / "c.db", server)
            assert found.fault.startswith(words), main.__name__
