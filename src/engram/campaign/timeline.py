"""The time of a campaign: it follows the storage's clock, and one wrong clock cannot stop it.

Time goes forward with the events. A clock that is behind the log is passed over (time stands
still), unless the log itself once leapt over what that clock says: then the clock that made the
log leap was the wrong one, and time goes back. A clock far ahead moves the time by ``BOUND`` at
most. All of it is a function of the log and of the clock's reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from engram.campaign.model import iso

DAY = 86400.0

LEAP = 7 * DAY
"""A step of the log's time that may be a clock's fault rather than a pause."""

BOUND = 3660 * DAY
"""The largest step one event may move the time by (ten years)."""


@dataclass(frozen=True)
class Span:
    """A time granted at a moment of the log: a lease, or the wait after a failure.

    eve : the log's time before its latest leap. When the time turns out to be before ``at``,
        the clock that granted the span was wrong, and the span counts from there.
    """

    at: float
    length: float
    eve: float

    @property
    def until(self) -> float:
        return self.at + self.length

    def over(self, now: float) -> bool:
        if now >= self.at or self.eve == self.at:
            return now >= self.until
        return not self.eve <= now < self.eve + self.length


class Timeline:
    """The time of the log's last event, and its leaps as (time before, time after)."""

    def __init__(self, at: float, leaps: list[tuple[float, float]] | None = None) -> None:
        self.at, self.leaps = at, leaps or []

    def move(self, at: float) -> None:
        """Take the time of the next event; what remains of a leap it falls into is a leap."""
        before = self.at
        while self.leaps and self.leaps[-1][1] > at:
            before = min(before, self.leaps.pop()[0])
        if at > before + LEAP:
            self.leaps.append((before, at))
        self.at = at

    def grant(self, length: float) -> Span:
        """A span from the last event on; leaps with no work between them count as one."""
        eve = self.leaps[-1][0] if self.leaps else self.at
        for before, after in reversed(self.leaps[:-1]):
            if eve > after + LEAP:
                break
            eve = before
        return Span(self.at, length, eve)

    def believed(self, clock: float) -> tuple[float, str]:
        """The time when the storage's clock says ``clock``, and a note if that is odd."""
        if clock > self.at + BOUND:
            at = self.at + BOUND
            return at, (
                f"the clock says {iso(clock)}, years after the last event ({iso(self.at)}); this "
                f"is dated {iso(at)}: check the clock"
            )
        if clock >= self.at:
            return clock, ""
        if any(before <= clock < after for before, after in self.leaps):
            return clock, (
                f"the last event is dated {iso(self.at)} and the clock says {iso(clock)}: a clock "
                "was wrong; time goes on from now, and leases given in between count from the "
                "event before"
            )
        return self.at, ""
