"""The commands of docs/layers.md, run on small data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layers.md"
BLOCKS = re.findall(r"<!-- run -->\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """12x12 cells; target lies where magnetics are high, in the rock of number 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGRAM_DB", str(tmp_path / "campaigns.db"))
    rng = np.random.RandomState(0)
    high = rng.uniform(size=(24, 24))
    cells = high.reshape(12, 2, 12, 2).mean(axis=(1, 3))
    target = cells > np.quantile(cells, 0.8)
    np.save("magnetics.npy", high)
    np.save("elevation.npy", rng.uniform(size=(6, 6)))
    np.save("trail.npy", -cells)
    np.save("drift.npy", np.where(target, 0.4, 0.05))
    Image.fromarray((1 + target).astype(np.uint8)).save("rock.png")
    Image.fromarray((255 * target).astype(np.uint8)).save("scene.png")
    np.savez("area.npz", gold=target, magnetics=cells)
    places = [(r, c) for r in range(12) for c in range(12)]
    effort = [f"{r},{c},{'' if r == 3 else round(9 * cells[r, c])}" for r, c in places]
    Path("cells.csv").write_text("row,col,effort\n" + "\n".join(effort) + "\n")
    some = [places[i] for i in rng.permutation(144)[:24]]
    told = [f"{r},{c},{int(target[r, c])}" for r, c in some]
    Path("visits.csv").write_text("row,col,outcome\n" + "\n".join(told) + "\n")
    return tmp_path


def run(line: str) -> None:
    assert line.startswith("engram ")
    assert main(shlex.split(line)[1:]) == 0, line


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_command_runs(number: int, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line in BLOCKS[number].strip().splitlines():
        run(line)
    said = capfd.readouterr().out
    if "status" in BLOCKS[number]:
        assert "of log-odds from its low end to its high end" in said
    if "explain" in BLOCKS[number]:
        assert "Layers, in log-odds beside an average cell: " in said
        assert "rock: " in said


def test_there_is_a_block_for_each_reader() -> None:
    assert len(BLOCKS) == 4


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--layer rock=rock.png:most", "'most' is none of more, less, kinds"),
        ("--layer a=elevation.npy --layer a=trail.npy", "layer 'a' is given twice"),
        ("--layer a=nowhere.tif", "no file at nowhere.tif"),
        ("--layer rock=rock.png:kinds --policy random", "'random' has no use for layers"),
        ("--belief trail.npy", "belief runs from"),
        ("--layer flat=flat.npy", "'flat' is 7 in every open cell"),
        ("--layer wide=wide.npy", "do not have the proportions of the area"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    more: str, words: str, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    np.save("flat.npy", np.full((12, 12), 7.0))
    np.save("wide.npy", np.arange(40.0).reshape(2, 20))
    policy = "" if "--policy" in more else "--policy gp"
    line = f"campaign create x --size 12,12 --budget 5 {policy} {more}"
    assert main(shlex.split(line)) == 2
    said = capfd.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
    assert not (data / "campaigns.db").exists()
