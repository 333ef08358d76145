"""Masks, costs and layers of large areas stand beside the first event, their hash in it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.campaign import Campaign, create_campaign, export, open_campaign, verify
from engram.campaign import beside as beside_module
from engram.campaign.contract import MemoryStore
from engram.errors import DamagedError
from engram.grid import Grid
from engram.layers import Layers


def longest(value: Any) -> int:
    """Numbers in the longest list of a payload."""
    if isinstance(value, dict):
        return max(map(longest, value.values()), default=0)
    if isinstance(value, list):
        return max(len(value), *map(longest, value[:3]), 0)
    return 0


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_module, "LONGEST", 10)


def area() -> tuple[Grid, Layers]:
    rng = np.random.default_rng(0)
    closed = rng.random((6, 7)) < 0.4
    grid = Grid(6, 7, closed=closed, cost=1 + rng.random((6, 7)))
    height = rng.random(42)
    height[5] = np.nan
    return grid, Layers.of(grid, {"height": height}, belief=rng.random(42))


def created(db: Any) -> Campaign:
    grid, layers = area()
    return create_campaign("c", grid, 12.5, db=db, policy="gp", budget_kind="cost", layers=layers)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("store", ["file", "memory"])
def test_nothing_of_the_areas_size_is_in_an_event(store: str, tmp_path: Path) -> None:
    db: Any = str(tmp_path / "c.db") if store == "file" else MemoryStore()
    campaign = created(db)
    cell = campaign.ask()[0].cell
    campaign.tell(cell, 1.0)
    again = open_campaign("c", db=db)
    grid, layers = area()
    assert again.grid == grid
    assert again.state.spec.layers is not None
    assert again.state.spec.layers.sha256 == layers.sha256
    assert max(longest(event.payload) for event in again.events) <= 10
    assert again.events[0].payload["format"] == 2
    assert verify(again).ok
    again.ask()
    log = json.loads(_exported(again, tmp_path / "log.json"))
    assert len(log["events"][0]["beside"]) == 4  # closed cells, costs, layer, belief


def _exported(campaign: Campaign, path: Path) -> str:
    export(campaign, path)
    return path.read_text()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("change", ["gone", "other"])
def test_what_stands_beside_is_bound_by_its_hash(change: str, tmp_path: Path) -> None:
    db = str(tmp_path / "c.db")
    campaign = created(db)
    campaign.ask()
    with closing(sqlite3.connect(db)) as raw, raw:
        text = raw.execute("SELECT detail FROM engram_events WHERE seq = 1").fetchone()[0]
        kept = json.loads(text)
        names = list(kept)
        if change == "gone":
            del kept[names[0]]
        else:
            kept[names[0]] = kept[names[1]]
        raw.execute("UPDATE engram_events SET detail = ? WHERE seq = 1", (json.dumps(kept),))
    words = "missing" if change == "gone" else "changed"
    with pytest.raises(DamagedError, match=rf"numbers .* {words}"):
        open_campaign("c", db=db)
    report = verify(campaign)
    assert not report.ok
    assert any(words in fault for fault in report.faults)


def test_nothing_is_packed_for_a_key(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(tmp_path / "a.db")
    keys = create_campaign("a", area()[0], 9, db=db, policy="random").state.policy_keys()

    def never(*_: object) -> None:
        raise AssertionError("packed")

    monkeypatch.setattr(beside_module.zlib, "compress", never)
    assert open_campaign("a", db=db).state.policy_keys() == keys
    other = create_campaign("b", Grid(6, 7), 9, db=str(tmp_path / "b.db"), policy="random")
    assert other.state.policy_keys() != keys


def test_small_areas_are_written_as_ever(tmp_path: Path) -> None:
    campaign = created(str(tmp_path / "c.db"))
    first = campaign.events[0]
    assert first.payload["format"] == 1
    assert len(first.payload["grid"]["cost"]) == 42
    assert campaign.storage.detail(campaign.row, 1) is None


def test_numbers_survive_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_module, "LONGEST", 3)
    payload = {
        "whole": [2**53 + 1, -4, 0, 7],
        "parts": [0.1, None, 1e-300, -0.0, 3.0],
        "deep": [{"values": [1.5, 2.5, 3.5, 4.5]}],
        "short": [1, 2, 3],
    }
    parted, kept = beside_module.parted(payload)
    assert longest(parted) <= 3
    whole = beside_module.joined(json.loads(json.dumps(parted)), json.loads(json.dumps(kept)))
    assert whole == payload
    assert [type(v) for v in whole["whole"]] == [int] * 4
    assert [type(v) for v in whole["parts"][2:]] == [float] * 3
