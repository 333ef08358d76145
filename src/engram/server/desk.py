"""The campaigns that are open in the server: what answers at once is done here, in threads.

One request at a time works on a campaign; others wait on the event loop, where waiting costs
nothing, so that few threads serve many campaigns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engram.campaign import Campaign, StaleError, Storage
from engram.campaign.store import CampaignRow
from engram.errors import NotFoundError

Result = TypeVar("Result")

THREADS = 8
"""Threads that wait for the database."""

OPEN = 64
"""Campaigns whose state is kept in memory."""


@dataclass
class _Drawer:
    row: CampaignRow
    campaign: Campaign | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class Moment:
    """What a campaign's answers depend on: the head of its log, and which leases are over."""

    seq: int
    hash: str
    over: int

    @property
    def etag(self) -> str:
        """The head's hash; leases that ended since change the answers as well."""
        return f'"{self.hash}"' if not self.over else f'"{self.hash}.{self.over}"'


class Desk:
    """Campaigns by name."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._threads = ThreadPoolExecutor(THREADS, "engram-desk")
        self._drawers: OrderedDict[str, _Drawer] = OrderedDict()

    async def run(self, work: Callable[..., Result], *args: Any) -> Result:
        """Do something that waits for the database."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def row(self, name: str) -> CampaignRow:
        """The campaign of this name, or of this uid where no name is meant."""
        drawer = self._drawers.get(name)
        if drawer is None:
            if not _can_be_a_name(name):
                raise NotFoundError(f"no campaign named {name!r} in this database")
            row = await self.run(self._find, name)
            drawer = self._drawers.setdefault(row.name, _Drawer(row))
            name = row.name
        self._drawers.move_to_end(name)
        self._tidy()
        return drawer.row

    def _find(self, name: str) -> CampaignRow:
        try:
            return self.storage.campaign(name)
        except NotFoundError:
            for row in self.storage.campaigns():
                if row.uid == name:
                    return row
            raise

    def _tidy(self) -> None:
        """Put campaigns away that nobody works on."""
        while len(self._drawers) > OPEN:
            name = next((n for n, d in self._drawers.items() if not d.turn.locked()), None)
            if name is None:
                return
            del self._drawers[name]

    async def rows(self) -> list[CampaignRow]:
        return await self.run(self.storage.campaigns)

    async def at(
        self, name: str, work: Callable[[Campaign], Result], *, fresh: bool = True
    ) -> Result:
        """Do something with a campaign that is up to date (or brings itself up to date)."""
        await self.row(name)
        drawer = self._drawers[name]
        async with drawer.turn:
            try:
                return await self.run(self._work, drawer, work, fresh)
            except StaleError:  # another copy of the database was put in its place: it decides
                drawer.campaign = None
                self._drawers.pop(name, None)
                drawer.row = await self.run(self.storage.campaign, name)
                return await self.run(self._work, drawer, work, fresh)

    def _work(self, drawer: _Drawer, work: Callable[[Campaign], Result], fresh: bool) -> Result:
        if drawer.campaign is None:
            drawer.campaign = Campaign(self.storage, drawer.row)
        elif fresh:
            drawer.campaign.refresh()
        return work(drawer.campaign)

    async def moment(self, name: str) -> Moment:
        """Where a campaign is now."""
        return await self.at(name, moment_of)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def moment_of(campaign: Campaign) -> Moment:
    state, at = campaign.state, campaign.now()
    over = sum(q.expired(at) for q in state.queries.values() if q.state == "asked")
    over += len(state.waiting) - len(state.waits(at))
    return Moment(state.seq, state.hash, over)


def _can_be_a_name(name: str) -> bool:
    return 0 < len(name) <= 200 and name.isprintable()
