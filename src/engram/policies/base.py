"""What every policy offers: suggest cells, take observations, show its beliefs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.blocks import as_field
from engram.detection import PERFECT, Detection, doubtful, learnt_chance, updated
from engram.errors import InputError
from engram.grid import Cell, Grid
from engram.observation import Observation, Observations
from engram.policies.ranking import Offer
from engram.scores import Scores, Terms, best_cells
from engram.spatial import last_refit

if TYPE_CHECKING:
    from torch import Tensor

    from engram.layer_effects import Explained


KEPT = 2
"""Answers kept for one state: for what a crew is offered, and for all cells."""


DAMPED = 18.0
"""Cells around a taken one whose scores are pulled down; farther away the factor rounds to 1."""


@dataclass(frozen=True)
class Suggestion:
    """A cell to measure next, every term of its score, and what made it.

    rule    : which rule made the score (``Answer.rule``)
    weights : what each forecaster counted in the mixture, by name
    tilt    : what h added to the chance of target of the cell, or None
    """

    cell: Cell
    rank: int
    terms: Mapping[str, float]
    rule: str = ""
    weights: dict[str, float] = field(default_factory=dict)
    tilt: float | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """What a policy makes of its measurements, before the next outcome is known.

    rule    : which rule made the total (``ranking.Ranking.why``); empty where a policy does not say
    weights : what each forecaster counts in the mixture, by name; empty where nothing is mixed
    tilt    : (n_cells,) what h adds to the chance of target, or None without h
    """

    scores: Scores
    rule: str = ""
    weights: dict[str, float] = field(default_factory=dict)
    tilt: NDArray[np.float64] | None = None

    def suggestion(self, cell: Cell, index: int, rank: int) -> Suggestion:
        """A cell (flat index) with all that is known of how it came to be suggested."""
        tilt = None if self.tilt is None else float(self.tilt[index])
        return Suggestion(cell, rank, self.scores.of(index), self.rule, self.weights, tilt)


@dataclass(frozen=True, eq=False)
class View:
    """What a policy believes at one moment, for reports and explanations.

    mean      : (C, H, W) expected content in the grid's range, or None
    particles : (P, C, H, W) samples of the area in the grid's range, or None
    shows     : what they are pictures of: the ``content``, or the ``target`` (low = none, high
        = all) where a memory imagines that alone
    """

    scores: Scores
    mean: NDArray[np.float32] | None = None
    particles: NDArray[np.float32] | None = None
    shows: str = "content"


@dataclass
class PolicyLog:
    """What a policy notes while it works.

    evidence : predictive log-likelihood of each measurement's report before it was seen
    forecast : the predicted probability of target of each measured cell
    updates  : one record per h-update: time, accepted, evidence before and after
    evaluations : evaluations of the memory's network so far, in passes of 16 images
    stages   : log-likelihood of each outcome as parts of the engine predicted it (the memory
        alone, after h, the process)
    """

    evidence: list[float] = field(default_factory=list)
    forecast: list[float] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    evaluations: float = 0.0
    stages: dict[str, list[float]] = field(default_factory=dict)


def log_likelihood(outcome: float, probability: float, floor: float = 0.01) -> float:
    """Cross-entropy form of the Bernoulli log-likelihood of a fractional outcome."""
    p = min(max(probability, floor), 1 - floor)
    return float(outcome * np.log(p) + (1 - outcome) * np.log(1 - p))


class Policy(ABC):
    """A search in progress.

    Subclasses define ``scores`` (and ``answer`` if there is more to say), ``learn`` if they learn.
    """

    name: str = ""

    def __init__(
        self, grid: Grid, budget: int, seed: int = 0, detection: Detection = PERFECT
    ) -> None:
        self.grid = grid
        self.budget = grid.check_budget(budget)
        self.seed = int(seed)
        self.observations = Observations(grid, detection=detection)
        self._chances: list[float] = []
        self.log = PolicyLog()
        self._answers: list[tuple[Offer, Answer]] = []

    @property
    def t(self) -> int:
        """Measurements taken so far."""
        return len(self.observations)

    @abstractmethod
    def scores(self) -> Scores:
        """Score terms of every cell, given what has been measured."""

    def answer(self, offer: Offer) -> Answer:
        """Scores with what was believed and decided to get them, given what is on offer."""
        return Answer(self.scores())

    def learn(self, new: list[Observation]) -> None:  # noqa: B027 (an optional hook)
        """Take in measurements that were just added to ``observations``."""

    def layered(self) -> Explained | None:
        """The model of what layers say, as of the present state; None without layers."""
        return None

    def view(self) -> View:
        """Beliefs at this moment."""
        return View(self.current_scores())

    def prepare(self) -> None:  # noqa: B027 (an optional hook)
        """Compute what the next answer needs, where that is much and ``state`` keeps it."""

    def state(self) -> dict[str, Tensor]:
        """What cannot be had from the observations alone; nothing for a policy that keeps none."""
        if not self.observations.detection.learnt:
            return {}
        from torch import float64, tensor

        return {"chances": tensor(self._chances, dtype=float64)}

    def restore(self, observations: Observations, state: dict[str, Tensor]) -> None:
        """Go on from these observations and the ``state`` saved after them; nothing is replayed."""
        self.observations = observations
        self._chances = state["chances"].tolist() if "chances" in state else []
        self._answers = []
        self.learn_detection()

    def learn_detection(self) -> None:
        """A chance of detection that is not known: learnt again as often as the process's terms."""
        seen = self.observations
        if not seen.detection.learnt:
            return
        first = seen.items[: last_refit(len(seen))]
        own = [i for i, item in enumerate(first) if item.detection is None]
        chance = learnt_chance(
            seen.indices[own],
            seen.outcomes[own] > 0,
            np.array(self._chances)[own],
            seen.detection.false_alarm,
        )
        seen.detection = replace(seen.detection, chance=chance)

    def current(self, offer: Offer | None = None) -> Answer:
        """The answer for the present state and what can be decided on, computed once.

        Without an offer every cell that is open and unmeasured can be visited.
        """
        offer = Offer(self.observations.available) if offer is None else offer
        known = next((answer for one, answer in self._answers if one.same(offer)), None)
        if known is None:
            known = self.answer(offer)
            self._answers = [(offer, known), *self._answers[: KEPT - 1]]
        return known

    def current_scores(self) -> Scores:
        """Scores for the present state, every cell that is open and unmeasured being available."""
        return self.current().scores

    def believed(self) -> Answer:
        """An answer for the present state, whatever was on offer: what is believed is the same."""
        return self._answers[0][1] if self._answers else self.current()

    def suggest(
        self,
        n: int = 1,
        pending: Iterable[Cell] = (),
        *,
        available: NDArray[np.bool_] | None = None,
        worth: NDArray[np.float64] | None = None,
    ) -> list[Suggestion]:
        """The n best different cells that are open, unmeasured and not pending.

        Each is ranked as if those before it were pending too, and the neighbourhood of pending
        cells is damped, so that several crews do not stand side by side. ``available`` (n_cells,)
        leaves out further cells; ``worth`` (n_cells,) ranks the cells instead of the total score.
        """
        if n < 1:
            raise InputError(f"n={n}: ask for at least one cell")
        free = self.observations.available.copy()
        if available is not None:
            free &= available
        taken = [self.grid.index(cell) for cell in pending]
        free[taken] = False
        picks: list[Suggestion] = []
        while len(picks) < n and free.any():
            answer = self.current(Offer(free.copy(), len(taken)))
            ranking = answer.scores.total if worth is None else worth
            index = best_apart(self.grid, ranking, free, taken)
            picks.append(answer.suggestion(self.grid.at(index), index, len(picks) + 1))
            free[index] = False
            taken.append(index)
        return picks

    def checked(self, new: Observation | Iterable[Observation]) -> list[Observation]:
        """Measurements that may all be taken now."""
        items = [new] if isinstance(new, Observation) else list(new)
        seen: dict[int, list[Observation]] = {}
        for item in items:
            visits = seen.setdefault(self.observations.check(item), [])
            if visits and not self.observations.open_after(visits):
                raise InputError(f"cell ({item.cell[0]}, {item.cell[1]}) is given twice")
            visits.append(item)
        return items

    def observe(self, new: Observation | Iterable[Observation]) -> None:
        """Take one or several measurements; all are checked before any is taken.

        Several visits of one cell are taken one after the other.
        """
        for visits in rounds(self.checked(new)):
            self.take(visits)
            self.learn_detection()

    def take(self, items: list[Observation]) -> None:
        """Take measurements of different cells that were checked."""
        for item in items:
            index = self.grid.index(item.cell)
            p = float(self.believed().scores.probability[index])
            self.log.forecast.append(p)
            self._chances.append(p)
            reported = self.observations.resolved(item).reported(p)
            self.log.evidence.append(log_likelihood(float(item.outcome > 0), reported))
        for item in items:
            self.observations.add(item)
        self._answers = []
        self.learn(items)


def rounds(items: Iterable[Observation]) -> list[list[Observation]]:
    """First visits of all cells, then second ones, ..., each in the order they are given."""
    out: list[list[Observation]] = []
    count: dict[Cell, int] = {}
    for item in items:
        number = count[item.cell] = count.get(item.cell, -1) + 1
        if number == len(out):
            out.append([])
        out[number].append(item)
    return out


def best_apart(
    grid: Grid, total: NDArray[np.float64], available: NDArray[np.bool_], taken: list[int]
) -> int:
    """The best available cell (flat index) away from those that are taken."""
    by_blocks = as_field(total)
    if by_blocks is not None:
        return by_blocks.best(available, taken=taken)[0][0]
    return best_cells(_damped(grid, total, taken), available)[0]


def _damped(grid: Grid, total: NDArray[np.float64], taken: list[int]) -> NDArray[np.float64]:
    """Scores pulled towards their minimum around taken cells (a bump of two cells' width).

    Cells at the minimum itself are pulled a little below it, so that cells far from those that
    are taken come first where all are equal.
    """
    if not taken:
        return total
    finite = total[np.isfinite(total)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    low -= 1e-6 * (high - low) or 1.0
    out = (total - low).reshape(grid.rows, grid.cols)
    for index in taken:
        window = grid.geometry.window(grid.at(index), DAMPED)
        out[window] *= 1 - np.exp(-grid.geometry.squares_in(window, grid.at(index)) / 8.0)
    return np.asarray(out.ravel() + low)


def flat_scores(
    grid: Grid,
    probability: NDArray[np.float64],
    total: NDArray[np.float64],
    doubt: NDArray[np.float64] | None = None,
) -> Scores:
    """Scores of a policy that has no particles: the terms it does not use are zero."""
    zero = np.zeros(grid.n_cells)
    terms = Terms(zero, zero, probability, probability)
    return Scores(total, probability, zero if doubt is None else doubt, 0.0, terms)


def equal_chances(
    observations: Observations, order: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Chances of a policy that gives all cells the same, and its order (n_cells,) of them.

    Where visits may miss, the share of finds is divided by the chance of detection, Bayes' rule
    follows for every cell that was visited, and cells that were visited less often come first.
    """
    outcomes, odds = observations.outcomes, observations.log_odds
    rate = ((outcomes > 0).sum() + 1) / (len(outcomes) + 2)
    if not doubtful(odds).any():
        return np.full(observations.grid.n_cells, rate), order
    chance = np.full(observations.grid.n_cells, min(rate / observations.detection.chance, 1.0))
    return updated(chance, odds), np.asarray(order - observations.visits)
