"""Figures without global state: drawn by a function, rendered to themed SVG or to PNG.

SVG is put into the page as markup, so its ink follows the page (light, dark, print): the two
reserved colours INK and RULE become ``currentColor`` and ``var(--rule)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1b1d1f"
RULE = "#d4d6d9"
FOUND = "#2fb457"
MISSED = "#d8433b"

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "font.size": 9,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "engram",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}

Draw = Callable[["Figure"], None]


def svg(draw: Draw, width: float, height: float, name: str, alt: str) -> str:
    """An ``<svg>`` element of width x height inches; ``name`` keeps its ids apart from others'."""
    text = _render(draw, width, height, "svg").decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<style.*?</style>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r"(url\(|href=\")#", rf"\g<1>#{name}-", text)
    text = text.replace(INK, "currentColor").replace(RULE, "var(--rule)")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1).strip()


def png(draw: Draw, width: float, height: float, dpi: int = 130) -> bytes:
    """A PNG on white paper."""
    return _render(draw, width, height, "png", dpi)


def _render(draw: Draw, width: float, height: float, kind: str, dpi: int = 72) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    buffer = BytesIO()
    with rc_context(_STYLE):
        figure = Figure((width, height), dpi, layout="constrained")
        draw(figure)
        engine = figure.get_layout_engine()
        if engine is not None:  # laid out here, saving does it by drawing everything twice
            engine.execute(figure)
            figure.set_layout_engine("none")
        if kind == "svg":
            none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(buffer, format="svg", metadata=none)
        else:
            figure.savefig(buffer, format="png", dpi=dpi, facecolor="white")
    return buffer.getvalue()


def whole_numbers(
    ax: Axes, x: int | None = None, y: int | None = None, *, open_end: bool = False
) -> None:
    """At most this many ticks on each axis, at whole numbers; ``open_end`` leaves out x's last."""
    from matplotlib.ticker import MaxNLocator

    if x:
        ax.xaxis.set_major_locator(
            MaxNLocator(x, integer=True, prune="upper" if open_end else None)
        )
    if y:
        ax.yaxis.set_major_locator(MaxNLocator(y, integer=True))
