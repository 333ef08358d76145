"""Layers of a campaign: kept whole in the log, replayed, verified and explained."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engram import Grid, InputError, Layers
from engram.campaign import Campaign, in_words, status, verify
from engram.campaign.model import Spec
from engram.errors import DamagedError

GRID = Grid(8, 8)
VALUES = np.random.RandomState(1).randint(0, 30, 64).astype(float)
VALUES[5] = np.nan
TARGET = VALUES >= 22
LAYERS = Layers.of(
    GRID,
    {"height": VALUES, "rock": ["a", "b"] * 32},
    belief=np.full(64, 0.2),
    expected={"height": "more"},
)
Make = Callable[..., Campaign]


def searched(campaign: Campaign, count: int) -> list[tuple[int, int]]:
    cells = []
    for _ in range(count):
        query = campaign.ask()[0]
        campaign.tell(query.cell, float(TARGET[GRID.index(query.cell)]))
        cells.append(query.cell)
    return cells


def test_they_are_replayed_from_the_log_alone(create: Make, reopen: Make) -> None:
    campaign = create(policy="gp", layers=LAYERS)
    cells = searched(campaign, 10)
    assert sum(TARGET[GRID.index(cell)] for cell in cells) >= 6
    again = reopen()
    known = again.state.spec.layers
    assert known is not None
    assert known.sha256 == LAYERS.sha256
    assert again.peek(3) == campaign.peek(3)
    assert verify(again).ok
    blind = searched(create("blind", policy="gp"), 10)
    assert cells != blind


def test_a_close_later_leaves_ranks_as_they_were(create: Make, reopen: Make) -> None:
    campaign = create(policy="gp", layers=Layers.of(GRID, {"one": (VALUES == 3) * 1.0}))
    searched(campaign, 3)
    campaign.close([GRID.at(int(i)) for i in np.flatnonzero(VALUES == 3)])
    searched(campaign, 3)
    assert verify(reopen()).ok


def test_other_layers_are_another_state(create: Make) -> None:
    kinds = [None, LAYERS, Layers.of(GRID, {"height": VALUES})]
    made = [create(f"c{i}", policy="gp", layers=kind) for i, kind in enumerate(kinds)]
    assert len({campaign.state.policy_keys()[0] for campaign in made}) == 3

    def keys(layers: Layers | None) -> dict[str, Any]:
        return Spec(GRID, 5, "gp", layers=layers).to_dict()

    assert "layers" not in keys(None)
    more = json.loads(json.dumps(keys(LAYERS)))
    back, rest = Spec.read(more)
    assert rest == {}
    assert back.to_dict() == keys(LAYERS)
    more["layers"]["layers"][0]["values"][0] = 99.0
    with pytest.raises(DamagedError, match="the layers of the campaign have the hash"):
        Spec.read(more)


def test_status_and_explanation_say_what_layers_did(create: Make) -> None:
    campaign = create(policy="gp", layers=LAYERS)
    searched(campaign, 15)
    found = status(campaign).to_dict()["layers"]
    named = {effect["name"]: effect for effect in found}
    assert set(named) == {"height", "rock"}
    assert named["height"]["low"] < named["height"]["change"] < named["height"]["high"]
    assert named["height"]["matters"] is True
    why = campaign.explain(1 + 14)
    assert set(why.layers) == {"height", "rock", "belief"}
    assert "Layers, in log-odds beside an average cell: height: " in in_words(why)


def test_a_campaign_without_layers_says_nothing_of_them(create: Make) -> None:
    campaign = create(policy="gp")
    searched(campaign, 2)
    assert "layers" not in status(campaign).to_dict()
    assert "layers" not in campaign.explain(1).to_dict()


def test_policies_that_would_not_look_at_them_are_refused(create: Make) -> None:
    with pytest.raises(InputError, match="'random' has no use for layers"):
        create(layers=LAYERS)
    with pytest.raises(InputError, match="leave the option layers out"):
        create(policy="gp[layers=off]", layers=LAYERS)


def test_visits_that_may_miss_and_layers_together(create: Make, reopen: Make) -> None:
    campaign = create(policy="gp", layers=LAYERS, detection=0.6)
    rng = np.random.RandomState(0)
    for _ in range(14):
        cell = campaign.ask()[0].cell
        found = TARGET[GRID.index(cell)] and rng.uniform() < 0.6
        campaign.tell(cell, float(found))
    assert verify(reopen()).ok
    named = {effect["name"]: effect for effect in status(campaign).to_dict()["layers"]}
    assert named["height"]["change"] > 0
