"""The program as a process: exit codes, streams, interruption, light imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engram._threads import cores

ENGRAM = [sys.executable, "-m", "engram"]
HEAVY = ("torch", "matplotlib", "scipy", "sklearn", "sqlalchemy", "PIL", "pandas")
TASKS = 16
TIMINGS = ("seconds_per_observation", "peak_rss_mb")


def _imported(arguments: list[str]) -> set[str]:
    """Top-level packages that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *ENGRAM[1:], *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("arguments", ["--help", "bench run --help", "prior info digits"])
def test_light_commands_load_nothing_heavy(arguments: str) -> None:
    assert _imported(arguments.split()).isdisjoint(HEAVY)


def test_errors_are_one_line_and_no_trace(tmp_path: Path) -> None:
    done = subprocess.run(
        [*ENGRAM, "search", "--image", "absent.png", "--above", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: no file at absent.png\n"
    assert list(tmp_path.iterdir()) == []


def _bench(folder: Path, workers: int = 1) -> list[str]:
    size = ["--budget", "200", "--at", "100,200", "--workers", str(workers)]
    return [
        *[*ENGRAM, "bench", "run", "balls", "--policies", "random", "--tasks", f"0:{TASKS}"],
        *[*size, "--out", str(folder), "--json"],
    ]


def _rows(results: str) -> list[dict[str, object]]:
    rows = json.loads(results)["rows"]
    return [{k: v for k, v in row.items() if k not in TIMINGS} for row in rows]


def _heeds_interrupts() -> None:
    """A process started in the background by a shell ignores interrupts, and so would its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """The rows of a run that nobody disturbed."""
    command = _bench(tmp_path_factory.mktemp("whole"), workers=min(2, cores()))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return _rows(done.stdout)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on(
    tmp_path: Path, how: signal.Signals, whole: list[dict[str, object]]
) -> None:
    folder = tmp_path / "runs"
    journal = folder / "journal.jsonl"
    process = subprocess.Popen(
        _bench(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heeds_interrupts,
    )
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 2):
        assert process.poll() is None
        time.sleep(0.01)
    if how == signal.SIGINT:  # a terminal sends it to the workers as well
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    output, errors = process.communicate()
    assert output == ""
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors == (
            f"interrupted: finished units are kept in {folder}; the same command goes on\n"
        )
    assert 2 <= journal.read_bytes().count(b"\n") - 1 < TASKS
    again = subprocess.run(_bench(folder), capture_output=True, text=True, check=True)
    assert again.stderr == ""
    assert _rows(again.stdout) == whole
    assert [row["task"] for row in whole] == list(range(TASKS))
