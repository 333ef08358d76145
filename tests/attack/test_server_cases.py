"""A small run of the requests that ``server_cases`` draws from the published schema."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("schemathesis")
pytest.importorskip("fastapi")

from server_cases import attack


def test_no_answer_is_outside_the_schema(tmp_path: Path) -> None:
    found = attack(1, tmp_path)
    assert found.faults == []
    assert found.cases > 60
    assert {200, 201, 404, 422} <= found.statuses.keys()
