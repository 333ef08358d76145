"""Units on a Ray cluster: one of this machine's own, started for the run, or one by address."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engram.bench.pool import ATTEMPTS, Outcome, Report, attempt, given_up, settled
from engram.bench.provenance import source_digest
from engram.bench.units import Row, Unit, run_unit
from engram.clusters import cluster_cores, connection, prepare, ray_module

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class RayExecutor:
    """Ray workers of one thread each; ``workers`` None = every core of the cluster."""

    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        ray_module()

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

    As :func:`engram.bench.pool.run_pool`: an :class:`engram.EngramError` of an item is raised here,
    an item whose worker or machine dies is started once more. Nothing goes on running when the
    iterator ends, fails or is closed.
    """
    if not items:
        return
    ray = ray_module()
    lost = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.ObjectLostError,
    )
    queue, deaths = deque(range(len(items))), Counter[int]()
    running: dict[Any, int] = {}
    with connection(ray, workers, address):
        remote = ray.remote(num_cpus=1, max_retries=0)(_do)
        here = Path.cwd(), source_digest()
        try:
            while queue or running:
                while queue and len(running) < (workers or cluster_cores(ray)):
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
        prepare(folder, digest)
        return work(item, report)

    return attempt(prepared, item, lambda taken, found: None)
