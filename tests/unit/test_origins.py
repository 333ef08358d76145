"""Fitted and chosen constants say where they come from."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.bench.provenance import made
from engram.campaign.coefficients import MADE
from engram.memory.library import read_card
from engram.origins import CHOSEN, NO_CHOICE, NOT_RECORDED, Chosen, Made, chosen_table
from engram.policies import hyperprior
from engram.policies.hyperprior import KINDS, Hyperprior, made_by

ROOT = Path(__file__).resolve().parents[2]
ORIGINS = {"coefficients": MADE, **{f"hyperprior {kind}": made_by(kind) for kind in KINDS}}


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
def test_fitted_figures_say_what_made_them(origin: Made) -> None:
    assert set(origin) == set(Made.__annotations__)
    script = origin["command"].split()[1]
    assert (ROOT / script).is_file()
    assert re.fullmatch(r"[0-9a-f]{40}(\+[0-9a-f]{12})?", origin["commit"]) or origin[
        "commit"
    ].startswith(NOT_RECORDED)
    assert origin["memories"]
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in origin["memories"].values())
    assert origin["data"]


def current(place: str) -> Any:
    """The value that the code uses now: of a constant, or of a parameter that is not given."""
    module, name = place.split(":")
    holder, _, parameter = name.partition(".")
    found = getattr(import_module(module), holder)
    return inspect.signature(found).parameters[parameter].default if parameter else found


@pytest.mark.parametrize("one", CHOSEN, ids=lambda one: one.place)
def test_constants_of_the_engine_are_those_whose_origin_is_told(one: Chosen) -> None:
    assert current(one.place) == one.value
    assert one.how.startswith("by hand")
    assert re.match("[0-9a-f]{7}", one.since)


MODULES = sorted({one.place.partition(":")[0] for one in CHOSEN})


def is_numeric(value: Any) -> bool:
    """Numbers, and tuples, lists, dictionaries and arrays of nothing else."""
    match value:
        case bool() | str():
            return False
        case int() | float():
            return True
        case np.ndarray():
            return value.dtype.kind in "iuf"
        case dict():
            return is_numeric([*value.values()])
        case tuple() | list():
            return bool(value) and all(is_numeric(part) for part in value)
    return False


def numbers_of(module: str) -> set[str]:
    """Places of the numeric constants that a module itself sets, whatever they are called."""
    holder = import_module(module)
    assert holder.__file__ is not None
    names = set[str]()
    for node in ast.parse(Path(holder.__file__).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for name in (part for target in targets for part in ast.walk(target)):
            if isinstance(name, ast.Name) and is_numeric(getattr(holder, name.id)):
                names.add(f"{module}:{name.id}")
    return names


def test_modules_of_the_audit_are_among_those_looked_through() -> None:
    names = "copies templates outlines room outcome_h separate ranking mixing process selection"
    policies = {f"engram.policies.{name}" for name in names.split()}
    campaign = {"engram.campaign.advice", "engram.campaign.remaining"}
    assert policies | campaign | {"engram.spatial", "engram.logistic"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_number_of_such_a_module_is_a_choice_that_is_told_or_no_choice(module: str) -> None:
    told = {one.place for one in CHOSEN if "." not in one.place.partition(":")[2]}
    assert numbers_of(module) == {
        place for place in told | NO_CHOICE.keys() if place.startswith(f"{module}:")
    }
    assert told.isdisjoint(NO_CHOICE)


def test_what_is_no_choice_is_a_limit_a_tolerance_or_a_format() -> None:
    assert {place.partition(":")[0] for place in NO_CHOICE} <= set(MODULES)
    for place, what in NO_CHOICE.items():
        assert re.match("(a limit|limits|a tolerance|a format): .", what), place


def test_numbers_are_found_however_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engram_numbers.py").write_text(
        "import numpy as np\nfrom math import pi\nA, (b, C) = 1, (2.0, 'x')\nD: float = 1e-3\n"
        "E: int\nF = (1, (2, 3))\nG = np.ones(2)\nH = {'a': 1}\nI = True\nJ = ('x', 1)\nK = L = 5\n"
        "M = np.ones(2, bool)\nN = -pi\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = {place.partition(":")[2] for place in numbers_of("engram_numbers")}
    assert found == {"A", "b", "D", "F", "G", "H", "K", "L", "N"}


def test_the_page_quotes_the_origins() -> None:
    quoted = (ROOT / "benchmarks" / "results" / "origins.md").read_text(encoding="utf-8")
    assert quoted == chosen_table()


def test_a_fit_records_code_memory_and_command_without_folders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/some/where/fit.py", "--searches", "/my/own/dir", "--write"])
    origin = made(["digits"], "nothing")
    assert origin["command"] == "python benchmarks/fit.py --searches dir --write"
    assert origin["memories"] == {"digits": read_card("digits").sha256}
    assert origin["commit"]


@pytest.fixture
def _fresh_hyperprior() -> Iterator[None]:
    """Hyperpriors are read anew by those who come after."""
    yield
    hyperprior.usual.cache_clear()
    hyperprior.fingerprint.cache_clear()


@pytest.mark.usefixtures("_fresh_hyperprior")
def test_what_made_habits_is_no_part_of_their_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hyperprior.fingerprint()
    origin: Made = {"command": "x", "commit": "y", "memories": {}, "data": "z", "note": ""}
    monkeypatch.setattr(hyperprior, "file_of", lambda kind: tmp_path / f"{kind}.json")
    for shift, same in ((0.0, True), (0.1, False)):
        for kind in KINDS:
            kept = hyperprior.usual(kind)
            Hyperprior(kept.mean + shift, kept.covariance).write(tmp_path / f"{kind}.json", origin)
        hyperprior.usual.cache_clear()
        hyperprior.fingerprint.cache_clear()
        assert (hyperprior.fingerprint() == before) is same
        assert hyperprior.made_by() == origin
