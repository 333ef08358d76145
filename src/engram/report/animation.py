"""The search as a GIF: the truth beside each policy's measured cells, growing."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engram.report import pixels
from engram.report.summary import Entry

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

LIMIT = 1_900_000
"""Bytes; longer animations get fewer frames."""

PANEL, GAP, HEAD, FOOT = 216, 14, 30, 44
PER_ROW = 4
INK, PAPER, SOFT = (27, 29, 31), (255, 255, 255), (90, 96, 103)
GREEN = (31, 122, 67)


def animate(entries: Sequence[Entry], frames: int = 60) -> bytes:
    """An endless GIF of at most ``frames`` frames that stays below LIMIT."""
    painter = _Painter(entries)
    while True:
        data = _encode(painter, frames)
        if len(data) <= LIMIT or frames <= 4:
            return data
        frames //= 2


def _encode(painter: _Painter, frames: int) -> bytes:
    from PIL.Image import Dither

    longest = max(len(e.trace.cells) for e in painter.entries)
    times = np.unique(np.linspace(0, longest, min(frames, longest + 1)).round().astype(int))
    painted = [painter.frame(int(t)) for t in times]
    palette = painted[-1].quantize(64, dither=Dither.NONE)
    indexed = [image.quantize(palette=palette, dither=Dither.NONE) for image in painted]
    step = max(60, min(200, 9000 // len(times)))
    durations = [700, *[step] * (len(times) - 2), 4000]
    buffer = BytesIO()
    indexed[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=indexed[1:],
        duration=durations[-len(times) :],
        loop=0,
        optimize=True,
    )
    return buffer.getvalue()


class _Painter:
    """Draws single frames; everything that does not change is prepared once."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.task = entries[0].trace.task
        grid = self.task.grid
        scale = PANEL / max(grid.height, grid.width)
        if scale > 1:
            scale = round(scale)  # all pixels of the area get the same size
        self.panel = max(1, round(grid.width * scale)), max(1, round(grid.height * scale))
        self.columns = min(PER_ROW, len(entries) + 1)
        self.rows = -(-(len(entries) + 1) // self.columns)
        self.column = max(160, self.panel[0])
        self.font, self.bold = _fonts()
        self.truth = self._scaled(pixels.picture(grid, self.task.content))

    def frame(self, t: int) -> Image:
        """The picture after t measurements."""
        from PIL import Image, ImageDraw

        height = HEAD + self.rows * (self.panel[1] + FOOT)
        image = Image.new("RGB", (self.columns * (self.column + GAP) + GAP, height), PAPER)
        draw = ImageDraw.Draw(image)
        budget = max(e.trace.budget for e in self.entries)
        draw.text((GAP, 8), f"measurement {t} of {budget}", INK, self.bold)
        x, y = self._corner(0)
        image.paste(self.truth, (x, y))
        draw.text((x, y + self.panel[1] + 4), "truth", INK, self.bold)
        targets = self.task.targets
        draw.text((x, y + self.panel[1] + 21), f"{targets} target cells", SOFT, self.font)
        for i, entry in enumerate(self.entries, 1):
            x, y = self._corner(i)
            cells, outcomes = entry.trace.cells[:t], entry.trace.outcomes[:t]
            view = pixels.visited(self.task, cells, outcomes, reveal=False)
            image.paste(self._scaled(view), (x, y))
            found = sum(outcome > 0 for outcome in outcomes)
            draw.text((x, y + self.panel[1] + 4), self._cut(entry.label), INK, self.bold)
            draw.text((x, y + self.panel[1] + 21), f"{found} found", GREEN, self.font)
        return image

    def _corner(self, i: int) -> tuple[int, int]:
        row, col = divmod(i, self.columns)
        return GAP + col * (self.column + GAP), HEAD + row * (self.panel[1] + FOOT)

    def _scaled(self, picture: pixels.Picture) -> Image:
        from PIL import Image

        image = Image.fromarray((np.clip(picture, 0, 1) * 255).round().astype(np.uint8))
        larger = self.panel[0] >= image.width
        return image.resize(
            self.panel, Image.Resampling.NEAREST if larger else Image.Resampling.BOX
        )

    def _cut(self, label: str) -> str:
        """The label, shortened to the width of its panel."""
        text = " ".join(label.split())
        if self.bold.getlength(text) <= self.column:
            return text
        while text and self.bold.getlength(text + "…") > self.column:
            text = text[:-1]
        return text + "…"


def _fonts() -> tuple[FreeTypeFont, FreeTypeFont]:
    """Plain and bold text in the typeface of the figures."""
    import matplotlib
    from PIL import ImageFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    names = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
    plain, bold = (ImageFont.truetype(str(folder / name), 13) for name in names)
    return plain, bold
