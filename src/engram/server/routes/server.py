"""How the server is."""

from __future__ import annotations

import time
from typing import Any

from engram._version import __version__
from engram.server.access import needs
from engram.server.context import TheContext
from engram.server.loop_watch import resident
from engram.server.routing import router
from engram.server.schemas import answers

server = router("/server", ["server"])


@server.get("", response_model=answers.ServerFacts, **needs("server owner"))
async def facts(context: TheContext) -> Any:
    """Version, memory, listeners, and how long the event loop was away at most."""
    pids = context.workers.pids()
    return {
        "version": __version__,
        "database": context.desk.storage.place,
        "uptime": time.monotonic() - context.began,
        "listeners": context.live.listeners,
        "computed": context.workers.computed,
        "workers": pids,
        "memory": {"server": resident(), "workers": sum(resident(pid) for pid in pids)},
        "loop": context.watch.to_dict(),
    }
