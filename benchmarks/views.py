"""How many of the eight symmetric views of an area an answer needs, and which.

    python benchmarks/views.py [--tasks 0:24] [--prior digits] [--out benchmarks/results/views]

Each ball task is searched by em-ptdm with all eight views, and every view's mean is kept at every
measurement. From these follow, without another evaluation of the network,

* for every choice of views: the root mean squared difference of the memory's probability of
  target from that of all eight, over all cells and measurements, and
* for some choices: the evidence of each measurement by the memory, and by the whole engine where
  the search is replayed, cell by cell, with the mean of those views alone: memory, h and mixture
  predict the very same outcomes.

Then the task is searched with the four quarter turns (``views=4``), for the paired success rate.
Tasks that are in the file are not searched again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engram import Task, Trace, load_memory, make_policy, simulate
from engram._threads import set_threads
from engram._writing import write_file
from engram.bench.provenance import commit, machine
from engram.grid import Grid
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.base import log_likelihood
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import mean_of, measurements_of
from engram.posterior import Measured
from engram.symmetry import TURNS, views_back, views_of
from engram.tasks.balls import ball_task

HERE = Path(__file__).resolve().parent
BUDGET, AT = 250, (150, 200, 250)
ALL = tuple(range(TURNS))
CHOICES: dict[str, tuple[tuple[int, ...], ...]] = {
    "4, turned": ((0, 1, 2, 3),),
    "4, mirrored and turned": ((4, 5, 6, 7),),
    "4, both by turns": ((0, 1, 2, 3), (4, 5, 6, 7)),
    "4, half turns and mirrors": ((0, 2, 4, 6),),
    "4, half turns and diagonals": ((0, 2, 5, 7),),
    "2, mirrored, a quarter apart": ((4, 7),),
    "1": ((0,),),
}
"""Choices of views; where there are several, they take turns from measurement to measurement."""
REPLAYED = ("4, turned", "4, both by turns")
"""Those with which searches are replayed."""

Means = NDArray[np.float32]


def policy_of(task: Task, memory: PermanentMemory, k: int, views: int) -> EmPtdm:
    policy = make_policy("em-ptdm", task.grid, BUDGET, memory=memory, seed=k, views=views)
    assert isinstance(policy, EmPtdm)
    return policy


def seen_by_all(policy: EmPtdm, grid: Grid) -> tuple[list[Means], list[NDArray[np.float64]]]:
    """Lists that fill, while the policy searches, with (8, H, W) means and the reward's weights."""
    means: list[Means] = []
    rewards: list[NDArray[np.float64]] = []
    memory = policy.memory

    def posterior_mean(denoiser: Any, observations: Observations) -> torch.Tensor:
        told = measurements_of(observations)
        parts = (views_of(part, ALL) for part in (told.values, told.mask, told.sigma))
        back = views_back(mean_of(denoiser, Measured(*parts)), ALL)
        means.append(back[:, 0].numpy().copy())
        rewards.append(np.append(memory.reward.weights, memory.reward.bias))
        return back.mean(dim=0, keepdim=True)

    memory.posterior_mean = posterior_mean  # type: ignore[method-assign]
    return means, rewards


def replayed(policy: EmPtdm, task: Task, cells: Sequence[int], means: NDArray[np.float32]) -> float:
    """Evidence a measurement where the cells are given and the memory expects ``means``."""

    def posterior_mean(denoiser: Any, observations: Observations) -> torch.Tensor:
        return torch.from_numpy(means[len(observations)])[None, None]

    policy.memory.posterior_mean = posterior_mean  # type: ignore[method-assign]
    for cell in cells:
        policy.observe(task.measure(task.grid.at(int(cell))))
    return float(np.mean(policy.log.evidence))


def remembered(means: Means, rewards: NDArray[np.float64], trace: Trace) -> float:
    """Evidence a measurement of a memory that expects ``means`` (T, H, W)."""
    grid, total = trace.task.grid, 0.0
    for mean, reward, cell, y in zip(means, rewards, trace.cells, trace.outcomes, strict=True):
        p = mean.flat[grid.index(cell)] * reward[0] + reward[1]
        total += log_likelihood(float(y > 0), float(p))
    return total / len(means)


def spread(views: NDArray[np.float32], rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """(8, 8) mean products of the views' differences from their mean, in probability."""
    scaled = views.reshape(len(views), TURNS, -1) * rewards[:, :1, None]
    away = scaled - scaled.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("tic,tjc->ij", away, away) / (away.shape[0] * away.shape[2]))


def searched(k: int, memory: PermanentMemory) -> dict[str, Any]:
    """All figures of one task."""
    task = ball_task(k)
    policy = policy_of(task, memory, k, TURNS)
    means, rewards = seen_by_all(policy, task.grid)
    whole = simulate(policy, task)
    views = np.stack(means)
    weights = np.stack(rewards)
    cells = [task.grid.index(cell) for cell in whole.cells]
    evidence = {"8": {"engine": float(np.mean(whole.evidence))}}
    for name, turns in {"8": (ALL,), **CHOICES}.items():
        some = [one[list(turns[t % len(turns)])].mean(axis=0) for t, one in enumerate(views)]
        known = evidence.setdefault(name, {})
        known["memory"] = remembered(np.stack(some), weights, whole)
        if name in REPLAYED:
            again = policy_of(task, memory, k, TURNS)
            known["engine"] = replayed(again, task, cells, np.stack(some))
    began = time.process_time()
    four = simulate(policy_of(task, memory, k, 4), task)
    return {
        "spread": spread(views, weights).tolist(),
        "evidence": evidence,
        "found": {"8": rates(whole), "4": rates(four)},
        "seconds": round(time.process_time() - began, 2),
    }


def rates(trace: Trace) -> list[float]:
    return [trace.success_rate(n) for n in AT]


def plus_minus(values: Sequence[float], digits: int = 4) -> str:
    """Mean and half width of its 95 % interval."""
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):+.{digits}f} ±{half:.{digits}f}"


def table(result: dict[str, Any]) -> str:
    """As Markdown, for the page that quotes it."""
    rows = list(result["tasks"].values())
    products = np.mean([row["spread"] for row in rows], axis=0)

    def away(chosen: Sequence[int]) -> float:
        return float(np.sqrt(max(products[np.ix_(chosen, chosen)].mean(), 0.0)))

    lines = [
        "| views | off by | evidence, memory | evidence, engine |",
        "| --- | --- | --- | --- |",
    ]
    for name, turns in CHOICES.items():
        parts = [
            plus_minus([r["evidence"][name][part] - r["evidence"]["8"][part] for r in rows])
            if part in rows[0]["evidence"][name]
            else ""
            for part in ("memory", "engine")
        ]
        lines.append(f"| {name} | {away(turns[0]):.4f} | {parts[0]} | {parts[1]} |")
    best = sorted((away(chosen), chosen) for chosen in combinations(ALL, 4))
    some = ", ".join(f"{off:.4f} {chosen}" for off, chosen in (*best[:3], best[-1]))
    whole = np.mean([row["evidence"]["8"]["engine"] for row in rows])
    pairs = np.array([np.subtract(r["found"]["4"], r["found"]["8"]) for r in rows]).T
    both = ["/".join(f"{v:.3f}" for v in np.mean([r["found"][n] for r in rows], 0)) for n in "84"]
    differences = ", ".join(plus_minus(v, 3) for v in pairs.tolist())
    lines += [
        "",
        f"Ball tasks {', '.join(result['tasks'])}, memory `{result['prior']}`, budget {BUDGET}. "
        f"Off by: root mean squared difference of the memory's probability from that of "
        "all eight views, all cells and measurements. Evidence: nats a measurement beyond those of "
        f"eight views ({whole:.3f} of the engine), on the very cells that these chose; 95 % "
        "intervals over tasks.",
        "",
        f"Of the 70 choices of four views the best three and the last are off by {some} (0 to 3: "
        "quarter turns, 4 to 7: mirrored and turned).",
        "",
        f"Success rate at {'/'.join(map(str, AT))}: {both[0]} with eight views, {both[1]} with the "
        f"four quarter turns; paired {differences}.",
        "",
        f"`python benchmarks/views.py` at {result['commit']}, one thread, other work beside it.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="0:24")
    parser.add_argument("--prior", default="digits")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "views")
    args = parser.parse_args()
    set_threads(1)
    file = args.out.with_suffix(".json")
    result: dict[str, Any] = {"prior": args.prior, "tasks": {}}
    if file.exists():
        result = json.loads(file.read_text())
    result |= {"commit": commit(), "machine": machine()}
    memory = load_memory(args.prior)
    for k in range(*map(int, args.tasks.split(":"))):
        if str(k) not in result["tasks"]:
            result["tasks"][str(k)] = searched(k, memory)
            write_file(file, json.dumps(result) + "\n")
            print(k, json.dumps(result["tasks"][str(k)]["found"]), flush=True)
    write_file(args.out.with_suffix(".md"), table(result))
    print(table(result))


if __name__ == "__main__":
    main()
