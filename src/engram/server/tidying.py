"""Garbage that stops nobody: a little at a time under load, all of it when it is quiet.

Python looks through everything that has lived for a while at a moment of its own choice, in
whichever thread is at work, and all others stand still meanwhile: a tenth of a second with a few
hundred listeners. Here it looks through what is young by itself as ever; what has become old is
looked through on the event loop as soon as there is a little of it, and then put aside. What was
put aside is looked through when nobody has asked for anything for a while, or when the server's
memory has doubled.
"""

from __future__ import annotations

import asyncio
import gc
import time

from engram.server.loop_watch import resident

EVERY = 1.0
"""Seconds between two looks at whether there is something to do."""
FEW = 2
"""Collections of young objects after which the old ones are looked through: a few thousand."""
NEVER = 1_000_000_000
QUIET = 0.05
"""Share of a core that a server uses which nobody asks for anything, at most."""
QUIET_LOOKS = 30
"""Looks in a row that have to be quiet."""


class Tidying:
    """The garbage of this process."""

    def __init__(self) -> None:
        self.quiet = self.aside = 0
        self._memory = 0
        self._before = gc.get_threshold()

    async def run(self) -> None:
        """Tidy as long as the server runs."""
        self.begin()
        try:
            while True:
                began, worked = time.monotonic(), time.process_time()
                await asyncio.sleep(EVERY)
                share = (time.process_time() - worked) / (time.monotonic() - began)
                self.look(share)
        finally:
            self.end()

    def begin(self) -> None:
        """What was loaded stays for good; from now on Python collects what is young alone."""
        gc.set_threshold(*self._before[:2], NEVER)
        self._put_aside()

    def end(self) -> None:
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def look(self, share: float) -> None:
        """Do what there is to do; ``share`` is the part of a core used since the last look."""
        self.quiet = self.quiet + 1 if share < QUIET else 0
        if self.aside and (self.quiet >= QUIET_LOOKS or self._doubled()):
            gc.unfreeze()
            gc.collect()
            self._put_aside()
        elif gc.get_count()[2] >= FEW:
            gc.collect()
            gc.freeze()
            self.aside += 1

    def _doubled(self) -> bool:
        return resident() > 2 * self._memory

    def _put_aside(self) -> None:
        gc.freeze()
        self.aside, self._memory = 0, resident()
