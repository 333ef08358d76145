"""Search policies behind one small protocol; ``make_policy`` builds one by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from engram.errors import InputError
from engram.grid import Grid
from engram.policies.audition import Audition, suited
from engram.policies.base import Policy, Suggestion, View
from engram.policies.lens import Lensed, lens_for

if TYPE_CHECKING:
    from engram.memory.permanent import PermanentMemory

__all__ = ["POLICIES", "Policy", "PolicySpec", "Suggestion", "View", "make_policy"]


@dataclass(frozen=True)
class PolicySpec:
    """Where a policy lives and what it needs; imported when first used."""

    module: str
    attribute: str
    summary: str
    needs_memory: bool = False


POLICIES: dict[str, PolicySpec] = {
    "random": PolicySpec("engram.policies.random", "RandomSearch", "cells in a random order"),
    "spread": PolicySpec(
        "engram.policies.spread", "SpreadDesign", "a space-filling design that never adapts"
    ),
    "gp": PolicySpec("engram.policies.gp", "GaussianProcess", "a Gaussian process on the outcomes"),
    "greedy": PolicySpec(
        "engram.policies.greedy", "greedy_adaptive", "exploitation alone (Greedy-Adaptive)", True
    ),
    "diffatd": PolicySpec(
        "engram.policies.diffatd", "diffatd", "the permanent memory alone (DiffATD)", True
    ),
    "auto": PolicySpec(
        "engram.policies.emptdm", "auto", "EM-PTDM or the process, whichever predicts better", True
    ),
    "em-ptdm": PolicySpec(
        "engram.policies.emptdm", "em_ptdm", "permanent and transient memory (EM-PTDM)", True
    ),
}

PRESETS = ("default", "paper")


def make_policy(
    name: str,
    grid: Grid,
    budget: int,
    *,
    seed: int = 0,
    memory: PermanentMemory | Sequence[PermanentMemory] | None = None,
    preset: str = "default",
    **options: Any,
) -> Policy:
    """Build a policy by name.

    ``memory`` is required by the policies that imagine; of several, the one that explains the
    first measurements best is kept. ``preset`` is 'default' or 'paper'; further options go to
    the policy and are refused when it does not know them.
    """
    spec = POLICIES.get(name)
    if spec is None:
        raise InputError(f"unknown policy {name!r}; choose one of {', '.join(POLICIES)}")
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    factory = getattr(import_module(spec.module), spec.attribute)
    if not spec.needs_memory:
        return _built(name, factory, grid, budget, seed, options)
    memories = list(memory) if isinstance(memory, Sequence) else [memory] if memory else []
    if not memories:
        raise InputError(f"policy {name!r} needs a memory; see engram.load_memory")
    if len(memories) > 1:
        memories = suited(memories, grid)
    made: list[tuple[str, Policy]] = []
    for one in memories:
        lens = lens_for(one.card, grid)
        seen = grid if lens is None else lens.grid
        one.fits(seen.channels)
        given = {**options, "memory": one, "preset": preset}
        policy = _built(name, factory, seen, budget, seed, given)
        made.append((one.card.name, policy if lens is None else Lensed(policy, lens)))
    return made[0][1] if len(made) == 1 else Audition(made)


def _built(
    name: str,
    factory: Callable[..., Policy],
    grid: Grid,
    budget: int,
    seed: int,
    options: dict[str, Any],
) -> Policy:
    try:
        signature(factory).bind(grid, budget, seed, **options)
    except TypeError as error:
        raise InputError(f"policy {name!r} does not take these options: {error}") from error
    policy = factory(grid, budget, seed, **options)
    assert isinstance(policy, Policy)
    return policy
