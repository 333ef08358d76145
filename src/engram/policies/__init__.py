"""Search policies behind one small protocol; ``make_policy`` builds one by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getdoc, signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from engram.detection import Detection
from engram.errors import InputError, PresetWarning, shown
from engram.grid import Grid
from engram.layers import Layers
from engram.plugins import Registry
from engram.policies.base import Policy, Suggestion, View
from engram.policies.lens import Lensed, lens_for
from engram.policies.options import checked_option
from engram.policies.selection import ModelSelection, labelled, suited

if TYPE_CHECKING:
    from engram.memory.denoiser import Memory

__all__ = ["POLICIES", "Policy", "PolicySpec", "Suggestion", "View", "make_policy"]


@dataclass(frozen=True)
class PolicySpec:
    """Where a policy lives and what it needs; imported when first used.

    factory : the policy itself, where it is not to be found in its module by name
    """

    module: str
    attribute: str
    summary: str
    needs_memory: bool = False
    factory: Callable[..., Policy] | None = field(default=None, repr=False, compare=False)
    needs_layers: bool = False

    def load(self) -> Callable[..., Policy]:
        """The class or function that makes the policy."""
        found: Callable[..., Policy]
        found = self.factory or attrgetter(self.attribute)(import_module(self.module))
        return found


def _spec_of(name: str, given: Any) -> PolicySpec:
    """What is known of a policy that is given as a spec, a class or a function."""
    if isinstance(given, PolicySpec):
        return given
    if not callable(given):
        raise InputError(f"a policy is a class or a function that makes one, not {shown(given)}")
    return PolicySpec(
        given.__module__,
        getattr(given, "__qualname__", name),
        (getdoc(given) or name).splitlines()[0],
        "memory" in signature(given).parameters,
        given,
    )


_OURS: dict[str, PolicySpec] = {
    "random": PolicySpec("engram.policies.random", "RandomSearch", "cells in a random order"),
    "spread": PolicySpec(
        "engram.policies.spread", "SpreadDesign", "a space-filling design that never adapts"
    ),
    "gp": PolicySpec("engram.policies.gp", "GaussianProcess", "a Gaussian process on the outcomes"),
    "layer-order": PolicySpec(
        "engram.policies.layer_order",
        "LayerOrder",
        "cells in the order of one layer",
        needs_layers=True,
    ),
    "greedy": PolicySpec(
        "engram.policies.papersearch",
        "greedy_adaptive",
        "exploitation alone (Greedy-Adaptive)",
        True,
    ),
    "diffatd": PolicySpec(
        "engram.policies.papersearch", "diffatd", "the permanent memory alone (DiffATD)", True
    ),
    "em-ptdm": PolicySpec(
        "engram.policies.emptdm", "em_ptdm", "permanent and transient memory (EM-PTDM)", True
    ),
}

POLICIES: Registry[PolicySpec] = Registry(
    "policy", "engram.policies", _spec_of, _OURS, older={"auto": "em-ptdm"}
)

PRESETS = ("default", "thorough", "paper")


def make_policy(
    name: str,
    grid: Grid,
    budget: int,
    *,
    seed: int = 0,
    memory: Memory | Sequence[Memory] | None = None,
    preset: str = "default",
    layers: Layers | None = None,
    detection: Detection | float | str | None = None,
    false_alarm: float | None = None,
    device: str | None = None,
    **options: Any,
) -> Policy:
    """Build a policy by name.

    ``memory`` is required by the policies that imagine; of several, the one that explains the
    first measurements best is kept. ``preset`` is 'default', 'thorough' or 'paper'; further
    options go to the policy and are refused when it does not know them. A memory that takes no
    measurements runs the 'paper' preset in any case, which a :class:`engram.PresetWarning` says.

    ``layers`` are what is known of every cell beforehand; a policy that has no use for them
    (``takes_layers``) refuses them. ``detection`` is the chance that a visit finds a target that is
    there, or 'learn', and ``false_alarm`` that of reporting one that is not (``Detection``); a
    policy that takes every visit for the truth (``takes_detection``) refuses any but 1 and 0.
    ``device`` is where the memories' networks run (by default
    where they are).
    """
    spec = POLICIES.find(name)
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    factory = spec.load()
    if layers and not takes_layers(name):
        raise InputError(
            f"policy {name!r} has no use for layers; leave them out, or choose one of "
            f"{', '.join(known for known in POLICIES if takes_layers(known))}"
        )
    seen_by = Detection.read(detection, false_alarm)
    if not seen_by.perfect and not takes_detection(name):
        raise InputError(
            f"policy {name!r} takes every visit for the truth ({seen_by}); leave it out, or choose "
            f"one of {', '.join(known for known in POLICIES if takes_detection(known))}"
        )
    if not seen_by.perfect:
        options["detection"] = seen_by
    if not spec.needs_memory:
        told = {"layers": layers.fits(grid)} if layers else {}
        return _built(name, factory, grid, budget, seed, {**options, **told})
    memories = list(memory) if isinstance(memory, Sequence) else [memory] if memory else []
    memories = [one if device is None else one.on(device) for one in memories]
    if not memories:
        raise InputError(f"policy {name!r} needs a memory; see engram.load_memory")
    if len(memories) > 1:
        memories = suited(memories, grid)
    made: list[tuple[str, Policy]] = []
    for label, one in labelled(memories).items():
        warn_of_preset(one.card.name, one.conditioned, preset, stacklevel=3)
        lens = lens_for(one.card, grid)
        seen = grid if lens is None else lens.grid
        one.card.fits(seen.channels)
        given = {**options, "memory": one, "preset": preset}
        if layers:
            given["layers"] = layers.fits(seen)
        policy = _built(name, factory, seen, budget, seed, given)
        made.append((label, policy if lens is None else Lensed(policy, lens)))
    return made[0][1] if len(made) == 1 else ModelSelection(made)


def takes_layers(name: str) -> bool:
    """Whether a policy can be told layers."""
    return "layers" in signature(POLICIES.find(name).load()).parameters


def takes_detection(name: str) -> bool:
    """Whether a policy understands visits that may miss a target."""
    return "detection" in signature(POLICIES.find(name).load()).parameters


def warn_of_preset(memory: str, conditioned: bool, preset: str, *, stacklevel: int = 2) -> None:
    """Say that a memory that takes no measurements as input cannot run the default preset."""
    if preset != "paper" and not conditioned:
        warnings.warn(
            f"memory {memory!r} takes no measurements as input: the search runs the paper preset, "
            f"many times slower than {preset!r}; choose a conditioned memory (engram prior list), "
            "or preset 'paper' if that is meant",
            PresetWarning,
            stacklevel=stacklevel,
        )


def _built(
    name: str,
    factory: Callable[..., Policy],
    grid: Grid,
    budget: int,
    seed: int,
    options: dict[str, Any],
) -> Policy:
    try:
        known = signature(factory)
        known.bind(grid, budget, seed, **options)
    except TypeError as error:
        raise InputError(f"policy {name!r} does not take these options: {error}") from error
    for option in options.keys() & known.parameters.keys():
        usual = known.parameters[option].default
        if isinstance(usual, bool | int | float | str):
            options[option] = checked_option(option, options[option], (type(usual),))
    policy = factory(grid, budget, seed, **options)
    if not isinstance(policy, Policy):
        raise InputError(f"policy {name!r} is a {type(policy).__name__}, not an engram Policy")
    return policy
