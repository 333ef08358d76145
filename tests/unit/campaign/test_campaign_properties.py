"""Whatever crews do, in any order: the budget holds, nothing is doubled, the replay agrees."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.campaign import create_campaign, open_campaign, verify
from engram.errors import InputError
from engram.grid import Grid

CELLS = st.tuples(st.integers(0, 3), st.integers(0, 3))
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 3)),
    st.tuples(st.just("tell"), CELLS),
    st.tuples(st.just("answer"), st.integers(1, 6)),
    st.tuples(st.just("fail"), st.integers(1, 6)),
    st.tuples(st.just("correct"), CELLS),
    st.tuples(st.just("retract"), CELLS),
    st.tuples(st.just("close"), CELLS),
    st.tuples(st.just("open"), CELLS),
    st.tuples(st.just("extend"), st.integers(1, 2)),
    st.tuples(st.just("wait"), st.integers(1, 90)),
)
names = itertools.count()


def _step(campaign, kind, value, clock):
    match kind:
        case "ask":
            campaign.ask(value)
        case "tell":
            campaign.tell(value, 1.0)
        case "answer" if value in campaign.state.queries:
            campaign.tell(campaign.state.queries[value].cell, 0.0)
        case "fail":
            campaign.fail(query=value, retry=60.0 if value % 2 else None)
        case "correct":
            campaign.correct(value, outcome=0.5)
        case "retract":
            campaign.retract(value)
        case "close":
            campaign.close([value])
        case "open":
            campaign.open([value])
        case "extend":
            campaign.extend(value)
        case "wait":
            clock[0] += value


@settings(max_examples=15)
@given(st.lists(STEPS, max_size=14))
def test_any_order_of_requests(tmp_path_factory, steps):
    clock = [1000.0]
    db = str(tmp_path_factory.getbasetemp() / "properties.db")
    name = f"c{next(names)}"
    campaign = create_campaign(
        name, Grid(4, 4), 6, db=db, policy="random", lease=50.0, clock=lambda: clock[0]
    )
    for kind, value in steps:
        before = campaign.state.seq
        try:
            _step(campaign, kind, value, clock)
        except InputError:
            assert campaign.state.seq == before  # a refused request leaves nothing behind
        state, at = campaign.state, campaign.now()
        assert state.budget_left(at) >= 0
        out = [q.cell for q in state.out(at)]
        assert len(out) == len(set(out))
        told = {o.cell for o in state.observations}
        assert not told & set(out)
        assert not any(state.is_closed(state.grid.index(cell)) for cell in told | set(out))
    again = open_campaign(name, db=db, clock=lambda: clock[0])
    assert again.state.policy_keys() == campaign.state.policy_keys()
    assert verify(again).ok
