"""What is new, for everybody who listens: server-sent events with the log's numbers as ids.

One watcher per campaign asks the log what is new, at once when a request of this server wrote to
it and twice a second for the sake of others, and only while somebody listens. Events are put into
bytes once. A listener is a place in the log; one that reads slowly holds nothing but its place,
and one that falls behind what is kept here reads from the log again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from engram.campaign.events import Event
from engram.campaign.export import cells_of, line_of
from engram.campaign.model import StaleError
from engram.campaign.store import CampaignRow
from engram.errors import EngramError
from engram.server.desk import Desk

POLL = 0.5
"""Seconds between two looks at the log."""
PAUSE = 0.1
"""Seconds between two messages to a listener, at least: what comes in meanwhile goes together."""
PAUSE_EACH = 0.002
"""The same for every listener of the server: a crowd is told a little later, and all at a cost
that others do not notice."""
HEARTBEAT = 15.0
KEPT = 2000
"""Events kept as bytes."""
TOGETHER = 10
"""Listeners of all campaigns that are woken in one turn of the event loop."""
BATCH = 500
"""Events sent at once to somebody who was away."""


def facts_of(event: Event) -> dict[str, Any]:
    """What the live message about an event says."""
    return {**brief(event), "cells": cells_of(event), "head": event.hash}


def brief(event: Event) -> dict[str, Any]:
    """The line of an event without its payload."""
    facts = {"via": "", **line_of(event).to_dict()}
    del facts["payload"]
    return facts


def message(kind: str, data: dict[str, Any], number: int | None = None) -> bytes:
    """A server-sent event."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


class _Channel:
    """The watcher of one campaign."""

    def __init__(self, live: Live, row: CampaignRow) -> None:
        self._live, self._desk, self._row = live, live.desk, row
        self.seq, self.hash = 0, ""
        self.kept: list[tuple[int, bytes]] = []
        self._joined: dict[int, tuple[bytes, int]] = {}
        self.lives = 0
        self.ears: set[asyncio.Event] = set()
        self.poke = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Where the log ends now."""
        moment = await self._desk.moment(self._row.name)
        self.seq, self.hash = moment.seq, moment.hash

    async def watch(self) -> None:
        """Look for news as long as anybody listens."""
        while self.ears:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self.poke.wait()
            self.poke.clear()
            try:
                await self._look()
            except EngramError:  # the database is away for the moment
                await asyncio.sleep(POLL)
            await asyncio.sleep(max(PAUSE, PAUSE_EACH * self._live.listeners))

    async def _look(self) -> None:
        storage = self._desk.storage
        try:
            new, numbered = await self._desk.run(self._news)
        except StaleError:  # another log was put in its place: everybody starts anew
            self._row = await self._desk.run(storage.campaign, self._row.name)
            self.kept = []
            self.lives += 1
            await self.begin()
            await self.wake()
            return
        if new:
            self.kept = [*self.kept, *numbered][-KEPT:]
            self.seq, self.hash = new[-1].seq, new[-1].hash
            await self.wake()

    def _news(self) -> tuple[list[Event], list[tuple[int, bytes]]]:
        """What is new, and the same as bytes: made in a thread, for it may be long."""
        new = self._desk.storage.events(self._row, self.seq, self.hash)
        return new, [_numbered(event) for event in new]

    def _page(self, after: int) -> list[tuple[int, bytes]]:
        """Older events as bytes, from the log."""
        return [_numbered(e) for e in self._desk.storage.page(self._row, after, BATCH)]

    async def wake(self) -> None:
        """Tell everybody that there is news, a few at a time: others want their turn as well."""
        self._joined = {}
        async with self._live.waking:
            for number, ear in enumerate(list(self.ears), 1):
                ear.set()
                if number % TOGETHER == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def behind(self, after: int) -> tuple[bytes, int]:
        """The next events behind a number as bytes, and the number of the last of them."""
        if after >= self.seq:
            return b"", after
        if after not in self._joined:
            joined = self._joined
            if self.kept and self.kept[0][0] <= after + 1:
                first = after + 1 - self.kept[0][0]
                found = self.kept[first : first + BATCH]
            else:
                found = await self._desk.run(self._page, after)
            last = found[-1][0] if found else after
            joined[after] = b"".join(part for _, part in found), last
            return joined[after]
        return self._joined[after]


async def _heard(ear: asyncio.Event) -> bool:
    """Wait for news; False when there was none for a while."""
    try:
        async with asyncio.timeout(HEARTBEAT):
            await ear.wait()
    except TimeoutError:
        return False
    return True


def _numbered(event: Event) -> tuple[int, bytes]:
    return event.seq, message("log", facts_of(event), event.seq)


class Live:
    """The listeners of all campaigns."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.waking = asyncio.Lock()
        self._channels: dict[str, _Channel] = {}
        self.closing = False

    def changed(self, uid: str) -> None:
        """A request of this server wrote to a campaign's log."""
        channel = self._channels.get(uid)
        if channel is not None:
            channel.poke.set()

    @property
    def listeners(self) -> int:
        return sum(len(channel.ears) for channel in self._channels.values())

    async def listen(
        self, row: CampaignRow, after: int | None, allowed: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """Messages about everything behind an event (None: behind the last one)."""
        channel = await self._channel(row)
        ear = asyncio.Event()
        channel.ears.add(ear)
        try:
            if channel.task is None or channel.task.done():
                channel.task = asyncio.create_task(channel.watch())
            lives, place = channel.lives, channel.seq if after is None else after
            if place > channel.seq:
                place = channel.seq
                yield message("reset", {"seq": channel.seq, "head": channel.hash}, channel.seq)
            yield b"retry: 1000\n\n" + message("hello", {"seq": channel.seq, "head": channel.hash})
            while not self.closing:
                ear.clear()
                found, place = await channel.behind(place)
                if found:
                    yield found
                elif not await _heard(ear):
                    if not await allowed():
                        return
                    yield b": still here\n\n"
                if channel.lives != lives:
                    lives, place = channel.lives, channel.seq
                    yield message("reset", {"seq": place, "head": channel.hash}, place)
        finally:
            channel.ears.discard(ear)
            if not channel.ears:
                self._channels.pop(row.uid, None)

    async def _channel(self, row: CampaignRow) -> _Channel:
        channel = self._channels.get(row.uid)
        if channel is None:
            made = _Channel(self, row)
            await made.begin()
            channel = self._channels.setdefault(row.uid, made)
        return channel

    def close(self) -> None:
        """Let every listener go."""
        self.closing = True
        for channel in self._channels.values():
            for ear in channel.ears:
                ear.set()
            if channel.task is not None:
                channel.task.cancel()
