"""What policies did under older rules, so that campaigns of before go on as they were.

A campaign keeps the number of the rules it began with (``model.RULES``). Where a policy's usual
settings have changed since, those of then are given to it as options; what cannot be had again is
named, and ``verify`` does not hold it against the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engram.campaign.model import Spec
from engram.policies import POLICIES

if TYPE_CHECKING:
    from engram.memory.permanent import PermanentMemory

WHOLE: dict[str, Any] = {"windows": False}
"""The default engine and the process, before large areas were computed by windows."""
OLD_LESSONS: dict[str, Any] = {"lesson": "prior", "m_steps": 20}
"""The paper's h, before it learnt in hindsight."""
OLD_DRAWS: dict[str, Any] = {"guidance": "mmps", "steps": 6, "refresh_steps": 3}
"""The ``paper`` preset, before its draws were those of a memory that can be told."""
CHANGED = ("em-ptdm", "diffatd", "greedy", "gp")


def options_of_then(spec: Spec, memories: Sequence[PermanentMemory] | None) -> dict[str, Any]:
    """Options by which the policy of a campaign is what it was under the campaign's rules."""
    name = _changed(spec)
    if name == "gp":
        return WHOLE
    if not name or not memories:
        return {}
    told = all(memory.conditioned for memory in memories)
    if spec.preset == "paper":
        return OLD_LESSONS | (OLD_DRAWS if told else {})
    if name == "em-ptdm":
        return WHOLE if told else OLD_LESSONS
    return {}


def is_gone(spec: Spec) -> bool:
    """Whether what a campaign suggests is no longer what it suggested under its rules: the default
    engine learnt from layers in another way before."""
    return _changed(spec) == "em-ptdm" and spec.layers is not None


def _changed(spec: Spec) -> str:
    """The name of the policy where it was another one under the campaign's rules."""
    if spec.rules >= 3:
        return ""
    plan = POLICIES.find(spec.policy)
    return next((name for name in CHANGED if POLICIES[name] is plan), "")
