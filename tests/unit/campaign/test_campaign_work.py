"""What a request costs: nothing that grows with the log or the area is done twice."""

from __future__ import annotations

import numpy as np

from engram.campaign import keys
from engram.campaign.decide import Wish, decide
from engram.campaign.state import State
from engram.grid import Grid


def _count(monkeypatch, owner, name):
    calls = []
    work = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *a, **k: (calls.append(a), work(*a, **k))[1])
    return calls


def test_a_measurement_is_hashed_once(create, monkeypatch):
    campaign = create(budget=40)
    hashed = _count(monkeypatch, keys, "canonical")
    for i in range(12):
        campaign.tell((i // 8, i % 8), float(i % 2))
    campaign.ask(1)
    first = [a for a in hashed if isinstance(a[0][0], dict) and "outcome" in a[0][0]]
    assert len(first) == 12
    hashed.clear()
    campaign.ask(2)
    campaign.peek(1)
    assert [a for a in hashed if isinstance(a[0][0], dict)] == []
    campaign.tell((7, 7), 1.0)
    campaign.ask(1)
    (again,) = (a for a in hashed if isinstance(a[0][0], dict) and "outcome" in a[0][0])
    assert again[0][0]["cell"] == [7, 7]


def test_keys_that_are_kept_are_those_of_the_log(create):
    closed = np.zeros((8, 8), bool)
    closed[3, 3] = True
    campaign = create(grid=Grid(8, 8, closed=closed), budget=40)

    def changed():
        kept, anew = campaign.state.policy_keys(), State.replay(campaign.events).policy_keys()
        assert kept == anew == campaign.state.policy_keys()
        before = seen[-1] if seen else []
        seen.append(anew)
        return anew != before

    seen = []
    requests = [
        lambda: campaign.tell((0, 0), 1.0),
        lambda: campaign.tell((0, 1), 0.0),
        lambda: campaign.correct((0, 0), outcome=0.5),
        lambda: campaign.retract((0, 0)),
        lambda: campaign.tell((0, 0), 1.0),
        lambda: campaign.open([(3, 3)]),
        lambda: campaign.extend(3),
    ]
    for request in requests:
        request()
        assert changed()
    campaign.ask(1)
    assert not changed()


def test_what_is_kept_cannot_be_changed_from_outside(create):
    campaign = create()
    campaign.state.policy_keys().clear()
    assert len(campaign.state.policy_keys()) == 1


def test_shut_cells_are_a_mask_all_the_way(create, monkeypatch):
    """1,536 cells of which few can be had: none of the others is turned into a cell and back."""
    closed = np.ones((32, 48), bool)
    closed[:2] = False
    campaign = create(grid=Grid(32, 48, closed=closed), budget=50)
    campaign.tell((0, 0), 1.0)
    state, policy = campaign.state, campaign.policy()
    policy.current_scores()
    turned = _count(monkeypatch, Grid, "at")
    found = _count(monkeypatch, Grid, "index")
    picks = decide(state, policy, Wish(4), campaign.now())
    assert len({pick.cell for pick in picks}) == 4
    assert len(turned) + len(found) < 100


def test_queries_of_a_cell_are_found_by_the_cell(create):
    campaign = create(budget=30)
    asked = campaign.ask(20)
    assert all(campaign.state.queries_of(q.cell) == [q] for q in asked)
    free = next(c for c in map(campaign.grid.at, range(64)) if c not in {q.cell for q in asked})
    assert campaign.state.queries_of(free) == []
