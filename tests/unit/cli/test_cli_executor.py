"""``--executor``: where windows of large areas are computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from engram import InputError, ray_windows
from engram.cli._campaign import windows_of
from engram.cli._remote import OverHttp
from engram.cli.main import main
from engram.policies.local.windows import Image as Content
from engram.policies.local.windows import Seeing, Sight, in_turn


class Elsewhere(ray_windows.RayWindows):
    """Computes here, and notes what it was asked for."""

    asked: ClassVar[list[tuple[str | None, int]]] = []

    def __call__(self, see: Seeing, sights: Sequence[Sight]) -> list[Content]:
        self.asked.append((self.address, len(sights)))
        return in_turn(see, sights)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGRAM_DB", "c.db")
    monkeypatch.setattr(ray_windows, "RayWindows", Elsewhere)
    monkeypatch.setattr(Elsewhere, "asked", [])


def said(capsys: pytest.CaptureFixture[str], command: str) -> str:
    assert main(command.split()) in (0, None), capsys.readouterr().err
    return capsys.readouterr().out


def test_campaigns_have_windows_computed_where_they_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said(capsys, "campaign create m --size 66,66 --budget 30 --policy em-ptdm")
    said(capsys, "campaign tell m --cell 30,30 --outcome 1")
    here = json.loads(said(capsys, "campaign peek m -n 3 --json"))
    assert not Elsewhere.asked
    there = json.loads(said(capsys, "campaign peek m -n 3 --executor ray --address h:1 --json"))
    assert there == here
    assert {address for address, _ in Elsewhere.asked} == {"h:1"}
    Elsewhere.asked.clear()
    commands = ("ask m -n 2 --engine ray", "status m --executor ray", "verify m --engine ray")
    for row, command in enumerate(commands):
        Elsewhere.asked.clear()
        said(capsys, f"campaign tell m --cell {row},9 --outcome 0")
        said(capsys, f"campaign {command}")
        assert Elsewhere.asked, command
    said(capsys, "campaign tell m --cell 5,5 --outcome 0")
    Elsewhere.asked.clear()
    said(capsys, "campaign peek m")
    assert not Elsewhere.asked


def test_searches_have_windows_computed_where_they_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pixels = np.full((70, 70), 20, np.uint8)
    pixels[10:20, 30:40] = 220
    Image.fromarray(pixels).save("area.png")
    said(capsys, "search --image area.png --above 100 --budget 2 --size 70,70 --executor ray")
    assert Elsewhere.asked


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("campaign peek m --executor dask", "unknown executor 'dask'; choose one of local, ray"),
        ("campaign peek m --address h:1", "the local executor has none; choose --executor ray"),
        ("search --image a.png --above 1 --executor ray --device cuda", "choose --device cpu"),
        ("search --image a.png --above 1 --executor dask", "unknown executor 'dask'"),
    ],
)
def test_faults_are_named(capsys: pytest.CaptureFixture[str], command: str, words: str) -> None:
    said(capsys, "campaign create m --size 8,8 --budget 5 --policy random")
    Image.fromarray(np.eye(8, dtype=np.uint8) * 200).save("a.png")
    assert main(command.split()) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert words in lines[-1]


def test_a_server_computes_by_itself() -> None:
    remote = object.__new__(OverHttp)
    with pytest.raises(InputError, match="--executor ray: a server computes by itself"):
        windows_of(remote, "ray", None)
    with windows_of(remote, "local", None):
        pass
