"""Live changes: every event once and in order, resumed where a reader was, whoever wrote it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from server_help import Served

from engram.campaign import open_campaign
from engram.server import live as live_module


async def yes() -> bool:
    return True


async def messages(stream: AsyncIterator[bytes], count: int) -> list[tuple[str, int, Any]]:
    """The next messages: kind, number and data; comments are passed over."""
    found: list[tuple[str, int, Any]] = []
    async with asyncio.timeout(10):
        async for part in stream:
            for block in part.decode().split("\n\n"):
                lines = dict(line.partition(": ")[::2] for line in block.split("\n") if line)
                if "event" in lines:
                    number = int(lines.get("id", "0"))
                    found.append((lines["event"], number, json.loads(lines["data"])))
            if len(found) >= count:
                return found
    return found


async def follow(served: Served, after: int | None, count: int, between: Any = None) -> Any:
    context = served.context
    row = await context.desk.row("pond")
    stream = context.live.listen(row, after, yes)
    first = await messages(stream, 1)
    if between is not None:
        await asyncio.to_thread(between)
        context.live.changed(row.uid)
    rest = await messages(stream, count - 1) if count > 1 else []
    await stream.aclose()  # type: ignore[attr-defined]
    return [*first, *rest]


def test_a_reader_sees_what_others_write(served: Served) -> None:
    shell = open_campaign("pond", db=served.context.settings.db)

    def write() -> None:
        for col in range(3):
            shell.tell((0, col), 0.0, by="shell")

    seen = served.client.run(follow(served, None, 4, write))
    assert [kind for kind, _, _ in seen] == ["hello", "log", "log", "log"]
    assert [number for _, number, _ in seen[1:]] == [2, 3, 4]
    assert seen[-1][2]["cells"] == [[0, 2]]
    assert seen[-1][2]["head"] == shell.state.hash
    assert served.context.live.listeners == 0


def test_a_reader_goes_on_where_it_was(served: Served) -> None:
    shell = open_campaign("pond", db=served.context.settings.db)
    for col in range(5):
        shell.tell((0, col), 0.0)
    seen = served.client.run(follow(served, 3, 4))
    assert [number for _, number, _ in seen[1:]] == [4, 5, 6]


def test_a_reader_far_behind_gets_everything_in_parts(served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(live_module, "BATCH", 2)
    monkeypatch.setattr(live_module, "KEPT", 2)
    shell = open_campaign("pond", db=served.context.settings.db)
    for col in range(7):
        shell.tell((0, col), 0.0)
    seen = served.client.run(follow(served, 0, 9))
    assert [number for kind, number, _ in seen if kind == "log"] == list(range(1, 9))


def test_a_reader_ahead_of_the_log_is_told(served: Served) -> None:
    """The database was put back: what the reader knows is not there any more."""
    seen = served.client.run(follow(served, 50, 2))
    assert [kind for kind, _, _ in seen] == ["reset", "hello"]
    assert seen[0][1] == 1


def test_who_may_not_look_any_more_is_let_go(served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(live_module, "HEARTBEAT", 0.05)

    async def no() -> bool:
        return False

    async def read() -> list[bytes]:
        row = await served.context.desk.row("pond")
        return [part async for part in served.context.live.listen(row, None, no)]

    assert len(served.client.run(read())) == 1


def test_many_readers_cost_one_look_at_the_log(served: Served) -> None:
    context = served.context
    looks = 0
    events = context.desk.storage.events

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return events(*args)

    async def crowd() -> list[Any]:
        row = await context.desk.row("pond")
        streams = [context.live.listen(row, 0, yes) for _ in range(50)]
        firsts = await asyncio.gather(*(messages(stream, 2) for stream in streams))
        context.desk.storage.events = counted  # type: ignore[method-assign]
        shell = await asyncio.to_thread(open_campaign, "pond", db=context.settings.db)
        await asyncio.to_thread(shell.tell, (1, 1), 0.0)
        context.live.changed(row.uid)
        rest = await asyncio.gather(*(messages(stream, 1) for stream in streams))
        with contextlib.suppress(RuntimeError):
            await asyncio.gather(*(stream.aclose() for stream in streams))  # type: ignore[attr-defined]
        return [[*a, *b] for a, b in zip(firsts, rest, strict=True)]

    seen = served.client.run(crowd())
    assert all([number for kind, number, _ in s if kind == "log"] == [1, 2] for s in seen)
    assert looks <= 4
