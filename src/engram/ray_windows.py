"""Windows of large areas on a Ray cluster, where many have changed at once.

A measurement changes a few windows, which are computed here sooner than they are sent. Earlier data
and a file of thousands of measurements change thousands of them: these go to the cluster in
parcels, each of which is a task of Ray's. Ray starts a parcel again whose worker or machine died
(``RETRIES``); nothing else is computed twice. A window is one evaluation of its own, so what it
says is the same, bit for bit, on every machine whose processor rounds like this one's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from engram.bench.provenance import source_digest
from engram.clusters import cluster_cores, connection, prepare, ray_module
from engram.errors import InputError, UnavailableError
from engram.memory.denoiser import CountedDenoiser, Denoiser
from engram.policies.local.windows import Seeing, Seen, Sight, in_turn

LEAST = 64
"""Windows that are sent; fewer are computed here, which takes about a second."""

PARCEL = 16
"""Windows of one task: what a worker that dies costs."""

RETRIES = 3
"""Times Ray starts a parcel again whose worker died."""

AHEAD = 4
"""Parcels a core that are on their way at once, so that memory does not follow the area."""


class RayWindows:
    """Computes windows on a cluster; it is connected to when first needed, and left by ``close``.

    workers : cores of a cluster of our own; None = all there are
    address : of a cluster that is there; None = one on this machine
    least   : windows from which on they are sent
    """

    def __init__(
        self, workers: int | None = None, address: str | None = None, *, least: int = LEAST
    ) -> None:
        if find_spec("ray") is None:
            ray_module()  # says what to install
        if workers is not None and workers < 1:
            raise InputError(f"workers={workers}: give at least 1")
        self.workers, self.address, self.least = workers, address, least
        self.sent = 0
        self._open = ExitStack()
        self._ray: ModuleType | None = None
        self._seeing: tuple[Seeing, Any] | None = None

    def __enter__(self) -> RayWindows:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one of our own ends."""
        self._ray, self._seeing = None, None
        self._open.close()

    def __call__(self, see: Seeing, sights: Sequence[Sight]) -> list[Seen]:
        """What the memory expects of each window, in order (``windows.Computing``)."""
        if len(sights) < self.least:
            return in_turn(see, sights)
        self.sent += len(sights)
        return [seen for parcel in self._parcels(see, sights) for seen in parcel]

    def _parcels(self, see: Seeing, sights: Sequence[Sight]) -> Iterator[list[Seen]]:
        ray = self._connected()
        if self._seeing is None or self._seeing[0] is not see:
            self._seeing = see, ray.put(see)
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_computed)
        here = Path.cwd(), source_digest()
        at_once = AHEAD * (self.workers or cluster_cores(ray))
        waiting: deque[Any] = deque()
        try:
            for begin in range(0, len(sights), PARCEL):
                parcel = list(sights[begin : begin + PARCEL])
                waiting.append(remote.remote(self._seeing[1], parcel, *here))
                if len(waiting) >= at_once:
                    yield self._received(ray, see, waiting.popleft())
            while waiting:
                yield self._received(ray, see, waiting.popleft())
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _received(self, ray: ModuleType, see: Seeing, reference: Any) -> list[Seen]:
        """The windows of a parcel; the evaluations they took are counted here."""
        try:
            windows, evaluations = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise UnavailableError(
                f"the Ray workers that compute windows died {RETRIES + 1} times "
                f"({type(error).__name__}); look after the cluster, or choose --executor local"
            ) from error
        for network, more in zip(_networks(see), evaluations, strict=True):
            if isinstance(network, CountedDenoiser):
                network.evaluations += more
        return list(windows)

    def _connected(self) -> ModuleType:
        if self._ray is None:
            ray = ray_module()
            self._open.enter_context(connection(ray, self.workers, self.address))
            self._ray = ray
        return self._ray


def _computed(
    see: Seeing, sights: list[Sight], folder: Path, digest: str
) -> tuple[list[Seen], list[float]]:
    """Done by a Ray worker: a parcel of windows, and the evaluations of each network they took."""
    prepare(folder, digest)
    before = _evaluations(see)
    windows = in_turn(see, sights)
    after = _evaluations(see)
    return windows, [late - early for early, late in zip(before, after, strict=True)]


def _networks(see: Seeing) -> list[Denoiser | None]:
    return [see.denoiser, see.learnt]


def _evaluations(see: Seeing) -> list[float]:
    """Of every network so far, where they are counted."""
    return [getattr(network, "evaluations", 0.0) for network in _networks(see)]


def windows_computed(executor: str, address: str | None = None) -> RayWindows:
    """What computes windows by the name of an executor that is not this process."""
    if executor == "ray":
        return RayWindows(None, address)
    if executor != "local":
        raise InputError(f"unknown executor {executor!r}; choose one of local, ray")
    raise InputError(f"address={address!r}: the local executor has none; choose --executor ray")
