"""Explicit randomness: every stream is a function of a seed and a path of integers.

Two streams with different paths are independent; the same path gives the same
numbers on every machine, for any number of workers and after any interruption.
A particle owns its stream, so its numbers do not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engram.errors import InputError

if TYPE_CHECKING:
    import torch

STREAMS = {
    "policy": 1,
    "particles": 2,
    "adapt": 3,
    "reward": 4,
    "train": 5,
    "task": 6,
    "refresh": 8,
    "dream": 9,
    "tours": 10,
    "kriging": 11,
    "covers": 12,
}


def _entropy(seed: int, stream: str, path: Sequence[int]) -> np.random.SeedSequence:
    """Entropy of a stream; the path's length is part of it, so that () and (0,) differ."""
    if seed < 0:
        raise InputError(f"seed={seed}: give a whole number of at least 0")
    key = (STREAMS[stream], len(path), *(int(p) for p in path))
    return np.random.SeedSequence(int(seed), spawn_key=key)


def numpy_generator(seed: int, stream: str, *path: int) -> np.random.Generator:
    """A NumPy generator for (seed, stream, path)."""
    return np.random.default_rng(_entropy(seed, stream, path))


def torch_generator(seed: int, stream: str, *path: int) -> torch.Generator:
    """A CPU torch generator for (seed, stream, path)."""
    import torch

    state = _entropy(seed, stream, path).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def particle_noise(
    seed: int, stream: str, path: Sequence[int], particles: int, shape: Sequence[int]
) -> torch.Tensor:
    """Standard normal noise (P, *shape); row i depends on (seed, path, i) alone."""
    import torch

    rows = [
        torch.randn(tuple(shape), generator=torch_generator(seed, stream, *path, i))
        for i in range(particles)
    ]
    return torch.stack(rows)
