"""How long the event loop was away: a clock that ticks on it.

A tick that comes late by the wall may be the fault of a busy machine; what the loop's own thread
worked between two ticks (processor time) is what blocked the others. What is left of a late tick
is time in which the thread was ready and had no processor, time in which a core was given to
another virtual machine (which none of ours can do anything about), and turns of other threads.
"""

from __future__ import annotations

import asyncio
import os
import time

TICK = 0.02


class LoopWatch:
    """The longest stalls so far, in seconds.

    wall   : how late the latest tick was
    queued : how long the loop's thread waited for a processor while that tick was due
    stolen : how long a core was given to another virtual machine meanwhile, to 10 ms
    ours   : how late a tick was at most, what was stolen while it was due taken off
    worked : most processor time of the loop's own thread between two ticks
    """

    def __init__(self) -> None:
        self.wall = self.queued = self.stolen = self.ours = self.worked = 0.0

    async def run(self) -> None:
        while True:
            queued, stolen = _queued(), _stolen()
            began, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(TICK)
            late = time.monotonic() - began - TICK
            self.worked = max(self.worked, time.thread_time() - worked)
            if late > self.ours:
                taken = max((b - a for a, b in zip(stolen, _stolen(), strict=False)), default=0.0)
                self.ours = max(self.ours, late - taken)
                if late > self.wall:
                    self.wall, self.queued, self.stolen = late, _queued() - queued, taken

    def to_dict(self) -> dict[str, float]:
        """In milliseconds."""
        names = ("wall", "queued", "stolen", "ours", "worked")
        return {f"{name}_ms": round(1000 * getattr(self, name), 1) for name in names}


def _queued() -> float:
    """Seconds that this thread was ready and had no processor; 0 where the system is silent."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _stolen() -> list[float]:
    """Seconds that each core was taken away by the hypervisor; none where the system is silent."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("cpu")]
        hertz = os.sysconf("SC_CLK_TCK")
        return [int(row[8]) / hertz for row in rows if row[0] != "cpu"]
    except (OSError, ValueError, IndexError):
        return []


def resident(pid: int | str = "self") -> int:
    """Resident memory of a process in bytes; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
