"""How many threads engram may use: decided once per process, never by the libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from engram.errors import InputError

_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def cores() -> int:
    """Cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def default_threads(otherwise: int = 2) -> int:
    """``OMP_NUM_THREADS`` where the user set it, ``otherwise`` if not; never more than the cores.

    Training uses two. Whatever answers uses one: what it computes is small, and where other
    processes use the cores as well, threads that wait for each other took 9 to 30 times as long.
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    wanted = int(given) if given.isdigit() and int(given) > 0 else otherwise
    return min(wanted, cores())


def set_threads(n: int | None = None) -> int:
    """Give this process n threads (default: :func:`default_threads`); returns n.

    Libraries that are already loaded are told; those loaded later read the environment.
    """
    n = default_threads() if n is None else n
    if n < 1:
        raise InputError(f"threads={n}: give at least 1")
    n = min(n, cores())
    os.environ.update(dict.fromkeys(_VARIABLES, str(n)))
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(n)
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(n, user_api="blas")
    return n


@contextmanager
def one_thread_children() -> Iterator[None]:
    """Processes started inside get one thread each, from their first import on."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
