"""kill -9 of a server under load: what was acknowledged is there, and clients go on by themselves.

A small run of ``benchmarks/server_load.py --kills 100``."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from server_process import ServerProcess


def load_module() -> Any:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "server_load.py"
    spec = importlib.util.spec_from_file_location("server_load", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["server_load"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # lines cut off
def test_a_server_is_killed_while_crews_work(tmp_path: Path) -> None:
    server_load = load_module()
    args = argparse.Namespace(campaigns=1, crews=4, policy="random")
    db = str(tmp_path / "campaigns.db")
    with ServerProcess(db) as server:
        tokens, uids = server_load.prepare(server, args)
        load = server_load.Load(server, tokens, uids, time.monotonic() + 12.0, 0.3)
        asyncio.run(load.run(4, 4, 2))
        assert server.stop() == -15
    found = server_load.check(db, load.tally, uids, 1)
    assert load.tally.kills >= 1
    assert load.tally.faults == []
    assert not load.tally.errors
    assert found["acknowledged"] > 0
    assert (found["lost"], found["doubled"]) == (0, 0)
