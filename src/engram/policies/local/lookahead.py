r"""The look-ahead of the process in a large area.

``engram.spatial.expected_finds`` gives the measurements after the next one to the most probable
cells of the whole area. How much a measurement of cell x adds to that is told by its neighbourhood
N(x) alone once it is known what a measurement is worth elsewhere: the price :math:`\tau`, the
probability of the last cell that is visited if all go to the most probable ones,

.. math::  v(x) = p_x + \gamma\, \Bigl( \sum_y P(y) \sum_{z \in N(x)}
           \bigl[(p(z \mid x, y) - \tau)_+ - (p(z) - \tau)_+\bigr] \Bigr) ,

with x itself among z: once it is visited it has nothing more to give. This is the derivative of the
sum over the best cells, and never below its change. The sum that all cells share is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engram.blocks import Array, as_array, field_of
from engram.detection import noise_of
from engram.policies.local.process import BINS, LocalProcessBelief
from engram.policies.process import checked_discount
from engram.policies.ranking import Progress, Ranking

LIKELY, DOUBTFUL = 20, 10
"""Cells whose look-ahead is computed: by probability, and by doubt; of those around which nothing
is known, which are all alike, few are enough."""


class LocalLookAhead:
    """Ranks by the finds to be expected within the remaining budget.

    discount : what a find after the next measurement counts
    """

    def __init__(self, discount: float = 0.6) -> None:
        self.discount = checked_discount(discount)

    def order(
        self, belief: LocalProcessBelief, available: NDArray[np.bool_], progress: Progress
    ) -> Ranking:
        mean, doubt = field_of(belief.mean), field_of(belief.doubt)
        others = min(progress.left, int(np.count_nonzero(available))) - 1
        chance = mean.mapped(lambda a: np.asarray(np.clip(a, 0.0, 1.0)))
        if others < 1:
            return Ranking(as_array(chance.with_ties()), "look-ahead")
        price, discount = price_of(belief.counts, others), self.discount
        best = {
            index
            for term, count in ((mean, LIKELY), (doubt, DOUBTFUL))
            for index, _ in term.with_ties().best(available, count)
        }
        moved = self._values(belief, sorted(best), available, progress, price)
        rest = chance.mapped(lambda p: np.asarray(p - discount * np.maximum(p - price, 0.0)))
        return Ranking(as_array(rest.with_ties(moved)), "look-ahead")

    def _values(
        self,
        belief: LocalProcessBelief,
        cells: list[int],
        available: NDArray[np.bool_],
        progress: Progress,
        price: float,
    ) -> dict[int, float]:
        """v of some cells, patch by patch; cells around which nothing is known share theirs."""
        groups: dict[int, list[int]] = {}
        shared: dict[tuple[int, ...], list[int]] = {}
        for x in cells:
            blank = belief.response.blank_at(x, belief, available)
            if blank is not None:
                shared.setdefault(blank, []).append(x)
            if blank is None or len(shared[blank]) == 1:
                groups.setdefault(belief.response.home(x), []).append(x)
        found: dict[int, float] = {}
        for number, members in groups.items():
            values = self._of_patch(belief, number, members, available, progress, price)
            found |= dict(zip(members, values.tolist(), strict=True))
        for alike in shared.values():
            found |= dict.fromkeys(alike, found[alike[0]])
        return found

    def _of_patch(
        self,
        belief: LocalProcessBelief,
        number: int,
        cells: list[int],
        available: NDArray[np.bool_],
        progress: Progress,
        price: float,
    ) -> Array:
        """(k,) v of k cells of one patch."""
        expected = field_of(belief.mean)
        seen, at = progress.detection, np.array(cells)
        (rows, cols), response = belief.response.around(number, at)
        blank = response
        if seen.chance < 1:
            _, blank = belief.response.around(number, at, float(noise_of(seen.log_odds(False))))
        mean = expected.region(rows, cols)
        row, col = np.divmod(at, expected.layout.cols)
        own = mean[row - rows.start, col - cols.start]
        free = available.reshape(-1, expected.layout.cols)[rows, cols]
        p = np.clip(own, 0.0, 1.0)
        found = seen.chance * p
        kept = np.divide(p - found, 1 - found, out=np.zeros(len(p)), where=found < 1)
        gain = (1 - found) * np.maximum(kept - price, 0.0)
        now = _above(mean, price) * free
        gain -= now.sum()
        others = np.broadcast_to(free, response.shape).copy()
        others[np.arange(len(at)), row - rows.start, col - cols.start] = False
        for outcome, chance, moved in ((1.0, found, response), (0.0, 1 - found, blank)):
            then = _above(mean + moved * (outcome - own)[:, None, None], price)
            gain += chance * (then * others).sum(axis=(1, 2))
        return np.asarray(p + self.discount * gain)


def _above(mean: Array, price: float) -> Array:
    """What cells promise beyond the price."""
    return np.asarray(np.clip(mean, price, 1.0) - price)


def price_of(counts: NDArray[np.intp], others: int) -> float:
    """The probability of the last of ``others`` cells, the most probable first, to a step of the
    counts (BINS,)."""
    above = np.cumsum(counts[::-1])
    step = BINS - 1 - int(np.searchsorted(above, others))
    return max(step, 0) / (BINS - 1)
