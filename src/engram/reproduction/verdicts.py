"""What an experiment shows, in words that are computed from the intervals.

A difference is *above* or *below* when its 95 % interval leaves out zero, otherwise the two
policies are *not told apart*. Nothing else is claimed, and nothing is called the paper's but what
the paper's own preset did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engram.reproduction.presets import NONE, presets_of, with_preset
from engram.reproduction.published import Published

PAPER = "paper"
"""The preset that is the paper's own engine."""

ABOVE, BELOW, OPEN, SINGLE = "above", "below", "not told apart from", "without an interval against"


def verdict(pair: dict[str, Any]) -> str:
    """Which of two policies is the better one, as far as the interval says."""
    if pair["ci95"] is None:
        return SINGLE
    low, high = pair["ci95"]
    return ABOVE if low > 0 else BELOW if high < 0 else OPEN


def paper_difference(
    source: Published | None, policy: str, minus: str, budget: int
) -> float | None:
    """What the paper's own rows say about the same difference."""
    if source is None:
        return None
    one, other = (source.rate(name, budget) for name in (policy, minus))
    return None if one is None or other is None else one - other


AGREE, PART, DIFFER, UNSETTLED, BEYOND = (
    "As in the paper",
    "In part as in the paper",
    "Unlike the paper",
    "Not settled",
    "Without a counterpart in the paper",
)
SAME, SAME_PART, OPPOSITE = (
    "The same sign as the paper's, by another engine than the paper's",
    "In part the same sign as the paper's, by another engine than the paper's",
    "The opposite sign to the paper's, by another engine than the paper's",
)
RELATIONS = (AGREE, PART, DIFFER, SAME, SAME_PART, OPPOSITE, UNSETTLED, BEYOND)
OTHER_ENGINE = {AGREE: SAME, PART: SAME_PART, DIFFER: OPPOSITE}
"""What is said instead where a side of the difference ran another preset than the paper's."""


def words(source: Published | None, part: dict[str, Any]) -> list[tuple[str, str]]:
    """(how it stands to the paper, a sentence) per difference of success rates."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for pair in part["paired"]:
        if pair["mean"] is not None:
            groups.setdefault((pair["policy"], pair["minus"]), []).append(pair)
    return [_sentence(source, part, pairs) for pairs in groups.values()]


def _sentence(
    source: Published | None, part: dict[str, Any], pairs: Sequence[dict[str, Any]]
) -> tuple[str, str]:
    policy, minus = (with_preset(pairs[0][side], part) for side in ("policy", "minus"))
    found: dict[str, list[dict[str, Any]]] = {}
    for pair in pairs:
        found.setdefault(verdict(pair), []).append(pair)
    said = [f"{kind} {minus} {_figures(same)}" for kind, same in found.items()]
    relation, theirs = _against_paper(source, pairs)
    if presets_of(pairs[0], part) not in (PAPER, NONE):
        relation = OTHER_ENGINE.get(relation, relation)
    return relation, f"{policy} is {'; '.join(said)}{theirs}."


def _figures(pairs: Sequence[dict[str, Any]]) -> str:
    budgets = ", ".join(str(p["budget"]) for p in pairs)
    gains = ", ".join(f"{p['mean']:+.3f}" for p in pairs)
    return f"at {budgets} ({gains})"


def _against_paper(source: Published | None, pairs: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """How the differences stand to the paper's at the budgets both have, and the paper's."""
    shared = [
        (verdict(pair), theirs)
        for pair in pairs
        if (theirs := paper_difference(source, pair["policy"], pair["minus"], pair["budget"]))
        is not None
    ]
    if not shared:
        return BEYOND, ""
    said = f"; the paper has {', '.join(f'{theirs:+.3f}' for _, theirs in shared)}"
    agree = [kind == (ABOVE if theirs > 0 else BELOW) for kind, theirs in shared]
    if any(kind == (BELOW if theirs > 0 else ABOVE) for kind, theirs in shared):
        return DIFFER, said
    return AGREE if all(agree) else PART if any(agree) else UNSETTLED, said


def distance_words(part: dict[str, Any]) -> list[str]:
    """One sentence per difference of distances to the truth (smaller is better)."""
    names = {
        "forecast": "forecast over all cells",
        "forecast_targets": "forecast over target cells",
        "image": "imagined content over all pixels",
        "image_targets": "imagined content over target pixels",
    }
    kinds = {
        ABOVE: "farther from the truth than",
        BELOW: "closer to the truth than",
        OPEN: "not told apart from",
        SINGLE: "without an interval against",
    }
    return [
        f"{names[pair['distance']]}: {with_preset(pair['policy'], part)} is "
        f"{kinds[verdict(pair)]} {with_preset(pair['minus'], part)} ({pair['mean']:+.4f})."
        for pair in part["distances"]["paired"]
    ]


def object_words(name: str, part: dict[str, Any]) -> list[str]:
    """One sentence per number of balls: differences in separate targets touched."""
    said = [
        f"{verdict(pair)} {with_preset(pair['minus'], part)} ({pair['mean']:+.2f})"
        for pair in part["objects"]["paired"]
        if pair["mean"] is not None
    ]
    lead = with_preset(part["objects"]["paired"][0]["policy"], part) if said else ""
    return [f"{name}: {lead} is {'; '.join(said)}."] if said else []
