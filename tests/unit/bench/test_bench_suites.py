from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from engram import InputError
from engram.bench.runner import Executor, LocalExecutor, Plan, run_bench
from engram.bench.suites import SUITES, data_card, get_suite
from engram.bench.units import run_unit
from engram.tasks.sets import TaskSet

SETTINGS: dict[str, dict[str, Any]] = {
    "balls": {"balls": 7},
    "shapes": {"kind": "star", "copies": 6},
    "species": {
        "species": "Lynx rufus",
        "column": "longitude=Y_EAST",
        "box": "40,50,-100,-90",
        "min_records": 20,
    },
    "overhead": {"size": 16},
    "tumour": {"size": 16},
    "digits": {"digit": 8},
    "windows": {"target": "gold", "layers": "rock", "spare": 2},
}


def made(suite: str, files: dict[str, Path], **changes: Any) -> TaskSet:
    data = [files[suite]] if suite in files else []
    return get_suite(suite).tasks(data, {**SETTINGS[suite], **changes})


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_runs_and_goes_on(
    suite: str,
    data_files: dict[str, Path],
    tmp_path: Path,
    here: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    executor = LocalExecutor(1) if suite == "overhead" else here
    data = [Path(data_files[suite].name)] if suite in data_files else []
    plan = Plan.checked(
        suite, "random", tasks=(0, 2), budget=5, settings=SETTINGS[suite], data=data
    )
    assert all(os.path.isabs(path) for unit in plan.units() for path in unit.data)
    results = run_bench(plan, Path("out"), executor=executor)
    assert results["complete"]
    options = results["options"]
    assert options["settings"] == SETTINGS[suite]
    expected = [hashlib.sha256(path.read_bytes()).hexdigest() for path in data]
    assert [entry["sha256"] for entry in options["data"]][: len(data)] == expected
    assert [entry["file"] for entry in options["data"]][: len(data)] == [str(p) for p in data]
    assert str(tmp_path) not in Path("out/results.json").read_text()
    assert str(tmp_path) not in Path("out/journal.jsonl").read_text()
    again = run_bench(plan, Path("out"), executor=executor)
    assert again["rows"] == json.loads(json.dumps(results["rows"]))


def test_other_data_are_refused(
    data_files: dict[str, Path], tmp_path: Path, here: Executor
) -> None:
    def run() -> None:
        plan = Plan.checked(
            "tumour", "random", tasks=(0, 1), budget=2, settings={"size": 16}, data=[path]
        )
        run_bench(plan, tmp_path / "out", executor=here)

    path = tmp_path / "mine.npz"
    shutil.copy(data_files["tumour"], path)
    run()
    shutil.copy(data_files["overhead"], path)  # other bytes under the same name ...
    with pytest.raises(InputError, match="3 channels"):
        run()
    shutil.copy(data_files["tumour"], path)
    with path.open("ab") as file:
        file.write(b" ")
    with pytest.raises(InputError, match="holds results of another run: data was"):
        run()


def test_a_worker_reads_the_data_once(
    data_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan.checked(
        "tumour",
        "random",
        tasks=(0, 3),
        budget=2,
        settings={"size": 16},
        data=[data_files["tumour"]],
    )
    from engram.tasks import tumour

    reads: list[Path] = []
    read = tumour.read_stack
    monkeypatch.setattr(tumour, "read_stack", lambda path: (reads.append(path), read(path))[1])
    for unit in plan.units():
        run_unit(unit, lambda taken, found: None)
    assert len(reads) <= 1


def test_settings_reach_the_tasks(data_files: dict[str, Path]) -> None:
    assert made("balls", data_files).task(3).facts["balls"] == 7
    facts = made("shapes", data_files, kind="key").task(3).facts
    assert (facts["kind"], facts["copies"]) == ("key", 6)
    assert made("species", data_files, degrees=4, block=4).task(0).grid.cell == (4, 4)
    pair = made("species", data_files, species="Lynx rufus; Puma concolor")
    assert pair.options["species"] == "Lynx rufus + Puma concolor"
    assert made("overhead", data_files, target="ship").size == 2
    assert made("overhead", data_files, cell=2).task(0).grid.cell == (2, 2)
    assert made("digits", data_files).size == 3
    assert made("digits", data_files, size=32).task(0).grid.n_cells == 1024
    other = [made("tumour", data_files, seed=s).task(0).facts["index"] for s in range(6)]
    assert len(set(other)) > 1


def test_several_files_are_pooled_and_named(data_files: dict[str, Path], tmp_path: Path) -> None:
    more = tmp_path / "a-more.npz"
    shutil.copy(data_files["overhead"], more)
    given = [data_files["overhead"], more]
    tasks = get_suite("overhead").tasks(given, {"size": 16})
    assert tasks.size == 12
    card = data_card(tasks, given)
    assert [entry["file"] for entry in card] == ["a-more.npz", "tiles.npz"]
    assert len({entry["sha256"] for entry in card}) == 1


def test_labels_of_digits_may_lie_elsewhere(data_files: dict[str, Path], tmp_path: Path) -> None:
    labels = (tmp_path / "few-labels-idx1-ubyte.gz").rename(tmp_path / "classes")
    with pytest.raises(InputError, match=r"no .* beside .*--data"):
        made("digits", data_files)
    given = [data_files["digits"], labels]
    tasks = get_suite("digits").tasks(given, {"digit": 8})
    assert tasks.size == 3
    assert len(data_card(tasks, given)) == 2
    with pytest.raises(InputError, match="at most one of labels"):
        get_suite("digits").tasks([*given, data_files["tumour"]])


@pytest.mark.parametrize(
    ("suite", "changes", "complaint"),
    [
        ("balls", {"balls": "many"}, "balls='many': give a whole number"),
        ("balls", {"balls": 2.5}, "balls=2.5: give a whole number"),
        ("balls", {"balls": True}, "balls=True"),
        ("balls", {"species": "Lynx rufus"}, "no setting 'species'; its settings are balls"),
        ("species", {"degrees": "wide"}, "degrees='wide': give a number"),
        ("species", {"degrees": float("inf")}, "degrees=inf"),
        ("species", {"box": "1,2,3"}, "box='1,2,3': give south,north,west,east"),
        ("species", {"years": "lately"}, "years='lately'"),
        ("species", {"years": "2016"}, "--column year=NAME"),
        ("species", {"column": "longitude"}, "not of the form FIELD=NAME"),
        ("species", {"column": "colour=Y_EAST"}, "unknown field 'colour'"),
        ("species", {"species": "Lynx rufis"}, "did you mean Lynx rufus"),
        ("species", {"min_records": 9000}, "Lower --min-records"),
        ("overhead", {"target": "boat"}, "no target 'boat'"),
        ("overhead", {"difficult": 3}, "difficult=3: give on or off"),
        ("overhead", {"size": 32}, "give --size"),
        ("digits", {"digit": 5}, "no digit 5"),
        ("digits", {"fit": "squeeze"}, "fit 'squeeze'"),
    ],
)
def test_bad_settings(
    suite: str, changes: dict[str, Any], complaint: str, data_files: dict[str, Path]
) -> None:
    with pytest.raises(InputError, match=complaint):
        made(suite, data_files, **changes).task(0)


def test_years_of_a_table(tmp_path: Path, data_files: dict[str, Path]) -> None:
    lines = data_files["species"].read_text().splitlines()
    dated = [f"{line},{2000 + i % 2}" for i, line in enumerate(lines[1:])]
    data_files["species"].write_text("\n".join([f"{lines[0]},year", *dated]) + "\n")
    for text, years in {
        "2000": (2000, 2000),
        "2000-": (2000, None),
        "-2000": (None, 2000),
        "2000-2001": (2000, 2001),
    }.items():
        tasks = made("species", data_files, years=text, min_records=5)
        assert tasks.options["years"] == years
