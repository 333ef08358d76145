r"""The default engine once more, by the book: what every stage has to come out as, exactly.

The memory knows a Gaussian field, so its posterior is linear algebra. Everything else is written
out here cell by cell from the formulas, with nothing of the engine's own code: least squares for
the reward, the closed form of the process, rings counted by hand, an optimiser for h, sums for
the mixture. ``Reference`` replays a search and keeps each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from engram import Grid, Observation, Task
from engram.policies.hyperprior import usual
from engram.spatial import Hyperparameters
from engram.testing import Gaussian, squared_exponential

Array = NDArray[np.float64]
Cell = tuple[int, int]

SIDE = 6
CELLS = SIDE * SIDE
PROCESS = Hyperparameters(variance=0.25, length=2.0, noise=0.02)
RADII = ((0.0, 1.1), (1.1, 2.3), (2.3, 3.7), (3.7, 5.2))


def lopsided() -> Gaussian:
    """A field that looks different from every side: brighter and rougher to the south-east."""
    rows, cols = np.divmod(np.arange(CELLS), SIDE)
    scale = 0.2 + 0.03 * cols + 0.01 * rows
    cov = squared_exponential(SIDE, SIDE, 1.5, nugget=1e-2) * np.outer(scale, scale)
    return Gaussian(-0.3 + 0.05 * cols + 0.02 * rows, cov)


def field_task(seed: int, *, noise: float = 0.0) -> Task:
    """An area drawn from that field; cells brighter than -0.05 (model units) are target."""
    image = lopsided().sample(1, np.random.default_rng(seed))[0].clip(-1, 1).reshape(SIDE, SIDE)
    content = ((image + 1) / 2)[None].astype(np.float32)
    return Task("field", Grid(SIDE, SIDE), content, image > -0.05, noise=noise)


def turned_fields(prior: Gaussian) -> list[Gaussian]:
    """The field as it would be in an area turned and mirrored in all eight ways."""
    index = np.arange(CELLS).reshape(SIDE, SIDE)
    ways = [np.rot90(flipped, k) for k in range(4) for flipped in (index, index[::-1])]
    return [Gaussian(prior.mean[w.ravel()], prior.cov[np.ix_(w.ravel(), w.ravel())]) for w in ways]


def sigmoid(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-odds)))


def odds_of(p: Array, floor: float) -> Array:
    p = np.clip(p, floor, 1 - floor)
    return np.asarray(np.log(p / (1 - p)))


def chance_of(hit: float, p: float, floor: float) -> float:
    """Log of what was foretold of an outcome."""
    p = min(max(p, floor), 1 - floor)
    return float(np.log(p) if hit else np.log(1 - p))


@dataclass(frozen=True, eq=False)
class Stage:
    """What the engine has to believe before a measurement; all but the last three (n_cells,).

    affine : slope and bias of the reward;  mixture : weight of the memory
    """

    mean: Array
    own: Array
    process: Array
    doubt: Array
    tilted: Array
    probability: Array
    features: Array
    affine: Array
    mixture: float


class Reference:
    """Replays a search of ``task`` along ``cells``; h is updated after the times ``due``."""

    def __init__(
        self, task: Task, cells: Sequence[Cell], *, due: Sequence[int] = (), views: bool = True
    ) -> None:
        self.task, self.prior = task, lopsided()
        self.fields = turned_fields(self.prior) if views else [self.prior]
        self.birth, covariance = usual().mean, usual().covariance
        self.precision = np.linalg.inv(covariance)
        self.h = self.learnt = self.birth
        self.evidence: list[tuple[float, float]] = []
        self.rows: list[Array] = []
        self.hits: list[float] = []
        self.gains: list[float] = []
        self.updates: list[dict[str, float]] = []
        self.seen: list[Observation] = []
        self.stages = [self._stage()]
        for cell in cells:
            self._measure(task.measure(cell))
            if len(self.seen) in due:
                self._update()
            self.stages.append(self._stage())

    @property
    def index(self) -> list[int]:
        return [self.task.grid.index(item.cell) for item in self.seen]

    @property
    def content(self) -> Array:
        """(t,) measured contents in model units."""
        return np.array([2 * float(item.content[0, 0, 0]) - 1 for item in self.seen])

    # -- beliefs ---------------------------------------------------------------------------

    def _stage(self) -> Stage:
        mean = self.posterior_mean()
        affine = self._affine()
        own = np.clip(affine[0] * mean + affine[1], 0, 1)
        process, doubt = self._process()
        features = self._features(own, process, doubt)
        tilted = sigmoid(features[:, 0] + features @ self.h)
        mixture = self._mixture()
        p = mixture * tilted + (1 - mixture) * process
        return Stage(mean, own, process, doubt, tilted, p, features, affine, mixture)

    def posterior_mean(self) -> Array:
        """Mean over the turned fields; noisy pixels are drawn to what was measured once more."""
        measured = np.zeros(CELLS, bool)
        measured[self.index] = True
        values, sigma = np.zeros(CELLS), np.full(CELLS, 2 * self.task.noise)
        values[self.index] = self.content
        exact = np.maximum(sigma, 1e-4)
        means = [field.given(values, exact, measured).mean for field in self.fields]
        pull = measured / (1 + sigma**2)
        return np.mean([mean + pull * (values - mean) for mean in means], axis=0)

    def _affine(self) -> Array:
        """Least squares with half an invented measurement for each of slope and bias 1/2."""
        root = np.sqrt(0.5)
        design = np.vstack([np.column_stack([self.content, np.ones(len(self.seen))]),
                            root * np.eye(2)])  # fmt: skip
        wanted = np.append(self._outcomes(), root * np.array([0.5, 0.5]))
        return np.asarray(np.linalg.lstsq(design, wanted, rcond=None)[0])

    def _outcomes(self) -> Array:
        return np.array([float(item.outcome > 0) for item in self.seen])

    def _process(self) -> tuple[Array, Array]:
        """Chance of target and doubt of a Matern process around a level of 0.2 +- 0.1."""
        places = np.stack(np.divmod(np.arange(CELLS), SIDE), axis=1)
        far = np.sqrt(3) * np.linalg.norm(places[:, None] - places[None], axis=2) / PROCESS.length
        cov = PROCESS.variance * (1 + far) * np.exp(-far) + 0.1**2
        noise = np.full(CELLS, np.sqrt(PROCESS.noise))
        measured, values = np.zeros(CELLS, bool), np.zeros(CELLS)
        measured[self.index], values[self.index] = True, self._outcomes()
        belief = Gaussian(np.full(CELLS, 0.2), cov).given(values, noise, measured)
        return np.clip(belief.mean, 0, 1), np.sqrt(np.diag(belief.cov).clip(0))

    def _features(self, own: Array, process: Array, doubt: Array) -> Array:
        table = np.zeros((CELLS, 12))
        table[:, 0], table[:, 1] = odds_of(own, 0.01), odds_of(process, 0.03)
        table[:, 2], table[:, 3] = 2 * doubt, 1
        offsets = [np.hypot(r, c) for r in range(-6, 7) for c in range(-6, 7)]
        for k, (inner, outer) in enumerate(RADII):
            size = sum(inner < far <= outer for far in offsets)
            for q in range(CELLS):
                for item in self.seen:
                    r, c = self.task.grid.at(q)
                    far = np.hypot(item.cell[0] - r, item.cell[1] - c)
                    if inner < far <= outer:
                        table[q, 4 + 2 * k + int(item.outcome == 0)] += 4 / size
        return table

    def _mixture(self) -> float:
        """Weight of the memory, which starts e^2 ahead; evidence fades by 0.98 a measurement."""
        logs = np.array([2.0, 0.0])
        for i, pair in enumerate(self.evidence):
            logs = logs + 0.98 ** (len(self.evidence) - 1 - i) * np.array(pair)
        return float(1 / (1 + np.exp(logs[1] - logs[0])))

    # -- learning --------------------------------------------------------------------------

    def _measure(self, item: Observation) -> None:
        """Everything is judged by what was believed before the outcome."""
        stage, q = self.stages[-1], self.task.grid.index(item.cell)
        hit = float(item.outcome > 0)
        self.evidence.append(
            (chance_of(hit, stage.tilted[q], 0.02), chance_of(hit, stage.process[q], 0.02))
        )
        row = stage.features[q]
        foretold = [float(sigmoid(row[0] + row @ zeta)) for zeta in (self.learnt, self.birth)]
        self.gains.append(chance_of(hit, foretold[0], 0.01) - chance_of(hit, foretold[1], 0.01))
        self.rows.append(row)
        self.hits.append(hit)
        self.seen.append(item)

    def penalised(self, zeta: Array) -> float:
        """What the M-step maximises, a measurement."""
        rows, hits = np.array(self.rows), np.array(self.hits)
        odds, off = rows[:, 0] + rows @ zeta, zeta - self.birth
        log = (hits * odds - np.logaddexp(0, odds)).sum() - off @ self.precision @ off / 2
        return float(log / len(hits))

    def _update(self) -> None:
        before = self.penalised(self.learnt)
        best = minimize(
            lambda zeta: -self.penalised(zeta), self.learnt, method="BFGS", options={"gtol": 1e-9}
        )
        self.learnt = best.x
        gain = sum(self.gains[-40:])
        accepted = gain >= -1.0
        self.h = self.learnt if accepted else self.birth
        after = self.penalised(self.learnt)
        self.updates.append(
            {"t": len(self.seen), "accepted": accepted, "before": before, "after": after,
             "gain": gain}
        )  # fmt: skip

    # -- ranking ---------------------------------------------------------------------------

    def ranking(self, budget: int) -> tuple[str, Array]:
        """The rule that has to decide now, and what it ranks the cells by.

        ``look-ahead`` has values of its own, which are not given here.
        """
        stage, t = self.stages[-1], len(self.seen)
        if stage.mixture < 0.5:
            return "look-ahead", np.full(CELLS, np.nan)
        rate = min(max((sum(self._outcomes()) + 5) / (t + 10), 0.3), 0.85)
        free = np.setdiff1d(np.arange(CELLS), self.index)
        if 0 < budget - t <= 7:
            return "last", stage.probability
        if stage.probability[free].max() >= rate:
            return "likely", stage.probability
        return "frontier", stage.probability + 2.5 * rate * stage.doubt
