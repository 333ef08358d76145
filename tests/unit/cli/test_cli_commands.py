"""What the commands do when all is well, in this process and with policies that are quick."""

from __future__ import annotations

import gc
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram.cli.main import RARELY, main
from engram.memory.library import user_folder
from engram.memory.permanent import PermanentMemory
from engram.testing import tiny_memory

Captured = pytest.CaptureFixture[str]


def run(command: str, *more: str) -> int:
    return main([*command.split(), *more])


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_search_writes_report_and_results(tmp_path: Path, capfd: Captured) -> None:
    pixels = np.full((40, 30, 3), 20, np.uint8)
    pixels[8:20, 8:16] = 220
    Image.fromarray(pixels).save("area.jpg", quality=95)
    command = "search --image area.jpg --above 120 --policy random --budget 20 --cell 2,3 --out o"
    assert run(command, "--seed", "3") == 0
    output, errors = capfd.readouterr()
    assert "o/report.html" in output
    assert "Colours were turned into brightness" in errors
    results = json.loads(Path("o/results.json").read_text())
    assert results["size"] == [40, 30]
    assert results["cell"] == [2, 3]
    assert len(results["visited"]) == 20
    row = results["rows"][0]
    assert row["policy"] == "random"
    found = sum(step["outcome"] > 0 for step in results["visited"])
    assert row["sr"]["20"] == pytest.approx(found / min(20, row["targets"]))
    assert sorted(p.name for p in Path("o").iterdir()) == [
        "report.html",
        "results.json",
        "search.gif",
    ]
    again = json.loads(Path("o/results.json").read_text())
    assert run(command, "--seed", "3", "--json") == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["visited"] == again["visited"]


def test_search_takes_the_goal(capfd: Captured) -> None:
    pixels = np.full((40, 30), 20, np.uint8)
    pixels[8:10, 8:10] = pixels[20:22, 3:6] = 220
    Image.fromarray(pixels).save("area.png")
    command = "search --image area.png --above 120 --policy gp --budget 20 --cell 2,3 --out o"
    assert run(command, "--goal", "objects") == 0
    results = json.loads(Path("o/results.json").read_text())
    assert results["rows"][0]["policy"] == "gp[goal=objects]"
    assert "Goal: separate targets" in Path("o/report.html").read_text()
    assert run(command, "--goal", "everything") == 2
    assert "goal='everything': choose one of cells, objects" in capfd.readouterr().err


def test_a_plain_memory_is_said_to_run_the_paper_preset(capfd: Captured) -> None:
    """One line on standard error, wherever the search itself runs."""
    tiny_memory(conditioned=False).save(Path("plain.safetensors"))
    np.save("area.npy", np.eye(8))
    area = "search --image area.npy --above 0.5 --budget 1 --prior plain.safetensors --out"
    balls = "--policies gp,diffatd --tasks 0:1 --budget 1 --workers 1 --prior plain.safetensors"
    warning = "warning: memory 'tiny' takes no measurements as input: the search runs the paper"
    for command in (f"{area} o", f"bench run balls {balls} --out b"):
        assert run(command) == 0
        errors = capfd.readouterr().err
        assert errors.count(warning) == 1
        assert errors.count("PresetWarning") == 0
    assert run(f"{area} p --preset paper") == 0
    assert "warning" not in capfd.readouterr().err


def test_a_large_picture_is_searched_in_cells_of_its_own_pixels(capfd: Captured) -> None:
    pixels = np.full((1190, 1600), 30, np.uint8)
    pixels[250:520, 400:820] = 230
    Image.fromarray(pixels).save("large.png")
    assert run("search --image large.png --above 100 --policy gp --budget 30 --cell 100,100") == 0
    assert "12x16 cells" in capfd.readouterr().err
    results = json.loads(Path("search/results.json").read_text())
    assert (results["size"], results["cell"], results["cells"]) == (
        [1190, 1600],
        [100] * 2,
        [12, 16],
    )
    assert results["rows"][0]["targets"] == 4 * 5


def test_search_takes_a_quarter_of_the_cells_by_default(capfd: Captured) -> None:
    np.save("area.npy", np.eye(16))
    mask = np.eye(16, dtype=bool)
    np.save("mask.npy", mask)
    command = "search --image area.npy --target mask.npy --policy random --json"
    assert run(command) == 0
    results = json.loads(capfd.readouterr().out)
    assert results["budget"] == 64
    assert results["rows"][0]["targets"] == 16
    assert Path("search/report.html").exists()


def test_list_and_info_know_the_shipped_memories(capfd: Captured) -> None:
    assert run("prior list") == 0
    assert "digits" in capfd.readouterr().out
    assert run("prior list --json") == 0
    listed = {card["name"]: card for card in json.loads(capfd.readouterr().out)}
    assert {"digits", "universal"} <= listed.keys()
    assert run("prior info digits") == 0
    assert listed["digits"]["sha256"] in capfd.readouterr().out
    assert run("prior info digits --json") == 0
    assert json.loads(capfd.readouterr().out)["parameters"] == listed["digits"]["parameters"]


def test_a_damaged_card_does_not_spoil_the_list(capfd: Captured) -> None:
    folder = user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / "odd.safetensors").write_bytes(b"")
        (folder / "odd.json").write_text("{}")
        assert run("prior list") == 0
        output, errors = capfd.readouterr()
        assert "digits" in output
        assert "left out" in errors
        assert "odd.json" in errors
    finally:
        shutil.rmtree(folder)


def test_train_and_sample(tmp_path: Path, capfd: Captured) -> None:
    command = (
        "prior train scenes --name small --out m/small.safetensors --size 8,8 --steps 2 --batch 4 "
        "--mixed --widths 4 --samples 4 --licence CC0 --summary tiny"
    )
    assert run(command) == 0
    assert sorted(p.name for p in Path("m").iterdir()) == [
        "small.json",
        "small.png",
        "small.safetensors",
    ]
    card = json.loads(Path("m/small.json").read_text())
    assert card["recipe"] == f"engram {command}"
    assert (card["licence"], card["summary"], card["steps"]) == ("CC0", "tiny", 2)
    assert card["network"]["conditioned"] is True
    capfd.readouterr()
    assert run("prior sample m/small.safetensors -n 5 --steps 2 --out s.png") == 0
    assert "5 samples: s.png" in capfd.readouterr().out
    with Image.open("s.png") as sheet:
        assert sheet.size == (2 * (3 * 10 + 2), 2 * (2 * 10 + 2))
    assert run(command, "--overwrite", "--plain") == 0
    assert json.loads(Path("m/small.json").read_text())["network"]["conditioned"] is False


def test_samples_of_a_plain_memory(capfd: Captured) -> None:
    tiny_memory(conditioned=False).save(Path("plain.safetensors"))
    command = "prior sample plain.safetensors -n 2 --steps 2 --size 8,16 --out s.png"
    assert run(command) == 0
    assert Path("s.png").exists()


def test_bench_run_and_report(tmp_path: Path, capfd: Captured) -> None:
    command = "bench run balls --policies random,random[preset=paper] --tasks 3:5 --budget 10"
    command += " --at 5,10 --workers 1 --out runs"
    assert run(command, "--json") == 0
    output, errors = capfd.readouterr()
    assert errors == ""
    printed = json.loads(output)
    assert printed == json.loads(Path("runs/results.json").read_text())
    assert [row["task"] for row in printed["rows"]] == [3, 3, 4, 4]
    assert run(command) == 0
    assert "paired over tasks" in capfd.readouterr().out
    assert run("bench report runs") == 0
    output = capfd.readouterr().out
    for name in ("table.md", "sr.png", "calibration.png"):
        assert Path("runs", name).stat().st_size > 0
        assert name in output
    assert run("bench report runs --json") == 0
    summary = json.loads(capfd.readouterr().out)
    assert summary["policies"] == printed["summary"]["policies"]
    assert "unfinished" not in Path("runs/table.md").read_text()
    part = {**printed, "rows": printed["rows"][:3], "units": {"done": 3, "all": 4}}
    Path("part").mkdir()
    Path("part/results.json").write_text(json.dumps({**part, "complete": False}))
    assert run("bench report part") == 0
    assert "unfinished: 3 of 4 units" in capfd.readouterr().out
    assert "unfinished: 3 of 4 units" in Path("part/table.md").read_text()
    assert run(command, "--seeds", "2") == 2
    assert "seeds was 1 and is 2 now" in capfd.readouterr().err
    assert run(command, "--seeds", "2", "--fresh", "--json") == 0
    assert len(json.loads(capfd.readouterr().out)["rows"]) == 8


def test_bench_of_data_files(data_files: dict[str, Path], capfd: Captured) -> None:
    few = "--policies random --tasks 0:1 --budget 4 --workers 1 --json --out"
    assert run(f"bench run overhead --data tiles.npz --target ship --size 16 {few} ships") == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["options"]["settings"] == {"size": 16, "target": "ship"}
    assert printed["task_set"]["description"].startswith("2 pictures of tiles.npz, 16x16")
    shutil.copy("slices.npz", "more.npz")
    assert run(f"bench run tumour --data slices.npz --data more.npz --size 16x16 {few} t") == 0
    assert json.loads(capfd.readouterr().out)["task_set"]["description"].startswith("12 pictures")
    species = ["--species", "Lynx rufus", "--species", "Puma concolor"]
    region = "--box 40,50,-100,-90 --min-records 20 --degrees 6 --size 32 --period all"
    columns = "--data records.csv --column longitude=Y_EAST"
    assert run(f"bench run species {columns} {region} {few} maps", *species) == 0
    made = json.loads(capfd.readouterr().out)["task_set"]["options"]
    assert made["species"] == "Lynx rufus + Puma concolor"
    assert (made["degrees"], made["size"], made["box"]) == (6, 32, [40, 50, -100, -90])
    digits = "--data few-images-idx3-ubyte.gz --set digit=8,fit=pad"
    assert run(f"bench run digits {digits} {few} digits") == 0
    assert json.loads(capfd.readouterr().out)["rows"][0]["cells"] == 784
    assert run("bench report ships") == 0
    assert "overhead 0:1, size 16, target ship" in capfd.readouterr().out


def test_bench_says_when_it_uses_fewer_workers(capfd: Captured) -> None:
    command = "bench run balls --policies random --tasks 0:1 --budget 3 --workers 5000 --json"
    assert run(command) == 0
    output, errors = capfd.readouterr()
    assert json.loads(output)["complete"]
    assert "one for each core" in errors
    assert Path("runs/balls/results.json").exists()


def test_demo_compares_its_policies(monkeypatch: pytest.MonkeyPatch, capfd: Captured) -> None:
    monkeypatch.setattr("engram.cli.demo.POLICIES", "random,random[preset=paper]")
    assert run("demo --task 2 --budget 12 --out d") == 0
    assert "Report: d/report.html" in capfd.readouterr().out
    results = json.loads(Path("d/results.json").read_text())
    one, other = results["rows"]
    assert one["hits"] == other["hits"]
    assert results["task"] == 2
    assert sorted(p.name for p in Path("d").iterdir()) == [
        "report.html",
        "results.json",
        "search.gif",
    ]


def test_a_memory_learns_from_tasks(tmp_path: Path, capfd: Captured) -> None:
    memory = tiny_memory(1)
    card = replace(memory.card, height=32, width=32)
    PermanentMemory(memory.denoiser, card).save(tmp_path / "tiny.safetensors")
    command = "prior consolidate tiny.safetensors balls --tasks 0:2 --budget 4 --steps 2 --batch 4"
    assert run(command, "--samples", "4", "--name", "wiser", "--out", "wiser.safetensors") == 0
    assert "learnt from 2 tasks" in capfd.readouterr().out
    new = json.loads(Path("wiser.json").read_text())
    assert new["name"] == "wiser"
    assert new["history"][-1]["what"] == "consolidated"
    assert Path("wiser.png").exists()
    assert run(command, "--name", "wiser", "--out", "wiser.safetensors") == 2
    assert "--overwrite" in capfd.readouterr().err


def test_a_memory_learns_the_average_of_its_views(tmp_path: Path, capfd: Captured) -> None:
    tiny_memory(1).save(tmp_path / "tiny.safetensors")
    before = Path("tiny.safetensors").read_bytes()
    assert run("prior info tiny.safetensors") == 0
    assert "symmetric     -" in capfd.readouterr().out
    assert run("prior distil tiny.safetensors scenes --steps 3 --threads 1") == 0
    assert "against the average of eight views" in capfd.readouterr().out
    card = json.loads(Path("tiny.json").read_text())
    assert card["symmetric"]["recipe"].startswith("engram prior distil tiny.safetensors scenes")
    assert Path("tiny.safetensors").read_bytes() == before
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["tiny.json", "tiny.safetensors", "tiny.symmetric.safetensors"]
    assert run("prior info tiny.safetensors") == 0
    assert "3 steps; squared error" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [("scenes --rate 2", "rate=2"), ("scenes scenes", "2 sources"), ("nowhere", "no training")],
)
def test_what_a_memory_cannot_be_taught_by_is_named(
    tmp_path: Path, capfd: Captured, more: str, words: str
) -> None:
    tiny_memory(1).save(tmp_path / "tiny.safetensors")
    assert run(f"prior distil tiny.safetensors {more}") == 2
    assert words in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.json", "tiny.safetensors"]


def test_several_memories_can_try_out(capfd: Captured) -> None:
    command = "bench run balls --policies em-ptdm --tasks 0:1 --budget 3 --at 3 --workers 1 --json"
    assert run(command, "--prior", "universal+digits") == 0
    options = json.loads(capfd.readouterr().out)["options"]
    assert options["prior"] == "universal+digits"
    assert set(options["memories"]) == {"universal", "digits"}
    assert run(command, "--prior", "universal+universal") == 2
    assert "twice" in capfd.readouterr().err


def test_a_command_looks_for_garbage_rarely(capfd: Captured) -> None:
    usual = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        assert run("--version") == 0
        assert gc.get_threshold() == RARELY
    finally:
        gc.set_threshold(*usual)
