r"""How a search paces itself: the exploration weight and the times of h-updates."""

from __future__ import annotations

from dataclasses import dataclass

from engram.errors import InputError


def alpha(t: int, budget: int, a: float = 1.0) -> float:
    r"""Exploration weight of Eq. 12 after t measurements (appendix G for the factor a).

    .. math::  \alpha = \max\Bigl(0, \frac{a B - t}{a B + t}\Bigr)
    """
    if budget < 1 or a <= 0:
        raise InputError(f"budget={budget}, a={a}: both must be above 0")
    return max(0.0, (a * budget - t) / (a * budget + t))


@dataclass(frozen=True)
class UpdateSchedule:
    r"""After how many measurements the transient memory is adapted (appendix B.2).

    adaptive : interval after update i is :math:`\Delta_i = \frac{B}{U}(1 - \frac{i}{U+1})^\gamma`
        (i is the index of the update, so updates come faster as the search goes on),
    uniform  : every ``every`` measurements.

    Taken literally the adaptive intervals add up to little more than half of the budget (for
    gamma = 1); ``stretch`` scales them to fill it, so that updates go on to the end.

    No update comes before ``first`` measurements.
    """

    kind: str = "adaptive"
    updates: int = 30
    gamma: float = 1.0
    every: int = 20
    first: int = 1
    stretch: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("adaptive", "uniform"):
            raise InputError(f"schedule={self.kind!r}: choose 'adaptive' or 'uniform'")
        if self.updates < 0 or self.every < 1 or not self.gamma >= 0:
            raise InputError(
                f"updates={self.updates}, every={self.every}, gamma={self.gamma}: give 0 "
                "or more updates, an interval of at least 1 and a decay of at least 0"
            )

    def times(self, budget: int) -> tuple[int, ...]:
        """Measurement counts in [1, budget - 1] after which h is adapted."""
        if self.kind == "uniform":
            points = [float(p) for p in range(self.every, budget, self.every)]
        else:
            points, position = [], 0.0
            for i in range(self.updates):
                share = 1 - i / (self.updates + 1)
                position += budget / self.updates * share**self.gamma
                points.append(position)
            if self.stretch and position > 0:
                points = [p * budget / position for p in points]
        rounded = {max(1, round(p)) for p in points}
        return tuple(sorted(p for p in rounded if self.first <= p < budget))
