"""The command line of campaigns, and the walk-through of the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import open_campaign
from engram.cli.main import main

DOCS = Path(__file__).parents[2] / "docs" / "campaigns.md"
COMMANDS = [
    "create",
    "ask",
    "tell",
    "peek",
    "fail",
    "correct",
    "retract",
    "close",
    "open",
    "extend",
    "status",
    "explain",
    "history",
    "verify",
    "export",
    "list",
]


@pytest.fixture(autouse=True)
def _database(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_DB", str(tmp_path / "c.db"))


@pytest.fixture
def run(capsys):
    """Run a campaign command; returns what it printed, parsed when it is JSON."""

    def call(*arguments, code=0):
        assert main(["campaign", *map(str, arguments)]) == code
        shown = capsys.readouterr()
        if code:
            assert shown.err.count("\n") == 1
            assert shown.out == ""
            return shown.err
        assert shown.err == ""
        return json.loads(shown.out) if "--json" in arguments else shown.out

    return call


@pytest.fixture
def pond(run):
    run("create", "pond", "--size", "8,8", "--budget", 20, "--policy", "random", "--seed", 3)
    return "pond"


def test_the_fixed_forms(run, tmp_path):
    made = run(
        "create", "a", "--size", "12,8", "--cell", "2,2", "--budget", 10, "--channels", 1,
        "--policy", "random", "--seed", 1, "--json",
    )  # fmt: skip
    assert made["cells"] == [6, 4]
    asked = run("ask", "a", "-n", 3, "--by", "anna", "--json")
    assert len(asked) == 3
    for item in asked:
        assert item["query"] >= 1
        row, col = item["cell"]
        assert 0 <= row < 6
        assert 0 <= col < 4
        for term in ("exploration", "likelihood", "reward", "exploitation", "alpha", "total"):
            assert isinstance(item[term], float)
    np.save(tmp_path / "c.npy", np.full((2, 2), 0.25))
    first, second = (",".join(map(str, item["cell"])) for item in asked[:2])
    told = run(
        "tell", "a", "--cell", first, "--outcome", 0.5, "--content", tmp_path / "c.npy",
        "--by", "anna", "--key", "k", "--json",
    )  # fmt: skip
    assert told["told"] == 1
    again = run(
        "tell", "a", "--cell", first, "--outcome", 0.5, "--content", tmp_path / "c.npy",
        "--key", "k", "--json",
    )  # fmt: skip
    assert again["repeated"]
    run("tell", "a", "--cell", second, "--outcome", 1, "--value", 0.75, "--json")
    facts = run("status", "a", "--json")
    for name in ("told", "asked", "failed", "budget_left", "found", "remaining", "prior_fitness"):
        assert name in facts
    assert set(facts["remaining"]) == {"expected", "low", "high", "level"}
    assert (facts["told"], facts["asked"], facts["budget_left"], facts["found"]) == (2, 1, 7, 2)
    run("verify", "a")


def test_every_command_has_json(run, pond, tmp_path):
    run("ask", pond, "-n", 2, "--json")
    run("tell", pond, "--cell", "0,0", "--outcome", 1, "--json")
    assert len(run("peek", pond, "-n", 3, "--json")) == 3
    run("fail", pond, "--query", 1, "--json")
    run("correct", pond, "--cell", "0,0", "--outcome", 0.5, "--json")
    run("retract", pond, "--cell", "0,0", "--json")
    run("close", pond, "--cell", "0,0", "--cell", "0,1", "--json")
    run("open", pond, "--cell", "0,1", "--json")
    assert run("extend", pond, "--add", 5, "--json")["budget"] == 25
    assert run("explain", pond, "--query", 2, "--json")["query"] == 2
    assert len(run("history", pond, "--json")) == 9
    assert run("verify", pond, "--json")["ok"]
    assert run("export", pond, "--out", tmp_path / "log.json", "--json")["count"] == 9
    assert [line["name"] for line in run("list", "--json")] == ["pond"]


def test_tables_and_words(run, pond, tmp_path):
    assert "chance" in run("ask", pond, "-n", 2)
    assert "not reserved" in run("peek", pond)
    assert "still to find" in run("status", pond)
    assert "number 1 of 64" in run("explain", pond, "--query", 1, "--png", tmp_path / "w.png")
    assert (tmp_path / "w.png").stat().st_size > 1000
    assert "create" in run("history", pond)
    assert "agrees" in run("verify", pond)
    assert "pond" in run("list")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("ask pond -n 0", "n=0"),
        ("ask pond -n 21", "enough for 20"),
        ("ask pond --lease soon", "--lease 'soon'"),
        ("ask pond --lease 12", "--lease '12': give a time with its unit"),
        ("fail pond --cell 0,0 --never --retry-after 6h", "--never and --retry-after 6h"),
        ("tell pond --cell 1 --outcome 1", "row and column"),
        ("tell pond --cell 8,0 --outcome 1", "outside the grid"),
        ("tell pond --cell 1,1 --outcome 2", "outcome=2.0"),
        ("tell pond --cell 1,1", "--outcome"),
        ("tell pond --cell 1,1 --outcome 1 --value a", "not a list of numbers"),
        ("tell pond --file absent.csv", "cannot read"),
        ("tell pond --file x.csv --cell 1,1", "goes alone"),
        ("fail pond", "either a query or a cell"),
        ("fail pond --query 9", "no query 9"),
        ("correct pond --cell 1,1 --outcome 1", "no measurement"),
        ("retract pond --cell 1,1", "no measurement"),
        ("open pond --cell 1,1", "open already"),
        ("extend pond --add 1000", "open cells"),
        ("status pond --level 2", "--level 2.0"),
        ("explain pond --query 4", "no query 4"),
        ("export pond --out x.doc", "give a .json"),
        ("status nowhere", "no campaign named 'nowhere'"),
        ("create pond --size 8,8 --budget 5 --policy random", "exists already"),
        ("create new --budget 5", "--size H,W or --mask"),
        ("create new --size 9,9 --cell 2,2 --budget 5", "cannot be cut"),
        ("create new --size 8,8 --budget 5 --policy magic", "unknown policy"),
        ("create new --size 8 --budget 5", "two whole numbers"),
        ("create new --size 8,8 --budget 5 --crew north", "NAME=R,C"),
        ("tell pond --cell 1,1 --outcome much", "--outcome"),
    ],
)
def test_errors_are_one_line_and_exit_2(run, pond, arguments, message):
    assert message in run(*arguments.split(), code=2)
    assert len(run("history", pond, "--json")) == 1


def test_mask_cost_and_crews(run, tmp_path):
    mask = np.ones((8, 8))
    mask[:4] = 0
    np.save(tmp_path / "mask.npy", mask)
    np.savetxt(tmp_path / "cost.csv", np.full((4, 4), 2.0), delimiter=",")
    made = run(
        "create", "m", "--mask", tmp_path / "mask.npy", "--cell", "2,2", "--budget", 9,
        "--budget-kind", "cost", "--cost", tmp_path / "cost.csv", "--rank", "per-cost",
        "--travel", 1, "--crew", "south=3,3", "--policy", "random", "--json",
    )  # fmt: skip
    assert made["open"] == 8
    assert run("ask", "m", "--by", "south", "--json")[0]["cell"] == [3, 3]
    assert run("status", "m", "--json")["budget_left"] == 7
    assert "is none of the crews south" in run("ask", "m", "--by", "west", code=2)


def test_what_a_mask_says_and_who_reports(run, tmp_path):
    np.save(tmp_path / "mask.npy", np.array([[1.0, -9999.0], [1.0, np.nan]]))
    create = ["--mask", tmp_path / "mask.npy", "--budget", 2, "--policy", "random"]
    words = "mask.npy: 2 of 4 cells are open; pixels outside: 1 negative, 1 not finite"
    assert words in run("create", "m", *create, "--crew", "south=0,0")
    assert run("create", "n", *create, "--json")["mask"] == words
    west = run("tell", "m", "--cell", "0,0", "--outcome", 1, "--by", "west")
    assert "(by 'west', who is none of the crews south)" in west
    assert "crews" not in run("tell", "m", "--cell", "1,0", "--outcome", 1, "--by", "south")


def test_verify_fails_on_a_changed_log(run, pond, tmp_path):
    import sqlite3

    run("tell", pond, "--cell", "0,0", "--outcome", 1)
    with sqlite3.connect(tmp_path / "c.db") as raw:
        raw.execute("UPDATE engram_events SET who = 'nobody' WHERE seq = 2")
    assert main(["campaign", "verify", pond]) == 1


def test_help_needs_neither_torch_nor_a_database():
    code = (
        "import sys; from engram.cli.main import main; main(['campaign', '--help']);"
        "assert not {'torch', 'sqlalchemy', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert name in done.stdout


@pytest.mark.slow
def test_the_walk_through_of_the_documentation(tmp_path):
    """Every command of the section, in one shell, as written."""
    section = DOCS.read_text().split("## A walk-through")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    assert len(blocks) >= 8
    script = "\n".join(["set -e", f'engram() {{ "{sys.executable}" -m engram "$@"; }}', *blocks])
    environment = {**os.environ, "ENGRAM_HOME": str(tmp_path / "home")}
    environment.pop("ENGRAM_DB")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the replay agrees" in done.stdout
    assert "told already" in done.stdout
    assert (tmp_path / "why.png").exists()
    campaign = open_campaign("pond", db=str(tmp_path / "home" / "campaigns.db"))
    states = [campaign.state.queries[i].state for i in (1, 2, 3)]
    assert states == ["told", "told", "failed"]
    assert len(campaign.state.measurements) == 5
