"""The processes that compute, as the server sees them.

A campaign has one of them to itself or shares it, always the same, so that its policy stays in
memory. What takes long (a replay of the whole log, the past) is done by another one, which starts
when it is first needed. A process that dies is started again and its job repeated once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from engram._threads import one_thread_children
from engram.campaign.store import CampaignRow
from engram.errors import EngramError, UnavailableError
from engram.server import frames
from engram.server.problems import RelayedError

Answer = tuple[dict[str, Any], bytes]

SLOW = ("verify", "export", "tell_file", "place", "curves", "tours")
LONGEST = 100_000_000
QUEUE = 200
"""Jobs that may wait for one process; more are turned away."""


class DiedError(Exception):
    """The process ended in the middle of a job."""


class _Process:
    """One process and the line of jobs before it."""

    def __init__(self, db: str | None) -> None:
        self._db = db
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self.waiting = 0

    async def begin(self) -> None:
        """Start the process before there is a job for it."""
        async with self._turn:
            await self._started()

    async def do(self, job: dict[str, Any], blob: bytes = b"") -> Answer:
        """The answer to a job, when its turn has come."""
        if self.waiting >= QUEUE:
            raise UnavailableError("too many wait for an answer already; try again in a while")
        self.waiting += 1
        # who goes away in the middle leaves the job to be finished: the next one needs the line
        message, out = await asyncio.shield(asyncio.create_task(self._in_turn(job, blob)))
        if "error" in message:
            raise RelayedError(message["error"], message.get("kind", "failed"))
        return message["answer"], out

    async def _in_turn(self, job: dict[str, Any], blob: bytes) -> Answer:
        try:
            async with self._turn:
                try:
                    return await self._ask(job, blob)
                except DiedError:
                    return await self._again(job, blob)
        finally:
            self.waiting -= 1

    async def _again(self, job: dict[str, Any], blob: bytes) -> Answer:
        try:
            return await self._ask(job, blob)
        except DiedError:
            raise UnavailableError(
                "the process that computes answers died twice over this; the area may be too "
                "large for the memory of the machine"
            ) from None

    async def _ask(self, job: dict[str, Any], blob: bytes) -> Answer:
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(frames.packed(job, blob))
            await process.stdin.drain()
            return await frames.receive(process.stdout)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self._process = None
            raise DiedError from error
        except BaseException:  # whoever comes next must not read the answer to this
            self._kill()
            raise

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            with one_thread_children():
                environment = dict(os.environ)
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "engram.server.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
                limit=LONGEST,
                start_new_session=True,  # Ctrl-C is the server's; it then ends its processes
            )
            assert self._process.stdin is not None
            self._process.stdin.write(frames.packed({"db": self._db}))
        return self._process

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._process = None

    async def stop(self) -> None:
        """End the process: kindly, then not."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(2.0):
                await process.wait()
        except TimeoutError:
            self._kill()
            await process.wait()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid


class Workers:
    """All processes of a server."""

    def __init__(self, db: str | None, count: int) -> None:
        self._quick = [_Process(db) for _ in range(count)]
        self._slow = _Process(db)
        self._running: dict[Any, asyncio.Task[Answer]] = {}
        self.computed = 0

    async def do(
        self, what: str, name: str, uid: str, slow: bool = False, blob: bytes = b"", **args: Any
    ) -> Answer:
        """Have a job done for a campaign; ``blob`` is what a file brings."""
        job = {"do": what, "name": name, "uid": uid, "args": args}
        slow = slow or what in SLOW
        process = self._slow if slow else self._quick[int(uid, 16) % len(self._quick)]
        self.computed += 1
        return await process.do(job, blob)

    async def apart(self, what: str, args: dict[str, Any], blob: bytes = b"") -> Answer:
        """Have something done that is about no campaign yet, where fewest wait."""
        process = min((*self._quick, self._slow), key=lambda p: p.waiting)
        return await process.do({"do": what, "args": args}, blob)

    async def shared(
        self, key: Any, what: str, name: str, uid: str, slow: bool = False, **args: Any
    ) -> Answer:
        """The same for all who want the same (``key``) while it is being computed."""
        running = self._running.get(key)
        if running is None:
            running = asyncio.create_task(self.do(what, name, uid, slow, **args))
            self._running[key] = running
            running.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(running)

    def idle(self, uid: str) -> bool:
        """Whether nobody waits for the process of a campaign."""
        return self._quick[int(uid, 16) % len(self._quick)].waiting == 0

    def pids(self) -> list[int]:
        return [p.pid for p in (*self._quick, self._slow) if p.pid is not None]

    async def begin(self) -> None:
        """Start the processes: all threads of the server stand still until the system has done so,
        a tenth of a second on a busy machine, so it is done before anybody asks."""
        for process in self._quick:
            await process.begin()

    async def start(self, rows: Sequence[CampaignRow]) -> None:
        """Get the policies of some campaigns ready, while nobody waits for them."""
        for row in rows:
            with contextlib.suppress(EngramError):
                await self.do("warm", row.name, row.uid)

    async def stop(self) -> None:
        for task in list(self._running.values()):
            task.cancel()
        for process in (*self._quick, self._slow):
            await process.stop()
