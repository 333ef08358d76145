r"""What a visit may miss: detection, false alarms, and Bayes' rule of reports.

A visit of a cell that holds target reports it with probability d (the *chance* of detection), a
visit of one that does not with probability f (a *false alarm*). Reports of one cell are independent
given what it holds, so that their Bayes factors multiply,

.. math::  \mathrm{logit}\, P(\text{target} \mid r_1, \dots, r_n) = \mathrm{logit}\, p + \ell, \quad
           \ell = \sum_i \Bigl[ r_i \log\frac{d}{f} + (1 - r_i) \log\frac{1 - d}{1 - f} \Bigr] ,

with p what everything but these reports says of the cell. A find without false alarms is certain,
:math:`\ell = \infty`, and so is a blank with d = 1, :math:`\ell = -\infty`.

What such a cell says of *others* is told to models that take outcomes with noise. The noise is that
of the best linear estimate: the variance :math:`v` for which a model that expects :math:`p_0` of
every cell moves the cell's own expectation as far as Bayes' rule does,

.. math::  v = p_0 \frac{e^{\ell}}{1 - e^{\ell}} \;(\ell < 0), \qquad
           v = (1 - p_0) \frac{e^{-\ell}}{1 - e^{-\ell}} \;(\ell > 0) .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.errors import InputError, shown

Array = NDArray[np.float64]

LEARN = "learn"
"""What stands for a chance of detection that is not known."""
PRIOR = (4.0, 2.0)
"""Beta prior of a chance that is learnt: 2/3 on average, 0.34 to 0.92 in nine of ten cases."""
EXPECTED = 0.2
"""p_0."""
SURE = 20.0
"""Bayes factor at which reports that may be false alarms settle a cell as target."""
OLDEST = 1e-6
"""The least that an old visit counts."""
BOUNDS = (0.005, 0.98)
"""What everything but its own reports may say of a cell at most: no model is surer."""
_STEPS = np.linspace(0.005, 0.995, 199)


@dataclass(frozen=True)
class Detection:
    """How far a visit can be trusted.

    chance      : d, in (0, 1];  false_alarm : f, in [0, d)
    learnt      : whether the chance is an estimate that is learnt from the visits
    """

    chance: float = 1.0
    false_alarm: float = 0.0
    learnt: bool = False

    @classmethod
    def read(cls, chance: Any = None, false_alarm: Any = None) -> Detection:
        """From user input; nothing given is a visit that sees everything."""
        if isinstance(chance, Detection):
            return chance if false_alarm is None else cls.read(chance.written, false_alarm)
        learnt = isinstance(chance, str) and chance.strip().lower() == LEARN
        d = PRIOR[0] / sum(PRIOR) if learnt else _number(chance, 1.0)
        f = _number(false_alarm, 0.0)
        if not 0 < d <= 1:
            raise InputError(
                f"detection={shown(chance)}: give the chance that a visit finds a target that is "
                f"there, above 0 and up to 1, or {LEARN!r}"
            )
        if not 0 <= f < 1:
            raise InputError(
                f"false alarm={shown(false_alarm)}: give the chance that a visit reports a target "
                "that is not there, from 0 to below 1"
            )
        if f >= d:
            raise InputError(
                f"false alarm={f:g} is not below detection={d:g}: such visits say nothing of "
                "target; give a lower false alarm"
            )
        return cls(d, f, learnt)

    @property
    def written(self) -> float | str:
        """The chance as it is given."""
        return LEARN if self.learnt else self.chance

    @property
    def perfect(self) -> bool:
        """Whether a visit sees everything and nothing else."""
        return self.chance == 1 and self.false_alarm == 0 and not self.learnt

    @property
    def at_first(self) -> Detection:
        """The same before anything is learnt."""
        return replace(self, chance=PRIOR[0] / sum(PRIOR)) if self.learnt else self

    def reported(self, probability: Any) -> Any:
        """d p + f (1 - p): the probability that a visit reports target."""
        return self.chance * probability + self.false_alarm * (1 - probability)

    def log_odds(self, found: bool) -> float:
        """What a report adds to the log-odds of target."""
        if found:
            return math.log(self.chance / self.false_alarm) if self.false_alarm else math.inf
        return (
            math.log((1 - self.chance) / (1 - self.false_alarm)) if self.chance < 1 else -math.inf
        )

    def aged(self, weight: float) -> Detection:
        """What an old visit is worth: the cell is as it was then with the probability ``weight``,
        otherwise it is as any other, of which such visits report the share d p_0 + f (1 - p_0)."""
        weight = max(weight, OLDEST)
        usual = float(self.reported(EXPECTED))
        d, f = (weight * v + (1 - weight) * usual for v in (self.chance, self.false_alarm))
        return Detection(d, f)

    def to_dict(self) -> dict[str, float | str]:
        """As JSON; ``Detection.read(**d)`` reads it."""
        return {"chance": self.written, "false_alarm": self.false_alarm}

    def __str__(self) -> str:
        known = "learnt from the visits" if self.learnt else f"{self.chance:g}"
        return f"detection {known}" + (
            f", false alarm {self.false_alarm:g}" if self.false_alarm else ""
        )


PERFECT = Detection()


def _number(value: Any, usual: float) -> float:
    """The number, ``usual`` where none is given, NaN for anything else."""
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return math.nan
    return float(value)


def after(probability: ArrayLike, log_odds: ArrayLike) -> Array:
    """Bayes' rule: the probability of target after reports worth these log-odds."""
    p = np.asarray(probability, np.float64)
    odds = np.asarray(log_odds, np.float64)
    less = np.exp(-np.abs(odds))
    down = p * less / np.maximum(p * less + 1 - p, np.finfo(float).tiny)
    up = p / np.maximum(p + (1 - p) * less, np.finfo(float).tiny)
    return np.asarray(np.where(odds < 0, down, np.where(odds > 0, up, p)), np.float64)


def settles(log_odds: float) -> bool:
    """Whether reports worth these log-odds settle a cell."""
    return log_odds == -math.inf or log_odds >= math.log(SURE)


def doubtful(log_odds: Array) -> NDArray[np.bool_]:
    """Where there were reports, and they left doubt."""
    return np.asarray(np.isfinite(log_odds) & (log_odds != 0))


def updated(others: Array, log_odds: Array) -> Array:
    """(n_cells,) what everything but its own reports says of a cell, and then these.

    Bayes' rule where reports left doubt; elsewhere nothing changes.
    """
    unsure = doubtful(log_odds)
    if not unsure.any():
        return others
    out = others.copy()
    out[unsure] = after(np.clip(others[unsure], *BOUNDS), log_odds[unsure])
    return out


def noise_of(log_odds: ArrayLike) -> Array:
    """Variance of an outcome (0 for a blank, 1 for a find) that stands for such reports."""
    odds = np.asarray(log_odds, np.float64)
    less = np.exp(-np.abs(odds))
    share = np.where(odds < 0, EXPECTED, 1 - EXPECTED)
    with np.errstate(divide="ignore"):
        return np.asarray(share * less / (1 - less), np.float64)


def weight_of(log_odds: ArrayLike) -> Array:
    """What reports count beside a certain one: 1 - the chance that blanks were all missed."""
    return np.asarray(1 - np.exp(-np.abs(np.asarray(log_odds, np.float64))), np.float64)


def learnt_chance(
    cells: NDArray[np.intp], found: NDArray[np.bool_], chances: Array, false_alarm: float
) -> float:
    """The posterior mean of d (``chance_posterior``)."""
    return chance_posterior(cells, found, chances, false_alarm)[0]


def chance_posterior(
    cells: NDArray[np.intp], found: NDArray[np.bool_], chances: Array, false_alarm: float
) -> tuple[float, float]:
    r"""Mean and standard deviation of d given visits and what was believed of the cells before.

    Each cell with a finds and b blanks has the likelihood
    :math:`p\, d^a (1 - d)^b + (1 - p) f^a (1 - f)^b`, with p the probability of target before its
    first visit; the prior is Beta(``PRIOR``).

    cells, found, chances : (n,) cell, report and probability of target before each visit
    """
    d, f = _STEPS, false_alarm
    logs = (PRIOR[0] - 1) * np.log(d) + (PRIOR[1] - 1) * np.log(1 - d)
    for cell in dict.fromkeys(cells.tolist()):
        own = np.flatnonzero(cells == cell)
        p = float(np.clip(chances[own[0]], *BOUNDS))
        finds = int(found[own].sum())
        blanks = len(own) - finds
        there, not_there = d**finds * (1 - d) ** blanks, f**finds * (1 - f) ** blanks
        logs = logs + np.log(p * there + (1 - p) * not_there)
    weights = np.exp(logs - logs.max())
    mean = float(weights @ d / weights.sum())
    return mean, float(np.sqrt(weights @ (d - mean) ** 2 / weights.sum()))
