"""A search that is put away and taken up again is the very same search.

For every policy, under every preset and reading that keeps a state of its own, measured one by
one and in batches: a policy that is built anew and restored before every single step suggests the
same cells with the same terms as one that was never interrupted, notes the same evidence, learns
the same, and ends in the same state. States go through a file, as those of campaigns do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load, save

from engram import Grid, Observations, Task, make_policy
from engram.layers import Layers
from engram.memory.layers import MAP
from engram.memory.permanent import PermanentMemory
from engram.memory.transient import AdaptPlan
from engram.pacing import UpdateSchedule
from engram.policies import POLICIES, PRESETS, Policy, emptdm, emptdm_settings, outlines, templates
from engram.policies.imagination import DrawPlan
from engram.scores import NAMES
from engram.testing import tiny_memory

FEW = DrawPlan(particles=3, steps=2, refresh_steps=1)
PAPER = DrawPlan(particles=3, guidance="dps", steps=2, trajectory="fresh")
SCHEDULE = UpdateSchedule("uniform", every=3)
ADAPT = AdaptPlan(m_steps=2, batch=3)
BUDGET = 26

BATCHES = {"one by one": [1] * 8, "batches": [3, 4, 2, 1]}

H = {"schedule": SCHEDULE}
H_PAPER = {"schedule": SCHEDULE, "adapt": ADAPT}
VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("em-ptdm", "default", {"rule": "paper", **H}),
    ("em-ptdm", "default", {"guard": False, "views": 1, "every": 3, **H}),
    ("em-ptdm", "default", {"dreams": 9, "dream_steps": 2, **H}),
    ("em-ptdm", "paper", {"rollback": True, **H_PAPER}),
    ("em-ptdm", "paper", {"lesson": "joint", "trajectory": "shared", **H_PAPER}),
    ("em-ptdm", "paper", {"guidance": "amortised", "scale": "normalised", **H_PAPER}),
    ("em-ptdm", "paper", {"lesson": "prior", "guidance": "mmps", **H_PAPER}),
    ("em-ptdm", "paper", {"lesson": "prequential", "trajectory": "warm", **H_PAPER}),
    ("em-ptdm", "paper", {"reward": "affine", "rule": "foraging", **H_PAPER}),
    ("diffatd", "default", {"rule": "foraging", "symmetries": True}),
    ("diffatd", "default", {"trajectory": "shared"}),
    ("gp", "default", {"acquisition": "ucb"}),
]
"""Readings and rules whose state is not that of the presets."""


def cases() -> list[Any]:
    plain: list[tuple[str, str, dict[str, Any]]] = []
    for name, spec in POLICIES.items():
        for preset in PRESETS if spec.needs_memory else PRESETS[:1]:
            learns = (H_PAPER if preset == "paper" else H) if name == "em-ptdm" else {}
            plain.append((name, preset, learns))
    named = [(case, f"{case[0]}-{case[1]}") for case in plain]
    for case in VARIANTS:
        words = [f"{k}={v}" for k, v in case[2].items() if k not in H_PAPER]
        named.append((case, f"{case[0]}-{case[1]}-{','.join(words)}"))
    return [pytest.param(*case, id=label) for case, label in named]


def task_of(cell: int) -> Task:
    side = 8 * cell
    target = np.zeros((side, side), bool)
    target[2 * cell : 5 * cell, 3 * cell : 6 * cell] = True
    rng = np.random.default_rng(0)
    content = (0.7 * target + 0.3 * rng.random((side, side))).astype(np.float32)
    grid = Grid(side, side, cell=(cell, cell)).with_closed([(0, 0), (7, 2)])
    return Task("square", grid, content[None], target)


def made(name: str, preset: str, options: dict[str, Any], grid: Grid, memory: Any = None) -> Policy:
    given: dict[str, Any] = dict(options)
    if POLICIES[name].needs_memory:
        given["memory"] = memory or tiny_memory(1, size=grid.height)
        given.setdefault("draws", PAPER if preset == "paper" else FEW)
    if POLICIES[name].needs_layers:
        given["layers"] = Layers(grid, belief=np.linspace(0.1, 0.9, grid.n_cells))
    return make_policy(name, grid, BUDGET, seed=3, preset=preset, **given)


def stored(policy: Policy) -> dict[str, Any]:
    return dict(load(save({k: v.contiguous() for k, v in policy.state().items()})))


def same_states(one: Policy, other: Policy) -> bool:
    left, right = one.state(), other.state()
    return left.keys() == right.keys() and all(left[k].equal(right[k]) for k in left)


def taken_up(policy: Policy, build: Callable[[], Policy], task: Task) -> Policy:
    """The same search, put away and taken up again."""
    fresh = build()
    fresh.restore(Observations(task.grid, policy.observations), stored(policy))
    return fresh


def check_interruptions(build: Callable[[], Policy], task: Task, sizes: list[int]) -> int:
    """Interrupts right after telling, and every other time after asking too; counts updates."""
    whole, parts = build(), build()
    for number, size in enumerate(sizes):
        parts = taken_up(parts, build, task)
        expected = whole.suggest(size)
        assert parts.suggest(size) == expected
        for name in NAMES:
            one, other = (getattr(p.current_scores(), name) for p in (whole, parts))
            assert np.array_equal(one, other), name
        if number % 2:
            parts = taken_up(parts, build, task)
        before = len(whole.log.updates)
        for policy in (whole, parts):
            policy.observe([task.measure(pick.cell) for pick in expected])
        assert parts.log.evidence[-size:] == whole.log.evidence[-size:]
        assert parts.log.updates == whole.log.updates[before:]
    assert parts.suggest() == whole.suggest()
    assert same_states(whole, parts)
    return len(whole.log.updates)


@pytest.fixture(autouse=True)
def _early_dreams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of a few measurements dream too, and look for copies of their first finds."""
    monkeypatch.setattr(templates, "LEAST_FINDS", 1)
    monkeypatch.setattr(emptdm_settings, "FIRST_DREAM", 2)
    monkeypatch.setattr(emptdm, "DREAMS", 2)
    monkeypatch.setattr(outlines, "LEAST_FINDS", 1)
    monkeypatch.setattr(outlines, "LOOSE", 100.0)


ways = pytest.mark.parametrize("way", list(BATCHES))


@ways
@pytest.mark.parametrize(("name", "preset", "options"), cases())
def test_a_restored_search_is_the_same_search(
    name: str, preset: str, options: dict[str, Any], way: str
) -> None:
    task, memory = task_of(1), tiny_memory(1)

    def build() -> Policy:
        return made(name, preset, options, task.grid, memory)

    updates = check_interruptions(build, task, BATCHES[way])
    assert (updates > 0) == (name == "em-ptdm")


@ways
@pytest.mark.parametrize("name", ["greedy", "diffatd", "em-ptdm"])
def test_patches_with_a_reward_network_are_restored_as_well(name: str, way: str) -> None:
    task, memory = task_of(2), tiny_memory(1, size=16)
    check_interruptions(lambda: made(name, "default", {}, task.grid, memory), task, BATCHES[way])


@ways
def test_a_search_through_a_lens_is_restored_as_well(way: str) -> None:
    task, memory = task_of(2), tiny_memory(len(MAP))
    seen = PermanentMemory(memory.denoiser, replace(memory.card, layers=MAP))
    assert check_interruptions(
        lambda: made("em-ptdm", "default", H, task.grid, seen), task, BATCHES[way]
    )


@ways
def test_a_selection_is_restored_as_well(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While two memories try out, and after one has stayed."""
    monkeypatch.setattr("engram.policies.selection.TRIAL", 6)
    task, one = task_of(1), tiny_memory(1)
    two = PermanentMemory(one.denoiser, replace(one.card, name="twin"))
    assert check_interruptions(
        lambda: made("em-ptdm", "default", H, task.grid, [one, two]), task, BATCHES[way]
    )
