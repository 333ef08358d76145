"""Settings for the whole suite: one thread, repeatable examples, an empty user library."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "engram",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("engram")


def pytest_configure() -> None:
    """One thread: tests are small, and machines that run them are often busy."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _empty_user_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Memories a developer keeps at home play no part in tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGRAM_HOME", str(tmp_path_factory.mktemp("engram-home")))
        yield
