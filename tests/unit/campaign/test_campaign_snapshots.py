"""What is kept beside the log: snapshots, artifacts, forecasts."""

from __future__ import annotations

import shutil
import sqlite3
import sys

import numpy as np
import pytest

from engram.campaign import (
    Campaign,
    status,
    verify,
)
from engram.campaign import snapshot as snapshots
from engram.campaign.timeline import DAY
from engram.grid import Grid


def _facts(campaign):
    """Everything a state says, for comparison."""
    state = campaign.state
    return {
        "measured": [
            (i, m.seq, m.who, m.at, m.query, m.observation.cell, m.observation.outcome,
             m.observation.noise, m.observation.content.tolist())
            for i, m in state.measurements.items()
        ],
        "queries": [(q.to_dict(state.at), q.lease) for q in state.queries.values()],
        "out": [q.query for q in state.out(state.at)],
        "by_cell": [[q.query for q in state.queries_of(c)] for c in map(state.grid.at, range(64))],
        "closed": (state.closed, state.base_closed.tolist(), state.grid.closed.tolist()),
        "rest": (state.waiting, state.budget, state.seq, state.hash, state.at, state.stirred,
                 state.last_query, state.time.leaps),
    }  # fmt: skip


@pytest.fixture
def eventful(create, clock, monkeypatch):
    """A campaign with every kind of event and a snapshot every five of them."""
    monkeypatch.setattr(snapshots, "EVERY", 5)
    campaign = create(grid=Grid(8, 8, closed=np.eye(8, dtype=bool)), lease=500.0, budget=40, seed=3)
    for i in range(14):
        asked = campaign.ask(2, by=f"crew {i % 3}", lease=None if i % 2 else 60.0 + i)
        campaign.tell(asked[0].cell, (i % 4) / 3, noise=0.01 * i, by="anna")
        if i % 5 == 1:
            campaign.fail(query=asked[1].query, retry=None if i % 2 else 70.0)
            campaign.correct(asked[0].cell, outcome=0.25)
        if i == 4:
            clock.sleep(30 * DAY)
        if i == 6:
            campaign.retract(asked[0].cell)
            campaign.open([(3, 3)])
            campaign.extend(2)
        clock.sleep(45)
    return campaign


def test_a_snapshot_is_what_the_log_says(eventful, reopen, monkeypatch):
    files = list((eventful.folder / "snapshots").iterdir())
    assert len(files) == snapshots.KEEP
    folded = []
    apply = type(eventful.state).apply
    monkeypatch.setattr(
        type(eventful.state),
        "apply",
        lambda self, events: (
            kept := list(events), folded.extend(e.seq for e in kept), apply(self, kept)
        )[-1],
    )  # fmt: skip
    again = reopen()
    assert 0 < len(folded) < 5 or folded == []
    monkeypatch.undo()
    whole = Campaign(again.storage, again.row, clock=again._clock, artifacts=False)
    assert _facts(again) == _facts(whole) == _facts(eventful)
    assert [p.cell for p in again.peek(3)] == [p.cell for p in whole.peek(3)]
    assert verify(again).ok
    asked = again.ask(1, key="after")
    assert [q.query for q in reopen().ask(1, key="after")] == [q.query for q in asked]


@pytest.mark.parametrize("harm", ["flip", "empty", "other campaign", "other history", "older"])
def test_a_snapshot_that_does_not_belong_is_passed_over(eventful, reopen, db, harm, monkeypatch):
    expected = _facts(eventful)
    folder = eventful.folder / "snapshots"
    path = max(folder.iterdir())
    if harm == "flip":
        blob = bytearray(path.read_bytes())
        blob[-5] ^= 1
        path.write_bytes(blob)
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "other campaign":
        with sqlite3.connect(db) as raw:
            raw.execute("UPDATE engram_campaigns SET uid = ?", ("0" * 32,))
        shutil.copytree(folder, folder.parents[1] / ("0" * 32) / "snapshots")
    elif harm == "other history":
        name = f"{999:012}-{'a' * 64}.safetensors"
        path.rename(folder / name)
    else:
        monkeypatch.setattr(snapshots, "FORMAT", "engram-snapshot-0 0.0.0")
    assert _facts(reopen()) == expected


def test_a_restored_copy_does_not_use_later_snapshots(eventful, reopen, db, tmp_path):
    shutil.copy(db, tmp_path / "copy.db")
    before = _facts(reopen())
    for i in range(6):
        eventful.ask(1)
        eventful.tell((0, i + 1), 0.0) if i > 4 else None
    shutil.copy(tmp_path / "copy.db", db)
    assert _facts(reopen()) == before


def test_verify_names_a_snapshot_that_says_something_else(eventful, reopen):
    campaign = reopen()
    campaign.state.budget += 1
    assert "a snapshot was changed" in verify(campaign).faults[0]


def test_the_log_is_folded_in_linear_time():
    """What a tell costs does not grow with the queries before it."""
    from engram.campaign.events import Ask, Create, Event, HandedOut, Measured, Tell
    from engram.campaign.model import Spec
    from engram.campaign.state import State

    grid = Grid(200, 200)
    spec = Spec(grid, 30_000, "random")

    def fold(pairs):
        events = [Event.saying(1, 0.0, "", "k", Create(spec))]
        for i in range(pairs):
            cell = grid.at(i)
            handed = (HandedOut(i + 1, cell, {"total": 0.5}),)
            ask = Ask(1, "score", None, None, 2 * i + 1, 0.0, handed, "")
            tell = Tell((Measured(cell, 0.0, [0.0], 0.0),), [i + 1])
            events.append(Event.saying(2 * i + 2, 0.0, "", "k", ask))
            events.append(Event.saying(2 * i + 3, 0.0, "", "k", tell))
        steps = 0

        def counting(*_):
            nonlocal steps
            steps += 1
            return counting

        before = sys.gettrace()
        sys.settrace(counting)
        try:
            State.replay(events)
        finally:
            sys.settrace(before)
        return steps

    assert fold(800) < 10 * fold(100)  # lines run; quadratic would be near 64 times


def test_status_takes_no_artifact_away_from_ask(create, reopen, learner, monkeypatch):
    monkeypatch.setattr("engram.campaign.keeper.SAVE_EVERY", 3)
    campaign = create(policy=learner, budget=60)
    for i in range(36):
        campaign.tell((i // 8, i % 8), float(i % 7 == 0))
    reopen().ask(1)
    status(reopen())
    again = reopen()
    again.ask(1)
    assert again.keeper.replayed == 0


def test_the_spatial_model_forecasts_as_policy_gp_does():
    from engram.campaign import companion
    from engram.policies import make_policy

    rng = np.random.default_rng(3)
    grid = Grid(16, 32, cell=(1, 2))
    order = [grid.at(int(i)) for i in rng.permutation(grid.n_cells)]
    from engram.observation import Observation

    def seen(cell):
        outcome = float((cell[0] // 4 + cell[1] // 4) % 3 == 0)
        return Observation.checked(grid, cell, np.zeros((1, 2)), outcome)

    groups = [[seen(c)] for c in order[:20]] + [[seen(c) for c in order[20:30]]]
    groups += [[seen(c)] for c in order[30:110]]
    policy = make_policy("gp", grid, 200, acquisition="probability")
    process = companion._Process(grid, [], None)
    mine = []
    for group in groups:
        policy.observe(group)
        mine += process.observe(group)
    difference = np.abs(np.array(mine) - policy.log.evidence)
    assert difference[: companion.NEAREST].max() < 1e-6
    assert difference.max() < 0.25
    assert difference.mean() < 0.01


def test_forecasts_are_kept_and_go_on_from_there(create, reopen, monkeypatch):
    from engram.campaign import companion

    campaign = create(budget=64)
    for i in range(30):
        campaign.tell((i // 8, i % 8), float(i % 3 == 0))
    first = status(campaign).prior_fitness
    learnt = []
    fit = companion.SpatialModel.fit
    monkeypatch.setattr(companion.SpatialModel, "fit", lambda *a: (learnt.append(1), fit(*a))[1])
    assert status(reopen()).prior_fitness == first
    assert learnt == []
    campaign.tell((7, 7), 1.0)
    after = status(reopen()).prior_fitness
    shutil.rmtree(campaign.folder)
    assert status(reopen()).prior_fitness == after != first
