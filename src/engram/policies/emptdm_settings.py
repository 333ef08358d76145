"""What can be set of the default preset of EM-PTDM."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from engram.errors import InputError
from engram.pacing import UpdateSchedule
from engram.policies.context import WHOLE, checked_context
from engram.policies.dreaming import FIRST_DREAM, Dreaming
from engram.policies.dreams import DreamPlan
from engram.policies.imagination import DrawPlan
from engram.policies.ranking import LEAST_RATE, Foraging, checked_rule
from engram.policies.separate import checked_extent, checked_goal
from engram.policies.views import LEARNT, VIEWS


@dataclass(frozen=True)
class EmPtdmSettings:
    """Settings of the default preset.

    h        : use the transient memory: its hyperprior and what it learns;  strength : how
        firmly it is held to its hyperprior
    guard    : mix with a Gaussian process by evidence, and leave the ranking to its look-ahead
        while it is the better predictor
    base_rate : mix with the share of targets as well (``base_rate``)
    views    : symmetries averaged in the mean: 1, the 4 quarter turns, or these and their mirror
        images, 8 (4 and 8 need a square area without a preferred direction); 0 = all, by one
        evaluation where the memory has learnt their average (``memory.distilling``)
    period   : every how many measurements all 8 are computed, what has learnt their average (or
        with ``views=8`` the quarter turns) after each; 0 = every 8th where the average is learnt,
        otherwise always (``policies.views``)
    context  : cells a side of the neighbourhood whose measurements alone the memory is told when it
        says what a cell is (``policies.context``), 0 = those of the whole area; particles, which
        explain, are told all
    goal     : ``cells`` with target, or separate targets (``objects``), which has a rule of its own
        (``separate``);  extent : of a target in cells, 0 = learnt from the finds
    rule     : how cells are ranked, ``foraging``, ``probability`` or ``paper`` (``ranking``)
    frontier, explore, least_rate : of the foraging rule (``ranking.Foraging``); doubt is the
        spatial model's
    a        : factor of alpha(B) (appendix G): decides under rule ``paper``, explains otherwise
    every    : measurements between two refreshes of the particles (1 under rule ``paper``)
    sigma    : sigma_x of Eq. 9, in model units
    copies   : recognise copies of what was outlined (``copies``), where every visit tells the
        truth; for goal ``cells``
    local_copies : in areas that are computed by windows too (``local.copies``)
    room     : look for the next find where another copy has room (``room``), as far as copies have
        predicted better than what is believed without them
    relative_room : in areas that are computed by windows, once no part is untouched, room is a
        share of the largest there is, as in others; otherwise of that of untouched land
    judged   : layers count as far as the measurements say that they matter
        (``engram.logistic``), beside them copies are recognised and the look-ahead may decide;
        otherwise they count in full, alone
    dreams   : how often a copy of the memory learns from dreams (``dreaming``), 0 = never
    dream_steps : training steps of each of these
    windows  : compute areas of more than ``local.LARGEST`` cells a side by windows (``local``)
    window_views : symmetries averaged in a window, as ``views``, of which 4 are the most that are
        computed; 0 = all, where the memory has learnt their average, otherwise 4
    wide     : windows reach beyond the size of the areas the memory was trained on
        (``local.windows``)
    """

    h: bool = True
    strength: float = 1.0
    guard: bool = True
    base_rate: bool = False
    views: int = LEARNT
    period: int = 0
    context: int = WHOLE
    goal: str = "cells"
    extent: float = 0.0
    rule: str = "foraging"
    a: float = 1.0
    explore: float = 2.5
    frontier: float | None = None
    least_rate: float = LEAST_RATE
    every: int = 10
    sigma: float = 1.0
    copies: bool = True
    local_copies: bool = True
    room: bool = True
    relative_room: bool = True
    judged: bool = True
    dreams: int = 0
    dream_steps: int = 60
    windows: bool = True
    window_views: int = LEARNT
    wide: bool = True
    schedule: UpdateSchedule = field(
        default_factory=lambda: UpdateSchedule(updates=50, first=8, stretch=True)
    )
    draws: DrawPlan = field(default_factory=DrawPlan)

    def __post_init__(self) -> None:
        for name in ("views", "window_views"):
            if getattr(self, name) not in VIEWS:
                given, known = getattr(self, name), ", ".join(map(str, VIEWS))
                raise InputError(f"{name}={given}: choose one of {known}")
        for name in ("strength", "a", "sigma"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name}={getattr(self, name)}: give a number above 0")
        for name, least in (("every", 1), ("period", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name}={getattr(self, name)}: give at least {least}")
        if checked_context(self.context) and self.dreams:
            raise InputError(
                f"context={self.context}: dreams are made of what was found in the whole area; "
                "give dreams=0 as well, or leave context out"
            )
        if self.context and self.rule == "paper":
            raise InputError(
                f"context={self.context}: rule=paper ranks by particles, which are told of the "
                "whole area; choose another rule, or leave context out"
            )
        checked_rule(self.rule)
        checked_extent(self.extent)
        if checked_goal(self.goal) == "objects" and self.rule != "foraging":
            raise InputError(f"rule={self.rule!r}: goal=objects has its own; leave rule out")
        _ = self.foraging, self.dreaming

    @property
    def dreaming(self) -> Dreaming:
        """When and how much is dreamt."""
        schedule = UpdateSchedule(updates=self.dreams, first=FIRST_DREAM)
        return Dreaming(DreamPlan(steps=self.dream_steps), schedule)

    @property
    def foraging(self) -> Foraging:
        """The rule with these settings; refuses those that cannot be."""
        return Foraging(self.explore, self.frontier, self.least_rate)
