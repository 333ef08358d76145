"""Windows on a Ray cluster say what they say here, also when a worker is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engram import (
    EngramError,
    Grid,
    InputError,
    Observation,
    clusters,
    make_policy,
    ray_windows,
)
from engram.errors import UnavailableError
from engram.memory.denoiser import CosineSchedule, Estimate, Known
from engram.memory.permanent import PermanentMemory
from engram.policies.emptdm import EmPtdm
from engram.policies.local.windows import computed_by
from engram.ray_windows import RayWindows, windows_computed
from engram.testing import tiny_memory

GRID = Grid(80, 66)


class Mortal(torch.nn.Module):
    """Expects the sum of what was measured near a cell; kills its process, if that is a worker,
    ``deaths`` times in all: each death leaves a file in ``folder``."""

    schedule = CosineSchedule()
    conditioned = True

    def __init__(self, folder: Path, deaths: int) -> None:
        super().__init__()
        self.folder, self.deaths, self.driver = folder, deaths, os.getpid()

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        assert known is not None
        if os.getpid() != self.driver:
            (self.folder / f"worker-{os.getpid()}").touch()
            for number in range(self.deaths):
                try:
                    (self.folder / f"death-{number}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        known = known.expand(len(x_t))
        near = torch.nn.functional.conv2d(
            known.values * known.weight, torch.ones(1, 1, 5, 5) / 7, padding=2
        )
        return Estimate(x0=near, eps=torch.zeros_like(x_t))


def searching(folder: Path, deaths: int = 0) -> EmPtdm:
    card = replace(tiny_memory(1, conditioned=True).card, height=32, width=32)
    memory = PermanentMemory(Mortal(folder, deaths), card)
    made = make_policy("em-ptdm", GRID, 60, memory=memory)
    assert isinstance(made, EmPtdm)
    return made


def told(count: int) -> list[Observation]:
    rng = np.random.default_rng(3)
    cells = [GRID.at(int(i)) for i in rng.choice(GRID.n_cells, count, replace=False)]
    return [Observation.checked(GRID, c, float(c[0] % 9 < 3), float(c[0] % 9 < 3)) for c in cells]


@pytest.fixture
def cluster() -> Iterator[None]:
    """A cluster of two cores whose workers find this module."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # a busy machine is not waited for
        here = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, here)))
        patch.setattr(ray_windows, "PARCEL", 2)
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


def picture(policy: EmPtdm) -> np.ndarray:
    return np.asarray(policy.believed().beliefs.memory.image())  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_the_same_beliefs_though_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    here = searching(tmp_path)
    here.observe(told(40))
    picks = [one.cell for one in here.suggest(5)]

    there = searching(tmp_path, deaths=1)
    there.observe(told(40))
    with RayWindows(least=4) as compute, computed_by(compute):
        assert [one.cell for one in there.suggest(5)] == picks
        assert compute.sent == len(there.memory.windows.means)  # type: ignore[attr-defined]
        sent = compute.sent
        there.observe(Observation.checked(GRID, (0, 0), 0.0, 0.0))
        there.suggest()
        assert compute.sent == sent  # few windows are computed here
    assert (tmp_path / "death-0").exists()
    assert len([*tmp_path.glob("worker-*")]) >= 2
    here.observe(Observation.checked(GRID, (0, 0), 0.0, 0.0))
    here.suggest()
    np.testing.assert_array_equal(picture(there), picture(here))
    assert there.memory.frozen.evaluations == here.memory.frozen.evaluations
    assert ray.is_initialized()  # ours to end, not theirs

    monkeypatch.setattr(ray_windows, "RETRIES", 0)
    lost = searching(tmp_path, deaths=1000)
    lost.observe(told(1))
    with (
        RayWindows(least=1) as compute,
        computed_by(compute),
        pytest.raises(UnavailableError, match=r"died 1 times .*--executor local"),
    ):
        lost.suggest()
    monkeypatch.setattr(ray_windows, "source_digest", lambda: "other")
    other = searching(tmp_path)
    other.observe(told(1))
    with (
        RayWindows(least=1) as compute,
        computed_by(compute),
        pytest.raises(EngramError, match="another version of engram"),
    ):
        other.suggest()


def test_nothing_is_started_for_few_windows(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    import ray

    here = searching(tmp_path)
    here.observe(told(3))
    with RayWindows() as compute, computed_by(compute):
        here.suggest()
    assert compute.sent == 0
    assert not ray.is_initialized()


def test_what_computes_windows_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown executor 'dask'; choose one of local, ray"):
        windows_computed("dask")
    with pytest.raises(InputError, match="address='h:1': the local executor has none"):
        windows_computed("local", "h:1")
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        RayWindows(0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'engram\[ray\]'"):
        windows_computed("ray")
