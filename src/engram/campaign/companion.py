r"""What a plain spatial model would have forecast, for comparison with the policy.

The model is the Gaussian process of ``engram.spatial``. What is needed of it is one number per
measurement, its chance of target given the measurements before it,

.. math::  \mathbb E[y_i \mid y_S] = \mu + k_{iS} (K_{SS} + s I)^{-1} (y_S - \mu),

not a map of the area after each. S are the ``NEAREST`` of the measurements known then, and the
process's terms are learnt from the first ``LEARNT``: what a forecast costs does not grow with
the log. Up to ``NEAREST`` measurements the forecasts are those of policy ``gp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram._version import __version__
from engram.campaign.artifacts import Artifacts
from engram.campaign.state import State
from engram.grid import Grid
from engram.observation import Observation
from engram.policies.base import log_likelihood
from engram.spatial import MEAN, MEAN_SD, Hyperparameters, SpatialModel, last_refit

Array = NDArray[np.float64]

NEAREST = 64
"""Measurements a forecast is made from."""

MANY = 1_000_000
"""Pairs of measurements beyond which neighbours are found by a tree."""

LEARNT = 128
"""Measurements from which the process's terms are learnt."""


def spatial_evidence(state: State, folder: Path | None) -> list[float]:
    """Log-likelihood of every outcome in force, given those told before it.

    ``folder`` is the campaign's; what was computed there before is not computed again.
    """
    known = None if folder is None else Artifacts(folder / "spatial")
    keys = state.keys_of(__version__, f"spatial {NEAREST} {LEARNT}", "")
    evidence: list[float] = []
    groups, done, terms = state.groups(), 0, None
    position = None if known is None else known.newest(keys)
    if known is not None and position is not None:
        loaded = known.load(keys[position])
        if loaded is not None:
            done = position
            evidence = loaded[0]["evidence"].tolist()
            terms = Hyperparameters(*loaded[0]["terms"].tolist())
    process = _Process(state.grid, [o for group in groups[:done] for o in group], terms)
    for group in groups[done:]:
        evidence += process.observe(group)
    if known is not None and done < len(groups):
        arrays = {"evidence": np.array(evidence), "terms": np.array(astuple(process.terms()))}
        known.save(keys[-1], arrays, "")
        known.tidy(keys)
    return evidence


class _Process:
    """The process given the measurements so far; ``terms`` are theirs where they are known."""

    def __init__(self, grid: Grid, seen: list[Observation], terms: Hyperparameters | None) -> None:
        self._grid, self._terms = grid, terms
        self._model = SpatialModel(grid)
        self._learnt = last_refit(min(len(seen), LEARNT)) if terms is not None else -1
        self._cells = [grid.index(o.cell) for o in seen]
        self._values = [o.outcome for o in seen]

    def terms(self) -> Hyperparameters:
        """What the process has learnt by now."""
        anchor = last_refit(min(len(self._values), LEARNT))
        if self._terms is None or anchor != self._learnt:
            cells, values = np.array(self._cells[:anchor], np.intp), np.array(self._values[:anchor])
            learnt = self._model.learnt(cells, values) if anchor else self._model.hyperparameters
            self._terms, self._learnt = learnt, anchor
        return self._terms

    def observe(self, group: list[Observation]) -> list[float]:
        """Evidence of measurements that were told together; then they are known."""
        values = np.array(self._values)
        share = (values.sum() + 1) / ((values > 0).sum() + 1)
        near = self._near(group)
        chances = [
            float(np.clip(self._mean(o, values, some) / share, 0.0, 1.0))
            for o, some in zip(group, near, strict=True)
        ]
        for item in group:
            self._cells.append(self._grid.index(item.cell))
            self._values.append(item.outcome)
        return [
            log_likelihood(float(o.outcome > 0), o.reported(p))
            for o, p in zip(group, chances, strict=True)
        ]

    def _near(self, group: list[Observation]) -> Iterator[NDArray[np.intp]]:
        """(at most NEAREST,) places in the log of the measurements nearest to each of a group."""
        geometry, cells = self._grid.geometry, np.array(self._cells, np.intp)
        if len(cells) * len(group) > MANY:
            from scipy.spatial import cKDTree

            places = geometry.places(np.array([self._grid.index(o.cell) for o in group], np.intp))
            yield from cKDTree(geometry.places(cells)).query(places, min(NEAREST, len(cells)))[1]
            return
        for item in group:
            apart = geometry.distances(item.cell, cells)
            some = np.argpartition(apart, NEAREST)[:NEAREST] if len(apart) > NEAREST else None
            yield np.arange(len(apart)) if some is None else some

    def _mean(self, item: Observation, values: Array, near: NDArray[np.intp]) -> float:
        from scipy.linalg import cho_factor, cho_solve

        terms = self.terms()
        if not len(values):
            return MEAN
        cells = np.array([self._cells[i] for i in near], np.intp)
        apart = self._grid.geometry.distances(item.cell, cells)
        between = self._grid.geometry.between(cells)
        covariance = _shared(between, terms) + terms.noise * np.eye(len(between))
        solved = cho_solve(cho_factor(covariance, check_finite=False), values[near] - MEAN)
        return MEAN + float(_shared(apart, terms) @ solved)


def _shared(apart: Array, terms: Hyperparameters) -> Array:
    """Covariance of m + f at these distances: Matern 3/2 around an uncertain mean."""
    scaled = np.sqrt(3.0) * apart / terms.length
    return np.asarray(terms.variance * (1 + scaled) * np.exp(-scaled) + MEAN_SD**2)
