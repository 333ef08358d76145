"""The event loop is not kept waiting: by computing processes, garbage, crowds or long answers."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_help import Served, inline_app

from engram.campaign import open_campaign
from engram.server import live as live_module
from engram.server import loop_watch, run, strict_json, tidying, worker
from engram.server.long_answers import PIECE, pieces
from engram.server.routing import SHORT
from engram.server.schemas import answers
from engram.server.settings import Settings, free_port
from engram.server.tidying import Tidying
from engram.server.workers import Workers


@pytest.mark.skipif(not hasattr(os, "nice"), reason="no priorities here")
def test_a_process_that_computes_stands_back(furnished: tuple[Path, dict[str, str]]) -> None:
    async def priority() -> int:
        db = str(furnished[0])
        workers = Workers(db, 1)
        await workers.do("warm", "pond", open_campaign("pond", db=db).row.uid)
        (pid,) = workers.pids()
        found = os.getpriority(os.PRIO_PROCESS, pid)
        await workers.stop()
        return found

    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert worker.NICE > 0
    assert asyncio.run(priority()) == min(19, own + worker.NICE)


def test_processes_are_started_before_anybody_asks(served: Served, tmp_path: Path) -> None:
    assert served.context.workers.begun  # type: ignore[attr-defined]

    async def started() -> int:
        workers = Workers(str(tmp_path / "campaigns.db"), 2)
        await workers.begin()
        found = len(workers.pids())
        await workers.stop()
        return found

    assert asyncio.run(started()) == 2


def test_a_crowd_is_woken_in_many_turns_of_the_loop(served: Served) -> None:
    async def turns() -> int:
        row = await served.context.desk.row("pond")
        channel = await served.context.live._channel(row)
        channel.ears = {asyncio.Event() for _ in range(10 * live_module.TOGETHER)}
        waking = asyncio.create_task(channel.wake())
        count = 0
        while not waking.done():
            count += 1
            await asyncio.sleep(0)
        assert all(ear.is_set() for ear in channel.ears)
        return count

    assert served.client.run(turns()) >= 10


def test_events_become_bytes_in_threads(served: Served, monkeypatch: Any) -> None:
    where = []
    numbered = live_module._numbered

    def noted(event: Any) -> Any:
        where.append(threading.current_thread())
        return numbered(event)

    monkeypatch.setattr(live_module, "_numbered", noted)
    shell = open_campaign("pond", db=served.context.settings.db)

    async def listen() -> None:
        context = served.context
        row = await context.desk.row("pond")
        stream = context.live.listen(row, 0, _yes)
        await anext(stream)
        assert b"id: 1\n" in await anext(stream)  # from the log
        await asyncio.to_thread(shell.tell, (1, 1), 0.0)
        context.live.changed(row.uid)
        assert b"id: 2\n" in await anext(stream)  # news
        await stream.aclose()  # type: ignore[attr-defined]

    served.client.run(listen())
    assert len(where) >= 2
    assert threading.current_thread() not in where


async def _yes() -> bool:
    return True


class Ring:
    """Something that only the collector of garbage can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def tidying_() -> Iterator[Tidying]:
    before = gc.get_threshold()
    found = Tidying()
    found.begin()
    yield found
    found.end()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_python_leaves_what_is_old_to_us(tidying_: Tidying) -> None:
    assert gc.get_threshold()[2] == tidying.NEVER
    assert gc.get_freeze_count() > 10_000  # what was loaded is not looked through again


def test_garbage_under_load_goes_a_little_at_a_time(tidying_: Tidying) -> None:
    tidying_.look(1.0)
    for _ in range(tidying.FEW):
        gc.collect(1)
    ring = weakref.ref(Ring())
    tidying_.look(1.0)
    assert ring() is None
    assert gc.get_count()[2] == 0
    assert tidying_.aside == 1


def put_aside(tidying_: Tidying) -> weakref.ref[Ring]:
    """A ring that was in use when everything old was put aside, and is not any more."""
    ring = Ring()
    for _ in range(tidying.FEW):
        gc.collect(1)
    tidying_.look(1.0)
    gone = weakref.ref(ring)
    del ring
    gc.collect()
    assert gone() is not None
    return gone


def test_what_was_put_aside_is_looked_through_when_it_is_quiet(tidying_: Tidying) -> None:
    gone = put_aside(tidying_)
    for _ in range(tidying.QUIET_LOOKS - 1):
        tidying_.look(0.0)
    tidying_.look(0.5)  # somebody came
    tidying_.look(0.0)
    assert gone() is not None
    for _ in range(tidying.QUIET_LOOKS - 1):
        tidying_.look(0.0)
    assert gone() is None
    assert tidying_.aside == 0
    assert gc.get_freeze_count() > 10_000


def test_what_was_put_aside_is_looked_through_before_memory_runs_out(
    tidying_: Tidying, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = put_aside(tidying_)
    monkeypatch.setattr(tidying, "resident", lambda: 2 * tidying_._memory)
    tidying_.look(1.0)
    assert gone() is not None
    monkeypatch.setattr(tidying, "resident", lambda: 2 * tidying_._memory + 1)
    tidying_.look(1.0)
    assert gone() is None


def test_a_server_is_calm_while_it_runs(furnished: tuple[Path, dict[str, str]]) -> None:
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    settings = Settings(port=free_port("127.0.0.1"))
    server = run.CalmServer(run.configured(inline_app(str(furnished[0])), settings))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while gc.get_threshold()[2] != tidying.NEVER and time.monotonic() < deadline:
            time.sleep(0.02)
        assert gc.get_threshold()[2] == tidying.NEVER
        assert sys.getswitchinterval() == pytest.approx(run.SWITCH)
    finally:
        server.should_exit = True
        thread.join(20)
        sys.setswitchinterval(interval)
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": {}, "b": [], "c": [[]], "d": 'ä"\n', "e": None, "f": 1.5},
        {"rows": [[float(10 * r + c) for c in range(3)] for r in range(4)]},
        {"long": list(range(2 * PIECE + 1)), "two": [{"x": [1]}] * (PIECE + 1)},
        {"just": [None] * PIECE, "mixed": [1, [2]]},
    ],
)
def test_a_long_answer_is_the_same_json(value: Any) -> None:
    assert json.loads(b"".join(pieces(value))) == value


def test_no_piece_of_a_long_answer_is_long() -> None:
    value = {"layers": {"a": [[0.25] * 1000] * 10}, "measured": [{"cell": [1, 2]}] * 5000}
    assert max(map(len, pieces(value))) < 20 * PIECE


def test_long_answers_are_what_the_description_says(served: Served) -> None:
    """They are not checked on their way out, so they are checked here, field by field."""
    asked = served.post("crew", "/campaigns/pond/ask", {"n": 3}).json()["queries"]
    for query in asked[:2]:
        body = {"cell": query["cell"], "outcome": 1.0}
        served.post("crew", "/campaigns/pond/tell", body)
    again = {"query": asked[2]["query"], "retry": 3600.0}
    served.post("crew", "/campaigns/pond/fail", again)
    served.post("crew", "/campaigns/pond/ask", {"n": 1})
    served.post("planner", "/campaigns/pond/close", {"cells": [[0, 0]]})
    for path, model in (
        ("cells", answers.CellsInForce),
        ("cells?at=3", answers.CellsInForce),
        ("history", answers.History),
        ("beliefs", answers.Layers),
    ):
        found = served.get("viewer", f"/campaigns/pond/{path}")
        assert found.status_code == 200, found.text
        assert model.model_validate(found.json()).model_dump(mode="json") == found.json(), path
        tag = found.headers["ETag"]
        same = served.get("viewer", f"/campaigns/pond/{path}", headers={"If-None-Match": tag})
        assert same.status_code == 304


def test_a_long_body_is_read_in_a_thread(served: Served, monkeypatch: Any) -> None:
    where = []

    def noted(raw: bytes) -> Any:
        where.append(threading.current_thread() is threading.main_thread())
        return json.loads(raw)

    monkeypatch.setattr(strict_json, "parse", noted)
    body = {"cell": [1, 1], "outcome": 0.0, "note": "x"}
    assert served.post("crew", "/campaigns/pond/tell", body).status_code == 200
    served.post("crew", "/campaigns/pond/tell", {**body, "note": "x" * SHORT})
    assert where == [True, False]


def test_a_late_tick_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late by the wall, of that queued and stolen, and the latest that nothing was stolen from."""
    taken = iter([[0.0, 0.0], [0.01, 0.3], [0.3, 0.3], [0.3, 0.3]])
    monkeypatch.setattr(loop_watch, "_stolen", lambda: next(taken, [0.3, 0.3]))
    waited = iter([1.0, 1.2])
    monkeypatch.setattr(loop_watch, "_queued", lambda: next(waited, 1.2))

    async def watched() -> dict[str, float]:
        watch = loop_watch.LoopWatch()
        task = asyncio.create_task(watch.run())
        for late in (0.4, 0.2):  # of the first, 0.3 s were taken by another machine
            await asyncio.sleep(0)
            time.sleep(late)
            await asyncio.sleep(2 * loop_watch.TICK)
        task.cancel()
        return watch.to_dict()

    found = asyncio.run(watched())
    assert found["wall_ms"] >= 370
    assert found["stolen_ms"] == 300.0
    assert found["queued_ms"] == 200.0
    assert 150 <= found["ours_ms"] < found["wall_ms"]
    assert found["worked_ms"] < 150


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="not on this system")
def test_what_the_system_says_of_threads_and_cores_is_read() -> None:
    assert loop_watch._queued() > 0.0
    assert len(loop_watch._stolen()) == os.cpu_count()
