"""Units on a Ray cluster: one of this machine's own, started for the run, or one by address."""

from __future__ import annotations

import os
import platform
import socket
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from engram._threads import cores, one_thread_children, set_threads
from engram.bench.pool import ATTEMPTS, Outcome, Report, attempt, given_up, settled
from engram.bench.provenance import source_digest
from engram.bench.units import Row, Unit, run_unit
from engram.errors import EngramError, InputError

T = TypeVar("T")
R = TypeVar("R")

STORE_BYTES = 100 * 2**20
"""Shared memory of a cluster of our own: rows are small and hardly use it."""

KNOCK_SECONDS = 10.0
"""How long the address of a cluster may take to answer."""


@dataclass(frozen=True)
class RayExecutor:
    """Ray workers of one thread each; ``workers`` None = every core of the cluster."""

    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        _ray()

    def run(self, units: Sequence[Unit]) -> Generator[tuple[int, Row], None, None]:
        return run_ray(run_unit, units, workers=self.workers, address=self.address)


def run_ray(
    work: Callable[[T, Report], R],
    items: Sequence[T],
    *,
    workers: int | None = None,
    address: str | None = None,
) -> Generator[tuple[int, R], None, None]:
    """Yield (position, result) as items finish, in any order.

    As :func:`engram.bench.pool.run_pool`: an :class:`EngramError` of an item is raised here, an
    item whose worker or machine dies is started once more. Nothing goes on running when the
    iterator ends, fails or is closed.
    """
    if not items:
        return
    ray = _ray()
    lost = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.ObjectLostError,
    )
    queue, deaths = deque(range(len(items))), Counter[int]()
    running: dict[Any, int] = {}
    with _cluster(ray, workers, address):
        remote = ray.remote(num_cpus=1, max_retries=0)(_do)
        here = Path.cwd(), source_digest()
        try:
            while queue or running:
                while queue and len(running) < (workers or _cpus(ray)):
                    position = queue.popleft()
                    running[remote.remote(work, items[position], *here)] = position
                for reference in ray.wait(list(running))[0]:
                    position = running.pop(reference)
                    try:
                        outcome = ray.get(reference)
                    except lost:
                        deaths[position] += 1
                        if deaths[position] >= ATTEMPTS:
                            raise given_up(items[position]) from None
                        queue.appendleft(position)
                        continue
                    yield position, settled(outcome, items[position])
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _do(work: Callable[[Any, Report], Any], item: Any, folder: Path, digest: str) -> Outcome:
    """Done by a Ray worker: one item."""

    def prepared(item: Any, report: Report) -> Any:
        _prepare(folder, digest)
        return work(item, report)

    return attempt(prepared, item, lambda taken, found: None)


@lru_cache(maxsize=1)
def _prepare(folder: Path, digest: str) -> None:
    """Make a worker like the process that sends the work: its folder, its code, one thread."""
    set_threads(1)
    with suppress(OSError):  # on another machine the folder may not exist
        os.chdir(folder)
    if source_digest() != digest:
        raise EngramError(
            f"the Ray worker on {platform.node()} has another version of engram than this "
            "machine; install the same one everywhere"
        )


@contextmanager
def _cluster(ray: ModuleType, workers: int | None, address: str | None) -> Iterator[None]:
    """A connection to Ray; a cluster of our own ends with it."""
    if address is None and ray.is_initialized():  # by the program that uses engram: its to end
        yield
        return
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    own: dict[str, Any] = {
        "num_cpus": min(workers or cores(), cores()),
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
    }
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with one_thread_children():
            if address is None:
                ray.init(address="local", **own, **quiet)
            else:
                _knock(address)
                ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise InputError(f"no Ray cluster {where}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Fail at once where nobody listens; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()


def _cpus(ray: ModuleType) -> int:
    """Cores of the cluster now; it may grow and shrink."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise InputError("--executor ray needs Ray: pip install 'engram[ray]'") from error
    return ray
