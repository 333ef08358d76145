"""Ray clusters: one of this machine's own, started when it is needed, or one by address."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from engram._threads import cores, one_thread_children, set_threads
from engram.errors import EngramError, InputError

STORE_BYTES = 100 * 2**20
"""Shared memory of a cluster of our own: rows and windows are small and hardly use it."""

KNOCK_SECONDS = 10.0
"""How long the address of a cluster may take to answer."""


def ray_module() -> ModuleType:
    """Ray, or what to install."""
    try:
        import ray
    except ImportError as error:
        raise InputError("--executor ray needs Ray: pip install 'engram[ray]'") from error
    return ray


@contextmanager
def connection(ray: ModuleType, workers: int | None, address: str | None) -> Iterator[None]:
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


def cluster_cores(ray: ModuleType) -> int:
    """Cores of the cluster now; it may grow and shrink."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@lru_cache(maxsize=1)
def prepare(folder: Path, digest: str) -> None:
    """Make a worker like the process that sends the work: its folder, its code, one thread."""
    from engram.bench.provenance import source_digest

    set_threads(1)
    with suppress(OSError):  # on another machine the folder may not exist
        os.chdir(folder)
    if source_digest() != digest:
        raise EngramError(
            f"the Ray worker on {platform.node()} has another version of engram than this "
            "machine; install the same one everywhere"
        )
