"""Bad input on the command line: one line, exit code 2, nothing written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram import EngramError
from engram.cli import _common as common
from engram.cli.main import main
from engram.memory.library import SHIPPED


@pytest.fixture(autouse=True)
def _in_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_files: dict[str, Path]
) -> None:
    """Files that the bad commands below name."""
    monkeypatch.chdir(tmp_path)
    pixels = np.full((16, 16), 20, np.uint8)
    pixels[3:6, 3:6] = 220
    Image.fromarray(pixels).save("area.png")
    Image.fromarray(pixels[:8]).save("half.png")
    Path("broken.png").write_bytes(b"no picture")
    Path("file").write_text("not a folder")
    shutil.copy(SHIPPED / "digits.json", "damaged.json")
    Path("damaged.safetensors").write_bytes((SHIPPED / "digits.safetensors").read_bytes()[:-9])
    shutil.copy(SHIPPED / "digits.safetensors", "foreign.safetensors")
    Path("foreign.json").write_text('{"format": "something else"}')


TILES = "bench run overhead --policies random --data tiles.npz"
SPECIES = "bench run species --policies random --data records.csv"
LYNX = f"{SPECIES} --column longitude=Y_EAST --species Lynx"
AREA = "search --image area.png --above 100 --policy random"

BAD = {
    "no command of that name": ("serach", "No such command 'serach'"),
    "an option that is not there": ("demo --colour red", "No such option"),
    "a word for a number": ("demo --budget many", "--budget"),
    "a missing option": ("search --above 3", "--image"),
    "demo without budget": ("demo --budget 0", "budget=0"),
    "demo with too large a budget": ("demo --budget 1025", "larger than the 1024 open cells"),
    "demo of a negative task": ("demo --task -1", "ball task -1"),
    "demo with a negative seed": ("demo --seed -1", "seed=-1"),
    "demo with an unknown prior": ("demo --prior nope", "unknown memory 'nope'"),
    "demo into a file": ("demo --out file/there", "file is a file"),
    "search without targets": ("search --image area.png", "say what the targets are"),
    "search of nothing": ("search --image absent.png --above 1", "no file at absent.png"),
    "search of no picture": ("search --image broken.png --above 1", "cannot read image broken.png"),
    "search with a small mask": (
        "search --image area.png --target half.png",
        "shape (8, 16), the image is 16x16",
    ),
    "search with a broken mask": (
        "search --image area.png --target broken.png",
        "cannot read image broken.png",
    ),
    "search for what is not there": (
        "search --image area.png --above 250 --policy random",
        "no pixel is",
    ),
    "search with an unknown policy": (
        "search --image area.png --above 100 --policy nope",
        "unknown policy 'nope'",
    ),
    "search with an unknown preset": (f"{AREA} --preset nope", "unknown preset 'nope'"),
    "search with an unknown prior": (f"{AREA} --prior nope", "unknown memory 'nope'"),
    "search with no budget": (f"{AREA} --budget 0", "budget=0"),
    "search with too large a budget": (f"{AREA} --budget 257", "larger than the 256 open cells"),
    "search with a strange cell": (f"{AREA} --cell 4", "cell='4'"),
    "search with an empty cell": (f"{AREA} --cell 0,4", "cell='0,4'"),
    "search with a strange size": (f"{AREA} --size big", "size='big'"),
    "search with damaged weights": (
        "search --image area.png --above 100 --policy em-ptdm --prior damaged.safetensors",
        "damaged or does not belong to its card",
    ),
    "search with foreign weights": (
        f"{AREA} --prior foreign.safetensors",
        "is not an engram memory card",
    ),
    "search into a file": (f"{AREA} --out file", "file is a file"),
    "info of nothing": ("prior info nope", "unknown memory 'nope'"),
    "info of a foreign card": ("prior info foreign.safetensors", "not an engram memory card"),
    "samples of damaged weights": (
        "prior sample damaged.safetensors --out s.png",
        "damaged or does not belong to its card",
    ),
    "no samples": ("prior sample digits -n 0 --out s.png", "count=0"),
    "samples into a text file": ("prior sample digits --out s.txt", "ends in .png"),
    "training on nothing": ("prior train absent --name a --out a.safetensors", "no training data"),
    "training on a text file": (
        "prior train file --name a --out a.safetensors",
        "not an idx file",
    ),
    "training for no steps": (
        "prior train scenes --name a --steps 0 --out a.safetensors",
        "steps=0",
    ),
    "training with strange widths": (
        "prior train scenes --name a --widths 5,x --out a.safetensors",
        "widths='5,x'",
    ),
    "training with odd widths": (
        "prior train scenes --name a --widths 5 --out a.safetensors",
        "multiples of 4",
    ),
    "training on searches alone": (
        "prior train scenes --name a --practice 0.9 --out a.safetensors",
        "practice=0.9",
    ),
    "training on more than everything": (
        "prior train scenes --name a --unprompted 2 --out a.safetensors",
        "unprompted=2",
    ),
    "training without focus": (
        "prior train scenes --name a --focus -1 --out a.safetensors",
        "focus=-1",
    ),
    "training with a strange name": ("prior train scenes --name ../a", "name='../a'"),
    "training over a memory": (
        "prior train scenes --name a --out damaged.safetensors",
        "exists; choose another name",
    ),
    "training into another format": ("prior train scenes --name a --out a.bin", ".safetensors"),
    "bench of nothing": ("bench run nope", "unknown suite 'nope'"),
    "bench with an unknown policy": ("bench run balls --policies nope", "unknown policy 'nope'"),
    "bench with an unknown preset": (
        "bench run balls --policies random --preset nope",
        "unknown preset",
    ),
    "bench with an unknown prior": (
        "bench run balls --policies random --prior nope",
        "unknown memory",
    ),
    "bench with an unknown engine": (
        "bench run balls --policies random --engine nope",
        "unknown executor",
    ),
    "bench with a strange option": (
        "bench run balls --policies em-ptdm[frontier=far] --tasks 0:1",
        "option frontier='far': give a number",
    ),
    "bench of strange tasks": ("bench run balls --tasks a:b", "tasks='a:b'"),
    "bench of no tasks": ("bench run balls --policies random --tasks 5:5", "tasks=5:5"),
    "bench without budget": ("bench run balls --policies random --budget 0", "budget=0"),
    "bench at strange budgets": ("bench run balls --at few", "at='few'"),
    "bench beyond the budget": ("bench run balls --policies random --at 251", "at=251"),
    "bench without seeds": ("bench run balls --policies random --seeds 0", "seeds=0"),
    "bench without workers": ("bench run balls --policies random --workers 0", "workers=0"),
    "bench with a strange setting": ("bench run balls --policies random --set x", "'x'"),
    "bench into a file": ("bench run balls --policies random --out file", "file is a file"),
    "bench with damaged weights": (
        "bench run balls --policies em-ptdm --tasks 0:1 --prior damaged.safetensors",
        "damaged or does not belong to its card",
    ),
    "bench of balls with a file": ("bench run balls --data file", "takes no data file"),
    "bench of tiles without a file": (
        "bench run overhead",
        "needs images with masks (.npz with images and masks, a folder with",
    ),
    "bench of species without a file": ("bench run species", "--data records.csv.gz"),
    "bench of an absent file": ("bench run tumour --data absent.npz", "at absent.npz"),
    "bench of a file given twice": (f"{TILES} --data ./tiles.npz", "given twice"),
    "bench of another kind of file": (
        "bench run tumour --data file",
        "cannot read file as a NumPy file",
    ),
    "bench beyond the last task": (f"{TILES} --size 16 --budget 3", "has 6 tasks; end at 6"),
    "bench of tiles of another size": (f"{TILES} --tasks 0:2", "16x16 pixels of 3 channels"),
    "bench of tiles that are not square": (f"{TILES} --size 16,8", "size='16,8'"),
    "bench of a target that is not there": (
        f"{TILES} --size 16 --target boat",
        "choose one of plane, ship, vehicle or all",
    ),
    "bench of tiles by an option of species": (f"{TILES} --period year", "no setting 'period'"),
    "bench of balls by an option of tiles": ("bench run balls --target ship", "no setting"),
    "bench with a setting given twice": (f"{TILES} --size 16 --set size=16", "given twice"),
    "bench of unknown columns": (SPECIES, "--column longitude=NAME"),
    "bench of species without a name": (
        f"{SPECIES} --column longitude=Y_EAST",
        "choose with --species: Lynx rufus, Puma concolor",
    ),
    "bench of too few records": (f"{LYNX} --min-records 9999", "Lower --min-records"),
    "bench of an empty box": (f"{LYNX} --box 0,1,0,1", "choose another --box"),
    "bench of a strange box": (f"{LYNX} --box 0,1", "box='0,1'"),
    "bench of too rare a target": (f"{LYNX} --max-share 0.000001", "--max-share"),
    "bench by months that are not there": (f"{LYNX} --period month", "choose --period all"),
    "bench of strange years": (f"{LYNX} --years lately", "years='lately'"),
    "bench of years that are not there": (f"{LYNX} --years 2008-2016", "--column year=NAME"),
    "bench of places that are not sure": (f"{LYNX} --max-uncertainty 10", "--column uncertainty"),
    "bench with an address for local": (
        "bench run balls --policies random --address auto",
        "choose --executor ray",
    ),
    "report of nothing": ("bench report absent", "no results at absent"),
    "report of a text file": ("bench report file", "not valid JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command, complaint = BAD[case]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code = main(command.split())
    output, errors = capfd.readouterr()
    assert code == 2
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert complaint in errors
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_no_command_shows_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    output, errors = capfd.readouterr()
    assert "Usage: engram" in output + errors
    assert "error" not in errors


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("engram 0.")


@pytest.mark.parametrize("command", ["demo", "search", "prior train", "bench run", "campaign ask"])
def test_every_command_explains_itself(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert f"engram {command}" in capfd.readouterr().out


def test_interruption_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("engram.bench.runner.run_bench", interrupted)
    assert main(["bench", "run", "balls", "--policies", "random", "--out", "runs"]) == 130
    output, errors = capfd.readouterr()
    assert output == ""
    assert "finished units are kept in runs" in errors
    monkeypatch.setattr("engram.memory.library.load_memory", interrupted)
    assert main(["prior", "sample", "digits", "--out", "x.png"]) == 130
    assert "nothing was written" in capfd.readouterr().err


def test_a_message_of_several_lines_becomes_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> None:
        raise EngramError("first\nsecond")

    monkeypatch.setattr("engram.cli.prior.read_card", fail)
    assert main(["prior", "info", "digits"]) == 2
    assert capfd.readouterr().err == "error: first second\n"


def test_a_folder_that_cannot_be_written_is_no_trace(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", "/there")

    monkeypatch.setattr("engram.bench.runner.run_bench", fail)
    assert main(["bench", "run", "balls", "--policies", "random"]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_pairs_spans_and_numbers() -> None:
    assert common.parse_pair("4,6", "cell") == common.parse_pair("4x6", "cell") == (4, 6)
    assert common.parse_span("2:9", "tasks") == (2, 9)
    assert common.parse_span("7", "tasks") == (7, 8)
    assert common.parse_numbers("1,2", "at") == (1, 2)
    assert common.stages(250) == [0, 25, 62, 125, 250]
    assert common.stages(1)[-1] == 1
