"""Fitted and chosen constants say where they come from."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from engram.bench.provenance import made
from engram.campaign.coefficients import MADE
from engram.memory.library import read_card
from engram.origins import CHOSEN, NOT_RECORDED, Chosen, Made, chosen_table
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
