"""What policies are told of the tasks of a benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engram.bench.known import Known
from engram.bench.runner import LocalExecutor, Plan, run_bench
from engram.bench.suites import get_suite
from engram.errors import InputError
from engram.tasks.balls import ball_task


def test_layers_of_files_and_of_noise(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.arange(64.0).reshape(8, 8))
    np.save(tmp_path / "b.npy", np.full((32, 32), 0.25))
    known = Known((f"z={tmp_path / 'z.npy'}:less",), str(tmp_path / "b.npy"), 2)
    first, second = (known.told(ball_task(k), k).layers for k in (0, 1))
    assert first is not None
    assert second is not None
    assert first.names == ("noise-0", "noise-1", "z")
    assert first.get("z").expected == "less"
    assert first.belief is not None
    assert not np.array_equal(first.get("noise-0").values, second.get("noise-0").values)
    again = known.told(ball_task(0), 0).layers
    assert again is not None
    assert again.sha256 == first.sha256
    assert set(known.options()) == {"layers", "belief", "noise_layers"}
    assert str(tmp_path) not in json.dumps(known.options())
    task = ball_task(0)
    assert Known().told(task, 0) is task
    with pytest.raises(InputError, match="noise layers 101"):
        Known(noise=101)


def test_a_benchmark_with_layers(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    rock = rng.uniform(size=(20, 20))
    np.savez(tmp_path / "area.npz", gold=rock > 0.9, rock=rock)
    plan = Plan.checked(
        "windows",
        "random,layer-order[layer=rock],gp[layers=rock],gp",
        tasks=(0, 1),
        budget=12,
        at=(12,),
        settings={"target": "gold", "layers": "rock", "cell": 1, "spare": 10},
        data=[tmp_path / "area.npz"],
        known=Known(noise=1),
    )
    results = run_bench(plan, tmp_path / "run", executor=LocalExecutor(1))
    rates = {row["policy"]: row["sr"]["12"] for row in results["rows"]}
    assert rates["layer-order[layer=rock]"] == 1
    assert rates["gp"] > rates["random"]
    assert results["options"]["known"] == {"noise_layers": 1}
    with pytest.raises(InputError, match="no layer 'tin'"):
        Plan.checked("balls", "gp[layers=tin]", known=Known(noise=1))


def test_the_coarse_picture_is_a_layer(data_files: dict[str, Path]) -> None:
    settings = {"size": 16, "cell": 4, "coarse": True}
    task = get_suite("overhead").tasks([data_files["overhead"]], settings).task(0)
    assert task.layers is not None
    blocks = task.content.mean(axis=0).reshape(4, 4, 4, 4).mean(axis=(1, 3))
    np.testing.assert_allclose(task.layers.get("coarse").values, blocks.ravel(), rtol=1e-5)
