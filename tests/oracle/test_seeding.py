"""Random streams: repeatable, independent, and owned by one particle each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import InputError
from engram.seeding import STREAMS, numpy_generator, particle_noise, torch_generator

PATHS = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)


def test_numbers_are_the_same_on_every_machine() -> None:
    first = numpy_generator(7, "policy", 3).integers(0, 2**31, 3)
    assert first.tolist() == [1508535661, 1610001817, 993378301]
    assert int(torch_generator(7, "particles", 1, 2).initial_seed()) == 8353607984161288502


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 50))
def test_a_particle_owns_its_noise(few: int, many: int, seed: int) -> None:
    few, many = sorted((few, many))
    small = particle_noise(seed, "particles", (3,), few, (2, 4))
    large = particle_noise(seed, "particles", (3,), many, (2, 4))
    assert torch.equal(small, large[:few])
    assert len({tuple(row.flatten().tolist()) for row in large}) == many


@given(PATHS, PATHS, st.integers(0, 2**70))
def test_different_paths_give_different_numbers(
    one: tuple[int, ...], other: tuple[int, ...], seed: int
) -> None:
    a = numpy_generator(seed, "policy", *one).random(4)
    b = numpy_generator(seed, "policy", *other).random(4)
    assert np.array_equal(a, b) == (one == other)


def test_zeros_and_large_numbers_are_no_back_doors() -> None:
    """() and (0,) differ, and 2**32 + 5 is not (5, 1)."""
    paths = [(), (0,), (0, 0), (0, 0, 0), (5, 1), (2**32 + 5,), (5,)]
    draws = {tuple(numpy_generator(0, "train", *p).random(3)) for p in paths}
    assert len(draws) == len(paths)


def test_streams_and_seeds_differ() -> None:
    draws = {
        tuple(numpy_generator(seed, name, 1).random(3))
        for name in STREAMS
        for seed in (0, 1, 2**33)
    }
    assert len(draws) == 3 * len(STREAMS)
    assert len(set(STREAMS.values())) == len(STREAMS)


def test_noise_is_standard_normal() -> None:
    noise = particle_noise(0, "particles", (), 64, (256,))
    assert float(noise.mean()) == pytest.approx(0, abs=0.03)
    assert float(noise.std()) == pytest.approx(1, abs=0.03)
    together = np.corrcoef(noise.numpy())
    assert np.abs(together - np.eye(64)).max() < 0.35


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed=-1"):
        numpy_generator(-1, "policy")


def test_global_generators_are_left_alone() -> None:
    before = torch.random.get_rng_state()
    particle_noise(0, "refresh", (1,), 3, (4,))
    assert torch.equal(before, torch.random.get_rng_state())
