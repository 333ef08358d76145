"""Who signs in wrongly again and again has to wait, longer each time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from engram.server.problems import ProblemError

FREE = 5
"""Failures in a row that cost nothing."""
LONGEST = 300.0
"""Seconds of the longest wait."""
PLACES = 10_000


class Slowing:
    """Failures by address, the latest remembered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse while an address has to wait."""
        count, until = self._failures.get(address, (0, 0.0))
        left = until - self._clock()
        if count >= FREE and left > 0:
            raise ProblemError(
                429,
                f"too many failed sign-ins from here; try again in {left:.0f} s",
                {"Retry-After": str(max(1, round(left)))},
            )

    def failed(self, address: str) -> None:
        count, _ = self._failures.pop(address, (0, 0.0))
        wait = 0.0 if count + 1 < FREE else min(LONGEST, 2.0 ** (count + 1 - FREE))
        self._failures[address] = (count + 1, self._clock() + wait)
        while len(self._failures) > PLACES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._failures.pop(address, None)
