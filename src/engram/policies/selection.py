"""Model selection: of several memories, the one that explains the first measurements best stays.

Each candidate forecasts every measurement before it is seen, with its own memory under the
same policy. The leader by evidence suggests; after ``TRIAL`` measurements it goes on alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engram.errors import InputError
from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import Answer, Policy, View
from engram.policies.lens import lens_for
from engram.policies.ranking import Offer
from engram.scores import Scores

if TYPE_CHECKING:
    from torch import Tensor

    from engram.layer_effects import Explained
    from engram.memory.card import Card
    from engram.memory.denoiser import Memory

TRIAL = 40
"""Measurements after which the leader goes on alone."""
SIZES = 1.5
"""Memories made for areas this many times larger or smaller stay out when others fit."""


def suited(memories: Sequence[Memory], grid: Grid) -> list[Memory]:
    """The memories that can imagine an area, those of about its size if there are any."""

    def size(card: Card) -> float:
        lens = lens_for(card, grid)
        seen = grid if lens is None else lens.grid
        return float(np.sqrt(card.height * card.width / (seen.height * seen.width)))

    able = [m for m in memories if m.card.layers or m.card.channels in (1, grid.channels)]
    fitting = [m for m in able if 1 / SIZES <= size(m.card) <= SIZES]
    if not able:
        names = ", ".join(m.card.name for m in memories)
        raise InputError(
            f"none of the memories {names} can imagine an area of {grid.channels} channels; "
            "train one (engram prior train) or convert the area"
        )
    return fitting or able


def labelled(memories: Sequence[Memory]) -> dict[str, Memory]:
    """The candidates by label: the name on the card, with the hash where several share it.

    Labels are keys of a stored state, so they depend on no order. A memory given twice counts
    once; those that name and hash cannot tell apart are refused.
    """
    out: dict[str, Memory] = {}
    names = Counter(name for name, _ in {(m.card.name, _identity(m)) for m in memories})
    for memory in memories:
        name, sha256 = memory.card.name, memory.card.sha256
        label = name if names[name] == 1 else f"{name}@{sha256[:8]}"
        if label in out and _identity(out[label]) != _identity(memory):
            raise InputError(
                f"several memories are called {name!r} and cannot be told apart (hash "
                f"{sha256[:8] or 'none: not saved yet'}); give each its own name on its card"
            )
        out.setdefault(label, memory)
    return out


def _identity(memory: Memory) -> str:
    """Hash of the weights, or the object itself where they were never saved."""
    return memory.card.sha256 or str(id(memory))


class ModelSelection(Policy):
    """Candidates of the same policy with different memories; the first wins a draw."""

    def __init__(self, candidates: Sequence[tuple[str, Policy]]) -> None:
        first = candidates[0][1]
        super().__init__(first.grid, first.budget, first.seed, first.observations.detection)
        self.name = first.name
        self.candidates = dict(candidates)
        self.evidence = {name: 0.0 for name, _ in candidates}

    @property
    def leader(self) -> str:
        """Label of the memory with the best evidence so far."""
        return max(self.candidates, key=lambda name: self.evidence[name])

    def answer(self, offer: Offer) -> Answer:
        return self.candidates[self.leader].current(offer)

    def scores(self) -> Scores:
        return self.current_scores()

    def layered(self) -> Explained | None:
        return self.candidates[self.leader].layered()

    def view(self) -> View:
        return self.candidates[self.leader].view()

    def learn(self, new: list[Observation]) -> None:
        leader = self.candidates[self.leader]
        noted = len(leader.log.updates)
        for name, policy in self.candidates.items():
            policy.observe(new)
            self.evidence[name] += sum(policy.log.evidence[-len(new) :])
        self.log.updates += leader.log.updates[noted:]
        self.log.evaluations = sum(p.log.evaluations for p in self.candidates.values())
        if self.t >= TRIAL:
            self.candidates = {self.leader: self.candidates[self.leader]}

    def learn_detection(self) -> None:
        """What it is, the leader has learnt."""
        self.observations.detection = self.candidates[self.leader].observations.detection

    def prepare(self) -> None:
        for policy in self.candidates.values():
            policy.prepare()

    def state(self) -> dict[str, Tensor]:
        from torch import float64, tensor

        out = {}
        for name, policy in self.candidates.items():
            out[f"{name}/evidence"] = tensor(self.evidence[name], dtype=float64)
            out |= {f"{name}/{key}": value for key, value in policy.state().items()}
        return out

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        super().restore(observations, state)
        present = [name for name in self.candidates if f"{name}/evidence" in state]
        self.candidates = {name: self.candidates[name] for name in present}
        for name, policy in self.candidates.items():
            prefix = f"{name}/"
            self.evidence[name] = float(state[f"{name}/evidence"])
            inside = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            own = Observations(self.grid, observations, policy.observations.detection)
            policy.restore(own, inside)
        self.learn_detection()
