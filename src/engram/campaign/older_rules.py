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
from engram.policies.local import is_large

if TYPE_CHECKING:
    from engram.memory.permanent import PermanentMemory

OLD_LESSONS: dict[str, Any] = {"lesson": "prior", "m_steps": 20}
"""The paper's h, before it learnt in hindsight."""
OLD_DRAWS: dict[str, Any] = {"guidance": "mmps", "steps": 6, "refresh_steps": 3}
"""The ``paper`` preset, before its draws were those of a memory that can be told."""
BEFORE_COPIES: dict[str, Any] = {"copies": False}
"""The default engine, before it recognised copies of what it had outlined."""
BEFORE_JUDGED: dict[str, Any] = {"judged": False}
"""The default engine with layers, before it judged whether they matter."""
BEFORE_LEARNT: dict[str, Any] = {"views": 8}
"""The default engine, before memories had learnt the average of their eight views."""
BEFORE_WIDE: dict[str, Any] = {"window_views": 4, "wide": False}
"""The default engine, before windows of large areas were seen by what has learnt that average, and
were larger than the areas a memory was trained on."""
BEFORE_ROOM: dict[str, Any] = {"room": False}
"""The default engine, before it looked for the next find where another copy has room."""
BEFORE_LOCAL_COPIES: dict[str, Any] = {"local_copies": False}
"""The default engine, before it recognised copies in areas that are computed by windows."""
BEFORE_RELATIVE_ROOM: dict[str, Any] = {"relative_room": False}
"""The default engine, before room of large areas was a share of the largest there is."""
BEFORE_RARE: dict[str, Any] = {"least_rate": 0.3}
"""The foraging rule, before it followed finds where they are rare."""
PAPERS = ("em-ptdm", "diffatd", "greedy")
"""Policies that have that preset."""
FORAGING = ("em-ptdm", "gp", "diffatd", "greedy")
"""Policies that can be given the foraging rule."""
SPREADING = ("em-ptdm", "gp", "spread", "layer-order")
"""Policies that look at blocks of cells, or at windows, where an area is large."""


def options_of_then(spec: Spec, memories: Sequence[PermanentMemory] | None) -> dict[str, Any]:
    """Options by which the policy of a campaign is what it was under the campaign's rules."""
    rare = BEFORE_RARE if spec.rules < 10 and _is_one_of(FORAGING, spec) else {}
    return rare | _parts_of_then(spec, memories)


def _parts_of_then(spec: Spec, memories: Sequence[PermanentMemory] | None) -> dict[str, Any]:
    """Those of parts of a policy that had not been built then, or were others."""
    if not memories or not _is_one_of(PAPERS, spec):
        return {}
    told = all(memory.conditioned for memory in memories)
    ours = _is_one_of(("em-ptdm",), spec) and spec.preset != "paper" and told
    if ours and spec.rules < 6:
        layered = {} if spec.layers is None or spec.rules >= 5 else BEFORE_JUDGED
        copies = BEFORE_COPIES if spec.rules < 4 else {}
        return BEFORE_LOCAL_COPIES | BEFORE_ROOM | BEFORE_WIDE | BEFORE_LEARNT | layered | copies
    if ours and spec.rules < 9:
        room = BEFORE_ROOM if spec.rules < 8 else {}
        return BEFORE_LOCAL_COPIES | room | (BEFORE_WIDE if spec.rules < 7 else {})
    if ours and spec.rules < 12 and is_large(spec.grid):
        return BEFORE_RELATIVE_ROOM
    if spec.rules >= 3:
        return {}
    if spec.preset == "paper":
        return OLD_LESSONS | (OLD_DRAWS if told else {})
    return OLD_LESSONS if _is_one_of(("em-ptdm",), spec) and not told else {}


def is_gone(spec: Spec) -> bool:
    """Whether what a campaign suggests is no longer what it suggested under its rules.

    The default engine learnt from layers in another way, and large areas were taken as a whole
    (rules 1 and 2); then by windows, and explained by samples of whole ones (3 and 4). Separate
    targets were looked for by another rule (up to 10).
    """
    if spec.rules < 11 and spec.options.get("goal") == "objects":
        return True
    ours, large = _is_one_of(("em-ptdm",), spec), is_large(spec.grid)
    if spec.rules >= 3:
        return spec.rules < 5 and large and ours and spec.layers is None
    return (spec.layers is not None and ours) or (large and _is_one_of(SPREADING, spec))


def _is_one_of(names: Sequence[str], spec: Spec) -> bool:
    """Whether the policy of a campaign is one of these, by whatever name."""
    plan = POLICIES.find(spec.policy)
    return any(POLICIES[name] is plan for name in names)
