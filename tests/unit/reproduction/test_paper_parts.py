"""What the paper's experiments are made of: figures of the paper, plans, statistics, words."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram import InputError, ball_task, make_policy
from engram.bench.tables import csv_text, latex
from engram.bench.units import run_unit
from engram.experience import posterior_samples
from engram.memory.library import load_memory
from engram.pacing import UpdateSchedule
from engram.reproduction import published
from engram.reproduction.catalogue import EXPERIMENTS, chosen
from engram.reproduction.digest import digest, rounded, shown_pairs
from engram.reproduction.experiments import Experiment, Part
from engram.reproduction.figures import VIEWS as DRAWN
from engram.reproduction.jobs import Clock, Job, guess, plan_of, prepare
from engram.reproduction.kept import as_text, differing
from engram.reproduction.memories import noise_memory
from engram.reproduction.page import page
from engram.reproduction.presets import preset_of
from engram.reproduction.published import UPDATED, Published
from engram.reproduction.sequence import SequencePlan
from engram.reproduction.tables import VIEWS as TABLED
from engram.reproduction.tables import rate_table, tables_of
from engram.reproduction.verdicts import AGREE, BEYOND, OPPOSITE, SAME, UNSETTLED, verdict, words
from engram.testing import tiny_memory

TABLES = [t for t in vars(published).values() if isinstance(t, Published)]


def test_published_tables_are_whole() -> None:
    assert len(TABLES) >= 9
    for table in TABLES:
        rows = [*table.rates.values(), *table.spread.values()]
        rows += [] if table.random is None else [table.random]
        assert {len(row) for row in rows} == {len(table.budgets)}
        values = [v for row in rows for v in row if v is not None]
        assert 0 < min(values) <= max(values) < 1
    assert published.BALLS.rate("em-ptdm", 250) == 0.7875
    assert published.BALLS.rate("em-ptdm", 300) is None
    assert published.BALLS.rate("gp", 250) is None
    assert published.OVERHEAD.chance(200) is None
    assert published.WAXWING.chance(150) is None


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_experiments_are_whole(experiment: Experiment) -> None:
    assert set(experiment.views) <= TABLED.keys()
    assert set(experiment.views) <= DRAWN.keys() | {"evidence"}
    if experiment.reads:
        assert not EXPERIMENTS[experiment.reads].reads
        return
    assert experiment.parts
    for part in (*experiment.parts, *experiment.quick):
        assert part.at == tuple(sorted(part.at))
    assert {part.name for part in experiment.quick} <= {part.name for part in experiment.parts}
    ran = {policy for part in experiment.parts for policy in part.policies}
    ran |= {policy + UPDATED for policy in ran if any(p.length for p in experiment.parts)}
    assert experiment.lead in ran
    assert {name for pair in experiment.pairs for name in pair} <= ran
    for part in experiment.parts:
        source = experiment.reported(part.name)
        assert source is None or set(source.rates) & ran
    assert set(experiment.beside) <= {part.name for part in experiment.parts}


def test_choosing_experiments() -> None:
    assert [e.name for e in chosen(None)] == list(EXPERIMENTS)
    assert [e.name for e in chosen("kappa, balls-digits")] == ["balls-digits", "kappa"]
    assert [e.name for e in chosen("reconstruction")] == ["balls-digits", "reconstruction"]
    with pytest.raises(InputError, match="unknown experiment 'ball'"):
        chosen("ball")


def test_choosing_parts_of_experiments(tmp_path: Path) -> None:
    def titles(only: str, *, quick: bool = False) -> list[str]:
        wanted = chosen(only, quick=quick)
        jobs, left_out = prepare(wanted, tmp_path, data_root=None, quick=quick, tasks=1)
        return [part.title for part in (*jobs, *left_out)]

    assert titles("transient:balls , schedule") == [
        "schedule budget-200",
        "schedule budget-250",
        "transient balls",
    ]
    assert titles("objects:7-balls,objects:5-balls") == ["objects 5-balls", "objects 7-balls"]
    assert titles("schedule,schedule:budget-250") == titles("schedule")
    assert titles("objects:10-balls", quick=True) == ["objects 10-balls"]
    assert titles("balls-digits:") == ["balls-digits"]  # the name of its part is empty
    assert [e.name for e in chosen("reconstruction,balls-digits:")] == [
        "balls-digits",
        "reconstruction",
    ]
    (alone,) = chosen("trials:species")
    assert [part.name for part in alone.parts] == ["species"]
    assert not alone.quick


@pytest.mark.parametrize(
    ("only", "quick", "message"),
    [
        (
            "kappa:gp",
            False,
            "unknown part 'gp' of kappa; choose among kappa:diffatd, kappa:em-ptdm, or give kappa",
        ),
        (
            "memory-update:overhead",
            True,
            "unknown part 'overhead' of memory-update with --quick; choose among "
            "memory-update:balls, or",
        ),
        ("tumour:brain", False, "'brain' of tumour; choose among tumour: (without a name), or"),
        ("kappa:", False, "unknown part '' of kappa"),
        ("reconstruction:", False, "it reads the results of balls-digits; give reconstruction"),
        ("ball:x", False, "unknown experiment 'ball'"),
    ],
)
def test_parts_that_are_not_there_are_named(only: str, quick: bool, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        chosen(only, quick=quick)


def test_what_lacks_data_is_named(tmp_path: Path) -> None:
    wanted = chosen("balls-digits,overhead,transient")
    jobs, left_out = prepare(wanted, tmp_path, data_root=None, quick=True)
    assert [job.title for job in jobs] == ["balls-digits", "transient balls"]
    assert [part.title for part in left_out] == [
        "overhead vehicle",
        "overhead plane",
        "overhead ship",
        "transient overhead",
    ]
    assert left_out[0].files == ("overhead/overhead_tiles.npz",)
    assert jobs[1].folder == tmp_path / "transient" / "balls"
    _, still = prepare(wanted, tmp_path, data_root=tmp_path, quick=True)
    assert still == left_out
    with pytest.raises(InputError, match="no folder of data"):
        prepare(wanted, tmp_path, data_root=tmp_path / "nowhere", quick=True)


def _data(root: Path) -> Path:
    """Two tiles of each target and records of one species."""
    rng = np.random.RandomState(0)
    for folder in ("overhead", "species"):
        (root / folder).mkdir(parents=True)
    masks = np.zeros((6, 128, 128), np.uint8)
    masks[:, 20:40, 20:60] = 1
    images = rng.randint(0, 256, (6, 128, 128, 3)).astype(np.uint8)
    names = np.array(["vehicle", "plane", "ship"] * 2)
    np.savez(root / "overhead/overhead_tiles.npz", images=images, masks=masks, target=names)
    hubs = rng.uniform([42, -98], [48, -92], (12, 2))
    places = hubs[rng.randint(12, size=900)] + rng.normal(0, 0.1, (900, 2))
    lines = [f"Bombycilla cedrorum,{lat:.4f},{lon:.4f}" for lat, lon in places]
    table = "\n".join(["species,latitude,longitude", *lines])
    (root / "species/points_other.csv.gz").write_bytes(gzip.compress(table.encode()))
    return root


def test_data_below_the_root_is_used(tmp_path: Path) -> None:
    root = _data(tmp_path / "data")
    wanted = chosen("overhead,species-waxwing,species-chickadee")
    jobs, left_out = prepare(wanted, tmp_path, data_root=root, quick=False, tasks=5)
    plans = {job.title: job.plan for job in jobs}
    assert [part.title for part in left_out] == ["species-chickadee"]
    assert [*plans] == ["species-waxwing", "overhead vehicle", "overhead plane", "overhead ship"]
    assert plans["species-waxwing"].tasks == (2000, 2005)  # none that development has seen
    assert plans["overhead plane"].tasks == (0, 2)  # as many as there are
    assert dict(plans["overhead plane"].settings) == {"target": "plane"}
    assert plans["overhead plane"].at == (200, 250, 300, 350)


def test_the_memory_of_noise_is_always_the_same(tmp_path: Path) -> None:
    paths = [noise_memory(tmp_path / name) for name in "ab"]
    one, other = (load_memory(str(path)) for path in paths)
    assert one.card.sha256 == other.card.sha256
    assert noise_memory(tmp_path / "a") == paths[0]
    part = Part("", "balls", ("em-ptdm[prior=noise]", "gp"), (20,), 1, prior="digits")
    plan = plan_of(part, [], tmp_path / "a")
    assert [choice.label for choice in plan.policies] == ["em-ptdm[prior=noise]", "gp"]
    assert Path(plan.policies[0].prior) == paths[0].resolve()
    view = make_policy("em-ptdm", ball_task(0).grid, 20, memory=one).view()
    assert view.mean is not None
    assert view.mean.std() > 0.01


def test_schedules_by_name() -> None:
    for preset in ("default", "paper"):
        for kind in ("uniform", "adaptive"):
            made: Any = make_policy(
                "em-ptdm", ball_task(0).grid, 90, memory=tiny_memory(), preset=preset, schedule=kind
            )
            assert made.settings.schedule.kind == kind
    same = UpdateSchedule()
    made = make_policy("em-ptdm", ball_task(0).grid, 90, memory=tiny_memory(), schedule=same)
    assert made.settings.schedule is same
    with pytest.raises(InputError, match="schedule='daily'"):
        make_policy("em-ptdm", ball_task(0).grid, 90, memory=tiny_memory(), schedule="daily")


def test_a_sequence_learns_between_tasks(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    tiny_memory(size=32).save(path)
    part = Part("", "balls", ("em-ptdm",), (3, 6), 1, prior=str(path), length=3, lessons=2)
    plan = plan_of(part, [], tmp_path)
    assert isinstance(plan, SequencePlan)
    assert plan.options()["length"] == 3
    rows = [run_unit(unit, lambda taken, found: None) for unit in plan.units()]
    assert [row["policy"] for row in rows] == ["em-ptdm", f"em-ptdm{UPDATED}"]
    still, learnt = (row["steps"] for row in rows)
    assert len(still) == len(learnt) == 3
    assert still[0]["hits"] == learnt[0]["hits"]
    assert still[0]["l2"] == learnt[0]["l2"]
    assert still[2]["l2"] != learnt[2]["l2"]
    assert rows[0]["sr"]["6"] == pytest.approx(np.mean([s["sr"]["6"] for s in still[1:]]))
    policy = make_policy("diffatd", ball_task(0).grid, 4, memory=load_memory(str(path)))
    assert posterior_samples(policy).shape == (16, 1, 32, 32)


def test_the_clock_counts_down(tmp_path: Path) -> None:
    jobs, _ = prepare(chosen("schedule"), tmp_path, data_root=None, quick=True)
    clock = Clock(jobs, workers=2)
    units = jobs[0].plan.units()
    whole = sum(map(guess, units))
    assert clock.units == len(units)
    assert clock.seconds_left == pytest.approx(whole / 2)
    clock.skip(jobs[0], units[:1])
    assert clock.seconds_left < whole / 2
    for unit in units[1:]:
        row = {"policy": unit.label, "task": unit.task, "seed": unit.seed}
        clock.finished(jobs[0], row)
    assert clock.done == clock.units
    assert clock.seconds_left == pytest.approx(0, abs=1e-6)
    assert isinstance(jobs[0], Job)


def _row(policy: str, task: int, rate: float, **more: Any) -> dict[str, Any]:
    return {
        "policy": policy,
        "task": task,
        "seed": 0,
        **{name: {"150": rate} for name in ("sr", "mass", "recall", "objects")},
        "random": {"150": 0.2},
        "targets": 20,
        "cells": 100,
        "objects_in_task": 6,
        "hits": [1, 2],
        "updates_accepted": 3,
        "updates_rolled_back": 1,
        "calibration": None,
        "seconds_per_observation": 0.5,
        "network_evaluations_per_observation": 2.0,
        "peak_rss_mb": 100.0,
        "l2": {"t": [0, 10], "forecast": [0.4, 0.2], "forecast_targets": [0.9, 0.1 + rate]},
        **more,
    }


def _results(rows: list[dict[str, Any]]) -> dict[str, Any]:
    options = {
        "at": [150],
        "budget": 150,
        "memories": {"/somewhere/noise.safetensors": "ab", "digits": "cd"},
        "tasks": [0, 8],
        "seeds": 1,
        "prior": "digits",
    }
    about = {"commit": "c", "version": "v", "machine": {}, "complete": True}
    return {**about, "options": options, "rows": rows}


MACHINE = {"cores": 2, "processor": "p", "memory_gb": 1, "python": "3", "torch": "2"}
EXPERIMENT = replace(EXPERIMENTS["balls-digits"], views=("rates", "distances"))


def _made(gap: float, noise: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows = [
        _row(policy, k, 0.5 + plus + noise * rng.standard_normal())
        for k in range(8)
        for policy, plus in (("em-ptdm", gap), ("diffatd", 0.0), ("gp", gap))
    ]
    return digest(EXPERIMENT, {"": _results(rows)}, quick=False)


def test_a_digest_is_small_and_names_no_folders() -> None:
    made = _made(0.2, 0.01)
    part = made["parts"][""]
    assert part["options"]["memories"] == {"noise": "ab", "digits": "cd"}
    assert part["rates"]["em-ptdm"]["150"]["n"] == 8
    assert {(p["policy"], p["minus"]) for p in part["paired"]} == {
        ("em-ptdm", "diffatd"),
        ("em-ptdm", "gp"),
    }
    assert part["distances"]["means"]["gp"]["forecast"]["mean"] == pytest.approx(0.3)
    assert rounded({"a": [0.123456, 1e-7]}) == {"a": [0.1235, 1e-7]}
    pairs = shown_pairs(replace(EXPERIMENT, pairs=(("gp", "diffatd"),)), ["gp", "diffatd"])
    assert pairs == [("gp", "diffatd")]


def test_the_rows_kept_give_the_figures_again() -> None:
    made = _made(0.2, 0.01)
    again = json.loads(as_text(made))
    assert again == json.loads(json.dumps(made))
    part = again["parts"][""]
    assert len(part["rows"]) == 24
    assert as_text(made).count('\n    {"policy"') == 24  # one a line
    assert part["rows"][0].keys() >= {"policy", "task", "seed", "sr", "objects", "evidence"}
    assert not differing(part)
    part["rows"][0]["sr"]["150"] += 0.1
    assert differing(part) == [
        "SR of em-ptdm at 150",
        "em-ptdm - diffatd at 150",
        "em-ptdm - gp at 150",
    ]
    part["rows"] = part["rows"][3:]  # a task less
    assert "SR of gp at 150" in differing(part)
    assert "Rows were not kept" not in page({"balls-digits": {**made, "machine": MACHINE}}, {})
    del made["parts"][""]["rows"]
    text = page({"balls-digits": {**made, "machine": MACHINE}}, {})
    assert "Rows were not kept of balls-digits." in text


def test_only_the_papers_preset_is_said_to_be_as_in_the_paper() -> None:
    """The default preset is another engine; its differences have the paper's sign or not."""
    part = _made(0.2, 0.01)["parts"][""]
    assert [preset_of(p, part) for p in ("em-ptdm", "gp", "em-ptdm[preset=paper,a=5]")] == [
        "default",
        "-",
        "paper",
    ]
    assert preset_of("em-ptdm, memory updated", part) == "default"
    relation, said = words(published.BALLS, part)[0]
    assert relation == SAME
    assert said.startswith("`em-ptdm` (default) is above `diffatd` (default) at 150 (+0.2")
    part["options"]["preset"] = "paper"
    assert words(published.BALLS, part)[0][0] == AGREE
    assert words(published.BALLS, _made(-0.2, 0.01)["parts"][""])[0][0] == OPPOSITE


def test_every_row_of_every_table_names_its_preset() -> None:
    for named in tables_of(EXPERIMENT, _made(0.2, 0.01)):
        assert named.table[0][1] == "preset"
        assert {line[1] for line in named.table[1]} <= {"default", "-"}


def test_words_say_what_the_intervals_say() -> None:
    source = published.BALLS
    clear = words(source, _made(0.2, 0.01)["parts"][""])
    assert clear[0][1].endswith("; the paper has +0.120.")
    assert clear[1][0] == BEYOND
    assert "not told apart from `gp`" in clear[1][1]
    assert "paper" not in clear[1][1]
    _, against = words(source, _made(-0.2, 0.01)["parts"][""])[0]
    assert "below `diffatd`" in against
    relation, unclear = words(source, _made(0.0, 0.2)["parts"][""])[0]
    assert relation == UNSETTLED
    assert "not told apart from `diffatd`" in unclear
    assert verdict({"ci95": None, "mean": 3.0}) == "without an interval against"


def test_tables_stand_beside_the_papers(tmp_path: Path) -> None:
    made = _made(0.2, 0.01)
    head, lines = rate_table(published.BALLS, made["parts"][""])
    assert head == ["policy", "preset", "paper, 150", "ours, 150"]
    assert lines[0][2] == "0.556 (48%)"
    assert lines[2][2] == "-"
    assert rate_table(None, made["parts"][""])[0] == ["policy", "preset", "ours, 150"]
    for named in tables_of(EXPERIMENT, made):
        assert {len(line) for line in named.table[1]} == {len(named.table[0])}
        assert csv_text(named.table).count("\n") == len(named.table[1]) + 1
        text = latex(named.table, "50 % of a_b")
        assert r"\caption{50 \% of a\_b}" in text
        assert text.count(r"\\") == len(named.table[1]) + 1
        assert "±" not in text


def test_a_page_says_which_experiments_are_quick_and_of_which_commit() -> None:
    whole = {**_made(0.2, 0.01), "machine": MACHINE}
    quick = {**whole, "quick": True, "commit": "d"}
    text = page({"balls-digits": whole, "balls-universal": quick}, {})
    assert "Commit `c`: balls-digits." in text
    assert "Commit `d`: balls-universal." in text
    assert "**A quick run of balls-universal: a few tasks" in text
    assert "**A quick run: a few tasks" in page({"balls-universal": quick}, {})
    assert "quick" not in page({"balls-digits": whole}, {})
