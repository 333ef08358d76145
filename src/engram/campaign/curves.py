"""How a search went: finds over its measurements, and what was left to find at some moments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engram._version import __version__
from engram.campaign.answers import Plain
from engram.campaign.artifacts import Artifacts
from engram.campaign.campaign import Campaign
from engram.campaign.keeper import PolicyKeeper
from engram.campaign.model import digest
from engram.campaign.remaining import distribution, summary
from engram.campaign.state import State
from engram.campaign.status import so_far

MOMENTS = 12
"""Moments at which what was left is computed, at most twice as many."""


@dataclass(frozen=True)
class Point(Plain):
    """Measurements and finds in force after an event."""

    seq: int
    told: int
    found: int


@dataclass(frozen=True)
class Left(Plain):
    """What was left to find after an event, with its interval."""

    seq: int
    told: int
    expected: float
    low: float
    high: float
    level: float


def finds(campaign: Campaign) -> list[Point]:
    """Measurements and finds after every event that changed them."""
    points: list[Point] = []
    state: State | None = None
    for event in campaign.events:
        if state is None:
            state = State(event)
        else:
            state.apply([event])
        if event.kind in ("create", "tell", "correct", "retract"):
            points.append(Point(event.seq, len(state.visits), state.found))
    return points


def left(campaign: Campaign, points: list[Point], level: float = 0.8) -> list[Left]:
    """What was left at some of these points: evenly many measurements apart, and at the last.

    The moments stay the same until there are twice as many measurements, so that each is computed
    once; what was computed is kept in the campaign's folder.
    """
    told = [point for point in points if point.told]
    if not told:
        return []
    step = 1
    while told[-1].told > step * MOMENTS:
        step *= 2
    chosen: dict[int, Point] = {}
    for point in told:
        chosen.setdefault(point.told // step, point)
    chosen[-1] = told[-1]
    kept = None if campaign.folder is None else Artifacts(campaign.folder / "left")
    moments = sorted(set(chosen.values()), key=lambda point: point.seq)
    events = campaign.events
    found = []
    for point in moments:
        state = State.replay(events[: point.seq])
        found.append(_left(state, point, level, campaign.folder, kept))
    return found


def _left(
    state: State, point: Point, level: float, folder: Path | None, kept: Artifacts | None
) -> Left:
    closed = [str(i) for i in sorted(state.closed)]
    key = digest(__version__, state.policy_keys()[-1], *closed, repr(level))
    loaded = None if kept is None else kept.load(key)
    if loaded is None:
        policy = PolicyKeeper(folder, keeps=False).policy(state)
        rest = summary(distribution(so_far(state, policy)), level)
        numbers = np.array([rest.expected, rest.low, rest.high], np.float64)
        if kept is not None:
            kept.save(key, {"left": numbers}, "")
    else:
        numbers = loaded[0]["left"]
    expected, low, high = (float(v) for v in numbers)
    return Left(point.seq, point.told, round(expected, 2), low, high, level)
