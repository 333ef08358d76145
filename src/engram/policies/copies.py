r"""Copies: what was outlined once is recognised where the next one begins.

Targets of one area are often alike: equal discs, ships of one class, burrows, letters. A search
that has outlined the first of them knows what the next one looks like, and two or three hits say
where it lies. No training tells a permanent memory of another domain this; the measurements do.

**Templates.** Connected cells that were found or are likelier target than not, with a few finds
among them, are a template: the probability :math:`T(i)` of target of its cells and of those around
it, 0 or 1 where they were measured. The fewer of them are known, the less it counts.

**E-step.** A copy of template e, turned by g (one of eight), with its corner at s, is supported by
the measurements in it with the log Bayes factor

.. math::  B_{e,g}(s) = \sum_{q \text{ measured}} \log
           \frac{p(y_q \mid T_{e,g}(q - s))}{p(y_q \mid \pi)}

against cells that hold target with probability :math:`\pi` each on their own. A find f is explained
by one copy: those that cover it share it in proportion to :math:`e^{B}`, so that copy (e, g, s)
exists with probability

.. math::  r(s) = e^{B(s)} \operatorname*{mean}_{f \in s} \frac{1}{1 + \sum_{s' \ni f} e^{B(s')}} .

Whether copies are turned against each other at all is judged by the same factors. A template says
nothing of its own cells; the others do.

**M-step.** What copies say of cells nobody has measured fills the open cells of the templates, and
the E-step is done once more: partial outlines complete each other.

All sums over places are matrix products of templates with the windows of the area.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, find_objects, label
from scipy.special import expit
from torch import Tensor

from engram.grid import Grid
from engram.observation import Observation, Observations
from engram.policies.base import log_likelihood
from engram.policies.forecast import Array
from engram.policies.mixing import DISCOUNT
from engram.policies.outlines import EIGHT, Mask, views

LEAST_FINDS = 4
"""Finds that a template must hold."""
MOST = 3
"""Templates that are used: those that are known best."""
LARGEST = 14
"""Cells a side of the largest template."""
CLEAR = 0.02
"""How sure a template is of a cell at the most: 1 - CLEAR target or blank."""
UNSURE = 4.0
"""Wrong cells to be expected at which a template counts e times less."""
CUT = 3.0
"""Wrong cells that count for a template at the border of the area, part of which may lie beyond."""
ALONE = 0.3
"""pi, the chance of target of a measured cell that no copy explains."""
CAPPED = 3.0
"""Nats that one group of finds may say on whether copies are turned."""
MOST_NATS, NEGLIGIBLE = 60.0, 1e-9
"""Bounds within which weights of copies are calculated with."""
PASSES = 2
"""E-steps."""
FAVOUR = 1.0
"""Nats by which copies start ahead of those who do not know them."""


@dataclass(frozen=True, eq=False)
class Template:
    """What copies are taken to look like.

    target : (h, w) probability of target;  counts : (h, w) cells it speaks of, its own and those
        around them
    place  : (rows, cols) where in the area that is
    weight : logarithm of how much it counts
    """

    target: Array
    counts: Mask
    place: Mask
    weight: float


def templates(p: Array, found: Mask, blank: Mask) -> list[Template]:
    """The best known objects of an area (rows, cols), best first."""
    wrong = np.where(found | blank, 0.0, np.minimum(p, 1 - p))
    parts, _ = label(((p > 0.5) | found) & ~blank, EIGHT)
    padded, made = np.pad(p, 1), []
    for number, window in enumerate(find_objects(parts), start=1):
        body = parts == number
        finds = int((found & body).sum())
        if finds < LEAST_FINDS or max(side.stop - side.start for side in window) > LARGEST:
            continue
        place = binary_dilation(body, EIGHT)
        cut = any(
            side.start == 0 or side.stop == size for side, size in zip(window, p.shape, strict=True)
        )
        unsure = float(wrong[place].sum()) + cut * CUT
        around = tuple(slice(side.start, side.stop + 2) for side in window)
        target = np.clip(padded[around], CLEAR, 1 - CLEAR)
        counts = np.pad(place, 1)[around]
        made.append(Template(target, counts, place, float(np.log(finds)) - unsure / UNSURE))
    return sorted(made, key=lambda one: -one.weight)[:MOST]


@dataclass(frozen=True, eq=False)
class Fit:
    """How a template fits in each of eight turns at every place, L = (rows + K - 1)(cols + K - 1).

    outside    : (rows, cols) 1 where the template is not itself
    log_factor : (8, L) log Bayes factor and weight of a copy, -inf where it covers no find
    finds      : (8, L) how many finds it covers
    target, counts, body : (8, K K) of its cells: chance of target, whether it speaks of them, and
        whether they are likelier target than not
    """

    outside: Tensor
    log_factor: Tensor
    finds: Tensor
    target: Tensor
    counts: Tensor
    body: Tensor

    def covered(self, cells: Tensor) -> Tensor:
        """(8, L) sum of a map (rows, cols), as it is outside, over the body of every copy."""
        return self.body @ _windows((cells * self.outside)[None], self.side)

    def spread(self, weight: Tensor, *kernels: Tensor) -> Tensor:
        """(n, rows, cols) sums of n kernels (8, K K) over all copies, with weights (8, L)."""
        columns = torch.cat(kernels, dim=1).T @ weight
        shape, side = self.outside.shape, self.side
        return F.fold(columns[None], shape, side, padding=side - 1)[0]

    @property
    def side(self) -> int:
        """K, cells a side of the window in which the template fits in all turns."""
        return math.isqrt(self.body.shape[1])


def _windows(maps: Tensor, side: int) -> Tensor:
    """(n side side, L) what maps (n, rows, cols) show in a window at every place."""
    return F.unfold(maps[None], side, padding=side - 1)[0]


def _fit(template: Template, found: Mask, blank: Mask, best: float) -> Fit:
    side = max(template.target.shape)
    target, counts = torch.zeros(8, side, side), torch.zeros(8, side, side)
    turned = zip(views(template.target), views(template.counts), strict=True)
    for g, (values, there) in enumerate(turned):
        height, width = values.shape
        target[g, :height, :width] = torch.from_numpy(np.where(there, values, 0.0))
        counts[g, :height, :width] = torch.from_numpy(np.ascontiguousarray(there))
    target, counts = target.flatten(1), counts.flatten(1)
    sure = target.clamp(CLEAR, 1 - CLEAR)
    hit = counts * (sure.log() - np.log(ALONE))
    miss = counts * ((1 - sure).log() - np.log(1 - ALONE))
    body = ((target > 0.5) & (counts > 0)).float()
    outside = torch.from_numpy(~template.place).float()
    maps = torch.from_numpy(np.stack([found, blank])).float() * outside
    seen = _windows(maps, side)
    finds = (body @ seen[: side * side]).round()
    factor = torch.cat([hit, miss], dim=1) @ seen + (template.weight - best)
    return Fit(outside, torch.where(finds > 0, factor, -torch.inf), finds, target, counts, body)


def straightness(fit: Fit, found: Mask) -> float:
    """Chance that copies are the same way round, by the groups of finds outside the template."""
    odds = 0.0
    parts, count = label(found & (fit.outside.numpy() > 0), EIGHT)
    for number in range(1, count + 1):
        group = torch.from_numpy(parts == number).float()
        most = fit.covered(group) > 0.5 * group.sum()
        said = torch.where(most, fit.log_factor, -torch.inf)
        straight = float(torch.logsumexp(said[0], 0))
        turned = float(torch.logsumexp(said.flatten(), 0)) - np.log(len(said))
        if np.isfinite(turned):
            odds += float(np.clip(straight - turned, -CAPPED, CAPPED))
    return float(expit(odds))


def _held(weight: Tensor) -> Tensor:
    """The same without the tiniest: numbers below the normal range slow processors down."""
    return torch.where(weight > NEGLIGIBLE, weight, 0.0)


def _e_step(
    p: Array, found: Mask, blank: Mask, straight: float | None
) -> tuple[Array, Array, float] | None:
    """(rows, cols) probability of target by copies, times how far they speak of a cell, and that;
    and the chance that copies are the same way round, if it is not known yet."""
    known = templates(p, found, blank)
    if not known:
        return None
    fits = [_fit(one, found, blank, known[0].weight) for one in known]
    straight = straightness(fits[0], found) if straight is None else straight
    ways = torch.full((8, 1), (1 - straight) / 8)
    ways[0] += straight
    factors = [_held(fit.log_factor.clamp(max=MOST_NATS).exp() * ways) for fit in fits]
    pairs = list(zip(fits, factors, strict=True))
    claims = torch.zeros(p.shape)
    for fit, factor in pairs:
        claims += fit.spread(factor, fit.body)[0] * fit.outside
    share = torch.from_numpy(found).float() / (1 + claims)
    both = torch.zeros(2, *p.shape)
    for fit, factor in pairs:
        exists = _held(factor * fit.covered(share) / fit.finds.clamp(min=1.0))
        both += fit.spread(exists, fit.target, fit.counts)
    target, counts = (both / both[1].clamp(min=1.0)).double().numpy()
    return target, counts, straight


@torch.inference_mode()
def by_copies(p: Array, found: Mask, blank: Mask) -> tuple[Array, Mask]:
    """(rows, cols) probability of target as copies have it, and the cells they speak of.

    p : (rows, cols) as it is believed without them;  found, blank : what was measured
    """
    p = np.where(found, 1.0, np.where(blank, 0.0, p))
    believed, speak, straight = p, np.zeros(p.shape, bool), None
    for _ in range(PASSES):
        said = _e_step(believed, found, blank, straight)
        if said is None:
            break
        target, counts, straight = said
        speak = (counts > CLEAR) & ~found & ~blank
        believed = np.where(speak, np.clip(target + (1 - counts) * p, 0.0, 1.0), p)
    return believed, speak


@dataclass(frozen=True, eq=False)
class Copied:
    """What is believed of every cell with and without copies.

    probability : (n_cells,) of both together;  copies, others : (n_cells,) of each
    speak       : (n_cells,) cells that copies speak of;  weight : what they count
    """

    probability: Array
    copies: Array
    others: Array
    speak: Mask
    weight: float


class CopyForecaster:
    r"""Copies beside whatever else is believed, by how well they have predicted:

    .. math::  p = w\, p_\text{copies} + (1 - w)\, p_\text{others} , \qquad
               w = \sigma\Bigl(f + \sum_i \lambda^{t - i}
                   \log \frac{p_\text{copies}(y_i)}{p_\text{others}(y_i)}\Bigr) ,

    each outcome predicted before it was seen, in cells that copies speak of.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._gains: list[float] = []

    @property
    def weight(self) -> float:
        """w."""
        age = np.arange(len(self._gains))[::-1]
        return float(expit(FAVOUR + np.sum(np.array(self._gains) * DISCOUNT**age)))

    def belief(self, others: Array, observations: Observations) -> Copied:
        """What copies change in what is believed (n_cells,)."""
        shape = (self.grid.rows, self.grid.cols)
        found: NDArray[np.bool_] = np.zeros(self.grid.n_cells, bool)
        for item in observations:
            found[self.grid.index(item.cell)] = item.outcome > 0
        blank = observations.measured & ~found
        table, cells = by_copies(others.reshape(shape), found.reshape(shape), blank.reshape(shape))
        speak, w = cells.ravel(), self.weight
        copies = np.where(speak, table.ravel(), others)
        both = np.where(speak, w * copies + (1 - w) * others, others)
        return Copied(both, copies, others, speak, w)

    def learn(self, before: Copied, new: Sequence[Observation]) -> None:
        """Score what was said before these outcomes."""
        for item in new:
            cell, hit = self.grid.index(item.cell), float(item.outcome > 0)
            ours, theirs = (
                log_likelihood(hit, float(p[cell]), 0.02) for p in (before.copies, before.others)
            )
            self._gains.append(ours - theirs)

    def state(self) -> dict[str, Tensor]:
        return {"copies": torch.tensor(self._gains, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._gains = state["copies"].tolist()
