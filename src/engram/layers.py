r"""What is known of every cell before the first measurement.

A layer gives every cell a number (elevation, distance to a road, how often observers were there)
or a category (land cover, rock); values may be missing. A belief map gives every cell a
probability of target: an expert's, a habitat model's, a drift model's.

Nobody says in which unit a layer is measured, so only the order of its values counts: numbers
become normal scores of their mid-ranks r among the n open cells, scaled to zero mean and unit
variance,

.. math::  u_q \propto \Phi^{-1}\Bigl(\frac{r_q - 1/2}{n}\Bigr) ,

which keeps apart the few highest cells where many are equal (zero records, no outcrop). Layers are
kept in the order of their names, and a layer of numbers is turned so that its first cell that is
not in the middle lies above it. So the order in which layers are given, their units
and their signs change nothing of what a search does, to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.errors import InputError, shown
from engram.grid import Grid

Array = NDArray[np.float64]

EXPECTED = ("", "more", "less")
"""What a user may expect: nothing, or more or less target where a layer is high."""
BELIEF = "belief"
"""Name under which a belief map is reported beside the layers."""
LONGEST_NAME = 60


@dataclass(frozen=True, eq=False)
class Layer:
    """One thing that is known of every cell.

    values     : (n_cells,) numbers, or positions in ``categories``; NaN where missing
    categories : names of the categories; none for a layer of numbers
    expected   : 'more' or 'less' target where the numbers are high; empty = nothing is expected
    """

    name: str
    values: Array
    categories: tuple[str, ...] = ()
    expected: str = ""

    def __post_init__(self) -> None:
        name = self.name
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise InputError(
                f"layer name {shown(name)}: give 1 to {LONGEST_NAME} printable characters"
            )
        if set("=:,;[]") & set(name):
            raise InputError(f"layer name {shown(name)}: choose one without = : , ; [ ]")
        if self.expected not in EXPECTED:
            raise InputError(
                f"layer {name!r}: expected {shown(self.expected)}; say more, less or nothing"
            )
        if self.categories and self.expected:
            raise InputError(
                f"layer {name!r} has categories, of which none is higher than another; leave "
                f":{self.expected} out"
            )

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(n_cells,) True where nothing is known."""
        return np.isnan(self.values)

    def check(self, grid: Grid) -> None:
        """Refuse what cannot be a layer of this area, or would say nothing of it."""
        name, values = f"layer {self.name!r}", self.values
        if values.shape != (grid.n_cells,):
            raise InputError(
                f"{name} has {values.size} values; the area has {grid.rows}x{grid.cols} cells"
            )
        if np.isinf(values).any():
            raise InputError(
                f"{name} is infinite in {np.isinf(values).sum()} cell(s); give finite numbers, and "
                "NaN or nodata where nothing is known"
            )
        known = values[grid.open_cells]
        known = known[~np.isnan(known)]
        if not len(known):
            raise InputError(f"{name} is missing in every open cell; give another file or leave it")
        if self.categories and len(self.categories) > len(known):
            raise InputError(
                f"{name} has {len(self.categories)} categories for {len(known)} open cells where "
                "it is known; join some of them, or give numbers"
            )
        if known.min() == known.max():
            what = self.categories[int(known[0])] if self.categories else f"{known[0]:g}"
            raise InputError(
                f"{name} is {what} in every open cell where it is known, which tells no cell from "
                "another; leave it out"
            )

    def to_dict(self) -> dict[str, Any]:
        """As JSON: null where missing."""
        plain = [None if np.isnan(v) else float(v) for v in self.values]
        return {
            "name": self.name,
            "values": plain,
            "categories": list(self.categories),
            "expected": self.expected,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        values = np.array([np.nan if v is None else float(v) for v in data["values"]])
        return cls(data["name"], values, tuple(data["categories"]), data["expected"])


class Layers:
    """The layers of an area, in the order of their names, and a belief map or None.

    belief : (n_cells,) probability of target of every cell
    """

    def __init__(
        self, grid: Grid, layers: Iterable[Layer] = (), belief: ArrayLike | None = None
    ) -> None:
        self.grid = grid
        self.layers = tuple(sorted(layers, key=lambda layer: layer.name))
        names = [layer.name for layer in self.layers]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"layer {name!r} is given twice; name each layer once")
        if BELIEF in names:
            raise InputError(f"layer name {BELIEF!r} is kept for the belief map; choose another")
        for layer in self.layers:
            layer.check(grid)
        self.belief = None if belief is None else checked_belief(belief, grid)

    @classmethod
    def of(
        cls,
        grid: Grid,
        values: Mapping[str, ArrayLike],
        *,
        belief: ArrayLike | None = None,
        expected: Mapping[str, str] | None = None,
    ) -> Self:
        """Layers from arrays by name: one value per cell, (rows, cols) or (rows * cols,).

        Texts are categories (empty = missing), and so are whole numbers given as texts. Maps in
        pixels are averaged into cells by ``engram.layer_files``.
        """
        said = dict(expected or {})
        for name in said:
            if name not in values:
                raise InputError(f"expected names {name!r}, which is none of the layers")
        return cls(
            grid,
            (layer_of(name, given, said.get(name, "")) for name, given in values.items()),
            belief,
        )

    def __bool__(self) -> bool:
        return bool(self.layers) or self.belief is not None

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self.layers)

    def get(self, name: str) -> Layer:
        """A layer by name."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise InputError(f"no layer {shown(name)}; there are {', '.join(self.names) or 'none'}")

    def fits(self, grid: Grid) -> Layers:
        """The layers, if they are of the same cells; ranks stay those of the area they were given
        for, whatever is closed later."""
        if (grid.rows, grid.cols) != (self.grid.rows, self.grid.cols):
            raise InputError(
                f"the layers are of {self.grid.rows}x{self.grid.cols} cells, the area has "
                f"{grid.rows}x{grid.cols}; give layers of the same area"
            )
        return self

    def only(self, names: Iterable[str]) -> Layers:
        """Those of these names, without the belief map unless it is named."""
        wanted = list(names)
        chosen = [self.get(name) for name in wanted if name != BELIEF]
        if BELIEF in wanted and self.belief is None:
            raise InputError("no belief map is given")
        return Layers(self.grid, chosen, self.belief if BELIEF in wanted else None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON, to the last bit."""
        out: dict[str, Any] = {"layers": [layer.to_dict() for layer in self.layers]}
        if self.belief is not None:
            out["belief"] = [float(v) for v in self.belief]
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], grid: Grid) -> Self:
        return cls(grid, (Layer.from_dict(one) for one in data["layers"]), data.get("belief"))

    def about(self) -> dict[str, Any]:
        """Names, what is expected, and the hash, for results and answers."""
        return {
            "names": list(self.names),
            "expected": {layer.name: layer.expected for layer in self.layers if layer.expected},
            "belief": self.belief is not None,
            "sha256": self.sha256,
        }

    @property
    def sha256(self) -> str:
        """Hash of all that a search is told: names, values, categories, expectations, belief."""
        total = hashlib.sha256()
        for layer in self.layers:
            texts = (layer.name, layer.expected, *layer.categories)
            total.update("\0".join(texts).encode() + b"\0\0")
            total.update(np.asarray(layer.values, "<f8").tobytes())
        if self.belief is not None:
            total.update(b"belief\0" + np.asarray(self.belief, "<f8").tobytes())
        return total.hexdigest()


def layer_of(name: str, given: ArrayLike, expected: str = "") -> Layer:
    """A layer from one value per cell; texts are categories."""
    array = np.asarray(given)
    if array.dtype.kind in "OUS":
        return categories_of(name, [_text(v) for v in array.ravel()], expected)
    if array.dtype.kind not in "buif":
        raise InputError(f"layer {name!r} holds {array.dtype}; give numbers or texts")
    return Layer(name, np.array(array, np.float64).ravel(), (), expected)


def categories_of(name: str, texts: Iterable[str], expected: str = "") -> Layer:
    """A layer of categories, in the order of their names; an empty text is missing."""
    array = np.array(list(texts), dtype=np.str_)
    known = array != ""
    kinds, codes = np.unique(array[known], return_inverse=True)
    values = np.full(array.shape, np.nan)
    values[known] = codes
    return Layer(name, values, tuple(str(kind) for kind in kinds), expected)


def _text(value: Any) -> str:
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "" if missing else str(value).strip()


def checked_belief(given: ArrayLike, grid: Grid) -> Array:
    """A probability for every cell; refused outside [0, 1] or where one is missing."""
    belief = np.array(given, np.float64).ravel()
    if belief.shape != (grid.n_cells,):
        raise InputError(
            f"belief has {belief.size} values; the area has {grid.rows}x{grid.cols} cells"
        )
    known = belief[grid.open_cells]
    if np.isnan(known).any():
        raise InputError(
            f"belief is missing in {np.isnan(known).sum()} open cell(s); give every open cell a "
            "probability"
        )
    if known.min() < 0 or known.max() > 1:
        raise InputError(
            f"belief runs from {known.min():g} to {known.max():g}; give probabilities of target, "
            "0 to 1 (divide percentages by 100)"
        )
    belief[grid.closed.ravel()] = np.clip(np.nan_to_num(belief[grid.closed.ravel()]), 0, 1)
    return belief


def normal_scores(values: Array, among: NDArray[np.intp]) -> tuple[Array, float]:
    """Normal scores u (n_cells,) among some cells, 0 where missing; and how they were turned.

    The second is -1 where u falls with the values, else 1.
    """
    from scipy.special import ndtri

    known = values[among]
    known = np.sort(known[~np.isnan(known)])
    count = len(known)

    def places(of: Array) -> NDArray[np.intp]:
        """Twice the mid-rank of every value, from -count to count."""
        return np.asarray(np.searchsorted(known, of) + np.searchsorted(known, of, "right") - count)

    own, every = places(known), np.where(np.isnan(values), 0, places(values))
    first = np.flatnonzero(every)
    sign = -1.0 if len(first) and every[first[0]] < 0 else 1.0

    def scores(of: NDArray[np.intp]) -> Array:
        shares = (sign * of + count) / (2 * count)
        return np.asarray(ndtri(np.clip(shares, 0.5 / count, 1 - 0.5 / count)), np.float64)

    usual = np.sort(scores(own))  # summed in one order, whatever the sign
    u = (scores(every) - usual.mean()) / usual.std()
    return np.where(np.isnan(values), 0.0, u), sign
