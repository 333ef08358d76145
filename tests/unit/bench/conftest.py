from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from engram.bench.runner import Executor
from engram.bench.units import Row, Unit, run_unit


class Here:
    """Units in this process, one after the other."""

    def run(self, units: Sequence[Unit]) -> Generator[tuple[int, Row], None, None]:
        for position, unit in enumerate(units):
            yield position, run_unit(unit, lambda taken, found: None)


@pytest.fixture
def here() -> Executor:
    return Here()
