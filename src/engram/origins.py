"""Where the constants come from that somebody fitted or chose.

Fitted ones live with what made them: the hyperprior of h in ``policies/hyperprior/*.json`` (field
``made``), the coefficients of what is left in ``campaign/coefficients.py`` (``MADE``). Those of
our engines that were chosen by hand stay where they are used; ``CHOSEN`` says of each how
it came about. What nobody wrote down at the time is called so. A module with a chosen constant
has all its numbers here: those that are no choice are in ``NO_CHOICE``.
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
_RARE = (
    "by hand against 0.3 and 0.1 on 24 regions of chickadees, 16 of hairstreaks and 32 rare maps; "
    "the comparison is in docs/engine.md, What was tried"
)
_SEPARATE = (
    "by hand: how often a target is a new one by the way to the nearest find after 20 to 200 "
    "measurements of searches of overhead tiles 0 to 59, then searches of these tiles, and of ball "
    "and shape tasks 0 to 23"
)
_USUAL_SHARE = (
    "by hand: how often a target is a new one by the way to the nearest find after 50, 100 and 200 "
    "cells of the space-filling design on overhead tiles 0 to 23, then searches of tiles 0 to 27"
)
_ROOM = (
    "by hand on ball and shape tasks 0 to 15, memory digits, looked at on overhead tiles 0 to 11; "
    "the comparison is in docs/engine.md, What was tried"
)
_TILES = (
    "by hand for what an answer of a million cells costs, looked at in searches of one to six of "
    "the ball tasks 0 to 5 of 96 x 96 cells; the comparison is in docs/engine.md, What was tried"
)
_STOP = (
    f"by hand; on which maps is {NOT_RECORDED}. How often the advice is wrong was measured with it "
    "on rare maps (docs/campaigns.md, Go on or stop?)"
)
_MISSES = "by hand on ball tasks 24, 25, 33, 38 and 59 with a detection of 0.7"
_JUDGED = (
    "by hand on the first six ball tasks with useless layers and four regions of chickadees; the "
    "comparison is in docs/layers.md"
)
_UNKNOWN = f"by hand; on which tasks is {NOT_RECORDED}"
_RULE, _FIRST, _GOAL, _NEW = "553b2a8", "845a865", "dff18f3", "258641d"
_COPIES, _OUTLINES, _ADVICE, _LOGISTIC = "689d8e5", "b1bd975", "d040bc2", "de6f209"

CHOSEN = (
    Chosen("engram.policies.ranking:MOST_RATE", 0.85, _FORAGING, _RULE),
    Chosen("engram.policies.ranking:LEAST_RATE", 0.05, _RARE, "04ff5a2"),
    Chosen("engram.policies.ranking:Foraging.explore", 2.5, _FORAGING, _RULE),
    Chosen("engram.policies.emptdm:EmPtdmSettings.explore", 2.5, _FORAGING, _RULE),
    Chosen("engram.policies.room:CUT_POWER", 2.0, _ROOM, "ff3c39f"),
    Chosen("engram.policies.room:STRAY", 0.03, _UNKNOWN, "ff3c39f"),
    Chosen("engram.policies.separate:REACH", 1.3, _SEPARATE, _NEW),
    Chosen("engram.policies.separate:POWER", 1.85, _SEPARATE, _NEW),
    Chosen("engram.policies.separate:LOOKING", 0.5, _SEPARATE, _NEW),
    Chosen("engram.policies.separate:LARGE", 2.0, _SEPARATE, _NEW),
    Chosen("engram.policies.separate:USUAL", (0.75, 1.0), _USUAL_SHARE, _GOAL),
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
    Chosen("engram.policies.selection:SIZES", 1.5, _UNKNOWN, "761af09"),
    Chosen("engram.policies.outcome_h:FLOOR", 0.01, _UNKNOWN, "8ff1328"),
    Chosen("engram.policies.outcome_h:LEAST", 0.03, _UNKNOWN, "5ebbe17"),
    Chosen("engram.policies.outcome_h:LAYERED", (1.0, 0.5), _UNKNOWN, "5ebbe17"),
    Chosen("engram.policies.copies:ALONE", 0.3, _UNKNOWN, _COPIES),
    Chosen("engram.policies.copies:CAPPED", 3.0, _UNKNOWN, _COPIES),
    Chosen("engram.policies.copies:PASSES", 2, _UNKNOWN, _COPIES),
    Chosen("engram.policies.copies:FAVOUR", 1.0, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:LEAST_FINDS", 4, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:MOST", 3, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:LARGEST", 14, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:CLEAR", 0.02, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:UNSURE", 4.0, _UNKNOWN, _COPIES),
    Chosen("engram.policies.templates:CUT", 3.0, _UNKNOWN, _COPIES),
    Chosen("engram.policies.local.copies:SLOWLY", 10, _TILES, "2c5ac9a"),
    Chosen("engram.policies.local.copies:ANOTHER", 0.15, _TILES, "b97bbb7"),
    Chosen("engram.policies.local.copies:MUCH", 0.5, _TILES, "b97bbb7"),
    Chosen("engram.policies.local.copies:TURNED", 0.02, _TILES, "41d4058"),
    Chosen("engram.policies.outlines:LEAST_FINDS", 4, _UNKNOWN, _OUTLINES),
    Chosen("engram.policies.outlines:LOOSE", 0.35, _UNKNOWN, _OUTLINES),
    Chosen("engram.policies.outlines:SURE", 4.0, _UNKNOWN, _OUTLINES),
    Chosen("engram.policies.outlines:NUDGE", 2, _UNKNOWN, _OUTLINES),
    Chosen("engram.policies.outlines:ALIKE", 0.7, _UNKNOWN, _OUTLINES),
    Chosen("engram.policies.outlines:BETTER", 0.1, _UNKNOWN, _OUTLINES),
    Chosen("engram.spatial:MEAN", 0.2, _UNKNOWN, _FIRST),
    Chosen("engram.spatial:MEAN_SD", 0.1, _UNKNOWN, _FIRST),
    Chosen("engram.spatial:FIRST_REFIT", 5, _UNKNOWN, _FIRST),
    Chosen("engram.spatial:PRIOR_SD", (1.0, 0.7, 1.5), _UNKNOWN, _FIRST),
    Chosen("engram.logistic:LEVEL", -1.4, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:LEVEL_SD", 1.5, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:FIELD", (1.0, 3.0), _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:FIELD_SD", (1.0, 0.8), _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:SIZE", 1.0, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:SIZE_SD", 1.5, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:SIZES_SD", 1.5, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:FADED", 0.003, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:SLOPE", 1.0, _UNKNOWN, _LOGISTIC),
    Chosen("engram.logistic:RELEVANT", 0.9, _JUDGED, "488c032"),
    Chosen("engram.logistic:WORTH", 3.0, _JUDGED, "488c032"),
    Chosen("engram.campaign.advice:DOUBT", 0.05, _STOP, _ADVICE),
    Chosen("engram.campaign.advice:NEAR", 2, _STOP, _ADVICE),
    Chosen("engram.campaign.advice:FAIR", 0.5, _STOP, _ADVICE),
    Chosen(
        "engram.campaign.remaining:INSURANCE",
        0.02,
        "by hand on ball tasks 0 to 39 and rare maps 0 to 23",
        _ADVICE,
    ),
    Chosen("engram.campaign.remaining:MISSING", 2.0, _MISSES, "a01b00c"),
    Chosen("engram.campaign.remaining:MOST", 0.7, _MISSES, "a01b00c"),
    Chosen(
        "engram.policies.papersearch:PaperSettings.imagined",
        0.05,
        "by hand between 0.02 and 0.1 on ball tasks 0 to 4, memory digits: forecasts after 120 "
        "measurements (0, 0.02, 0.1, 1), and searches of tasks 0 to 3 (0.02, 0.05)",
        "10f6336",
    ),
)

NO_CHOICE = {
    "engram.policies.copies:MOST_NATS": "a limit: of the logarithm of a weight",
    "engram.policies.templates:SAME": "a tolerance: templates that look the same",
    "engram.policies.local.copies:CORE": "a limit: the smallest tile",
    "engram.policies.local.copies:BESIDE": "a limit: of what is looked at around copies",
    "engram.policies.local.copies:MARGIN": "a limit: of what is looked at around a tile",
    "engram.policies.local.copies:OBJECTS": "limits: of what is looked at for objects",
    "engram.policies.local.copies:NOTHING_SAID": "a format: of cells copies say nothing of",
    "engram.policies.outcome_h:CERTAIN": "a format: how a report that cannot be wrong is kept",
    "engram.campaign.remaining:LONG": "a limit: the longest search of the fit",
    "engram.campaign.remaining:EVEN": "a tolerance: chances that are the same",
    "engram.campaign.remaining:LIMITS": "limits: of logit pi and log kappa",
    "engram.spatial:EVALUATIONS": "a limit: of the work of a refit",
    "engram.logistic:LIMITS": "limits: of variance, length and sizes in a refit",
    "engram.logistic:EVALUATIONS": "a limit: of the work of a refit",
    "engram.logistic:STEPS": "a limit: of Newton steps",
    "engram.logistic:CLOSE": "a tolerance: of the mode",
}
"""Numbers of the same modules that nobody tuned a search with: limits, tolerances, formats."""


def chosen_table() -> str:
    """``CHOSEN`` as Markdown, for the page that quotes it."""
    lines = ["| constant | value | chosen | since |", "| --- | --- | --- | --- |"]
    for one in CHOSEN:
        place = one.place.removeprefix("engram.").replace(":", ": ")
        lines.append(f"| `{place}` | `{one.value}` | {one.how} | {one.since} |")
    return "\n".join(lines) + "\n"
