"""Arguments, databases, cards and journals that nobody means well with."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.campaign import create_campaign
from engram.campaign.place import parse_url, shown_place, without_secrets
from engram.cli.main import main
from engram.errors import InputError
from engram.grid import Grid
from engram.memory.permanent import PermanentMemory
from engram.testing import tiny_memory

Captured = pytest.CaptureFixture[str]
CREATE = "campaign create f --budget=4 --policy=random --db=d.db"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capfd: Captured, *arguments: str) -> str:
    """The one line on standard error of a command that is refused."""
    capfd.readouterr()
    assert main(arguments) == 2
    output, errors = capfd.readouterr()
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert len(errors) < 1200
    return errors


ARGUMENTS: dict[str, tuple[str, str]] = {
    "not UTF-8": (f"{CREATE} --size=4,4 --by=\udcff", "is not text in UTF-8"),
    "name not UTF-8": ("campaign history \udcff --db=d.db", "is not text in UTF-8"),
    "long time": (f"{CREATE} --size=4,4 --lease={'9' * 310}d", "--lease"),
    "long time of 400 digits": (f"{CREATE} --size=4,4 --lease={'1' * 400}s", "hundred years"),
    "range beyond float32": (f"{CREATE} --size=4,4 --range=0,1e39", "range=(0.0, 1e+39)"),
    "range too small": (f"{CREATE} --size=4,4 --range=0,1e-320", "single precision"),
    "range too fine": (f"{CREATE} --size=4,4 --range=1,1.0000001", "single precision"),
    "travel": (f"{CREATE} --size=4,4 --travel=1e308", "travel=1e+308"),
    "tiny cost": (f"{CREATE} --size=2,2 --cost=tiny.csv", "cost runs from 9.99989e-321"),
    "huge size": (f"{CREATE} --size={'9' * 5000},1", "--size="),
    "huge crew": (f"{CREATE} --size=4,4 --crew=a={'1' * 5000},1", "--crew"),
    "seed": (f"{CREATE} --size=4,4 --seed={'9' * 400}", "seed="),
    "no such user": ("campaign list --db=~nosuchuser/x", "~nosuchuser"),
    "bad port": ("campaign list --db=postgresql://h:port/d", "postgresql:..."),
    "unknown driver": ("campaign list --db=postgresql+nosuch://h/d", "postgresql+nosuch:..."),
    "async driver": ("campaign list --db=sqlite+aiosqlite:///x.db", "sqlite+aiosqlite:..."),
    "options of a file": ("campaign list --db=sqlite:///x.db?timeout=abc", "no host, user or"),
    "empty database": ("campaign list --db=", "give a file"),
    "policy seed": ("search --image=i.npy --above=0 --policy=random[seed=3]", "seed is not"),
    "policy memory": ("search --image=i.npy --above=0 --policy=em-ptdm[memory=3]", "memory is not"),
    "policy grid": ("search --image=i.npy --above=0 --policy=gp[grid=3]", "grid is not"),
    "policy kind": ("search --image=i.npy --above=0.5 --policy=gp[nu=x]", "option nu='x'"),
    "too many tasks": ("bench run balls --tasks 0:99999999999 --policies random", "1,000,000"),
    "too many seeds": (
        f"bench run balls --seeds {'9' * 30} --policies random --tasks 0:1",
        "1,000,000",
    ),
    "setting": (f"bench run balls --set balls={'9' * 400} --policies random", "a whole number"),
    "samples": (f"prior sample digits --count {'9' * 30} --out a.png", "at most 10,000"),
    "steps": (f"prior sample digits --count=1 --steps {'9' * 30} --out a.png", "at most 10,000"),
    "batch": (f"prior train scenes --name x --steps 1 --batch {'9' * 30}", "100,000 images"),
    "patch": (f"prior train scenes --name x --steps 1 --patch {'9' * 30}", "patch="),
    "smoothness": ("search --image=i.npy --above=0.5 --policy=gp[nu=-1]", "nu=-1.0"),
    "large image": ("search --image=i.npy --above=0.5 --size=99999,99999", "100,000,000 pixels"),
    "pipe of numbers": (f"{CREATE} --size=4,4 --cost=pipe.csv", "no file at pipe.csv"),
    "pipe of lists": (f"{CREATE} --mask=pipe.json", "no file at pipe.json"),
    "pipe of pixels": (f"{CREATE} --mask=pipe.png", "no file at pipe.png"),
    "pipe of a picture": ("search --image=pipe.png --above=1", "no file at pipe.png"),
    "policy number": (
        f"search --image=i.npy --above=0.5 --policy=gp[nu={'9' * 400}]",
        "give a number",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case: str, capfd: Captured) -> None:
    np.save("i.npy", np.eye(4))
    Path("tiny.csv").write_text("1,1\n1,1e-320\n")
    for name in ("pipe.csv", "pipe.json", "pipe.png"):
        os.mkfifo(name)
    before = sorted(Path().iterdir())
    command, words = ARGUMENTS[case]
    assert words in refused(capfd, *command.split())
    assert sorted(Path().iterdir()) == before


def test_cells_of_5000_digits(capfd: Captured) -> None:
    assert main([*CREATE.split(), "--size=4,4"]) == 0
    for command in ("tell f --outcome=1", "ask f", "retract f", "close f"):
        option = "--from" if command.startswith("ask") else "--cell"
        line = ["campaign", *command.split(), f"{option}={'7' * 5000},1", "--db=d.db"]
        assert "give row and column" in refused(capfd, *line)
    assert "10 digits" not in refused(
        capfd, *["campaign", "tell", "f", "--outcome=1", "--cell=1111111111,1", "--db=d.db"]
    )


SECRETS = [
    "mysql://user:hunter2@host/db",
    "postgresql+nosuch://user:hunter2@host/db",
    "postgresql://user:hunter2@host:port/db",
    "postgresql://user:hun@ter2hunter2@host:hunter2/db",
    "postgresql://127.0.0.1:1/db?password=hunter2&nosuch=hunter2",
    "postgresql://127.0.0.1:1/db?password=hunter2&sslpassword=hunter2&nosuch=1",
    "postgresql://u:hunter2@127.0.0.1/db?nosuch=1",
    "hunter2://hunter2@hunter2",
    "postgresql:user:hunter2@host/db",
    "postgresql:/user:hunter2@host/db",
    "host=h user=u password=hunter2",
    "://user:hunter2@host",
    "sqlite://user:hunter2@host/x.db",
    "sqlite:///x.db?password=hunter2",
]


@pytest.mark.parametrize("url", SECRETS)
def test_passwords_are_never_printed(url: str, capfd: Captured) -> None:
    pytest.importorskip("psycopg")
    errors = refused(capfd, "campaign", "list", "--db", url)
    assert "hunter2" not in errors.replace("hunter2:...", "")
    assert not list(Path().iterdir())


def test_words_of_a_driver_lose_their_secrets() -> None:
    url = parse_url("postgresql://u:hunter2@h/d?sslpassword=hunter22&options=-c%20x")
    assert without_secrets("no hunter22, no hunter2 and -c x for u", url) == (
        "no ***, no *** and *** for u"
    )
    assert shown_place(url) == "postgresql+psycopg://u:***@h/d"


@pytest.mark.parametrize("url", SECRETS)
def test_complaints_about_usage_do_not_repeat_a_password(url: str, capfd: Captured) -> None:
    for line in (["list", url, url], ["nosuch", "--db", url], ["list", f"--nosuch={url}"]):
        assert "hunter2" not in refused(capfd, "campaign", *line)


def test_history_shows_an_event_that_was_changed(capfd: Captured) -> None:
    assert main([*CREATE.split(), "--size=4,4"]) == 0
    assert main(["campaign", "extend", "f", "--add=1", "--db=d.db"]) == 0
    with closing(sqlite3.connect("d.db")) as connection, connection:
        connection.execute('UPDATE engram_events SET payload=\'{"by": "1"}\' WHERE seq = 2')
    capfd.readouterr()
    assert main(["campaign", "history", "f", "--db=d.db"]) in (0, 2)
    output, errors = capfd.readouterr()
    assert "damaged" in output + errors


def test_paths_are_paths_and_urls_are_urls(capfd: Captured) -> None:
    for name in ("what?.db", "my%20field.db", "a#b.db", "ü &=.db", "file:x.db", "d@x:y.db"):
        assert main([*CREATE.replace("d.db", name).split(" ", 5), "--size=4,4"]) == 0
        assert Path(name).is_file(), name
        assert main(["campaign", "list", "--db", name]) == 0
    url = "sqlite:///url%20field.db"
    assert main([*CREATE.replace("d.db", url).split(), "--size=4,4"]) == 0
    assert Path("url field.db").is_file()
    files = {p.name for p in Path().iterdir() if p.suffix == ".db"}
    assert len(files) == 7


def test_a_database_is_not_overwritten_and_a_full_disk_cuts_nothing(capfd: Captured) -> None:
    assert main([*CREATE.replace("d.db", "d.json").split(), "--size=4,4"]) == 0
    line = ["campaign", "ask", "f", "--db=d.json"]
    assert main(line) == 0
    before = Path("d.json").read_bytes()
    errors = refused(capfd, *["campaign", "export", "f", "--out=d.json", "--db=d.json"])
    assert "is a database" in errors
    assert Path("d.json").read_bytes() == before
    for command in ("export f --out=old.csv", "explain f --query=1 --png=old.png"):
        place = Path(command.split("=")[-1])
        place.write_text("old")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
        try:
            capfd.readouterr()
            code = main(["campaign", *command.split(), "--db=d.json"])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert code == 2
        assert place.read_text() == "old"
    assert not list(Path().glob("*.partial")) + list(Path().glob(".*.partial"))


@pytest.mark.parametrize(
    "wrong", [{"by": b"x"}, {"by": "a\0b"}, {"by": "\udcff"}, {"key": b"k"}, {"key": "\ud800"}]
)
def test_texts_that_are_none_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    campaign = create_campaign("f", Grid(4, 4), 4, db=str(tmp_path / "d.db"), policy="random")
    with pytest.raises(InputError, match=r"give a text|none of them zero|not text in UTF-8"):
        campaign.tell((0, 0), 1.0, **wrong)
    with pytest.raises(InputError, match="reason="):
        campaign.close([(0, 0)], reason=b"x")  # type: ignore[arg-type]
    assert campaign.state.seq == 1


CARDS: dict[str, tuple[str, Any]] = {
    "text for a number": ("channels", "1"),
    "huge": ("height", 10**12),
    "below 1": ("width", 0),
    "not finite": ("loss", float("nan")),
    "range of one": ("range", [1]),
    "range turned": ("range", [1, 0]),
    "range of text": ("range", ["a", "b"]),
    "network": ("network", []),
    "history": ("history", "x"),
    "name": ("name", {"a": 1}),
    "layers": ("layers", [1]),
    "layers of a kind": ("layers", 5),
    "truth": ("seed", True),
}


@pytest.mark.parametrize("case", CARDS)
def test_cards_of_the_wrong_kind(case: str, capfd: Captured) -> None:
    tiny_memory().save(Path("m.safetensors"))
    card = json.loads(Path("m.json").read_text())
    name, value = CARDS[case]
    Path("m.json").write_text(json.dumps({**card, name: value}))
    assert "m.json is not a valid memory card" in refused(capfd, "prior", "info", "m.safetensors")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"widths": [4096] * 8}, "weights"),
        ({"widths": []}, "0 widths"),
        ({"blocks": 10**9}, "1 to 4096"),
        ({"patch": 2.5}, "whole number"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_networks_that_are_not_that_of_the_file(
    change: dict[str, Any], words: str, capfd: Captured
) -> None:
    tiny_memory().save(Path("m.safetensors"))
    card = json.loads(Path("m.json").read_text())
    Path("m.json").write_text(json.dumps({**card, "network": {**card["network"], **change}}))
    line = "prior sample m.safetensors --count=1 --out=s.png"
    assert words in refused(capfd, *line.split())


def test_weights_that_are_no_numbers(capfd: Captured) -> None:
    memory = tiny_memory()
    next(iter(memory.denoiser.parameters())).data[:] = float("nan")
    with pytest.raises(InputError, match="cannot be saved"):
        memory.save(Path("m.safetensors"))
    good = tiny_memory()
    good.save(Path("m.safetensors"))
    from safetensors.torch import load_file, save_file

    state = load_file("m.safetensors")
    first = next(iter(state))
    state[first] = state[first] * float("nan")
    save_file(state, "m.safetensors", {"engram": "{}"})
    card = json.loads(Path("m.json").read_text())
    import hashlib

    card["sha256"] = hashlib.sha256(Path("m.safetensors").read_bytes()).hexdigest()
    Path("m.json").write_text(json.dumps(card))
    from engram.errors import WeightsError

    with pytest.raises(WeightsError, match="not finite"):
        PermanentMemory.load(Path("m.safetensors"))


BENCH = "bench run balls --policies random --tasks 0:1 --budget 20 --at 10,20 --out b"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished benchmark of one search."""
    folder = tmp_path_factory.mktemp("bench") / "b"
    line = BENCH.replace("--out b", f"--out {folder} --workers 1")
    assert main(line.split()) == 0
    return folder


def _set(record: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for name in way:
        record = record[int(name) if isinstance(record, list) else name]
    record[last] = value


TAMPERED: list[tuple[str, Any]] = [
    ("row", []),
    ("row.hits", [3, 1]),
    ("row.hits", {"a": 1}),
    ("row.sr", [1]),
    ("row.sr", {"10": "x", "20": 1}),
    ("row.policy", 5),
    ("row.task", "x"),
    ("row.targets", 0),
    ("row.calibration", {"count": [1]}),
    ("row.peak_rss_mb", None),
    ("row.updates_accepted", float("nan")),
    ("row.steps", 5),
]


@pytest.mark.parametrize(("path", "value"), TAMPERED)
def test_tampered_journals_and_results(
    path: str, value: Any, finished: Path, capfd: Captured
) -> None:
    shutil.copytree(finished, "b")
    journal = Path("b/journal.jsonl")
    lines = journal.read_text().splitlines()
    record = json.loads(lines[1])
    _set(record, path, value)
    journal.write_text("\n".join([lines[0], json.dumps(record)]) + "\n")
    assert "journal.jsonl is damaged: in row 1" in refused(capfd, *BENCH.split(), "--workers=1")
    results = json.loads(Path("b/results.json").read_text())
    _set(results, f"rows.0{path.removeprefix('row')}" if path != "row" else "rows", value or [0])
    Path("b/results.json").write_text(json.dumps(results))
    assert "results.json is damaged" in refused(capfd, "bench", "report", "b")


def test_results_with_options_of_another_run(finished: Path, capfd: Captured) -> None:
    for path, value in (("options", []), ("options.at", [5]), ("options.tasks", 3)):
        shutil.copytree(finished, "b", dirs_exist_ok=True)
        results = json.loads(Path("b/results.json").read_text())
        _set(results, path, value)
        Path("b/results.json").write_text(json.dumps(results))
        assert "its options are not those of its rows" in refused(capfd, "bench", "report", "b")
    lines = Path("b/journal.jsonl").read_text().splitlines()
    Path("b/journal.jsonl").write_text("\n".join(['{"options": []}', *lines[1:]]) + "\n")
    assert "line 1" in refused(capfd, *BENCH.split(), "--workers=1")
