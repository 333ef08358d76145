"""Worker processes that take one item at a time; a lost worker's item is done again."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from engram._threads import one_thread_children, set_threads
from engram.errors import EngramError, PresetWarning

T = TypeVar("T")
R = TypeVar("R")

Report = Callable[[int, int], None]
"""Called inside a worker with (measurements taken, targets found)."""

ATTEMPTS = 2
"""How often an item is started before its workers' deaths are taken for its fault."""


Outcome = tuple[str, Any]
"""What became of an item: its result, an error of the user's, or the trace of a bug."""


def attempt(work: Callable[[Any, Report], Any], item: Any, report: Report) -> Outcome:
    """Do an item where it may fail; what happened can be sent to another process."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PresetWarning)  # said once, where the run began
            return "done", work(item, report)
    except EngramError as error:
        return "refused", error
    except Exception:
        return "crashed", traceback.format_exc()


def settled(outcome: Outcome, item: object) -> Any:
    """The result of an item, or its error."""
    kind, payload = outcome
    if kind == "refused":
        raise payload
    if kind == "crashed":
        raise RuntimeError(f"{item} failed in a worker:\n{payload}")
    return payload


def given_up(item: object) -> EngramError:
    """The error for an item whose workers died too often."""
    return EngramError(
        f"a worker died {ATTEMPTS} times on {item} (out of memory?); use fewer workers or a "
        "smaller problem"
    )


def _serve(connection: Connection, work: Callable[[Any, Report], Any]) -> None:
    """Life of a worker: receive an item, send progress and the result, until told to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    set_threads(1)

    def report(taken: int, found: int) -> None:
        connection.send(("progress", (taken, found)))

    while True:
        try:
            item = connection.recv()
        except EOFError:  # the parent is gone
            return
        try:
            connection.send(attempt(work, item, report))
        except BrokenPipeError:
            return


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started inside never see Ctrl-C, not even while they import; it is not lost."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """One process, its pipe, and the position of the item it works on."""

    def __init__(self, work: Callable[[Any, Report], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with one_thread_children(), _deaf_to_interrupts():
            self.process.start()
        theirs.close()
        self.position: int | None = None

    def give(self, position: int, item: Any) -> None:
        self.position = position
        with suppress(OSError):  # it died while idle: its silence is noticed when reading
            self.connection.send(item)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def run_pool(
    work: Callable[[T, Report], R],
    items: Sequence[T],
    *,
    workers: int,
    progress: Callable[[int, int, int], None] | None = None,
) -> Generator[tuple[int, R], None, None]:
    """Yield (position, result) as items finish, in any order.

    Workers are spawned, have one thread each and are gone when the iterator ends, fails or
    is closed. ``progress`` is called with (position, measurements taken, targets found). An
    :class:`EngramError` of an item is raised here; an item whose worker dies is started once
    more.
    """
    queue, deaths = deque(range(len(items))), Counter[int]()
    team = [_Worker(work) for _ in range(min(workers, len(items)))]
    try:
        while queue or any(worker.position is not None for worker in team):
            for worker in team:
                if worker.position is None and queue:
                    position = queue.popleft()
                    worker.give(position, items[position])
            busy = {w.connection: i for i, w in enumerate(team) if w.position is not None}
            for connection in wait(list(busy)):
                index = busy[connection]  # type: ignore[index]
                worker = team[index]
                assert worker.position is not None
                try:
                    kind, payload = worker.connection.recv()
                except (EOFError, OSError):
                    deaths[worker.position] += 1
                    if deaths[worker.position] >= ATTEMPTS:
                        raise given_up(items[worker.position]) from None
                    queue.appendleft(worker.position)
                    worker.stop()
                    team[index] = _Worker(work)
                    continue
                if kind == "progress":
                    if progress is not None:
                        progress(worker.position, *payload)
                    continue
                position, worker.position = worker.position, None
                yield position, settled((kind, payload), items[position])
    finally:
        for worker in team:
            worker.stop()
