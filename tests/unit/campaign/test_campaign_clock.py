"""Wrong clocks: leases end and waits return as before."""

from __future__ import annotations

import pytest

from engram.campaign import (
    verify,
)
from engram.campaign.timeline import BOUND, DAY
from engram.errors import InputError
from engram.grid import Grid

YEAR = 366 * DAY


def test_one_wrong_clock_does_not_stop_time(create, clock):
    """Seventy years ahead for one request: leases end and waits return as before."""
    campaign = create(grid=Grid(2, 2), budget=4, lease=100.0)
    early = campaign.ask(1)[0]
    failed = campaign.ask(1)[0]
    campaign.fail(query=failed.query, retry=50)
    now = clock.now
    clock.now = now + 70 * YEAR
    receipt = campaign.tell(early.cell, 1.0)
    assert receipt.at == now + BOUND
    assert "check the clock" in receipt.note
    wrong = campaign.ask(1)[0]
    clock.now = now + 60
    assert campaign.now() == now + 60
    assert failed.cell in [p.cell for p in campaign.peek(2)]
    assert campaign.state.queries[wrong.query].state_at(campaign.now()) == "asked"
    receipt = campaign.fail(cell=wrong.cell, retry=10)
    assert receipt.at == now + 60
    assert "a clock was wrong" in receipt.note
    clock.sleep(10)
    assert len(campaign.peek(3)) == 3
    assert verify(campaign).ok


def test_leases_of_a_wrong_clock_end(create, clock):
    campaign = create(grid=Grid(1, 2), budget=2, lease=100.0)
    now = clock.now
    clock.now = now + 3 * YEAR
    campaign.ask(2)
    clock.now = now + 50
    with pytest.raises(InputError, match="2 out"):
        campaign.ask(1)
    clock.now = now + 100
    assert len(campaign.ask(2)) == 2
    clock.sleep(99)
    with pytest.raises(InputError):
        campaign.ask(1)
    clock.sleep(1)
    assert len(campaign.ask(1)) == 1
    assert verify(campaign).ok


def test_clocks_wrong_by_different_years(create, clock):
    """Going back a part of a leap leaves the rest of it a leap."""
    campaign = create(lease=100.0)
    now = clock.now
    for years in (40, 3, 5, 1):
        clock.now = now + years * YEAR
        campaign.ask(1)
    clock.now = now + 200
    assert campaign.now() == now + 200
    assert len(campaign.peek(20)) == 20
    assert verify(campaign).ok


def test_a_clock_behind_the_log_is_passed_over(create, clock):
    """A dead clock (1970) gives no cell away that is out."""
    campaign = create(grid=Grid(1, 2), budget=2, lease=100.0)
    campaign.ask(1)
    clock.now, before = 0.0, clock.now
    assert campaign.now() == before
    assert campaign.ask(1)[0].at == before
    with pytest.raises(InputError):
        campaign.ask(1)


def test_a_long_pause_is_no_fault(create, clock):
    campaign = create(lease=100.0)
    campaign.ask(1)
    clock.sleep(2 * YEAR)
    receipt = campaign.tell((0, 0), 1.0)
    assert (receipt.at, receipt.note) == (clock.now, "")
    query = campaign.ask(1)[0]
    clock.sleep(99)
    assert query.state_at(campaign.now()) == "asked"
    clock.sleep(1)
    assert query.state_at(campaign.now()) == "expired"
