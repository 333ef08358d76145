"""A setting is declared once: its option, its check and its JSON come from there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from engram import InputError
from engram.bench.suites import OURS, Suite
from engram.cli import _tasks as given
from engram.tasks.sets import TaskSet, ball_tasks
from engram.tasks.settings import Setting, columns_of, names_of, of_maker, option, years_of
from engram.tasks.species_plan import SpeciesPlan


@dataclass(frozen=True)
class Dive:
    """The only place where these settings are named."""

    depth: int = field(default=3, metadata=option("Metres down."))
    spots: tuple[str, ...] = field(
        default=(), metadata=option("Names.", several=True, read=names_of)
    )
    murky: bool = False

    def __post_init__(self) -> None:
        if self.depth > 40:
            raise InputError(f"depth={self.depth}: give at most 40")


def dives(files: object, plan: Dive) -> TaskSet:
    return TaskSet("dives", "", ball_tasks().make, options=asdict(plan))


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Suite:
    made = Suite("dives", "", dives, (5,), plan=Dive)
    monkeypatch.setitem(OURS, "dives", made)
    monkeypatch.setattr("engram.bench.suites.SUITES", OURS)
    return made


def run(*arguments: str, only: tuple[str, ...] = ()) -> Any:
    """What a command with such settings is given; None when its arguments are refused."""
    taken: list[dict[str, Any]] = []

    def command(name: str = "x", *, settings: given.Settings) -> None:
        taken.append(settings)

    app = typer.Typer()
    app.command()(given.with_settings(*only)(command))
    CliRunner().invoke(app, [*arguments])
    return taken[0] if taken else None


def test_one_declaration_makes_option_check_and_json(suite: Suite) -> None:
    settings = run("--depth", "7", "--spots", "reef", "--spots", "wall", "--set", "murky=on")
    assert settings == {"depth": 7, "spots": "reef;wall", "murky": True}
    assert suite.checked(settings) == (("depth", 7), ("murky", True), ("spots", "reef;wall"))
    options = suite.tasks((), settings).options
    assert json.loads(json.dumps(options)) == {
        "depth": 7,
        "spots": ["reef", "wall"],
        "murky": True,
    }
    assert run() == {}
    assert run("--depth", "deep") is None
    assert run("--murky", "on") is None  # no words for an option, so it has none
    for wrong, words in (
        ({"depth": 2.5}, "depth=2.5: give a whole number"),
        ({"murky": 1}, "murky=1: give on or off"),
        ({"depht": 2}, "has no setting 'depht'; its settings are depth, spots, murky"),
        ({"depth": 41}, "depth=41: give at most 40"),
    ):
        with pytest.raises(InputError, match=words):
            suite.tasks((), wrong)


def test_a_setting_is_given_once(suite: Suite) -> None:
    assert run("--depth", "7", "--set", "depth=8") is None
    assert run("--depth", "7", only=("spots",)) is None
    assert run("--set", "depth=7", only=("spots",)) == {"depth": 7}


def test_arguments_of_a_maker_are_settings_too() -> None:
    def make(
        files: object,
        *,
        kind: Annotated[str, Setting("Kind.", panel="P")] = "a",
        count: int | None = None,
    ) -> TaskSet:
        return ball_tasks()

    found = of_maker(make)
    assert {name: (one.kind, one.help) for name, one in found.items()} == {
        "kind": (str, "Kind."),
        "count": (int, ""),
    }


def test_species_settings_of_the_command_line_reach_the_plan() -> None:
    settings = run(
        *("--species", "Lynx", "--species", "Puma", "--column", "latitude=Y"),
        *("--years", "2008-2016", "--box", "40,50,-100,-90", "--degrees", "4"),
        *("--size", "32,32", "--set", "block=4,seed=3"),
    )
    from engram.tasks.settings import read_plan

    plan = read_plan(SpeciesPlan, dict(OURS["species"].checked(settings)))
    assert plan == SpeciesPlan(
        species=("Lynx", "Puma"),
        column={"latitude": "Y"},
        years=(2008, 2016),
        box=(40, 50, -100, -90),
        degrees=4.0,
        size=32,
        block=4,
        seed=3,
    )


@pytest.mark.parametrize(
    ("text", "years"),
    [("2008-2016", (2008, 2016)), ("2008-", (2008, None)), ("-2016", (None, 2016)), ("7", (7, 7))],
)
def test_years(text: str, years: tuple[int | None, int | None]) -> None:
    assert years_of(text) == years


def test_columns_that_are_none() -> None:
    assert columns_of("latitude=Y; longitude = X") == {"latitude": "Y", "longitude": "X"}
    with pytest.raises(InputError, match="'Y' is not of the form FIELD=NAME"):
        columns_of("latitude=Y;Y")
