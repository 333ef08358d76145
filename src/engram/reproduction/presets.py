"""Which engine a row was made with: the paper's own, or this package's default."""

from __future__ import annotations

import re
from typing import Any

from engram.policies import POLICIES

NONE = "-"
"""Of policies without a memory, which have no presets."""


def preset_of(policy: str, part: dict[str, Any]) -> str:
    """The preset of a policy of a part by its label: ``em-ptdm[preset=paper,a=5]`` -> paper."""
    named = re.match(r"[\w-]+", policy)
    spec = POLICIES.get(named.group() if named else "")
    if spec is not None and not spec.needs_memory:
        return NONE
    own = re.search(r"[\[,]preset=(\w+)", policy)
    return own.group(1) if own else (part["options"] or {}).get("preset", "default")


def presets_of(pair: dict[str, Any], part: dict[str, Any]) -> str:
    """The presets of a difference: one word where both sides (that have one) share it."""
    both = [preset_of(pair[side], part) for side in ("policy", "minus")]
    return ", ".join(dict.fromkeys(p for p in both if p != NONE)) or NONE


def with_preset(policy: str, part: dict[str, Any]) -> str:
    """The policy as text names it: its preset is said unless its label says it already."""
    preset = preset_of(policy, part)
    return f"`{policy}`" if preset == NONE or "preset=" in policy else f"`{policy}` ({preset})"
