r"""Eqs. 9 to 12, term by term; nothing is thrown away.

Per cell :math:`q` and over particle pairs (i, j), with
:math:`d_{ij}^2 = \| [\hat x^{(i)}]_q - [\hat x^{(j)}]_q \|^2` summed over the cell's pixels:

* exploration (Eq. 9)       :math:`\sum_{ij} d_{ij}^2 / 2\sigma_x^2`
* likelihood (Prop. 2)      :math:`\sum_{ij} \exp(-d_{ij}^2 / 2\sigma_x^2)`
* reward                    :math:`\sum_i r_\eta([\hat x^{(i)}]_q)`
* exploitation (Eq. 11)     likelihood x reward
* total (Eq. 12)            :math:`\alpha\,` exploration :math:`+ (1 - \alpha)\,` exploitation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class OfCells:
    """A term of a large area, (rows * cols,), that is meant to be asked for single cells: to have
    it of all of them particles are drawn wherever something was measured."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Eqs. 9 to 11 of particles, each (rows * cols,)."""

    exploration: Array
    likelihood: Array
    reward: Array
    exploitation: Array


NAMES = ("alpha", *(one.name for one in fields(Terms)), "total", "probability", "doubt")
"""All that is known of one cell."""
DECIDING = ("alpha", "total", "probability", "doubt")
"""What of it is known without particles."""


@dataclass(frozen=True, eq=False)
class Scores:
    """All that is known of every cell, (rows * cols,) each; ``alpha`` is one number.

    total       : what the cells are ranked by
    probability : the model's belief that the cell contains target, in [0, 1]
    doubt       : standard deviation of the outcome that is expected of the cell; 0 where a policy
        has no such model
    alpha       : weight of exploration in Eq. 12
    terms       : Eqs. 9 to 11, or what gives them where particles decide nothing and are drawn
        only when somebody looks
    """

    total: Array
    probability: Array
    doubt: Array
    alpha: float
    terms: Terms | Callable[[], Terms] = field(repr=False)

    @cached_property
    def imagined(self) -> Terms:
        return self.terms if isinstance(self.terms, Terms) else self.terms()

    @property
    def exploration(self) -> Array:
        return self.imagined.exploration

    @property
    def likelihood(self) -> Array:
        return self.imagined.likelihood

    @property
    def reward(self) -> Array:
        return self.imagined.reward

    @property
    def exploitation(self) -> Array:
        return self.imagined.exploitation

    def of(self, index: int) -> CellTerms:
        """Every term for one cell."""
        return CellTerms(self, index)


@dataclass(frozen=True, eq=False, repr=False)
class CellTerms(Mapping[str, float]):
    """Every term of one cell by name; what is imagined is looked up when it is asked for."""

    scores: Scores
    index: int

    def __getitem__(self, name: str) -> float:
        if name not in NAMES:
            raise KeyError(name)
        value = getattr(self.scores, name)
        return float(value if name == "alpha" else value[self.index])

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __repr__(self) -> str:
        return repr(dict(self))


def at_hand(terms: Mapping[str, float]) -> dict[str, float]:
    """The terms of a cell that are known without drawing anything."""
    waiting = isinstance(terms, CellTerms) and not isinstance(terms.scores.terms, Terms)
    return {name: terms[name] for name in (DECIDING if waiting else terms)}


def exploration(cells: NDArray[np.float32], sigma: float) -> Array:
    r"""Eq. 9 in closed form: :math:`\frac{P}{\sigma^2}\sum_i \|x_i - \bar x\|^2`.

    cells : (P, n, d) content of every cell in every particle, in model units.
    """
    centred = cells - cells.mean(axis=0, keepdims=True, dtype=np.float64)
    return np.asarray(len(cells) / sigma**2 * (centred**2).sum(axis=(0, 2)), np.float64)


def entropy_bound(cells: NDArray[np.float32], sigma: float) -> Array:
    r"""Tighter bound on the entropy: :math:`-\sum_i \log \frac1P \sum_j e^{-d_{ij}^2/2\sigma^2}`.

    Between 0 and :math:`P \log P`, and never above :func:`exploration` / P (Jensen).
    """
    kernel = np.exp(-_pair_distances(cells) / (2 * sigma**2))
    return np.asarray(-np.log(kernel.mean(axis=1)).sum(axis=0), np.float64)


def likelihood(cells: NDArray[np.float32], sigma: float) -> Array:
    """Proposition 2 for cells (P, n, d): (n,)."""
    return np.asarray(np.exp(-_pair_distances(cells) / (2 * sigma**2)).sum(axis=(0, 1)), np.float64)


def _pair_distances(cells: NDArray[np.float32]) -> Array:
    """Squared distances (P, P, n)."""
    squares = (cells.astype(np.float64) ** 2).sum(axis=2)
    inner = np.einsum("ind,jnd->ijn", cells, cells, dtype=np.float64)
    return np.asarray(np.maximum(squares[:, None] + squares[None] - 2 * inner, 0.0))


def paper_scores(
    cells: NDArray[np.float32], rewards: NDArray[np.float64], alpha: float, sigma: float
) -> Scores:
    """Raw scores of the paper. cells (P, n, d) in model units, rewards (P, n) in [0, 1]."""
    explore, likeli = exploration(cells, sigma), likelihood(cells, sigma)
    reward = rewards.sum(axis=0)
    exploit = likeli * reward
    return Scores(
        total=alpha * explore + (1 - alpha) * exploit,
        probability=rewards.mean(axis=0),
        doubt=np.zeros(len(reward)),
        alpha=alpha,
        terms=Terms(explore, likeli, reward, exploit),
    )


def normalised(scores: Scores, available: NDArray[np.bool_]) -> Array:
    r"""Eq. 12 of terms that each have a maximum of 1 over the available cells, (n,).

    The raw sums are of different size: with P particles exploration reaches
    :math:`P^2`, exploitation :math:`P^3`, so that Eq. 12 hardly ever explores.
    """
    parts = []
    for term in (scores.exploration, scores.exploitation):
        most = float(term[available].max(initial=0.0))
        parts.append(term / most if most > 0 else term)
    return np.asarray(scores.alpha * parts[0] + (1 - scores.alpha) * parts[1], np.float64)


def best_cells(total: Array, available: NDArray[np.bool_], n: int = 1) -> list[int]:
    """Flat indices of the n best available cells, best first, ties in the order of the cells.

    Cells that are not available are never ranked, so they cannot win, whatever the scores;
    a NaN counts as the worst score of all.
    """
    candidates = np.flatnonzero(available)
    best_first = -np.nan_to_num(total[candidates], nan=-np.inf)
    if 0 < n < len(candidates):  # only those that can be among the n are put in order
        limit = np.partition(best_first, n - 1)[n - 1]
        near = np.flatnonzero(best_first <= limit)
        candidates, best_first = candidates[near], best_first[near]
    order = np.argsort(best_first, kind="stable")
    return [int(i) for i in candidates[order[:n]]]
