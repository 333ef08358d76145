"""Where the constants come from that somebody fitted or chose.

Fitted ones live with what made them: the hyperprior of h in ``policies/hyperprior/*.json`` (field
``made``), the coefficients of what is left in ``campaign/coefficients.py`` (``MADE``). Those of
our engines that were chosen by hand stay where they are used; ``CHOSEN`` says of each how
it came about. What nobody wrote down at the time is called so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

NOT_RECORDED = "not recorded"


class Made(TypedDict):
    """What made fitted figures.

    command  : what was run, folders left out
    commit   : of the code that ran it
    memories : name -> hash of the weights
    data     : what was searched or read
    note     : what else bears on how far the figures can be trusted
    """

    command: str
    commit: str
    memories: dict[str, str]
    data: str
    note: str


@dataclass(frozen=True)
class Chosen:
    """A constant that was chosen by hand.

    place : ``module:NAME``, or ``module:Class.parameter`` for a default
    how   : on what, and by which comparison
    since : the commit that brought this value
    """

    place: str
    value: Any
    how: str
    since: str


_FORAGING = (
    "by hand on 20 ball tasks (numbers not recorded, memory universal), looked at on 12 regions of "
    "chickadees and 12 overhead tiles; the comparison is in docs/engine.md, What was tried"
)
_SEPARATE = (
    "by hand: how often a target is a new one by the way to the nearest find after 50, 100 and 200 "
    "cells of the space-filling design on overhead tiles 0 to 23, then searches of tiles 0 to 27"
)
_ROOM = (
    "by hand on ball and shape tasks 0 to 15, memory digits, looked at on overhead tiles 0 to 11; "
    "the comparison is in docs/engine.md, What was tried"
)
_UNKNOWN = f"by hand; on which tasks is {NOT_RECORDED}"
_RULE, _FIRST, _GOAL = "553b2a8", "845a865", "dff18f3"

CHOSEN = (
    Chosen("engram.policies.ranking:RATES", (0.3, 0.85), _FORAGING, _RULE),
    Chosen("engram.policies.ranking:Foraging.explore", 2.5, _FORAGING, _RULE),
    Chosen("engram.policies.emptdm:EmPtdmSettings.explore", 2.5, _FORAGING, _RULE),
    Chosen("engram.policies.room:CUT_POWER", 2.0, _ROOM, "ff3c39f"),
    Chosen("engram.policies.room:STRAY", 0.03, _ROOM, "ff3c39f"),
    Chosen("engram.policies.separate:REACH", 1.2, _SEPARATE, _GOAL),
    Chosen("engram.policies.separate:POWER", 1.5, _SEPARATE, _GOAL),
    Chosen("engram.policies.separate:CLEARLY", (1.5, 0.05), _SEPARATE, _GOAL),
    Chosen("engram.policies.separate:USUAL", (0.75, 1.0), _SEPARATE, _GOAL),
    Chosen("engram.policies.ranking:LAST", 7, _UNKNOWN, "7d760b4 or before"),
    Chosen(
        "engram.policies.gp:GaussianProcess.discount",
        0.6,
        f"by hand on ball tasks; on which is {NOT_RECORDED}",
        "72b1cb1",
    ),
    Chosen("engram.policies.process:CANDIDATES", 60, _UNKNOWN, _FIRST),
    Chosen("engram.policies.mixing:DISCOUNT", 0.98, _UNKNOWN, _FIRST),
    Chosen("engram.policies.mixing:EvidenceMixture.favour", 2.0, _UNKNOWN, _FIRST),
    Chosen(
        "engram.policies.outcome_h:RINGS",
        ((0.0, 1.1), (1.1, 2.3), (2.3, 3.7), (3.7, 5.2)),
        _UNKNOWN,
        "8ff1328",
    ),
    Chosen("engram.policies.outcome_h:RECENT", 40, _UNKNOWN, _RULE),
    Chosen("engram.policies.outcome_h:PATIENCE", 1.0, _UNKNOWN, _RULE),
    Chosen("engram.policies.selection:TRIAL", 40, _UNKNOWN, "761af09"),
    Chosen(
        "engram.policies.papersearch:PaperSettings.imagined",
        0.05,
        "by hand between 0.02 and 0.1 on ball tasks 0 to 4, memory digits: forecasts after 120 "
        "measurements (0, 0.02, 0.1, 1), and searches of tasks 0 to 3 (0.02, 0.05)",
        "10f6336",
    ),
)


def chosen_table() -> str:
    """``CHOSEN`` as Markdown, for the page that quotes it."""
    lines = ["| constant | value | chosen | since |", "| --- | --- | --- | --- |"]
    for one in CHOSEN:
        place = one.place.removeprefix("engram.").replace(":", ": ")
        lines.append(f"| `{place}` | `{one.value}` | {one.how} | {one.since} |")
    return "\n".join(lines) + "\n"
