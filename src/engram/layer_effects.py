"""What layers do to the chance of target, as a model that has learnt it says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Effect:
    """What a layer does to the log-odds of target, from its low end to its high end.

    For categories, from all cells to those of the category ``best`` that raises the odds most.
    low, high : 90 % interval
    """

    name: str
    change: float
    low: float
    high: float
    best: str = ""

    @property
    def matters(self) -> bool:
        """Whether the interval is on one side of no change."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        figures = {name: round(getattr(self, name), 3) for name in ("change", "low", "high")}
        kind = {"best": self.best} if self.best else {}
        told = {"matters": self.matters, "words": self.words}
        return {"name": self.name, **figures, **kind, **told}

    @property
    def words(self) -> str:
        """In one line."""
        where = f"where it is {self.best}" if self.best else "from its low end to its high end"
        told = "matters" if self.matters else "not known to matter"
        return (
            f"{self.name}: {self.change:+.1f} of log-odds {where} ({self.low:+.1f} to "
            f"{self.high:+.1f}, 90 %), {told}"
        )


class Explained(Protocol):
    """A model that says what layers contributed."""

    def contributions(self, index: int) -> dict[str, float]:
        """What every layer adds to the log-odds of target of a cell, beside an average cell."""

    def effects(self) -> list[Effect]:
        """What every layer is believed to do, with intervals; the strongest first."""
