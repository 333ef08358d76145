"""Campaigns of before are searched by the policies of then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram import Grid, load_memory
from engram.campaign import Campaign, create_campaign, verify
from engram.campaign.model import RULES
from engram.campaign.older_rules import is_gone, options_of_then
from engram.errors import ConflictError
from engram.layers import Layers
from engram.memory.denoiser import NetworkDenoiser
from engram.memory.permanent import fresh_network
from engram.policies.emptdm import EmPtdm
from engram.policies.gp import GaussianProcess
from engram.policies.local.memory import LocalMemory
from engram.policies.papersearch import PaperSearch, PaperSettings
from engram.policies.ranking import Foraging
from engram.testing import tiny_memory


def _campaign(tmp_path: Path, rules: int, grid: Grid | None = None, **terms: Any) -> Campaign:
    db = str(tmp_path / f"{rules}.db")
    terms = {"prior": "universal", "rules": rules, **terms}
    return create_campaign("c", grid or Grid(8, 8), 20, db=db, **terms)


@pytest.mark.parametrize("name", ["em-ptdm", "diffatd", "greedy"])
def test_the_paper_preset_of_older_campaigns(tmp_path: Path, name: str) -> None:
    terms = {"policy": name, "preset": "paper"}
    then, now = (_campaign(tmp_path, n, **terms).policy() for n in (2, RULES))
    assert isinstance(then, PaperSearch)
    assert isinstance(now, PaperSearch)
    usual, old = PaperSettings(), then.settings
    assert (old.lesson, old.draws.guidance, old.adapt.m_steps) == ("prior", "mmps", 20)
    assert (old.draws.steps, old.draws.refresh_steps) == (6, 3)
    assert (now.settings.lesson, now.settings.draws) == (usual.lesson, usual.draws)


@pytest.mark.parametrize("name", ["random", "diffatd"])
def test_policies_that_have_not_changed_take_no_options_of_then(tmp_path: Path, name: str) -> None:
    assert _campaign(tmp_path, 1, policy=name).policy().name == name


@pytest.mark.parametrize(("rules", "views"), [(3, 8), (5, 8), (RULES, 0)])
def test_campaigns_of_before_views_were_learnt_compute_all_eight(
    tmp_path: Path, rules: int, views: int
) -> None:
    policy = _campaign(tmp_path, rules, policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert policy.settings.views == views
    asked = _campaign(tmp_path / "asked", rules, policy="em-ptdm[views=4]").policy()
    assert isinstance(asked, EmPtdm)
    assert asked.settings.views == 4


@pytest.mark.parametrize(("rules", "turns"), [(5, True), (6, True), (RULES, False)])
def test_campaigns_of_before_see_small_windows_in_four_turns(
    tmp_path: Path, rules: int, turns: bool
) -> None:
    policy = _campaign(tmp_path, rules, Grid(80, 80), policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert isinstance(policy.memory, LocalMemory)
    assert (policy.memory.windows.see.learnt is None) is turns
    assert policy.memory.windows.see.views == 4
    assert policy.memory.windows.tiling.rows.size == (32 if turns else 64)
    assert (policy.settings.views == 8) is (rules < 6)


@pytest.mark.parametrize(("rules", "opens"), [(5, True), (RULES, False)])
def test_another_symmetric_network_is_another_memory_to_campaigns_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: int, opens: bool
) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path))
    memory, path = tiny_memory(), tmp_path / "memories" / "mine.safetensors"
    memory.with_symmetric(NetworkDenoiser(memory.network), {}).save(path)
    campaign = _campaign(tmp_path, rules, policy="em-ptdm", prior="mine")
    other = fresh_network(memory.network.config, 1)
    memory.with_symmetric(NetworkDenoiser(other), {}).save(path)
    if opens:
        assert isinstance(campaign.policy(), EmPtdm)
    else:
        with pytest.raises(ConflictError, match="has changed since"):
            campaign.policy()


@pytest.mark.parametrize(("rules", "copies"), [(3, False), (RULES, True)])
def test_campaigns_of_before_copies_do_without(tmp_path: Path, rules: int, copies: bool) -> None:
    policy = _campaign(tmp_path, rules, policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert (policy.copies is not None) == copies


@pytest.mark.parametrize(("rules", "room"), [(5, False), (7, False), (RULES, True)])
def test_campaigns_of_before_do_not_ask_for_room(tmp_path: Path, rules: int, room: bool) -> None:
    policy = _campaign(tmp_path, rules, policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert policy.settings.room == room


@pytest.mark.parametrize(("rules", "copies"), [(5, False), (8, False), (RULES, True)])
def test_large_campaigns_of_before_recognise_no_copies(
    tmp_path: Path, rules: int, copies: bool
) -> None:
    policy = _campaign(tmp_path, rules, Grid(80, 80), policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert (policy.copies is not None) == copies
    assert policy.settings.room == (rules >= 8)


@pytest.mark.parametrize(("rules", "relative"), [(9, False), (11, False), (RULES, True)])
def test_large_campaigns_of_before_take_room_for_a_share_of_that_of_untouched_land(
    tmp_path: Path, rules: int, relative: bool
) -> None:
    policy = _campaign(tmp_path, rules, Grid(80, 80), policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert policy.settings.relative_room == relative
    small = _campaign(tmp_path / "small", rules, policy="em-ptdm")
    given = options_of_then(small.state.spec, [load_memory("universal")])
    assert "relative_room" not in given


@pytest.mark.parametrize(("rules", "least"), [(1, 0.3), (9, 0.3), (RULES, 0.05)])
def test_campaigns_of_before_leave_rare_finds_as_they_did(
    tmp_path: Path, rules: int, least: float
) -> None:
    policy = _campaign(tmp_path, rules, policy="em-ptdm").policy()
    assert isinstance(policy, EmPtdm)
    assert policy.settings.least_rate == least
    rival = _campaign(tmp_path / "rival", rules, policy="diffatd[rule=foraging]").policy()
    assert isinstance(rival, PaperSearch)
    assert rival.settings.least_rate == least
    process = _campaign(tmp_path / "gp", rules, policy="gp[acquisition=foraging]").policy()
    assert isinstance(process, GaussianProcess)
    assert process.ranker.rule == Foraging(least_rate=least)


@pytest.mark.parametrize(
    ("rules", "copies", "judged"), [(3, False, False), (4, True, False), (RULES, True, True)]
)
def test_campaigns_of_before_layers_were_judged_take_them_in_full(
    tmp_path: Path, rules: int, copies: bool, judged: bool
) -> None:
    policy = _campaign(tmp_path, rules, policy="em-ptdm", layers=ROCK).policy()
    assert isinstance(policy, EmPtdm)
    assert (policy.settings.copies, policy.settings.judged) == (copies, judged)
    assert (policy.copies is not None) == judged


ROCK = Layers.of(Grid(8, 8), {"rock": np.arange(64.0).reshape(8, 8)})


@pytest.mark.parametrize(("rules", "again", "older"), [(2, 0, 2), (RULES, 2, 0)])
@pytest.mark.parametrize(
    "terms",
    [{"policy": "auto", "layers": ROCK}, {"policy": "spread", "grid": Grid(2, 72)}],
    ids=["layers", "large"],
)
def test_suggestions_of_an_engine_that_is_gone_are_counted_apart(
    tmp_path: Path, terms: dict[str, Any], rules: int, again: int, older: int
) -> None:
    campaign = _campaign(tmp_path, rules, **terms)
    campaign.ask(2)
    found = verify(campaign)
    assert (found.faults, found.suggestions, found.older) == ([], again, older)


@pytest.mark.parametrize(
    ("rules", "policy", "grid", "gone"),
    [
        (4, "em-ptdm", Grid(2, 72), True),
        (4, "em-ptdm", Grid(64, 64), False),
        (4, "gp", Grid(2, 72), False),
        (5, "em-ptdm", Grid(2, 72), False),
        (10, "gp[goal=objects]", Grid(8, 8), True),
        (RULES, "gp[goal=objects]", Grid(8, 8), False),
        (10, "gp[goal=cells]", Grid(8, 8), False),
    ],
)
def test_what_has_changed_for_good_is_gone(
    tmp_path: Path, rules: int, policy: str, grid: Grid, gone: bool
) -> None:
    campaign = _campaign(tmp_path, rules, grid, policy=policy)
    assert is_gone(campaign.state.spec) == gone
