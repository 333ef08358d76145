"""A campaign with layers on both databases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engram import Grid, Layers
from engram.campaign import create_campaign, open_campaign, verify

GRID = Grid(8, 8)
VALUES = np.random.RandomState(4).uniform(size=64) / 3


def test_replay_and_verify(url: str, unique: Callable[[str], str]) -> None:
    layers = Layers.of(
        GRID,
        {"height": np.where(VALUES < 0.02, np.nan, VALUES), "rock": ["a", "b", ""] * 21 + ["a"]},
        belief=VALUES,
        expected={"height": "less"},
    )
    name = unique("layers")
    campaign = create_campaign(name, GRID, 20, db=url, policy="gp", layers=layers)
    for _ in range(7):
        cell = campaign.ask()[0].cell
        campaign.tell(cell, float(VALUES[GRID.index(cell)] > 0.25))
    again = open_campaign(name, db=url)
    assert again.state.spec.layers is not None
    assert again.state.spec.layers.sha256 == layers.sha256
    assert again.peek(2) == campaign.peek(2)
    found = verify(again)
    assert found.ok
    assert found.suggestions == 7
