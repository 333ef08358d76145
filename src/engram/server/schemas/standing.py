"""Where a campaign stands: what the answer to a question for its status looks like."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from engram.server.schemas.base import Given


class Interval(Given):
    expected: float
    low: float
    high: float
    level: float
    model_config = ConfigDict(extra="allow")


class LayerEffect(Given):
    words: str
    model_config = ConfigDict(extra="allow")


class Missed(Given):
    """What visits may have missed."""

    chance: float = Field(description="That a visit finds a target that is there, as believed now.")
    false_alarm: float
    learnt: bool
    visited_and_open: int = Field(description="Cells that were visited and may still hold target.")
    expected_missed: float = Field(description="Targets in them, about.")
    words: str


class Targets(Given):
    """Separate targets, where the campaign is after these."""

    goal: str
    touched: int = Field(description="Groups of finds that touch each other.")
    extent: float | None = Field(description="Cells across of a target; null before the first.")
    apart: float = Field(description="Separate targets that were touched, about.")
    untouched: Interval = Field(description="Targets nobody has touched, and the chance of any.")
    wide: Interval = Field(description="The same at 95 %.")
    prospect: Interval = Field(description="Those that all measurements left would touch.")
    next: Interval = Field(description="Those that the next few would touch.")
    words: str


class Status(Given):
    """Where a campaign stands, as ``engram campaign status --json``."""

    name: str
    policy: str
    prior: str
    told: int
    asked: int
    failed: int
    expired: int
    queries: int
    budget: float
    budget_kind: str
    budget_left: float
    found: int
    closed: int
    remaining: Interval
    chance_remaining: float
    events: int
    remaining_by_policy: float
    prospect: Interval
    next: dict[str, float]
    advice: dict[str, Any]
    prior_fitness: dict[str, Any]
    layers: list[LayerEffect] = Field([], description="What layers do to the odds of target.")
    detection: Missed | None = Field(None, description="Where visits may miss a target.")
    targets: Targets | None = Field(None, description="Where the goal is separate targets.")
