"""What a search looked like: one HTML page, an animation, a picture for a README."""

from __future__ import annotations

from engram.report.figures import draw_search
from engram.report.html import write_report

__all__ = ["draw_search", "write_report"]
