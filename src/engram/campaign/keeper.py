"""The policy of a campaign, brought to what is in force: from memory, artifacts or the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.campaign.artifacts import Artifacts
from engram.campaign.fits import check_fits
from engram.campaign.model import Spec
from engram.campaign.older_rules import options_of_then
from engram.campaign.state import State
from engram.errors import ConflictError
from engram.observation import Observations
from engram.policies import POLICIES, make_policy
from engram.policies.base import Policy, PolicyLog

if TYPE_CHECKING:
    from engram.memory.permanent import PermanentMemory

SAVE_EVERY = 25
"""Groups of measurements after which a long replay saves its state on the way."""

_STATE, _EVIDENCE, _FORECAST = "state.", "log.evidence", "log.forecast"


def load_prior(spec: Spec) -> list[PermanentMemory] | None:
    """The memories of a campaign, only if they are the very ones it was created with."""
    if not POLICIES.find(spec.policy).needs_memory:
        return None
    from engram.memory.library import fingerprint, load_memories

    present = fingerprint(spec.prior, symmetric=spec.rules >= 6)
    if present != spec.prior_sha256:
        raise ConflictError(
            f"memory {spec.prior!r} has changed since the campaign was created (its hash is "
            f"{present[:12]}, the campaign needs {spec.prior_sha256[:12]}); bring the "
            "old file back or create a new campaign"
        )
    return load_memories(spec.prior)


class PolicyKeeper:
    """Keeps one policy and moves it along with the log.

    The policy's state is a function of ``State.policy_keys``; ``replayed`` counts the groups of
    measurements that were taken in by ``observe`` rather than found in memory or artifacts. An
    keeper of the past (``keeps`` False) reads artifacts and writes none: those of now are worth
    more.
    """

    def __init__(self, folder: Path | None = None, *, keeps: bool = True) -> None:
        self.artifacts = None if folder is None else Artifacts(folder)
        self._keeps = keeps
        self.replayed = 0
        self._policy: Policy | None = None
        self._keys: list[str] = []
        self._prior: list[PermanentMemory] | None = None

    def policy(self, state: State) -> Policy:
        """The policy after every measurement in force."""
        keys = state.policy_keys()
        if self._policy is None or self._keys != keys[: len(self._keys)]:
            self._policy, done = self._start(state, keys)
        else:
            done = len(self._keys) - 1
        policy, new = self._policy, state.groups()[done:]
        self._keys = []  # unknown while observing: an interrupted policy is not used again
        for position, group in enumerate(new, done + 1):
            policy.observe(group)
            self.replayed += 1
            if position == len(keys) - 1 or position % SAVE_EVERY == 0:
                if position == len(keys) - 1:
                    policy.prepare()  # asked for next in any case: what it took is kept
                self._save(keys, position, policy)
        self._keys = keys
        return policy

    def fresh(self, state: State) -> Policy:
        """A policy that has seen nothing."""
        spec = state.spec
        check_fits(spec, len(state.measurements))
        if self._prior is None:
            self._prior = load_prior(spec)
        return make_policy(
            spec.policy,
            state.grid,
            state.policy_budget(),
            seed=spec.seed,
            memory=self._prior,
            preset=spec.preset,
            layers=spec.layers,
            detection=spec.detection,
            **{**options_of_then(spec, self._prior), **spec.options},
        )

    def _start(self, state: State, keys: list[str]) -> tuple[Policy, int]:
        """A policy and how many groups it has seen: from the newest sound artifact, or fresh."""
        policy = self.fresh(state)
        known = keys
        while self.artifacts is not None:
            position = self.artifacts.newest(known)
            if position is None:
                break
            loaded = self.artifacts.load(keys[position])
            if loaded is not None:
                groups = state.groups()[:position]
                told = (o for group in groups for o in group)
                observations = Observations(state.grid, told, state.spec.detection)
                _restore(policy, observations, *loaded)
                return policy, position
            known = known[:position]
        return policy, 0

    def _save(self, keys: list[str], position: int, policy: Policy) -> None:
        if self.artifacts is None or not self._keeps:
            return
        arrays: dict[str, NDArray[Any]] = {
            _EVIDENCE: np.array(policy.log.evidence, np.float64),
            _FORECAST: np.array(policy.log.forecast, np.float64),
        }
        for name, tensor in policy.state().items():
            arrays[_STATE + name] = tensor.detach().cpu().numpy()
        note = json.dumps(
            {"updates": policy.log.updates, "evaluations": policy.log.evaluations}, default=float
        )
        self.artifacts.save(keys[position], arrays, note)
        self.artifacts.tidy(keys)


def _restore(
    policy: Policy, observations: Observations, arrays: dict[str, NDArray[Any]], note: str
) -> None:
    facts = json.loads(note)
    state = {}
    for name, array in arrays.items():
        if name.startswith(_STATE):
            from torch import from_numpy

            state[name.removeprefix(_STATE)] = from_numpy(array.copy())
    policy.restore(observations, state)
    policy.log = PolicyLog(
        arrays[_EVIDENCE].tolist(),
        arrays[_FORECAST].tolist(),
        facts["updates"],
        facts["evaluations"],
    )
