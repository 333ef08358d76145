"""The loop: ask, tell, fail, correct, retract, close, open, extend."""

from __future__ import annotations

import numpy as np
import pytest

from engram.campaign import create_campaign, open_campaign, verify
from engram.errors import InputError
from engram.grid import Grid
from engram.observation import Observation


def test_ask_hands_out_different_cells_and_reserves_budget(create):
    campaign = create(budget=10)
    first = campaign.ask(3, by="anna")
    second = campaign.ask(2)
    cells = [q.cell for q in first + second]
    assert len(set(cells)) == 5
    assert [q.query for q in first + second] == [1, 2, 3, 4, 5]
    assert campaign.state.budget_left(campaign.now()) == 5
    assert {q.by for q in first} == {"anna"}
    with pytest.raises(InputError, match="enough for 5"):
        campaign.ask(6)
    assert campaign.state.seq == 3  # the refused ask left nothing behind


def test_asked_cells_are_not_neighbours(create, learner):
    campaign = create(grid=Grid(16, 16), policy=learner)
    cells = [q.cell for q in campaign.ask(4)] + [q.cell for q in campaign.ask(2)]
    gaps = [abs(a - c) + abs(b - d) for i, (a, b) in enumerate(cells) for c, d in cells[:i]]
    assert min(gaps) > 1


def test_tell_in_any_order_and_for_cells_nobody_asked_for(create, reopen):
    campaign = create()
    asked = campaign.ask(3)
    campaign.tell(asked[2].cell, 1.0, by="ben")
    other = next(c for c in ((0, 0), (0, 1), (7, 7), (3, 3)) if c not in [q.cell for q in asked])
    campaign.tell(other, 0.0)
    campaign.tell(asked[0].cell, 0.25)
    again = reopen()
    assert [o.cell for o in again.state.observations] == [asked[2].cell, other, asked[0].cell]
    states = {q.query: q.state for q in again.state.queries.values()}
    assert states == {1: "told", 2: "asked", 3: "told"}
    told = again.state.measurements[again.grid.index(asked[2].cell)]
    assert (told.who, told.query) == ("ben", 3)
    assert again.state.budget_left(again.now()) == 20 - 4


def test_key_makes_a_repeated_tell_harmless(create, reopen):
    campaign = create()
    first = campaign.tell((1, 1), 1.0, key="k")
    assert not first.repeated
    again = reopen().tell((1, 1), 1.0, key="k")
    assert again.repeated
    assert again.seq == first.seq
    with pytest.raises(InputError, match="used for another request"):
        campaign.tell((1, 2), 1.0, key="k")
    with pytest.raises(InputError, match="measured already"):
        campaign.tell((1, 1), 1.0)
    assert len(campaign.state.measurements) == 1


def test_key_makes_a_repeated_ask_harmless(create, reopen):
    cells = [q.cell for q in create().ask(2, key="morning")]
    assert [q.cell for q in reopen().ask(2, key="morning")] == cells
    assert len(reopen().state.queries) == 2


def test_lease_gives_unanswered_cells_back(create, clock):
    campaign = create(lease=100.0, budget=3)
    cell = campaign.ask(1)[0].cell
    campaign.ask(2)
    with pytest.raises(InputError, match="budget left"):
        campaign.ask(1)
    clock.sleep(100)
    assert campaign.state.queries[1].state_at(campaign.now()) == "expired"
    assert campaign.ask(1)[0].cell == cell  # the best cell is free again
    campaign.tell(cell, 1.0)
    assert campaign.state.queries[1].state == "told"  # a late answer counts
    assert verify(campaign).ok


def test_clock_that_runs_backwards_does_not_disturb_the_log(create, clock):
    campaign = create()
    campaign.ask(1)
    clock.sleep(-500)
    campaign.ask(1)
    times = [event.at for event in campaign.events]
    assert times == sorted(times)


def test_fail_later_and_never(create, clock):
    campaign = create(grid=Grid(2, 2), budget=4)
    later, never = (q for q in campaign.ask(2))
    campaign.fail(query=later.query, retry=50, reason="flooded", by="anna")
    campaign.fail(cell=never.cell, retry=None)
    assert campaign.state.budget_left(campaign.now()) == 4
    rest = [q.cell for q in campaign.ask(2)]
    assert not {later.cell, never.cell} & set(rest)
    with pytest.raises(InputError, match="1 waiting"):
        campaign.ask(1)
    clock.sleep(50)
    assert campaign.ask(1)[0].cell == later.cell
    with pytest.raises(InputError, match="closed; open it first"):
        campaign.tell(never.cell, 0.0)
    campaign.open([never.cell])
    assert campaign.ask(1)[0].cell == never.cell
    assert verify(campaign).ok


def test_correct_and_retract_keep_the_old_value(create):
    campaign = create()
    campaign.tell((2, 2), 1.0)
    campaign.tell((2, 3), 0.0)
    campaign.correct((2, 2), outcome=0.25, reason="typo", by="cleo")
    measured = campaign.state.observations
    assert [o.cell for o in measured] == [(2, 2), (2, 3)]  # a correction keeps its place
    assert measured[0].outcome == 0.25
    assert measured[0].content.item() == 0.25  # it stood for the outcome, and follows it
    event = campaign.events[-1]
    assert (event.payload["old"]["outcome"], event.payload["new"]["outcome"]) == (1.0, 0.25)
    campaign.correct((2, 2), content=[[0.75]])
    assert campaign.state.observations[0].content.item() == 0.75
    assert campaign.state.observations[0].outcome == 0.25
    campaign.retract((2, 2))
    assert [o.cell for o in campaign.state.observations] == [(2, 3)]
    assert campaign.events[-1].payload["old"]["outcome"] == 0.25
    campaign.tell((2, 2), 0.5)
    assert campaign.state.observations[-1].cell == (2, 2)
    with pytest.raises(InputError, match="no measurement in force"):
        campaign.correct((5, 5), outcome=1.0)
    with pytest.raises(InputError, match="nothing to correct"):
        campaign.correct((2, 2))


def test_close_and_open(create):
    closed = np.zeros((4, 4), bool)
    closed[0] = True
    campaign = create(grid=Grid(4, 4, closed=closed), budget=6)
    campaign.close([(1, 0), (1, 1), (1, 2), (1, 3)], reason="nest")
    cells = {q.cell for q in campaign.ask(5)}
    assert all(row >= 2 for row, _ in cells)
    with pytest.raises(InputError, match="is out"):
        campaign.close([next(iter(cells))])
    campaign.open([(0, 3), (1, 1)])
    with pytest.raises(InputError, match="open already"):
        campaign.open([(0, 3)])
    campaign.tell((0, 3), 1.0)
    with pytest.raises(InputError, match="nothing to close"):
        campaign.close([(0, 3)])
    assert verify(campaign).ok


def test_extend_and_strict_budget(create):
    campaign = create(budget=2)
    asked = campaign.ask(2)
    free = [(r, c) for r in range(8) for c in range(8) if (r, c) not in [q.cell for q in asked]]
    with pytest.raises(InputError, match="no budget left for a cell that is not out"):
        campaign.tell(free[0], 1.0)
    campaign.extend(1)
    campaign.tell(free[0], 1.0)
    campaign.tell(asked[1].cell, 0.0)
    with pytest.raises(InputError, match="larger than the 64 open cells"):
        campaign.extend(100)
    with pytest.raises(InputError, match="whole numbers"):
        campaign.extend(0.5)


def test_budget_in_cost(create):
    cost = np.ones((4, 4))
    cost[:2] = 5.0
    campaign = create(grid=Grid(4, 4, cost=cost), budget=7.5, budget_kind="cost")
    spent = 0.0
    while 7.5 - spent >= 1:
        spent += cost[campaign.ask(1)[0].cell]
    with pytest.raises(InputError, match="budget left"):
        campaign.ask(1)
    assert campaign.state.budget_left(campaign.now()) == pytest.approx(7.5 - spent)
    assert verify(campaign).ok


def test_rank_by_finds_per_cost_with_travel(create):
    campaign = create(
        grid=Grid(9, 9), rank="per-cost", travel=1.0, crews={"north": (0, 0), "south": (8, 8)}
    )
    assert campaign.ask(1, by="north")[0].cell == (0, 0)
    assert campaign.ask(1, by="south")[0].cell == (8, 8)
    assert campaign.ask(1, start=(0, 8))[0].cell == (0, 8)
    by_score = campaign.ask(1, by="north", rank="score")[0].terms
    assert by_score["worth"] == by_score["total"]
    assert verify(campaign).ok


def test_a_crew_that_is_not_there_is_not_sent_out(create):
    """Whatever the ranking; but anybody may report, and say where a way begins."""
    campaign = create(grid=Grid(9, 9), crews={"north": (0, 0), "south": (8, 8)})
    for rank in ("score", "per-cost"):
        for look in (campaign.ask, campaign.peek):
            with pytest.raises(InputError, match=r"by='west' is none of the crews north, south"):
                look(1, by="west", rank=rank)
    assert campaign.state.seq == 1
    assert campaign.ask(1, by="west", start=(4, 4))[0].by == "west"
    assert campaign.ask(1)[0].by == ""
    campaign.tell((0, 0), 1.0, by="archive")
    assert verify(campaign).ok


def test_tell_many_is_all_or_nothing(create):
    campaign = create()
    good = Observation.checked(campaign.grid, (0, 0), 1.0, 1.0)
    with pytest.raises(InputError, match="given twice"):
        campaign.tell_many([good, good])
    assert not campaign.state.measurements
    more = [Observation.checked(campaign.grid, (0, c), 0.0, 0.0) for c in range(1, 4)]
    receipt = campaign.tell_many([good, *more], by="anna")
    assert receipt.cells == [[0, 0], [0, 1], [0, 2], [0, 3]]
    assert campaign.state.groups()[0][0].cell == (0, 0)


def test_bad_terms_create_nothing(db, tmp_path):
    grid = Grid(4, 4)
    faults = [
        ({"budget": 0}, "above 0"),
        ({"budget": 17}, "larger than the 16 open cells"),
        ({"budget": 2.5}, "whole numbers"),
        ({"policy": "nope"}, "unknown policy"),
        ({"lease": -1.0}, "lease"),
        ({"rank": "luck"}, "rank"),
        ({"crews": {"a": (9, 9)}}, "outside the grid"),
        ({"budget_kind": "money"}, "budget kind"),
        ({"seed": -1}, "seed"),
        ({"prior": "nowhere"}, "unknown memory"),
    ]
    for terms, message in faults:
        terms = {"budget": 4, "policy": "random", **terms}
        with pytest.raises(InputError, match=message):
            create_campaign("x", grid, terms.pop("budget"), db=db, **terms)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="no campaign named"):
        open_campaign("x", db=db)


def test_names_are_taken_once(create):
    create("a b")
    with pytest.raises(InputError, match="exists already"):
        create("a b")
    with pytest.raises(InputError, match="printable"):
        create("a\nb")


def test_float32_contents_survive_the_log(create, reopen):
    rng = np.random.default_rng(0)
    grid = Grid(8, 8, channels=3, cell=(2, 2), range=(-7.0, 9.0))
    campaign = create(grid=grid, budget=4)
    content = rng.uniform(-7, 9, (3, 2, 2)).astype(np.float32)
    campaign.tell((1, 2), 0.3, content, noise=0.1)
    kept = reopen().state.observations[0]
    assert np.array_equal(kept.content, content)
    assert (kept.outcome, kept.noise) == (0.3, 0.1)
    with pytest.raises(InputError, match="3 channels"):
        campaign.tell((0, 0), 1.0)
