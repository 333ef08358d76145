"""Parts of an experiment from several runs in one result file, and a page that tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.figures import figures_of
from engram.reproduction.joined import commits_of, joined, rows_again, shown_by
from engram.reproduction.page import page
from engram.reproduction.run import read_digests

KEPT = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "paper"
OTHER_MACHINE = {"cores": 64, "processor": "p", "memory_gb": 1, "python": "3", "torch": "2"}


def _kept(name: str, *parts: str, **about: Any) -> dict[str, Any]:
    """What is kept of an experiment, as if a run had made only some parts."""
    whole = read_digests(KEPT)[name]
    some = {part: dict(whole["parts"][part]) for part in parts or whole["parts"]}
    return {**whole, "parts": some, **about}


def test_parts_that_were_not_run_stay_with_their_origin() -> None:
    before = _kept("transient", commit="old", complete=False)
    before["parts"]["balls"]["complete"] = True
    fresh = _kept("transient", "overhead", commit="new", machine=OTHER_MACHINE)
    made = joined(EXPERIMENTS["transient"], before, fresh)
    assert [*made["parts"]] == ["balls", "overhead"]
    assert made["commit"] == "new"
    assert made["complete"]  # the part that was not is no longer there
    assert made["parts"]["balls"]["machine"] == before["machine"]
    assert [commits_of(made, part) for part in made["parts"]] == [["old"], ["new"]]
    text = page({"transient": made}, {})
    assert "Commit `old`: transient balls." in text
    assert "Commit `new`: transient overhead." in text
    assert "64 cores (p), 1 GB, Python 3, torch 2: transient overhead." in text
    assert "Unfinished" not in text
    again = _kept("transient", "balls", commit="newest", complete=False)
    made = joined(EXPERIMENTS["transient"], made, again)
    assert [commits_of(made, part) for part in made["parts"]] == [["newest"], ["new"]]
    assert not made["complete"]
    assert "**Unfinished: transient.**" in page({"transient": made}, {})


def test_nothing_quick_is_joined_and_a_whole_run_replaces() -> None:
    one = EXPERIMENTS["transient"]
    before, fresh = _kept("transient"), _kept("transient", "balls")
    assert joined(one, None, fresh) is fresh
    assert joined(one, {**before, "quick": True}, fresh) is fresh
    quick = {**fresh, "quick": True}
    assert joined(one, before, quick) is quick
    assert joined(one, fresh, before) is before


def test_tasks_of_all_parts_together_are_dropped_when_one_part_is_new() -> None:
    one = EXPERIMENTS["overhead"]
    before = _kept("overhead", "vehicle", "plane", "ship", "all")
    made = joined(one, before, _kept("overhead", "plane", "ship", "all", commit="new"))
    assert [*made["parts"]] == ["vehicle", "plane", "ship"]
    assert commits_of(made, "vehicle") == [before["commit"]]


def test_rows_of_several_commits_are_named_under_each() -> None:
    before = _kept("transient", commit="old")
    before["parts"]["balls"]["taken"] = {"from": [], "commits": ["a" * 40, "b" * 40]}
    text = page({"transient": before}, {})
    assert f"Commit `{'a' * 40}`: transient balls (in part)." in text
    assert f"Commit `{'b' * 40}`: transient balls (in part)." in text
    assert "Commit `old`: transient overhead." in text
    assert text.count("cores (") == 1  # of the rows taken it is not known


@pytest.mark.parametrize(
    ("figure", "owner"),
    [
        ("transient-overhead-scatter", ("transient", "overhead")),
        ("overhead-all", ("overhead", "all")),
        ("overhead-ship", ("overhead", "ship")),
        ("objects", ("objects", "")),
        ("kappa-em-ptdm", ("kappa", "em-ptdm")),
        ("reconstruction-distances", ("reconstruction", "")),
        ("balls", None),
        ("costly", None),
    ],
)
def test_a_figure_belongs_to_a_part(figure: str, owner: tuple[str, str] | None) -> None:
    assert shown_by(figure) == owner


@pytest.mark.parametrize("name", ["objects", "cost"])
def test_figures_of_parts_side_by_side_are_drawn_of_the_rows_kept(
    name: str, tmp_path: Path
) -> None:
    results = {
        part: {"rows": rows_again(kept), "options": kept["options"]}
        for part, kept in _kept(name)["parts"].items()
    }
    assert figures_of(EXPERIMENTS[name], results, tmp_path, side_by_side=True) == [
        tmp_path / f"{name}.png"
    ]
    row = results[next(iter(results))]["rows"][0]
    assert row["seconds_per_observation"] == row["seconds"]
    assert row["peak_rss_mb"] > 100
    assert not figures_of(EXPERIMENTS["transient"], {}, tmp_path, side_by_side=True)
