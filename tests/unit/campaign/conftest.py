"""Campaigns in a temporary database, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram.campaign import Campaign, create_campaign, open_campaign
from engram.grid import Grid
from engram.policies import POLICIES, PolicySpec


class Clock:
    """A time that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "campaigns.db")


@pytest.fixture
def learner(monkeypatch: pytest.MonkeyPatch) -> str:
    """A policy with a state of its own, named 'learner'."""
    monkeypatch.setitem(POLICIES, "learner", PolicySpec("learner_policy", "Learner", "for tests"))
    return "learner"


@pytest.fixture
def create(db: str, clock: Clock) -> Callable[..., Campaign]:
    def make(
        name: str = "pond", grid: Grid | None = None, budget: float = 20, **more: Any
    ) -> Campaign:
        more.setdefault("policy", "random")
        return create_campaign(
            name, Grid(8, 8) if grid is None else grid, budget, db=db, clock=clock, **more
        )

    return make


@pytest.fixture
def reopen(db: str, clock: Clock) -> Callable[..., Campaign]:
    return lambda name="pond": open_campaign(name, db=db, clock=clock)
