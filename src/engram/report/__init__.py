"""What a search looked like: one HTML page, an animation, a picture for a README."""

from __future__ import annotations

from engram.report.html import write_report
from engram.report.sheet import draw_search

__all__ = ["draw_search", "write_report"]
