"""How long the event loop was away: a clock that ticks on it.

A tick that comes late by the wall may be the fault of a busy machine; what the loop's own thread
worked between two ticks (processor time) is what blocked the others. What is left of a late tick
is time in which the thread was ready and had no processor, and turns of other threads of ours.
"""

from __future__ import annotations

import asyncio
import os
import time

TICK = 0.02


class LoopWatch:
    """The longest stalls so far, in seconds.

    wall : how late the latest tick was; worked : most processor time between two ticks;
    queued : how long the thread waited for a processor while the latest tick was due.
    """

    def __init__(self) -> None:
        self.wall = self.worked = self.queued = 0.0

    async def run(self) -> None:
        while True:
            began, worked, queued = time.monotonic(), time.thread_time(), _queued()
            await asyncio.sleep(TICK)
            late = time.monotonic() - began - TICK
            if late > self.wall:
                self.wall, self.queued = late, _queued() - queued
            self.worked = max(self.worked, time.thread_time() - worked)


def _queued() -> float:
    """Seconds that this thread was ready and had no processor; 0 where the system is silent."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def resident(pid: int | str = "self") -> int:
    """Resident memory of a process in bytes; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
