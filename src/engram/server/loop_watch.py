"""How long the event loop was away: a clock that ticks on it.

A tick that comes late by the wall may be the fault of a busy machine; what the loop's own thread
worked between two ticks (processor time) is what blocked the others.
"""

from __future__ import annotations

import asyncio
import os
import time

TICK = 0.02


class LoopWatch:
    """The longest stalls since the last reset, in seconds."""

    def __init__(self) -> None:
        self.wall = self.worked = 0.0

    def reset(self) -> None:
        self.wall = self.worked = 0.0

    async def run(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(TICK)
            self.wall = max(self.wall, time.monotonic() - began - TICK)
            self.worked = max(self.worked, time.thread_time() - worked)


def resident(pid: int | str = "self") -> int:
    """Resident memory of a process in bytes; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
