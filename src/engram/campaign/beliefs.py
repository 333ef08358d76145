"""What a campaign believes of every cell, now or after any event of its log."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from engram.campaign.campaign import Campaign
from engram.campaign.keeper import PolicyKeeper
from engram.campaign.state import State
from engram.errors import NotFoundError
from engram.policies.base import Policy
from engram.scores import Terms

Array = NDArray[np.float64]

IMAGINED = tuple(one.name for one in fields(Terms))
"""Layers that particles have to be drawn for."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Maps of one moment.

    seq, hash : the event after which this was believed
    layers    : (rows, cols) each: ``probability`` of target, ``doubt`` (standard deviation of
        the outcome that is expected), ``total``, and if asked for, what is imagined: the terms of
        Eqs. 9 to 11 and ``content`` (expected, mean over channels and pixels of a cell)
    rule      : which rule makes the total; alpha : its weight of exploration
    """

    seq: int
    hash: str
    layers: dict[str, Array]
    rule: str
    alpha: float


def state_at(campaign: Campaign, seq: int | None) -> State:
    """What was in force after an event (None: what is)."""
    campaign.refresh()
    if seq is None or seq == campaign.state.seq:
        return campaign.state
    if not 1 <= seq <= campaign.state.seq:
        raise NotFoundError(f"there is no event {seq}; the log has {campaign.state.seq}")
    return State.replay(campaign.events[:seq])


def beliefs(campaign: Campaign, seq: int | None = None, *, imagined: bool = True) -> Beliefs:
    """What was believed after an event (None: what is); the past is not kept, but made again."""
    state = state_at(campaign, seq)
    if state is campaign.state:
        return beliefs_of(state, campaign.policy(), imagined)
    keeper = PolicyKeeper(campaign.folder, keeps=False)
    return beliefs_of(state, keeper.policy(state), imagined)


def beliefs_of(state: State, policy: Policy, imagined: bool) -> Beliefs:
    """The maps of a policy that has seen all that is in force."""
    grid, scores = state.grid, policy.current_scores()
    chance = np.clip(scores.probability, 0.0, 1.0)
    doubt = scores.doubt if scores.doubt.any() else np.sqrt(chance * (1 - chance))
    layers = {"probability": chance, "doubt": doubt, "total": scores.total}
    if imagined:
        view = policy.view()
        layers |= {name: getattr(view.scores, name) for name in IMAGINED}
        if view.mean is not None and view.shows == "content":
            layers["content"] = grid.cells_of(view.mean).mean(axis=(0, 2, 3), dtype=np.float64)
    shape = (grid.rows, grid.cols)
    maps = {name: np.asarray(layer).reshape(shape) for name, layer in layers.items()}
    return Beliefs(state.seq, state.hash, maps, policy.current().rule, float(scores.alpha))
