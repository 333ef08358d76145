"""Other people's policies, suites and memories come in by entry points, without a line of ours."""

from __future__ import annotations

import json
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engram
from engram import Grid, InputError, WeightsError
from engram.bench.runner import Plan, make_executor, run_bench
from engram.bench.suites import SUITES, Suite, get_suite
from engram.campaign import create_campaign, open_campaign, verify
from engram.cli.main import main
from engram.errors import PlugInWarning
from engram.memory.kinds import KINDS
from engram.memory.library import load_memory
from engram.policies import POLICIES, make_policy
from engram.tasks.sets import ball_tasks
from engram.testing import tiny_memory

PARTS = """
    import numpy as np
    from engram.bench.suites import Suite
    from engram.grid import Grid
    from engram.memory.denoiser import Estimate, CosineSchedule
    from engram.policies.base import Policy, flat_scores
    from engram.tasks.base import Task
    from engram.tasks.sets import TaskSet


    class Sweep(Policy):
        '''Cells in the order of their numbers, or backwards.'''

        name = "sweep"

        def __init__(self, grid, budget, seed=0, *, backwards: bool = False):
            super().__init__(grid, budget, seed)
            self.order = np.arange(grid.n_cells) * (1.0 if backwards else -1.0)

        def scores(self):
            return flat_scores(self.grid, np.full(self.grid.n_cells, 0.5), self.order)


    def stripes(files, *, width: int = 2):
        def make(k):
            target = np.zeros((6, 6), bool)
            target[:, k % 4 : k % 4 + width] = True
            return Task(f"stripes-{k}", Grid(6, 6), target[None].astype(np.float32), target)

        return TaskSet("stripes", "vertical stripes", make, options={"width": width})


    suite = Suite("stripes", "vertical stripes in a 6x6 area", stripes, (6, 12))


    class Flat:
        '''A denoiser that has read one number and imagines nothing else.'''

        schedule, conditioned = CosineSchedule(), True

        def __init__(self, level):
            self.level = level

        def estimate(self, x_t, t, known=None):
            x0 = x_t * 0 + self.level
            if known is not None:
                x0 = x0 * (1 - known.weight) + known.values * known.weight
            return Estimate(x0, x_t)


    def load(path, card):
        return Flat(float(card.network["level"]))
"""

ENTRY_POINTS = """
    [engram.policies]
    sweep = parts_of_others:Sweep
    lost = parts_of_others:nowhere
    crash = parts_that_crash:Policy

    [engram.suites]
    stripes = parts_of_others:suite
    misnamed = parts_of_others:suite

    [engram.memories]
    flat = parts_of_others:load
"""

Package = Callable[..., Path]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Writes an installed package: modules, and a dist-info folder with entry points."""

    def write(name: str, entry_points: str, **modules: str) -> Path:
        folder = tmp_path / name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(textwrap.dedent(text))
        monkeypatch.syspath_prepend(folder)
        return folder

    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    yield write
    import sys

    for module in ("parts_of_others", "parts_that_crash"):
        sys.modules.pop(module, None)


@pytest.fixture
def others(package: Package) -> Path:
    return package(
        "others",
        ENTRY_POINTS,
        parts_of_others=PARTS,
        parts_that_crash="raise RuntimeError('no\\nlicence')",
    )


@pytest.fixture
def flat_memory(others: Path, tmp_path: Path) -> str:
    """A memory of a kind that only the other package can load; its name in the library."""
    from dataclasses import replace
    from hashlib import sha256

    folder = tmp_path / "home" / "memories"
    folder.mkdir(parents=True)
    (folder / "level.safetensors").write_bytes(b"a number")
    card = replace(
        tiny_memory().card,
        name="level",
        kind="flat",
        network={"conditioned": True, "level": -0.5},
        sha256=sha256(b"a number").hexdigest(),
    )
    (folder / "level.json").write_text(json.dumps(card.to_dict()))
    return "level"


def test_all_three_in_a_benchmark(flat_memory: str, tmp_path: Path) -> None:
    labels = f"random,sweep,sweep[backwards=on],em-ptdm[prior={flat_memory}]"
    plan = Plan.checked("stripes", labels, tasks=(0, 1), budget=6, settings={"width": 3})
    results = run_bench(plan, tmp_path / "out", executor=make_executor("local", 1))
    assert results["complete"]
    rows = {row["policy"]: row for row in results["rows"]}
    assert rows["sweep"]["hits"] == [1, 2, 3]  # columns 0 to 2 of the first row
    assert rows["sweep[backwards=on]"]["hits"] == [4, 5, 6]
    assert len(rows) == 4
    assert sorted(results["options"]["plug_ins"]) == [
        "memory kind flat",
        "suite stripes",
        "sweep",
    ]


def test_policy_and_memory_in_a_search(flat_memory: str, tmp_path: Path, capfd: Any) -> None:
    image = np.zeros((6, 6), np.float32)
    image[:, :3] = 1
    np.save(tmp_path / "image.npy", image)
    for policy in ("sweep[backwards=on]", f"em-ptdm[prior={flat_memory}]"):
        arguments = ["search", "--image", str(tmp_path / "image.npy"), "--above", "0.5"]
        out = ["--out", str(tmp_path / policy[:5]), "--json", "--budget", "6"]
        assert main([*arguments, "--policy", policy, *out]) == 0
        found = json.loads(capfd.readouterr().out)
        assert found["rows"][0]["policy"] == policy
        if policy.startswith("sweep"):
            assert [v["outcome"] for v in found["visited"]] == [0, 0, 0, 1, 1, 1]


def test_policy_and_memory_in_a_campaign(flat_memory: str, tmp_path: Path, capfd: Any) -> None:
    db = str(tmp_path / "c.db")
    create = ["campaign", "create", "--db", db, "--size", "6,6", "--budget", "5"]
    assert main([*create, "back", "--policy", "sweep[backwards=on]"]) == 0
    assert "policy sweep[backwards=on]" in capfd.readouterr().out
    campaign = open_campaign("back", db=db)
    assert campaign.state.spec.options == {"backwards": True}
    assert campaign.ask()[0].cell == (5, 5)
    campaign.tell((5, 5), 1.0, np.ones((1, 1, 1)))
    assert open_campaign("back", db=db).peek(1)[0].cell == (5, 4)
    imagined = create_campaign("flat", Grid(6, 6), 5, db=db, policy="em-ptdm", prior=flat_memory)
    assert imagined.state.spec.prior == "level"
    imagined.tell(imagined.ask()[0].cell, 1.0, np.ones((1, 1, 1)))
    assert verify(imagined).ok


def test_a_task_of_the_suite_is_searched_by_hand_and_in_a_campaign(
    flat_memory: str, tmp_path: Path
) -> None:
    task = get_suite("stripes").tasks(settings={"width": 3}).task(0)
    assert engram.simulate(make_policy("sweep", task.grid, 6), task).outcomes == [1, 1, 1, 0, 0, 0]
    policies = {"sweep": "", "em-ptdm": flat_memory}
    for policy, prior in policies.items():
        db = str(tmp_path / f"{policy}.db")
        campaign = create_campaign("s", task.grid, 4, db=db, policy=policy, prior=prior or None)
        for query in campaign.ask(3):
            seen = task.measure(query.cell)
            campaign.tell(query.cell, seen.outcome, seen.content)
        assert len(campaign.state.observations) == 3
        assert verify(open_campaign("s", db=db)).ok


def test_a_campaign_takes_the_options_of_a_policy(tmp_path: Path) -> None:
    db = str(tmp_path / "c.db")
    made = create_campaign("a", Grid(6, 6), 5, db=db, policy="gp[acquisition=ucb,bonus=2]")
    assert made.state.spec.policy == "gp"
    assert made.state.spec.options == {"acquisition": "ucb", "bonus": 2}
    for policy, options, words in (
        ("gp[nonsense=1]", {}, "does not take these options"),
        ("gp[bonus=off]", {}, "option bonus=False: give a number"),
        ("gp[discount=7]", {}, "discount=7.0: give a number from 0 to 1"),
        ("gp[seed=1]", {}, "seed is not an option of a policy"),
        ("gp[bonus=1]", {"bonus": 2}, "option 'bonus' is given twice"),
        ("gp[", {}, "is not of the form"),
    ):
        with pytest.raises(InputError, match=words):
            create_campaign("b", Grid(6, 6), 5, db=db, policy=policy, options=options)
    with pytest.raises(InputError, match="'b'"):
        open_campaign("b", db=db)


def test_names_are_listed_without_loading_anything(others: Path) -> None:
    import sys

    assert list(POLICIES)[-3:] == ["crash", "lost", "sweep"]
    assert "stripes" in SUITES
    assert len(KINDS) == 2
    assert "parts_of_others" not in sys.modules


def test_a_broken_plug_in_is_named_in_one_line_and_harms_no_other(others: Path, capfd: Any) -> None:
    for name, words in (("crash", "RuntimeError: no licence"), ("lost", "AttributeError")):
        with pytest.raises(InputError, match=f"policy '{name}' of package 'others' .*{words}"):
            make_policy(name, Grid(4, 4), 3)
    with pytest.raises(InputError, match=r"suite 'misnamed' of package 'others'.*of that name"):
        get_suite("misnamed")
    assert make_policy("sweep", Grid(4, 4), 3).suggest()[0].cell == (0, 0)
    assert main(["bench", "run", "stripes", "--policies", "crash"]) == 2
    said = capfd.readouterr().err.strip()
    assert "'crash' of package 'others' cannot be loaded" in said
    assert len(said.splitlines()) == 1


def test_a_list_that_cannot_be_read_is_named_and_left_out(others: Path, package: Package) -> None:
    package("garbled", "[engram.policies]\nthis is no entry point\n")
    with pytest.warns(PlugInWarning, match="garbled.*cannot be read"):
        assert "sweep" in POLICIES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_policy("sweep", Grid(4, 4), 3).name == "sweep"


def test_two_packages_of_one_name(others: Path, package: Package) -> None:
    package("second", "[engram.policies]\nsweep = elsewhere:Policy\nrandom = elsewhere:Policy\n")
    with pytest.warns(PlugInWarning, match="policy 'random' of package 'second' is passed over"):
        assert "sweep" in POLICIES
    with pytest.raises(InputError, match="offered by packages 'second' and 'others'"):
        make_policy("sweep", Grid(4, 4), 3)
    assert make_policy("random", Grid(4, 4), 3).name == "random"


def test_what_is_gone_is_unknown_again(others: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    assert "sweep" in POLICIES
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(others)])
    with pytest.raises(InputError, match="unknown policy 'sweep'; choose one of random, spread"):
        make_policy("sweep", Grid(4, 4), 3)


def test_a_memory_without_its_package_or_with_another_file(
    flat_memory: str, others: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    assert load_memory(flat_memory).card.kind == "flat"
    weights = tmp_path / "home" / "memories" / "level.safetensors"
    with pytest.raises(InputError, match="only a memory of kind 'unet' can be trained further"):
        _ = load_memory(flat_memory).network
    with pytest.raises(InputError, match="cannot be saved"):
        load_memory(flat_memory).save(tmp_path / "again.safetensors")
    weights.write_bytes(b"another number")
    with pytest.raises(WeightsError, match="the hash differs"):
        load_memory(flat_memory)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(others)])
    with pytest.raises(WeightsError, match=r"of kind 'flat', which nothing .*known are unet\)"):
        load_memory(flat_memory)


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        (lambda path, card: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda path, card: object(), "gave a object without estimate, schedule, conditioned"),
    ],
)
def test_a_loader_that_fails(
    flat_memory: str, monkeypatch: pytest.MonkeyPatch, loader: Any, words: str
) -> None:
    monkeypatch.setitem(KINDS, "flat", loader)
    with pytest.raises(WeightsError, match=words):
        load_memory(flat_memory)


def test_registered_by_hand() -> None:
    from engram.policies.random import RandomSearch

    class Mine(RandomSearch):
        """What I like."""

    suite = Suite("mine", "", lambda files: ball_tasks(), (5,))
    engram.register_policy("mine", Mine)
    engram.register_suite(suite)
    engram.register_memory("mine", lambda path, card: tiny_memory())
    try:
        assert isinstance(make_policy("mine", Grid(4, 4), 3), Mine)
        assert POLICIES["mine"].summary == "What I like."
        assert not POLICIES["mine"].needs_memory
        assert get_suite("mine") is suite
        with pytest.raises(InputError, match="there is a policy 'mine' already"):
            engram.register_policy("mine", Mine)
        for name in ("", "a b", "a[b]", "a,b"):
            with pytest.raises(InputError, match="give a word without"):
                engram.register_policy(name, Mine)
        with pytest.raises(InputError, match="a policy is a class or a function"):
            engram.register_policy("other", 3)
    finally:
        del POLICIES["mine"], SUITES["mine"], KINDS["mine"]


def test_a_policy_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engram.register_policy("none", lambda grid, budget, seed: "a text")
    try:
        with pytest.raises(InputError, match="policy 'none' is a str, not an engram Policy"):
            make_policy("none", Grid(4, 4), 3)
    finally:
        del POLICIES["none"]
