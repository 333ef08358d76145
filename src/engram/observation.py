"""One measured cell, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.detection import PERFECT, Detection, doubtful, noise_of, settles
from engram.errors import InputError, shown
from engram.grid import Cell, Grid

NOISIEST = 1e6
"""Standard deviations of a content's error are at most so many times the grid's range."""


@dataclass(frozen=True, eq=False)
class Observation:
    """One visit to a cell.

    content   : (C, h, w) float32 in the grid's range
    outcome   : share of the cell that is target, as it was reported, in [0, 1]
    noise     : standard deviation of the content's error, in content units (0 = exact)
    detection : how far this visit can be trusted; None = as all visits of the search
    share     : how much of the cell is target where ``outcome`` only says whether it is (through a
        lens); None = the outcome
    """

    cell: Cell
    content: NDArray[np.float32]
    outcome: float
    noise: float = 0.0
    detection: Detection | None = None
    share: float | None = None

    def reported(self, probability: float) -> float:
        """The probability that this visit reports target, for that of target."""
        return float((self.detection or PERFECT).reported(probability))

    @classmethod
    def checked(
        cls,
        grid: Grid,
        cell: Cell,
        content: ArrayLike,
        outcome: float,
        noise: float = 0.0,
        detection: Detection | None = None,
    ) -> Observation:
        """Build an observation from user input; every fault is named."""
        grid.index(cell)
        where = f"cell ({cell[0]}, {cell[1]})"
        outcome = _checked_number(outcome, "outcome", where, 0.0, 1.0)
        low, high = grid.range
        noise = _checked_number(noise, "noise", where, 0.0, NOISIEST * (high - low))
        place = (int(cell[0]), int(cell[1]))
        return cls(place, _checked_content(grid, content, where), outcome, noise, detection)


def _checked_number(value: float, name: str, where: str, low: float, high: float) -> float:
    try:
        number = float(value) if np.asarray(value).dtype.kind in "buif" else np.nan
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number) or not low <= number <= high:
        raise InputError(f"{where}: {name}={shown(value)} is not a number in [{low:g}, {high:g}]")
    return number


def _checked_content(grid: Grid, content: ArrayLike, where: str) -> NDArray[np.float32]:
    c, h, w = grid.content_shape
    try:
        with np.errstate(over="ignore"):  # too large for float32 is infinite, refused below
            given = np.asarray(content)
            real = given.dtype.kind in "buif"
            array = np.asarray(given, np.float32) if real else given
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: content is not an array of numbers: {error}") from error
    if not real:
        raise InputError(f"{where}: content holds {given.dtype}; give an array of real numbers")
    if array.size == 1 and c * h * w == 1:
        array = array.reshape(1, 1, 1)
    elif array.shape == (h, w) and c == 1:
        array = array[None]
    elif array.shape == (h, w, c) and array.shape != (c, h, w):
        array = array.transpose(2, 0, 1)
    elif array.shape == (c,) and h * w == 1:
        array = array.reshape(c, 1, 1)
    if array.shape != (c, h, w):
        raise InputError(
            f"{where}: content has shape {array.shape}; a cell holds {h}x{w} pixels of {c} "
            f"channel(s), so give ({h}, {w}, {c}) or ({c}, {h}, {w})"
        )
    if not np.isfinite(array).all():
        raise InputError(
            f"{where}: content has NaN or infinite values; measure again or mark it failed"
        )
    low, high = grid.range
    slack = 1e-6 * (high - low)
    if array.min() < low - slack or array.max() > high + slack:
        raise InputError(
            f"{where}: content runs from {array.min():g} to {array.max():g}, outside the grid's "
            f"range [{low:g}, {high:g}]; rescale it or create the grid with that range"
        )
    return np.ascontiguousarray(np.clip(array, low, high))


class Images:
    """What visits showed: mask, values and noise of :class:`Observations`."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.mask = np.zeros((grid.height, grid.width), np.float32)
        self.noise = np.zeros((grid.height, grid.width), np.float32)
        self.values = np.zeros((grid.channels, grid.height, grid.width), np.float32)

    def show(self, item: Observation) -> None:
        """Put one visit in the place of what was shown of its cell."""
        rows, cols = self.grid.block(item.cell)
        self.mask[rows, cols] = 1.0
        self.noise[rows, cols] = item.noise
        self.values[:, rows, cols] = item.content


class Observations:
    """All visits of one search, in order, and as images.

    detection : how far a visit can be trusted that does not say so itself
    mask      : (H, W) float32, 1 where measured
    values    : (C, H, W) float32 in the grid's range, 0 where not measured
    noise     : (H, W) float32 standard deviation in content units
    measured  : (n_cells,) cells that were visited
    settled   : (n_cells,) those of which nothing more is to be learnt: what a visit that sees
        everything has seen, a find that cannot be a false alarm, and finds worth a Bayes factor of
        ``detection.SURE`` where they can
    """

    def __init__(
        self, grid: Grid, items: Iterable[Observation] = (), detection: Detection = PERFECT
    ) -> None:
        self.grid, self.detection = grid, detection
        self.items: list[Observation] = []
        self.measured = np.zeros(grid.n_cells, bool)
        self.settled = np.zeros(grid.n_cells, bool)
        self._log_odds: dict[int, float] = {}
        self._shown: dict[int, Observation] = {}
        self._images: Images | None = None
        self._indices: list[int] = []
        self._outcomes: list[float] = []
        self._own_detection: list[int] = []
        for item in items:
            self.add(item)

    @property
    def images(self) -> Images:
        """What the visits showed, made when it is first looked at: it is as large as the area."""
        if self._images is None:
            self._images = Images(self.grid)
            for item in self._shown.values():
                self._images.show(item)
        return self._images

    @property
    def mask(self) -> NDArray[np.float32]:
        return self.images.mask

    @property
    def noise(self) -> NDArray[np.float32]:
        return self.images.noise

    @property
    def values(self) -> NDArray[np.float32]:
        return self.images.values

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.items)

    def check_new(self, cell: Cell) -> int:
        """Flat index of a cell that may still be measured."""
        index = self.grid.index(cell)
        if self.settled[index]:
            raise InputError(
                f"cell ({cell[0]}, {cell[1]}) was measured already; correct it instead"
            )
        if self.grid.closed.flat[index]:
            raise InputError(f"cell ({cell[0]}, {cell[1]}) is closed; open it first")
        return index

    def check(self, item: Observation) -> int:
        """Flat index of an observation that may be added; also one built by hand is checked."""
        index = self.check_new(item.cell)
        if np.shape(item.content) != self.grid.content_shape:
            raise InputError(
                f"cell ({item.cell[0]}, {item.cell[1]}): content has shape "
                f"{np.shape(item.content)}, a cell holds {self.grid.content_shape}; "
                "Observation.checked brings it into form"
            )
        Observation.checked(self.grid, item.cell, item.content, item.outcome, item.noise)
        return index

    def add(self, item: Observation) -> None:
        """Append one visit; a cell outside, closed or settled is refused."""
        self._put(item, self.check(item))

    def _put(self, item: Observation, index: int) -> None:
        """Append a visit of the cell with this index that was checked."""
        if not (self.measured[index] and item.outcome == 0 and self._found(index)):
            self._shown[index] = item
            if self._images is not None:
                self._images.show(item)
        self.measured[index] = True
        own = (item.detection or self.detection).at_first
        known = self._log_odds.get(index, 0.0) + own.log_odds(item.outcome > 0)
        self._log_odds[index] = known
        self.settled[index] = settles(known)
        self.items.append(item)
        if item.detection is not None:
            self._own_detection.append(len(self._indices))
        self._indices.append(index)
        self._outcomes.append(item.outcome)

    def open_after(self, visits: Iterable[Observation]) -> bool:
        """Whether a cell may be visited once more after these further visits of it."""
        visits = list(visits)
        known = [item for item in self.items if item.cell == visits[0].cell]
        alone = Observations(self.grid, known, self.detection)
        for item in visits:
            if alone.settled[self.grid.index(item.cell)]:
                return False
            alone.add(item)
        return not alone.settled[self.grid.index(visits[0].cell)]

    def _found(self, index: int) -> bool:
        """Whether a visit reported target: what it showed is kept when a later one is blank."""
        cell = self.grid.at(index)
        return any(item.cell == cell and item.outcome > 0 for item in self.items)

    def detection_of(self, item: Observation) -> Detection:
        """How far a visit can be trusted."""
        return self.detection if item.detection is None else item.detection

    def resolved(self, item: Observation) -> Observation:
        """A visit that says itself how far it can be trusted, as it is believed now."""
        return replace(item, detection=self.detection_of(item))

    @property
    def available(self) -> NDArray[np.bool_]:
        """(rows * cols,) True for open cells that are not settled."""
        out = np.logical_or(self.settled, self.grid.closed.ravel())
        return np.logical_not(out, out=out)

    @property
    def visits(self) -> NDArray[np.intp]:
        """(rows * cols,) how often each cell was visited."""
        return np.asarray(np.bincount(self.indices, minlength=self.grid.n_cells), np.intp)

    @property
    def factors(self) -> NDArray[np.float64]:
        """(n,) what each report adds to the log-odds of target of its cell."""
        found = self.outcomes > 0
        usual = [self.detection.log_odds(report) for report in (False, True)]
        out = np.where(found, usual[1], usual[0])
        for i in self._own_detection:
            out[i] = self.detection_of(self.items[i]).log_odds(bool(found[i]))
        return out

    @property
    def log_odds(self) -> NDArray[np.float64]:
        """(rows * cols,) what all its reports add to the log-odds of target of each cell."""
        out = np.zeros(self.grid.n_cells)
        if len(self.items):
            np.add.at(out, self.indices, self.factors)
        return out

    @property
    def told_noise(self) -> NDArray[np.float32]:
        """(H, W) standard deviation of the content, with what reports leave in doubt.

        A blank that may be a miss is told as a content that may be as far off as the range is wide
        (``detection.noise_of``).
        """
        odds = self.log_odds
        unsure = doubtful(odds)
        if not unsure.any():
            return self.noise
        low, high = self.grid.range
        more = np.where(unsure, noise_of(np.where(unsure, odds, -1.0)), 0.0) * (high - low) ** 2
        return np.sqrt(self.noise**2 + self.grid.pixels(more)).astype(np.float32)

    @property
    def found(self) -> int:
        """Cells in which target was found; settled ones where it may be a false alarm."""
        finds = np.flatnonzero(self.outcomes > 0)
        cells = self.indices[finds]
        alarms = np.full(len(finds), self.detection.false_alarm)
        for i in self._own_detection:
            alarms[finds == i] = self.detection_of(self.items[i]).false_alarm
        return len(np.unique(cells[(alarms == 0) | self.settled[cells]]))

    @property
    def cells(self) -> list[Cell]:
        return [item.cell for item in self.items]

    @property
    def indices(self) -> NDArray[np.intp]:
        """(n,) flat indices of the measured cells in the order of measurement."""
        return np.array(self._indices, np.intp)

    @property
    def outcomes(self) -> NDArray[np.float64]:
        """(n,) outcomes in the order of measurement."""
        return np.array(self._outcomes, np.float64)

    @property
    def shares(self) -> NDArray[np.float64]:
        """(n,) how much of each cell was target, in the order of measurement."""
        given = (item.outcome if item.share is None else item.share for item in self.items)
        return np.array([*given], np.float64)

    @property
    def contents(self) -> NDArray[np.float32]:
        """(n, C, h, w) contents in the order of measurement."""
        if not self.items:
            return np.zeros((0, *self.grid.content_shape), np.float32)
        return np.stack([item.content for item in self.items])

    def subset(self, keep: Iterable[int], detection: Detection | None = None) -> Observations:
        """The observations at these positions, as if the others had never been made."""
        part = Observations(self.grid, detection=detection or self.detection)
        for i in keep:  # they were checked when they were added here
            part._put(self.items[i], self.grid.index(self.items[i].cell))
        return part
