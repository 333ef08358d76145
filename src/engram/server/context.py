"""What the routes work with, and the conditions a request may set."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from engram.campaign import Campaign, Storage
from engram.campaign.sql_store import SqlStore
from engram.campaign.store import CampaignRow
from engram.errors import EngramError
from engram.server.access import Identities, Visit
from engram.server.desk import Desk, Moment, moment_of
from engram.server.live import Live
from engram.server.loop_watch import LoopWatch
from engram.server.people import People
from engram.server.photos import PageSettings, Photos
from engram.server.problems import ProblemError
from engram.server.settings import Settings
from engram.server.slowing import Slowing
from engram.server.workers import Answer, Workers

WARM = 2
"""Campaigns whose policies are made ready at the start."""
WARM_AFTER = 0.0
"""Seconds after which an idle process takes in what was told."""
REMEMBERED = 200
"""Answers kept for those who ask the same of the same state."""
REMEMBERED_BYTES = 64_000_000


class Context:
    """The parts of one server."""

    def __init__(self, settings: Settings, workers: Workers | None = None) -> None:
        self.settings = settings
        self._store = store = SqlStore(settings.db, create=True, lingers=True)
        self.people = People(store)
        self.desk = Desk(Storage(store))
        self.identities = Identities(self.people, settings.cookie)
        self.workers = workers or Workers(settings.db, settings.computing())
        self.live = Live(self.desk)
        self.slowing = Slowing()
        self.photos = Photos(store)
        self.page_settings = PageSettings(store)
        self.watch = LoopWatch()
        self.began = time.monotonic()
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._bytes = 0
        self._warming: dict[str, asyncio.Task[None]] = {}

    async def computed(
        self, visit: Visit, moment: Moment | str, what: str, slow: bool = False, **args: Any
    ) -> Answer:
        """An answer of the engine: computed once for each state, whoever asks."""
        mark = moment if isinstance(moment, str) else moment.etag
        key = (visit.row.uid, mark, what, tuple(sorted(args.items())))
        found = self._answers.get(key)
        if found is None:
            found = await self.workers.shared(
                key, what, visit.row.name, visit.row.uid, slow, **args
            )
            self._remember(key, found)
        else:
            self._answers.move_to_end(key)
        return found

    def _remember(self, key: Any, answer: Answer) -> None:
        if key in self._answers or len(answer[1]) > REMEMBERED_BYTES // 4:
            return
        self._answers[key] = answer
        self._bytes += len(answer[1])
        while len(self._answers) > REMEMBERED or self._bytes > REMEMBERED_BYTES:
            _, gone = self._answers.popitem(last=False)
            self._bytes -= len(gone[1])

    async def warm(self) -> None:
        """After a start: get the campaigns that were made last ready."""
        with suppress(EngramError):
            rows = await self.desk.rows()
            await self.workers.start(rows[-WARM:])

    def written(self, visit: Visit) -> None:
        """A request wrote to a campaign's log; an idle process takes it in before anybody asks."""
        row = visit.row
        self.live.changed(row.uid)
        if row.uid not in self._warming and self.workers.idle(row.uid):
            self._warming[row.uid] = asyncio.create_task(self._warm(row))

    async def _warm(self, row: CampaignRow) -> None:
        try:
            await asyncio.sleep(WARM_AFTER)
            if self.workers.idle(row.uid):
                with suppress(EngramError):
                    await self.workers.do("warm", row.name, row.uid)
        finally:
            self._warming.pop(row.uid, None)

    async def close(self) -> None:
        self.live.close()
        for task in list(self._warming.values()):
            task.cancel()
        await self.workers.stop()
        self.desk.close()
        self._store.close()


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


TheContext = Annotated[Context, Depends(_context)]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=200, description="Refuse unless this is the ETag now."),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=2000, description="Answer 304 while this holds."),
]
KeyHeader = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="As key in the body."),
]


def expected_head(condition: str | None) -> str:
    """The hash that If-Match asks for; empty for none."""
    if condition is None or condition.strip() == "*":
        return ""
    return condition.strip().removeprefix("W/").strip('"').partition(".")[0] or "none"


def not_modified(condition: str | None, etag: str) -> Response | None:
    """304 for somebody who has this already."""
    known = [part.strip().removeprefix("W/") for part in (condition or "").split(",")]
    if condition is None or (etag not in known and "*" not in known):
        return None
    return Response(status_code=304, headers={"ETag": etag})


def one_key(body: str | None, header: str | None) -> str | None:
    """The key of a request, which may be in its body or in a header."""
    if body is not None and header is not None and body != header:
        raise ProblemError(422, f"key {body!r} in the body, but {header!r} in Idempotency-Key")
    return header if body is None else body


def head_of(campaign: Campaign) -> str:
    return moment_of(campaign).hash
