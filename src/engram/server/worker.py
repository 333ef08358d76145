"""A process that computes answers: one thread, a few campaigns kept warm.

Started by the server as ``python -m engram.server.worker``; jobs come in on standard input and
answers go out on standard output (``frames``). It ends when the server does, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections import OrderedDict
from typing import Any, BinaryIO

from engram.server import frames

WARM = 12
"""Campaigns whose policies are kept in memory."""
NICE = 5
"""How far this process stands back behind the server, whose event loop everybody waits for."""


class Worker:
    """Campaigns by uid, the ones used last kept open."""

    def __init__(self, db: str | None) -> None:
        from engram.campaign import Storage
        from engram.campaign.sql_store import SqlStore

        self._db, self._store = db, SqlStore(db, create=True, lingers=True)
        self._storage = Storage(self._store)
        self._open: OrderedDict[str, Any] = OrderedDict()

    def close(self) -> None:
        """Leave the database."""
        self._store.close()

    def answer(self, job: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """What comes of a job: its answer, or the error that it ended with."""
        from engram.campaign.model import ChangedError
        from engram.errors import EngramError

        try:
            if blob:
                job["args"]["blob"] = blob
            facts, out = self._work(job)
            return {"answer": facts}, out
        except EngramError as error:
            kind = "changed" if isinstance(error, ChangedError) else error.kind
            return {"error": str(error), "kind": kind}, b""
        except MemoryError:
            words = "not enough memory for this; choose a smaller area, or larger cells"
            return {"error": words, "kind": "unavailable"}, b""
        except Exception:
            traceback.print_exc()  # to standard error: the server's log
            return {"error": "the computation failed; the server's log says how"}, b""

    def _work(self, job: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        from engram.campaign.model import StaleError
        from engram.server.areas import create, preview
        from engram.server.jobs import JOBS

        if job["do"] == "create":
            return create(self._db, job["args"])
        if job["do"] == "preview":
            return preview(job["args"])
        known = job["uid"] in self._open
        try:
            return self._in(job, JOBS[job["do"]])
        except StaleError:  # an older copy of the database was put back: it decides
            self._open.pop(job["uid"], None)
            if not known:
                raise
            return self._in(job, JOBS[job["do"]])

    def _in(self, job: dict[str, Any], work: Any) -> tuple[dict[str, Any], bytes]:
        from engram.campaign import Campaign

        uid = job["uid"]
        if uid not in self._open:
            self._open[uid] = Campaign(self._storage, self._storage.campaign(job["name"]))
        self._open.move_to_end(uid)
        while len(self._open) > WARM:
            self._open.popitem(last=False)
        campaign = self._open[uid]
        facts, blob = work(campaign, dict(job["args"]))
        return {**facts, "head": campaign.state.hash, "seq_of_head": campaign.state.seq}, blob


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs, one after the other, until there are no more."""
    first = frames.read(jobs)
    if first is None:
        return
    worker = Worker(first[0]["db"])
    while (frame := frames.read(jobs)) is not None:
        message, blob = worker.answer(*frame)
        answers.write(frames.packed(message, blob))
        answers.flush()
    worker.close()


def stand_back() -> None:
    """Let the server go first wherever both want the processor; not on every system."""
    if hasattr(os, "nice"):
        os.nice(NICE)


def main() -> None:
    stand_back()
    from engram._threads import set_threads

    set_threads(1)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not print into the answers
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
