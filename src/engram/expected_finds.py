"""The value of a next measurement: the finds to be expected within the budget that is left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def expected_finds(
    mean: Array,
    response: Array,
    cells: NDArray[np.intp],
    available: NDArray[np.bool_],
    left: int,
    discount: float = 1.0,
    *,
    found: float = 1.0,
    blank: Array | None = None,
) -> Array:
    r"""Finds to be expected from ``left`` measurements if some cell is the next of them.

    Looks past the next measurement: after cell x has shown y, the other ``left - 1`` go to
    the most probable cells, all at once, and count ``discount`` :math:`\gamma` each,

    .. math::  v(x) = p_x + \gamma \sum_{y \in \{0, 1\}} P(y)\, \max_{|S| = left - 1}
               \sum_{z \in S} p(z \mid x, y) , \quad p = \mathrm{clip}(mean, 0, 1) .

    This is exact for ``cells``, whose ``response`` (len(cells), n_cells) is given; for the
    others the measurement counts as if it told nothing. mean, available : (n_cells,)

    A visit finds a target that is there with the chance ``found``: then v counts targets, each
    weighed by nothing (the chance is the same for all), P(1) is ``found`` p, ``blank`` is the
    response to a visit that finds nothing, and the cell keeps what Bayes' rule leaves it.
    """
    p = np.clip(mean, 0.0, 1.0)
    others = min(left, int(available.sum())) - 1
    if others < 1:
        return np.asarray(p)
    ranked = np.sort(p[available])[::-1]
    future = ranked[:others].sum() + np.minimum(p, ranked[others]) - p
    future[cells] = 0.0
    there = found * p[cells]
    missed = p[cells] - there
    kept = np.divide(missed, 1 - there, out=np.zeros(len(cells)), where=there < 1)
    nothing = response if blank is None else blank
    for outcome, chance, moved, own in (
        (1.0, there, response, 0.0),
        (0.0, 1 - there, nothing, kept),
    ):
        after = np.clip(mean + moved * (outcome - mean[cells])[:, None], 0.0, 1.0)
        after[:, ~available] = 0.0
        after[np.arange(len(cells)), cells] = own
        after.partition(after.shape[1] - others, axis=1)
        future[cells] += chance * after[:, -others:].sum(axis=1)
    return np.asarray(p + discount * future)
