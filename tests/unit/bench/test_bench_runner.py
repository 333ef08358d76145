from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import engram
from engram import EngramError, InputError
from engram.bench import provenance
from engram.bench.journal import NAME
from engram.bench.runner import LocalExecutor, Plan, make_executor, read_results, run_bench
from engram.bench.suites import get_suite
from engram.bench.units import Row, Unit, run_unit
from engram.policies import POLICIES, PolicySpec

TIMINGS = ("seconds_per_observation", "peak_rss_mb")


class HereExecutor:
    """Units in this process, in order or reversed; stops after ``limit`` of them."""

    def __init__(self, limit: int | None = None, *, backwards: bool = False) -> None:
        self.limit, self.backwards, self.ran = limit, backwards, 0

    def run(self, units: Sequence[Unit]) -> Generator[tuple[int, Row], None, None]:
        order = range(len(units))
        for position in reversed(order) if self.backwards else order:
            if self.ran == self.limit:
                raise KeyboardInterrupt
            self.ran += 1
            yield position, run_unit(units[position], lambda taken, found: None)


def _plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {"tasks": (0, 2), "budget": 12, "at": (6, 12), "seeds": 2}
    return Plan.checked("balls", "random,random[preset=paper]", **{**given, **changes})


def _without_timings(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in TIMINGS} for row in results["rows"]]


def test_rows_hold_what_was_promised(tmp_path: Path) -> None:
    results = run_bench(_plan(), tmp_path, executor=HereExecutor())
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert results["complete"]
    assert results["version"] == engram.__version__
    assert results["options"]["tasks"] == [0, 2]
    assert {"processor", "cores", "torch"} <= results["machine"].keys()
    assert len(results["rows"]) == 8
    row = results["rows"][0]
    for name in ("sr", "mass", "recall", "objects", "random"):
        assert list(row[name]) == ["6", "12"]
    assert (row["policy"], row["preset"], row["task"], row["seed"]) == ("random", "default", 0, 0)
    assert results["rows"][1]["preset"] == "paper"
    assert row["prior"] is None
    assert row["peak_rss_mb"] > 10
    assert sum(row["calibration"]["count"]) == 12
    assert {"network_evaluations_per_observation", "evidence_mean", "hits"} <= row.keys()
    cell = results["summary"]["policies"]["random"]["12"]
    assert cell["n"] == 2
    assert cell["ci95"][0] <= cell["mean"] <= cell["ci95"][1]
    assert [pair["budget"] for pair in results["summary"]["paired"]] == [6, 12]


def test_searches_are_the_same_without_a_look_at_the_truth(tmp_path: Path) -> None:
    looked, blind = (
        run_bench(_plan(track=n), tmp_path / str(n), executor=HereExecutor()) for n in (10, 0)
    )
    assert "track" not in looked["options"]
    assert blind["options"]["track"] == 0
    assert [len(row["l2"]["t"]) for row in looked["rows"]] == [2] * 8
    assert [row["l2"] for row in blind["rows"]] == [None] * 8
    assert [row["hits"] for row in blind["rows"]] == [row["hits"] for row in looked["rows"]]
    with pytest.raises(InputError, match="track=-1: give 0"):
        _plan(track=-1)


def test_order_of_work_does_not_matter(tmp_path: Path) -> None:
    one = run_bench(_plan(), tmp_path / "a", executor=HereExecutor())
    other = run_bench(_plan(), tmp_path / "b", executor=HereExecutor(backwards=True))
    assert _without_timings(one) == _without_timings(other)


def test_any_number_of_workers_gives_the_same_rows(tmp_path: Path) -> None:
    found = [
        _without_timings(run_bench(_plan(), tmp_path / str(n), executor=LocalExecutor(n)))
        for n in (1, 2)
    ]
    assert found[0] == found[1]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = run_bench(_plan(), tmp_path / "whole", executor=HereExecutor())
    with pytest.raises(KeyboardInterrupt):
        run_bench(_plan(), tmp_path / "cut", executor=HereExecutor(3))
    half = read_results(tmp_path / "cut")
    assert not half["complete"]
    assert half["units"] == {"done": 3, "all": 8}
    rest = HereExecutor()
    seen: list[int] = []
    again = run_bench(
        _plan(), tmp_path / "cut", executor=rest, progress=lambda done, row: seen.append(done)
    )
    assert rest.ran == 5
    assert seen == [4, 5, 6, 7, 8]
    assert _without_timings(again) == _without_timings(whole)
    assert again["summary"]["policies"] == whole["summary"]["policies"]
    nothing = HereExecutor()
    run_bench(_plan(), tmp_path / "cut", executor=nothing)
    assert nothing.ran == 0


def test_other_options_and_other_commits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_bench(_plan(), tmp_path, executor=HereExecutor())
    before = (tmp_path / "results.json").read_bytes(), (tmp_path / NAME).read_bytes()
    with pytest.raises(InputError, match="seeds was 2 and is 1 now"):
        run_bench(_plan(seeds=1), tmp_path, executor=HereExecutor())
    monkeypatch.setattr("engram.bench.runner.commit", lambda: "another")
    with pytest.raises(InputError, match='is "another" now'):
        run_bench(_plan(), tmp_path, executor=HereExecutor())
    assert ((tmp_path / "results.json").read_bytes(), (tmp_path / NAME).read_bytes()) == before
    fresh = run_bench(_plan(seeds=1), tmp_path, executor=HereExecutor(), fresh=True)
    assert len(fresh["rows"]) == 4
    assert fresh["commit"] == "another"


def test_results_without_their_journal_are_refused(tmp_path: Path) -> None:
    run_bench(_plan(), tmp_path, executor=HereExecutor())
    (tmp_path / NAME).unlink()
    with pytest.raises(InputError, match="without the journal"):
        run_bench(_plan(), tmp_path, executor=HereExecutor())


def test_a_failure_before_the_first_row_writes_nothing(tmp_path: Path) -> None:
    plan = Plan.checked("balls", "random[colour=red]", tasks=(0, 1), budget=5)
    with pytest.raises(EngramError, match="colour"):
        run_bench(plan, tmp_path / "out", executor=LocalExecutor(1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tasks": (3, 3)}, "tasks=3:3"),
        ({"tasks": (-1, 3)}, "tasks=-1:3"),
        ({"budget": 0}, "budget=0"),
        ({"budget": 5000}, "larger than the 1024 open cells"),
        ({"at": (13,)}, "at=13"),
        ({"at": (0,)}, "at=0"),
        ({"seeds": 0}, "seeds=0"),
        ({"preset": "nope"}, "unknown preset 'nope'"),
        ({"prior": "nope"}, "unknown memory 'nope'"),
        ({"settings": {"colour": 1}}, "colour"),
        ({"settings": {"balls": 99}}, "balls=99"),
    ],
)
def test_bad_plans_are_refused_before_anything_runs(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        _plan(**changes)


def test_suites_and_executors_by_name() -> None:
    with pytest.raises(InputError, match="unknown suite 'nope'"):
        get_suite("nope")
    with pytest.raises(InputError, match="unknown executor 'nope'"):
        make_executor("nope", 1)
    with pytest.raises(InputError, match="workers=0"):
        make_executor("local", 0)


def test_settings_reach_the_tasks() -> None:
    assert get_suite("balls").tasks((), {"balls": 7}).task(3).facts["balls"] == 7


def test_default_budgets_are_the_papers() -> None:
    plan = Plan.checked("balls", "random")
    assert (plan.budget, plan.at) == (250, (150, 200, 250))
    assert Plan.checked("balls", "random", budget=180).at == (150,)
    assert Plan.checked("balls", "random", budget=20).at == (20,)


def test_memories_are_told_apart_by_hash() -> None:
    options = Plan.checked("balls", "random,em-ptdm,em-ptdm[prior=digits]").options()
    assert sorted(options["memories"]) == ["digits", "universal"]
    assert all(len(digest) == 64 for digest in options["memories"].values())
    assert Plan.checked("balls", "random").options()["memories"] == {}


PLUG_IN = """from engram.policies.random import RandomSearch
class Mine(RandomSearch):
    pass
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package from outside with a policy, registered as ``mine``; returns a helper in it."""
    package = tmp_path / "code" / "plugged"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "policy.py").write_text(PLUG_IN)
    (package / "helper.py").write_text("")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setitem(POLICIES, "mine", PolicySpec("plugged.policy", "Mine", "a plug-in"))
    return package / "helper.py"


def test_rows_of_a_changed_plug_in_are_refused(plug_in: Path, tmp_path: Path) -> None:
    plan = Plan.checked("balls", "random,mine", tasks=(0, 1), budget=4)
    run_bench(plan, tmp_path / "out", executor=HereExecutor())
    nothing = HereExecutor()
    run_bench(plan, tmp_path / "out", executor=nothing)
    assert nothing.ran == 0
    plug_in.write_text("changed = True\n")
    with pytest.raises(InputError, match=r"holds results of another run: plug_ins was .*mine"):
        run_bench(plan, tmp_path / "out", executor=HereExecutor())


def test_our_own_policies_are_known_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "plug_ins" not in _plan().options()
    monkeypatch.setitem(POLICIES, "mine", PolicySpec("nowhere_at_all", "Mine", "a plug-in"))
    plan = Plan.checked("balls", "mine", tasks=(0, 1), budget=4)
    with pytest.raises(InputError, match="source of module 'nowhere_at_all' cannot be found"):
        plan.options()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "engram-bench-1", "rows": []}'])
def test_foreign_result_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError):
        read_results(tmp_path)


def test_provenance_names_code_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(provenance.source_digest()) == 12
    answers = {"ls-files": "x", "rev-parse": "abc", "status": ""}
    monkeypatch.setattr(provenance, "_git", lambda *a: answers.get(a[0]))
    assert provenance.commit() == "abc"
    answers["status"] = " M grid.py"
    assert provenance.commit() == f"abc+{provenance.source_digest()}"
    answers.clear()
    assert provenance.commit() == engram.__version__
    assert provenance.machine()["cores"] >= 1
