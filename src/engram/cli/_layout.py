"""Tables that fit a terminal: figures are never cut, columns that do not fit go below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

RULE = 3
"""Characters between two columns: a line and its margins."""
EDGES = 4
"""Characters left and right of a table that is framed all around."""
NAMES = 0.4
"""Share of the terminal that the first column may claim; longer names are folded."""


@dataclass(frozen=True)
class Column:
    """A column as it may be drawn: it needs ``least`` characters and has use for ``most``."""

    index: int
    figures: bool
    least: int
    most: int


@dataclass(frozen=True)
class Part:
    """Columns that stand side by side, framed all around or by lines between them alone."""

    columns: Sequence[Column]
    edges: bool = True

    @property
    def frame(self) -> int:
        """Characters that are not text."""
        return RULE * (len(self.columns) - 1) + (EDGES if self.edges else 0)

    def spare(self, width: int) -> int:
        """Characters of a terminal that are left over; negative when the part does not fit."""
        return width - self.frame - sum(column.least for column in self.columns)

    def widths(self, width: int) -> list[int]:
        """Characters of each column: what it needs, then what it has use for, small ones first.

        Where that is more than there is, the first column, of names, gets less.
        """
        given = [column.least for column in self.columns]
        spare = self.spare(width)
        if spare < 0:
            given[0] = max(1, given[0] + spare)
        wishes = sorted(range(len(given)), key=lambda i: self.columns[i].most - given[i])
        for i in wishes:
            more = max(0, min(spare, self.columns[i].most - given[i]))
            given[i] += more
            spare -= more
        return given


def arranged(head: Sequence[str], lines: Sequence[Sequence[str]], width: int) -> list[Part]:
    """How a table is drawn: in one part if wrapped names or fewer lines make it fit, or several.

    Each of several parts begins with the first column.
    """
    for wrapped, edges in ((False, True), (True, True), (True, False)):
        whole = Part(_columns(head, lines, width, wrapped), edges)
        if whole.spare(width) >= 0:
            return [whole]
    first, *others = _columns(head, lines, width, False)
    groups: list[list[Column]] = [[first]]
    for column in others:
        if len(groups[-1]) > 1 and Part([*groups[-1], column]).spare(width) < 0:
            groups.append([first])
        groups[-1].append(column)
    return [Part(group) for group in groups]


def _columns(
    head: Sequence[str], lines: Sequence[Sequence[str]], width: int, wrapped: bool
) -> list[Column]:
    """What columns need: figures (and names, unless ``wrapped``) all of it, others a word."""
    out = []
    for i, name in enumerate(head):
        cells = [line[i] for line in lines]
        figures = i > 0 and all(cell[:1] in "+-(0123456789" for cell in cells)
        kept = cells if figures or (i == 0 and not wrapped) else _words(cells)
        least = max(cell_len(text) for text in ["", *kept, *_words([name])])
        if not figures:
            share = NAMES if i == 0 else 1 - NAMES
            least = min(least, max(1, int(width * share) - EDGES))
        out.append(Column(i, figures, least, max(cell_len(text) for text in [name, *cells])))
    return out


def _words(texts: Sequence[str]) -> list[str]:
    return " ".join(texts).split()
