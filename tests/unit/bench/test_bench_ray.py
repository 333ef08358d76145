"""The Ray executor does what the local one does, also when a worker is lost."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engram import EngramError, InputError, clusters
from engram.bench import ray_executor
from engram.bench.pool import Report
from engram.bench.ray_executor import run_ray
from engram.bench.runner import LocalExecutor, Plan, make_executor, run_bench

TIMINGS = ("seconds_per_observation", "peak_rss_mb")


def _workers() -> list[int]:
    """Processes of this one's Ray clusters that are at work on a unit."""
    found, ours = [], {os.getpid()}
    status: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            status[int(folder.name)] = parent, (folder / "cmdline").read_text()
        except OSError:  # it ended meanwhile
            continue
    for _ in range(4):  # driver -> raylet -> worker
        ours |= {pid for pid, (parent, _) in status.items() if parent in ours}
    for pid in ours & status.keys():
        if status[pid][1].startswith("ray::_do"):
            found.append(pid)
    return found


def _same(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in TIMINGS} for row in results["rows"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes in /proc")
def test_rows_are_those_of_the_local_executor_though_a_worker_is_killed(
    tmp_path: Path, data_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    plan = Plan.checked(
        "species",
        "random,gp",
        tasks=(0, 2),
        budget=60,
        settings={"species": "Lynx", "column": "longitude=Y_EAST", "min_records": 20},
        data=[data_files["species"].name],
    )
    killed: list[int] = []

    def kill_one(done: int, row: dict[str, Any]) -> None:
        running = _workers()
        if not killed and running and done < 3:
            killed.append(running[0])
            os.kill(running[0], signal.SIGKILL)

    spread = run_bench(plan, Path("spread"), executor=make_executor("ray", 2), progress=kill_one)
    assert killed
    assert not ray.is_initialized()
    assert not _workers()
    local = run_bench(plan, Path("local"), executor=LocalExecutor(1))
    assert spread["complete"]
    assert _same(spread) == _same(local)
    assert spread["summary"]["policies"] == local["summary"]["policies"]


@pytest.fixture
def _cluster() -> Iterator[None]:
    """A cluster that is there already, as in a program of the user's."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        here = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, here)))
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=clusters.STORE_BYTES,
        )
        yield
        ray.shutdown()


def square(item: int, report: Report) -> tuple[int, str]:
    report(item, 2 * item)
    return item**2, os.environ["OMP_NUM_THREADS"]


def refuse(item: int, report: Report) -> int:
    raise InputError(f"item {item} is wrong")


def crash(item: int, report: Report) -> int:
    return item // 0


def die(item: int, report: Report) -> int:
    os._exit(9)


@pytest.mark.slow
@pytest.mark.usefixtures("_cluster")
def test_results_and_faults_on_a_cluster_that_is_there() -> None:
    import ray

    found = dict(run_ray(square, [5, 6, 7], workers=2))
    assert found == {0: (25, "1"), 1: (36, "1"), 2: (49, "1")}
    with pytest.raises(InputError, match="item 4 is wrong"):
        list(run_ray(refuse, [4]))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(run_ray(crash, [4]))
    with pytest.raises(EngramError, match="died 2 times"):
        list(run_ray(die, [1], workers=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_executor, "source_digest", lambda: "other")
        with pytest.raises(EngramError, match="another version of engram"):
            list(run_ray(square, [1]))
    assert ray.is_initialized()  # ours to end, not the executor's


def test_nothing_to_do_starts_nothing() -> None:
    assert list(run_ray(square, [])) == []


def test_a_cluster_that_does_not_answer() -> None:
    pytest.importorskip("ray")
    with socket.socket() as held:  # a port that nobody listens on
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(InputError, match=f"no Ray cluster at {address}"):
            list(run_ray(square, [1], address=address))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'engram\[ray\]'"):
        make_executor("ray", 1)
