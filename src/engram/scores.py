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

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scores:
    """All terms for every cell, each (rows * cols,); ``alpha`` is one number.

    probability is the model's belief that the cell contains target, in [0, 1].
    """

    exploration: Array
    likelihood: Array
    reward: Array
    exploitation: Array
    total: Array
    probability: Array
    alpha: float

    def of(self, index: int) -> dict[str, float]:
        """Every term for one cell."""
        out = {"alpha": float(self.alpha)}
        for field in fields(self):
            if field.name != "alpha":
                out[field.name] = float(getattr(self, field.name)[index])
        return out


def mixes(terms: Mapping[str, float]) -> bool:
    """Whether the total of a cell (``Scores.of``) is Eq. 12 of its other terms."""
    weight = terms["alpha"]
    total = weight * terms["exploration"] + (1 - weight) * terms["exploitation"]
    return bool(np.isclose(terms["total"], total))


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
        exploration=explore,
        likelihood=likeli,
        reward=reward,
        exploitation=exploit,
        total=alpha * explore + (1 - alpha) * exploit,
        probability=rewards.mean(axis=0),
        alpha=alpha,
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
    ranked = np.nan_to_num(total[candidates], nan=-np.inf)
    order = np.argsort(-ranked, kind="stable")
    return [int(i) for i in candidates[order[:n]]]
