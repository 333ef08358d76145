from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engram import InputError
from engram._threads import cores, default_threads, one_thread_children, set_threads
from engram.cli.main import main


@pytest.fixture
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "1")


def test_default_is_two_or_what_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert default_threads() == min(2, cores())
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert default_threads() == min(2, cores())
    assert default_threads(1) == 1


def test_answers_use_one_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wished: list[int | None] = []
    monkeypatch.setattr("engram._threads.set_threads", wished.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    db = ["--db", str(tmp_path / "c.db")]
    assert main(["campaign", "create", "c", "--size", "4,4", "--budget", "3", *db]) == 0
    assert main(["campaign", "ask", "c", *db]) == 0
    assert wished == [1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert main(["campaign", "status", "c", *db]) == 0
    assert wished == [1, min(2, cores())]
    capsys.readouterr()


@pytest.mark.usefixtures("_environment")
def test_never_more_threads_than_cores() -> None:
    import torch

    before = torch.get_num_threads()
    try:
        assert set_threads(10_000) == cores()
        assert torch.get_num_threads() == cores()
        assert os.environ["OMP_NUM_THREADS"] == str(cores())
    finally:
        set_threads(before)


def test_libraries_of_linear_algebra_that_are_loaded_are_told_too() -> None:
    """Numpy is loaded before anybody can say a number; two threads on a busy machine make small
    matrices fifty times slower."""
    code = (
        "import os; os.environ['OPENBLAS_NUM_THREADS'] = '2'; import numpy, scipy.linalg;"
        "from engram._threads import set_threads; set_threads(1);"
        "from threadpoolctl import threadpool_info;"
        "print({one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{1}"


def test_zero_threads_are_refused() -> None:
    with pytest.raises(InputError, match="threads=0"):
        set_threads(0)


def test_children_get_one_thread_and_the_environment_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread_children():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_torch_loaded_later_keeps_to_the_number() -> None:
    code = (
        "from engram._threads import set_threads; set_threads(1);"
        "import torch; assert torch.get_num_threads() == 1"
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
