"""Many small maps of one area in a single axes: rows of stages, columns of things to compare.

One axes with many images is drawn ten times as fast as as many axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.grid import Cell, Grid
from engram.report.canvas import RULE
from engram.report.pixels import fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = 1.36
"""Width of a panel in inches (less for areas much taller than wide)."""


class Mosaic:
    """Places maps of ``grid`` in rows and columns; coordinates are pixels of the area.

    ``head`` is the room above every panel, in inches, for a line of text.
    """

    def __init__(self, grid: Grid, rows: int, columns: int, head: float = 0.08) -> None:
        self.grid, self.rows, self.columns = grid, rows, columns
        inch = max(grid.width / PANEL, grid.height / (1.5 * PANEL))
        wide, high = grid.width + 0.1 * inch, grid.height + head * inch
        self.step = max(wide, 1.2 * inch), max(high, 0.8 * inch)
        self.size = self.columns * self.step[0] / inch, self.rows * self.step[1] / inch

    def corner(self, row: int, column: int) -> tuple[float, float]:
        """(x, y) of the top left pixel of a panel."""
        return column * self.step[0], row * self.step[1]

    def show(self, ax: Axes, row: int, column: int, image: NDArray[Any], **options: Any) -> None:
        """An image (H, W), (H, W, 3) or (rows, cols) of the area in its place."""
        from matplotlib.patches import Rectangle

        (x, y), (w, h) = self.corner(row, column), (self.grid.width, self.grid.height)
        ax.imshow(fitted(image, 256), interpolation="none", extent=(x, x + w, y + h, y), **options)
        ax.add_patch(Rectangle((x, y), w, h, fill=False, ec=RULE, lw=0.6))

    def head(self, ax: Axes, row: int, column: int, text: str, **options: Any) -> None:
        """Text above a panel."""
        x, y = self.corner(row, column)
        middle = x + self.grid.width / 2
        ax.annotate(
            text,
            (middle, y),
            (0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            **options,
        )

    def ring(self, ax: Axes, row: int, column: int, cell: Cell, colour: str) -> None:
        """A ring around a cell."""
        (x, y), (h, w) = self.corner(row, column), self.grid.cell
        ax.plot(
            x + (cell[1] + 0.5) * w,
            y + (cell[0] + 0.5) * h,
            "o",
            ms=7,
            mfc="none",
            mec=colour,
            mew=1.6,
        )

    def finish(self, ax: Axes, names: Sequence[str]) -> None:
        """Axes in cells at the left and the bottom; the name of every row beside it."""
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=2)
        (h, w), (wide, high) = self.grid.cell, self.step
        across, down = _ticks(self.grid.cols), _ticks(self.grid.rows)
        bottom = self.rows * high - (high - self.grid.height)
        ax.set(
            xlim=(0, self.columns * wide - (wide - self.grid.width)),
            ylim=(bottom, 0),
            aspect="equal",
            xlabel="column (cells)",
        )
        ax.set_xticks(
            [c * wide + t * w for c in range(self.columns) for t in across],
            [str(t) for t in across] * self.columns,
        )
        ax.set_yticks(
            [r * high + t * h for r in range(self.rows) for t in down],
            [str(t) for t in down] * self.rows,
        )
        for row, name in enumerate(names):
            middle = self.corner(row, 0)[1] + self.grid.height / 2
            ax.annotate(
                f"{name}\nrow (cells)",
                (0, middle),
                (-24, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                rotation=90,
            )


def _ticks(cells: int) -> list[int]:
    """A few whole numbers from 0 on, below the last cell."""
    from matplotlib.ticker import MaxNLocator

    values = np.asarray(MaxNLocator(4, integer=True).tick_values(0, cells))
    return [int(v) for v in values if 0 <= v < cells]
